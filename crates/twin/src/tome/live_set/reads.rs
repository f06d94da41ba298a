//! Clients that read: an object from its own tome, or as a degraded read from the others of its
//! group while that tome is spun down; and all objects of an episode at once.

use std::collections::BTreeSet;

use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::message::Held;
use fulgurite_tome_core::offline_read::{Holding, recover};
use fulgurite_tome_core::{Answer, Event, Member, Offset, TomeError};
use fulgurite_units::{Duration, Instant};

use super::driver::{ClientRequest, Driven, SetEvent};
use super::initial_state::{bytes_of, name_of};
use super::settings::ReadStrategy;
use crate::engine::{Context, Observer};
use crate::tome::run::TomeSet;

/// Backoff before a read that the tome cannot serve yet is retried, until the run ends.
const RETRY_BACKOFF: Duration = Duration::from_secs(60);

/// How an object is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadPath {
    Spinning,
    Group,
    SpunUp,
}

/// A read of an object.
#[derive(Debug)]
struct Read {
    object: usize,
    since: Instant,
    path: ReadPath,
    job: Option<usize>,
    /// Members that have not answered yet.
    waits: usize,
    replies: Vec<(Member, Vec<Held>)>,
}

/// A read of an episode.
#[derive(Clone, Copy, Debug)]
struct Job {
    since: Instant,
    left: usize,
}

/// All reads.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    reads: Vec<Read>,
    jobs: Vec<Job>,
    /// The next episode to read.
    next_episode: usize,
}

impl Driven {
    pub(crate) fn begin_reads<O: Observer<TomeSet>>(&mut self, ctx: &mut Context<'_, TomeSet, O>) {
        if self.scenario.driven.reads_per_hour > 0.0 {
            let gap_s = 3_600.0 / self.scenario.driven.reads_per_hour;
            let after = Duration::from_secs_f64(self.random.gaps.draw() * gap_s);
            self.plan(ctx.now() + after, SetEvent::Read, ctx);
        }
    }

    /// Reads a random object, if it is available.
    pub(crate) fn next_read<O: Observer<TomeSet>>(&mut self, ctx: &mut Context<'_, TomeSet, O>) {
        self.begin_reads(ctx);
        if self.objects.is_empty() {
            return;
        }
        let drawn = self.random.objects.below(self.objects.len() as u64);
        let object = usize::try_from(drawn).unwrap_or(0);
        if self.objects[object].is_readable {
            self.begin_read(object, None, ctx);
        }
    }

    /// Reads all objects of the next episode at once.
    pub(crate) fn next_job<O: Observer<TomeSet>>(&mut self, ctx: &mut Context<'_, TomeSet, O>) {
        let Some(jobs) = self.scenario.driven.jobs else { return };
        let number = self.readings.next_episode;
        if number >= (jobs.writers * jobs.episodes) as usize {
            return;
        }
        self.readings.next_episode += 1;
        self.plan(ctx.now() + jobs.every, SetEvent::Job, ctx);
        let objects = self.sessions.episodes.get(&number).cloned().unwrap_or_default();
        let objects: Vec<usize> =
            objects.into_iter().filter(|object| self.objects[*object].is_readable).collect();
        if objects.is_empty() {
            return;
        }
        let tomes: BTreeSet<usize> =
            objects.iter().map(|object| self.objects[*object].tome).collect();
        let asleep = tomes.iter().filter(|tome| self.nodes[**tome].spinning.is_none()).count();
        self.counts.jobs += 1;
        self.counts.job_tomes += tomes.len() as u64;
        self.counts.job_asleep += asleep as u64;
        self.readings.jobs.push(Job { since: ctx.now(), left: objects.len() });
        let job = Some(self.readings.jobs.len() - 1);
        for object in objects {
            self.begin_read(object, job, ctx);
        }
    }

    fn begin_read<O: Observer<TomeSet>>(
        &mut self,
        object: usize,
        job: Option<usize>,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let own = self.objects[object].tome;
        let degraded_read_members = match self.scenario.driven.reading {
            ReadStrategy::Group if !self.nodes[own].is_up => self.degraded_read_members(object),
            ReadStrategy::Group | ReadStrategy::Own => None,
        };
        let path = match (&degraded_read_members, self.nodes[own].is_up) {
            (Some(_), _) => ReadPath::Group,
            (None, true) => ReadPath::Spinning,
            (None, false) => ReadPath::SpunUp,
        };
        let waits = degraded_read_members.as_ref().map_or(0, |(_, members)| members.len());
        let since = ctx.now();
        self.readings.reads.push(Read { object, since, path, job, waits, replies: Vec::new() });
        let read = self.readings.reads.len() - 1;
        let Some((group, members)) = degraded_read_members else {
            self.get(read, ctx);
            return;
        };
        self.counts.group_reads += 1;
        let offsets = self.offsets(object);
        for tome in members {
            let request = self.request(ClientRequest::Hold { read });
            let event = Event::Hold { request, group: group.id(), offsets: offsets.clone() };
            let at = ctx.now() + self.times.latency;
            self.plan(at, SetEvent::Tome { tome, event }, ctx);
        }
    }

    /// Returns as many others of an object's group as a degraded read needs, if that many are up.
    fn degraded_read_members(&self, object: usize) -> Option<(Group, Vec<usize>)> {
        let own = self.objects[object].tome;
        let metadata = self.nodes[own].tome.as_ref()?.metadata();
        let (index, _) = *metadata.object(&name_of(object))?.blocks.first()?;
        let group = metadata.region(index)?.group().clone();
        let tomes = group.slots().iter().map(|slot| slot.tome.get() as usize);
        let mut up: Vec<usize> =
            tomes.filter(|tome| *tome != own && self.nodes[*tome].is_up).collect();
        up.sort_by_key(|tome| self.nodes[*tome].board);
        up.truncate(group.split().data() as usize);
        (up.len() == group.split().data() as usize).then_some((group, up))
    }

    fn offsets(&self, object: usize) -> Vec<Offset> {
        let object_entry = &self.objects[object];
        let known = self.nodes[object_entry.tome].tome.as_ref();
        let known = known.and_then(|tome| tome.metadata().object(&name_of(object)));
        known.map_or_else(Vec::new, |known| known.blocks.iter().map(|(_, at)| *at).collect())
    }

    fn get<O: Observer<TomeSet>>(&mut self, read: usize, ctx: &mut Context<'_, TomeSet, O>) {
        let object = self.readings.reads[read].object;
        let tome = self.objects[object].tome;
        let request = self.request(ClientRequest::Get { read });
        let event = Event::Get { request, name: name_of(object) };
        let at = ctx.now() + self.times.latency;
        self.plan(at, SetEvent::Tome { tome, event }, ctx);
    }

    /// Handles the answer to a read from an object's own tome.
    pub(crate) fn handle_get_reply<O: Observer<TomeSet>>(
        &mut self,
        read: usize,
        answer: Answer,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        if let Answer::Bytes(bytes) = answer {
            self.done(read, &bytes, ctx.now());
            return;
        }
        // Its segment has more bad blocks than its parity can correct, until the group has repaired
        // them.
        let waits = matches!(answer, Answer::Refused(TomeError::SegmentLost { .. }));
        assert!(waits, "object {}: {answer:?}", self.readings.reads[read].object);
        self.counts.refused += 1;
        let (tome, request) = {
            let object = self.readings.reads[read].object;
            (self.objects[object].tome, self.request(ClientRequest::Get { read }))
        };
        let name = name_of(self.readings.reads[read].object);
        let event = Event::Get { request, name };
        self.plan(ctx.now() + RETRY_BACKOFF, SetEvent::Tome { tome, event }, ctx);
    }

    /// Handles a member's answer to a degraded read.
    pub(crate) fn handle_hold_reply<O: Observer<TomeSet>>(
        &mut self,
        read: usize,
        answer: Answer,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let state = &mut self.readings.reads[read];
        if state.path != ReadPath::Group {
            return;
        }
        if let Answer::Held { member, held } = answer {
            state.replies.push((member, held));
            state.waits -= 1;
            if state.waits > 0 {
                return;
            }
            if let Some(bytes) = self.reconstruct(read) {
                self.done(read, &bytes, ctx.now());
                return;
            }
        }
        self.counts.fell_back += 1;
        self.readings.reads[read].path = ReadPath::SpunUp;
        self.get(read, ctx);
    }

    /// Recovers an object from the answers of members, if possible.
    fn reconstruct(&self, read: usize) -> Option<Vec<u8>> {
        let state = &self.readings.reads[read];
        let object = &self.objects[state.object];
        let metadata = self.nodes[object.tome].tome.as_ref()?.metadata();
        let (index, _) = *metadata.object(&name_of(state.object))?.blocks.first()?;
        let region = metadata.region(index)?;
        let (group, target) = (region.group(), region.member());
        let mut bytes = Vec::new();
        for at in 0..object.blocks as usize {
            let of_member =
                |(member, held): &(Member, Vec<Held>)| held[at].clone().holding(*member);
            let holdings: Vec<Holding> = state.replies.iter().map(of_member).collect();
            bytes.extend(recover(group.id(), group.split(), target, &holdings).ok()?);
        }
        (bytes == bytes_of(&self.contents, state.object, object.blocks)).then_some(bytes)
    }

    fn done(&mut self, read: usize, bytes: &[u8], now: Instant) {
        let state = &mut self.readings.reads[read];
        state.replies = Vec::new();
        let stored = &self.objects[state.object];
        assert!(
            bytes == bytes_of(&self.contents, state.object, stored.blocks),
            "a read returns what was written"
        );
        let took = now.since(state.since);
        match state.path {
            ReadPath::Spinning => self.counts.read_awake.add(took),
            ReadPath::Group => self.counts.read_group.add(took),
            ReadPath::SpunUp => self.counts.read_woke.add(took),
        }
        let Some(job) = state.job else { return };
        let job = &mut self.readings.jobs[job];
        job.left -= 1;
        if job.left == 0 {
            self.counts.job.add(now.since(job.since));
        }
    }
}
