//! Clients that write: sessions of objects to one tome, and episodes of writers who write now and
//! then.
//!
//! A client has two objects in progress, so that the tome has the next one when it is done with
//! one. What is refused for lack of space is retried later. Not here: reading.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_tome_core::placement::{Candidate, PlacementHistory, choose};
use fulgurite_tome_core::{Answer, Event, RequestId};
use fulgurite_units::{AffinityGroup, Duration, Instant};

use super::driver::{ClientRequest, Driven, SetEvent, id};
use super::initial_state::{StoredObject, bytes_of, name_of};
use super::settings::TomeSelection;
use super::stats::to_f64;
use crate::Error;
use crate::engine::{Context, Observer};
use crate::tome::run::{Observation, TomeSet};

/// Objects of a session in progress at a time.
const UNDER_WAY: u32 = 2;
/// Backoff before a refused object is retried, until the run ends.
const RETRY_BACKOFF: Duration = Duration::from_secs(20);
/// Backoff before a client that found no tome retries, until the run ends.
const SEARCH_BACKOFF: Duration = Duration::from_secs(600);

/// Objects that one client writes to one tome.
#[derive(Clone, Copy, Debug)]
struct Session {
    tome: usize,
    began: Instant,
    acknowledged_at: Instant,
    objects: u32,
    put: u32,
    acknowledged: u32,
    protected: u32,
    /// Whether its client starts another one afterwards.
    continues: bool,
}

/// All sessions, and the last tome of each writer.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Vec<Session>,
    /// Blocks still to be written.
    unwritten: u64,
    pub(crate) kins: PlacementHistory,
    /// Objects of each episode.
    pub(crate) episodes: BTreeMap<usize, Vec<usize>>,
}

impl Driven {
    /// Counts the free space of each tome.
    pub(crate) fn count_free_space(&mut self) {
        let mut free = vec![0; self.nodes.len()];
        let blocks = u64::from(self.layout.region_data_blocks());
        for group in self.groups.iter() {
            for slot in &group.slots()[..group.split().data() as usize] {
                free[slot.tome.get() as usize] += blocks;
            }
        }
        for object in &self.objects {
            free[object.tome] -= u64::from(object.blocks);
        }
        self.free = free;
    }

    /// Refuses sessions that are no whole object, or for which no tome has room.
    pub(crate) fn validate_session(&self) -> Result<(), Error> {
        let Some(ingest) = self.scenario.ingest else { return Ok(()) };
        let blocks = ingest.session.get() / self.scenario.driven.block.get();
        let room = self.free.iter().copied().max().unwrap_or(0);
        if (u64::from(self.scenario.driven.object)..=room).contains(&blocks) {
            return Ok(());
        }
        Err(Error::Parameter {
            field: "ingest.session",
            value: ingest.session.to_string(),
            expected: "from one driven.object to what is free on a tome of driven.segments",
        })
    }

    pub(crate) fn begin_clients<O: Observer<TomeSet>>(
        &mut self,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let block = self.scenario.driven.block.get();
        if let Some(ingest) = self.scenario.ingest {
            self.sessions.unwritten = ingest.total.map_or(u64::MAX, |total| total.get() / block);
            for _ in 0..ingest.clients {
                self.begin_session(ctx);
            }
        }
        let Some(jobs) = self.scenario.driven.jobs else { return };
        for writer in 0..jobs.writers {
            for number in 0..jobs.episodes {
                let episode = (writer * jobs.episodes + number) as usize;
                let begins = self.random.episodes.below(jobs.writing.as_nanos().max(1));
                for object in 0..jobs.objects {
                    let after = begins + u64::from(object) * jobs.gap.as_nanos();
                    let at = ctx.now() + Duration::from_nanos(after);
                    self.plan(at, SetEvent::Episode { writer, episode }, ctx);
                }
            }
        }
        self.plan(Instant::ZERO + jobs.reading, SetEvent::Job, ctx);
    }

    /// Starts a session of a client.
    pub(crate) fn begin_session<O: Observer<TomeSet>>(
        &mut self,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let Some(ingest) = self.scenario.ingest else { return };
        let (block, object) = (self.scenario.driven.block.get(), self.scenario.driven.object);
        let blocks = (ingest.session.get() / block).min(self.sessions.unwritten);
        let objects = u32::try_from(blocks / u64::from(object)).unwrap_or(u32::MAX);
        if objects == 0 {
            return;
        }
        let Some(tome) = self.choose(u64::from(objects * object), None, ctx.now()) else {
            self.plan(ctx.now() + SEARCH_BACKOFF, SetEvent::Session, ctx);
            return;
        };
        self.sessions.unwritten -= u64::from(objects * object);
        self.open(tome, objects, true, ctx);
    }

    /// Writes an object of an episode.
    pub(crate) fn write_episode_object<O: Observer<TomeSet>>(
        &mut self,
        writer: u32,
        episode: usize,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let blocks = u64::from(self.scenario.driven.object);
        let affinity = AffinityGroup::new(u64::from(writer));
        let Some(tome) = self.choose(blocks, Some(affinity), ctx.now()) else {
            self.plan(ctx.now() + SEARCH_BACKOFF, SetEvent::Episode { writer, episode }, ctx);
            return;
        };
        self.sessions.kins.record(affinity, id(tome), blocks, ctx.now());
        let object = self.objects.len();
        self.sessions.episodes.entry(episode).or_default().push(object);
        self.open(tome, 1, false, ctx);
    }

    /// Chooses a tome for `blocks` blocks, and subtracts them from its free space.
    fn choose(
        &mut self,
        blocks: u64,
        affinity: Option<AffinityGroup>,
        now: Instant,
    ) -> Option<usize> {
        let all = self.free.iter().zip(&self.nodes).enumerate();
        let candidates: Vec<Candidate> = all
            .filter(|(_, (_, node))| node.tome.is_some())
            .map(|(tome, (free, node))| Candidate {
                tome: id(tome),
                free: *free,
                is_spinning: node.spinning.is_some(),
            })
            .collect();
        let tome = match self.scenario.driven.choosing {
            TomeSelection::Room => choose(&candidates, None, blocks, now),
            TomeSelection::Affinity => {
                let last = affinity.and_then(|affinity| self.sessions.kins.last(affinity));
                choose(&candidates, last, blocks, now)
            }
            TomeSelection::Random => {
                let fits: Vec<&Candidate> =
                    candidates.iter().filter(|c| c.free >= blocks).collect();
                let count = fits.len() as u64;
                let drawn = (count > 0).then(|| self.random.tomes.below(count));
                drawn.and_then(|at| fits.get(usize::try_from(at).unwrap_or(0)).map(|c| c.tome))
            }
        }?;
        let tome = tome.get() as usize;
        self.free[tome] -= blocks;
        Some(tome)
    }

    fn open<O: Observer<TomeSet>>(
        &mut self,
        tome: usize,
        objects: u32,
        continues: bool,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let now = ctx.now();
        let (put, acknowledged, protected) = (0, 0, 0);
        let began = now;
        let session = Session {
            tome,
            began,
            acknowledged_at: now,
            objects,
            put,
            acknowledged,
            protected,
            continues,
        };
        self.sessions.all.push(session);
        let session = self.sessions.all.len() - 1;
        for _ in 0..objects.min(UNDER_WAY) {
            self.put_next(session, ctx);
        }
    }

    fn put_next<O: Observer<TomeSet>>(
        &mut self,
        session: usize,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let entry = &mut self.sessions.all[session];
        if entry.put == entry.objects {
            return;
        }
        entry.put += 1;
        let (tome, blocks) = (entry.tome, self.scenario.driven.object);
        self.objects.push(StoredObject { tome, blocks, is_protected: false, is_readable: false });
        self.put(session, self.objects.len() - 1, ctx);
    }

    /// Sends an object to its tome.
    pub(crate) fn put<O: Observer<TomeSet>>(
        &mut self,
        session: usize,
        object: usize,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let StoredObject { tome, blocks, .. } = self.objects[object];
        let request = self.request(ClientRequest::Put { session, object });
        let bytes = bytes_of(&self.contents, object, blocks);
        let avoided = BTreeSet::new();
        let event = Event::Put { request, name: name_of(object), bytes, avoided };
        let at = ctx.now() + self.times.latency;
        self.plan(at, SetEvent::Tome { tome, event }, ctx);
    }

    pub(crate) fn request(&mut self, purpose: ClientRequest) -> RequestId {
        self.counts.requests += 1;
        let request = RequestId(self.counts.requests);
        self.requests.insert(request, purpose);
        request
    }

    /// Handles an answer to a client.
    pub(crate) fn handle_answer<O: Observer<TomeSet>>(
        &mut self,
        request: RequestId,
        answer: Answer,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let Some(purpose) = self.requests.get(&request).copied() else { return };
        if !matches!(answer, Answer::Local) {
            self.requests.remove(&request);
        }
        match purpose {
            ClientRequest::Put { session, object } => {
                self.handle_put_reply(session, object, &answer, ctx)
            }
            ClientRequest::Get { read } => self.handle_get_reply(read, answer, ctx),
            ClientRequest::Hold { read } => self.handle_hold_reply(read, answer, ctx),
            ClientRequest::SpinUp => {}
        }
    }

    fn handle_put_reply<O: Observer<TomeSet>>(
        &mut self,
        session: usize,
        object: usize,
        answer: &Answer,
        ctx: &mut Context<'_, TomeSet, O>,
    ) {
        let now = ctx.now();
        let bytes = self.scenario.driven.block.get() * u64::from(self.objects[object].blocks);
        if matches!(answer, Answer::Refused(_)) {
            self.counts.refused += 1;
            self.plan(now + RETRY_BACKOFF, SetEvent::Retry { session, object }, ctx);
            return;
        }
        if matches!(answer, Answer::Protected) {
            self.check_protected(object);
            self.objects[object].is_protected = true;
            let entry = &mut self.sessions.all[session];
            entry.protected += 1;
            if entry.protected == entry.objects {
                let all = bytes * u64::from(entry.objects);
                self.stats.protected(now, entry.acknowledged_at, all);
                ctx.notify(Observation::Protected(all));
            }
            return;
        }
        self.objects[object].is_readable = true;
        self.stats.acknowledged(now, bytes);
        ctx.notify(Observation::Acknowledged(bytes));
        let entry = &mut self.sessions.all[session];
        entry.acknowledged += 1;
        entry.acknowledged_at = now;
        let (is_whole, continues, began) =
            (entry.acknowledged == entry.objects, entry.continues, entry.began);
        if is_whole {
            self.counts.session.add(now.since(began));
            if continues {
                self.begin_session(ctx);
            }
        } else {
            self.put_next(session, ctx);
        }
    }

    /// Computes the figures that are known only at the end.
    pub(crate) fn count_end(&mut self, at: Instant) {
        let blocks = u64::from(self.layout.region_data_blocks());
        let all = self.layout.blocks();
        let mut taken: Vec<u64> = vec![0; self.nodes.len()];
        for object in self.objects.iter().filter(|object| object.is_readable) {
            taken[object.tome] += u64::from(object.blocks);
        }
        let sum: u64 = taken.iter().sum();
        let most = taken.iter().max().copied().unwrap_or(0);
        let mean = to_f64(sum) / to_f64(taken.len() as u64);
        assert!(
            most <= blocks * u64::from(self.scenario.driven.regions),
            "a tome holds no more than its capacity"
        );
        self.counts.fullest = if sum > 0 { to_f64(most) / mean } else { 0.0 };
        let scrubbed = self.nodes.iter().filter_map(|node| node.tome.as_ref()).map(|tome| {
            let known = tome.metadata().scrubbed();
            to_f64(known.passes) + to_f64(known.next) / to_f64(all)
        });
        self.counts.scrubbed_min = scrubbed.fold(f64::INFINITY, f64::min);
        let spinning_s = self.stats.spinning_s(at);
        let time_s = at.since(Instant::ZERO).as_secs_f64() * to_f64(self.nodes.len() as u64);
        self.counts.duty = spinning_s / time_s;
        self.counts.spins = self.stats.spin_ups();
    }
}
