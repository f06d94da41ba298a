//! Clients that write: sessions of objects to one tome, and episodes of writers who write now and
//! then.
//!
//! A client has two objects in progress, so that the tome has the next one when it is done with
//! one. What is refused for lack of space is retried later. Not here: reading.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_tome::placement::{Candidate, Kins, choose};
use fulgurite_tome::{Answer, Event, RequestId};
use fulgurite_units::{Duration, Instant, Kin};

use super::accounts::float;
use super::drive::{Asked, Driven, Happening, id};
use super::fill::{Kept, bytes_of, name_of};
use super::settings::Choosing;
use crate::engine::{Observer, Stage};
use crate::tomes::run::{Seen, Tomes};

/// Objects of a session in progress at a time.
const UNDER_WAY: u32 = 2;
/// Backoff before a refused object is retried, until the run ends.
const AGAIN: Duration = Duration::from_secs(20);
/// Backoff before a client that found no tome retries, until the run ends.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

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
    goes_on: bool,
}

/// All sessions, and who wrote last.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Vec<Session>,
    /// Blocks still to be written.
    unwritten: u64,
    pub(crate) kins: Kins,
    /// Objects of each episode.
    pub(crate) episodes: BTreeMap<usize, Vec<usize>>,
}

impl Driven {
    /// Counts the free space of each tome.
    pub(crate) fn count_room(&mut self) {
        let mut free = vec![0; self.nodes.len()];
        let blocks = u64::from(self.layout.region_data_blocks());
        for group in self.groups.iter() {
            for seat in &group.seats()[..group.split().data() as usize] {
                free[seat.tome.get() as usize] += blocks;
            }
        }
        for object in &self.objects {
            free[object.tome] -= u64::from(object.blocks);
        }
        self.free = free;
    }

    pub(crate) fn begin_clients<O: Observer<Tomes>>(&mut self, stage: &mut Stage<'_, Tomes, O>) {
        let block = self.scenario.driven.block.get();
        if let Some(ingest) = self.scenario.ingest {
            self.sessions.unwritten = ingest.total.map_or(u64::MAX, |total| total.get() / block);
            for _ in 0..ingest.clients {
                self.begin_session(stage);
            }
        }
        let Some(jobs) = self.scenario.driven.jobs else { return };
        for writer in 0..jobs.writers {
            for number in 0..jobs.episodes {
                let episode = (writer * jobs.episodes + number) as usize;
                let begins = self.random.episodes.below(jobs.writing.as_nanos().max(1));
                for object in 0..jobs.objects {
                    let after = begins + u64::from(object) * jobs.gap.as_nanos();
                    let at = stage.now() + Duration::from_nanos(after);
                    self.plan(at, Happening::Episode { writer, episode }, stage);
                }
            }
        }
        self.plan(Instant::ZERO + jobs.reading, Happening::Job, stage);
    }

    /// Starts a session of a client.
    pub(crate) fn begin_session<O: Observer<Tomes>>(&mut self, stage: &mut Stage<'_, Tomes, O>) {
        let Some(ingest) = self.scenario.ingest else { return };
        let (block, object) = (self.scenario.driven.block.get(), self.scenario.driven.object);
        let blocks = (ingest.session.get() / block).min(self.sessions.unwritten);
        let objects = u32::try_from(blocks / u64::from(object)).unwrap_or(u32::MAX);
        if objects == 0 {
            return;
        }
        let Some(tome) = self.choose(u64::from(objects * object), None, stage.now()) else {
            self.plan(stage.now() + LOOK_AGAIN, Happening::Session, stage);
            return;
        };
        self.sessions.unwritten -= u64::from(objects * object);
        self.open(tome, objects, true, stage);
    }

    /// Writes an object of an episode.
    pub(crate) fn write_of<O: Observer<Tomes>>(
        &mut self,
        writer: u32,
        episode: usize,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let blocks = u64::from(self.scenario.driven.object);
        let kin = Kin::new(u64::from(writer));
        let Some(tome) = self.choose(blocks, Some(kin), stage.now()) else {
            self.plan(stage.now() + LOOK_AGAIN, Happening::Episode { writer, episode }, stage);
            return;
        };
        self.sessions.kins.note(kin, id(tome), blocks, stage.now());
        let object = self.objects.len();
        self.sessions.episodes.entry(episode).or_default().push(object);
        self.open(tome, 1, false, stage);
    }

    /// Chooses a tome for `blocks` blocks, and subtracts them from its free space.
    fn choose(&mut self, blocks: u64, kin: Option<Kin>, now: Instant) -> Option<usize> {
        let all = self.free.iter().zip(&self.nodes).enumerate();
        let candidates: Vec<Candidate> = all
            .filter(|(_, (_, node))| node.tome.is_some())
            .map(|(tome, (free, node))| Candidate {
                tome: id(tome),
                free: *free,
                turns: node.turning.is_some(),
            })
            .collect();
        let tome = match self.scenario.driven.choosing {
            Choosing::Room => choose(&candidates, None, blocks, now),
            Choosing::Kin => {
                let last = kin.and_then(|kin| self.sessions.kins.last(kin));
                choose(&candidates, last, blocks, now)
            }
            Choosing::Random => {
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

    fn open<O: Observer<Tomes>>(
        &mut self,
        tome: usize,
        objects: u32,
        goes_on: bool,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let now = stage.now();
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
            goes_on,
        };
        self.sessions.all.push(session);
        let session = self.sessions.all.len() - 1;
        for _ in 0..objects.min(UNDER_WAY) {
            self.put_next(session, stage);
        }
    }

    fn put_next<O: Observer<Tomes>>(&mut self, session: usize, stage: &mut Stage<'_, Tomes, O>) {
        let of = &mut self.sessions.all[session];
        if of.put == of.objects {
            return;
        }
        of.put += 1;
        let (tome, blocks) = (of.tome, self.scenario.driven.object);
        self.objects.push(Kept { tome, blocks, is_protected: false, is_there: false });
        self.put(session, self.objects.len() - 1, stage);
    }

    /// Sends an object to its tome.
    pub(crate) fn put<O: Observer<Tomes>>(
        &mut self,
        session: usize,
        object: usize,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let Kept { tome, blocks, .. } = self.objects[object];
        let request = self.request(Asked::Put { session, object });
        let bytes = bytes_of(&self.contents, object, blocks);
        let avoided = BTreeSet::new();
        let event = Event::Put { request, name: name_of(object), bytes, avoided };
        let at = stage.now() + self.times.latency;
        self.plan(at, Happening::Tome { tome, event }, stage);
    }

    pub(crate) fn request(&mut self, asked: Asked) -> RequestId {
        self.counts.requests += 1;
        let request = RequestId(self.counts.requests);
        self.requests.insert(request, asked);
        request
    }

    /// Handles an answer to a client.
    pub(crate) fn answered<O: Observer<Tomes>>(
        &mut self,
        request: RequestId,
        answer: Answer,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let Some(asked) = self.requests.get(&request).copied() else { return };
        if !matches!(answer, Answer::Local) {
            self.requests.remove(&request);
        }
        match asked {
            Asked::Put { session, object } => self.of_put(session, object, &answer, stage),
            Asked::Get { read } => self.of_get(read, answer, stage),
            Asked::Hold { read } => self.of_hold(read, answer, stage),
            Asked::Wake => {}
        }
    }

    fn of_put<O: Observer<Tomes>>(
        &mut self,
        session: usize,
        object: usize,
        answer: &Answer,
        stage: &mut Stage<'_, Tomes, O>,
    ) {
        let now = stage.now();
        let bytes = self.scenario.driven.block.get() * u64::from(self.objects[object].blocks);
        if matches!(answer, Answer::Refused(_)) {
            self.counts.refused += 1;
            self.plan(now + AGAIN, Happening::Again { session, object }, stage);
            return;
        }
        if matches!(answer, Answer::Protected) {
            self.check_protected(object);
            self.objects[object].is_protected = true;
            let of = &mut self.sessions.all[session];
            of.protected += 1;
            if of.protected == of.objects {
                let all = bytes * u64::from(of.objects);
                self.accounts.protected(now, of.acknowledged_at, all);
                stage.show(Seen::Protected(all));
            }
            return;
        }
        self.objects[object].is_there = true;
        self.accounts.acknowledged(now, bytes);
        stage.show(Seen::Acknowledged(bytes));
        let of = &mut self.sessions.all[session];
        of.acknowledged += 1;
        of.acknowledged_at = now;
        let (is_whole, goes_on, began) = (of.acknowledged == of.objects, of.goes_on, of.began);
        if is_whole {
            self.counts.session.add(now.since(began));
            if goes_on {
                self.begin_session(stage);
            }
        } else {
            self.put_next(session, stage);
        }
    }

    /// Computes the figures that are known only at the end.
    pub(crate) fn count_end(&mut self, at: Instant) {
        let blocks = u64::from(self.layout.region_data_blocks());
        let all = self.layout.blocks();
        let mut taken: Vec<u64> = vec![0; self.nodes.len()];
        for object in self.objects.iter().filter(|object| object.is_there) {
            taken[object.tome] += u64::from(object.blocks);
        }
        let sum: u64 = taken.iter().sum();
        let most = taken.iter().max().copied().unwrap_or(0);
        let mean = float(sum) / float(taken.len() as u64);
        assert!(most <= blocks * u64::from(self.scenario.driven.regions), "a tome has its room");
        self.counts.fullest = if sum > 0 { float(most) / mean } else { 0.0 };
        let scrubbed = self.nodes.iter().filter_map(|node| node.tome.as_ref()).map(|tome| {
            let known = tome.awake().scrubbed();
            float(known.passes) + float(known.next) / float(all)
        });
        self.counts.scrubbed_min = scrubbed.fold(f64::INFINITY, f64::min);
        let turned_s = self.accounts.turned_s(at);
        let time_s = at.since(Instant::ZERO).as_secs_f64() * float(self.nodes.len() as u64);
        self.counts.duty = turned_s / time_s;
        self.counts.spins = self.accounts.spin_ups();
    }
}
