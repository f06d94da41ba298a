//! The controller with a simulated tier whose drives take time. Every restore ends, whatever fails
//! for a while, and no drive is idle while anything waits.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{
    ByteCount, Controller as _, Duration, Instant, Outbox, RandomStream, Seed, UnixTime,
};

use super::{MIB, piece};
use crate::{Command, Event, Piece, PieceId, RestoreId, Restores, Retrieval};

/// A scheduled event of the simulation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Asked(u64),
    /// A drive has read the pieces of a fetch.
    Read(usize),
    /// Pieces that were available at once have been copied.
    Copied(usize),
    Done(RestoreId),
    Timer,
}

/// A fetch that waits for a drive, with its due time.
type Waiting = (UnixTime, usize);

pub(super) struct World {
    pub(super) restores: Restores,
    now: Instant,
    agenda: BTreeSet<(Instant, Next)>,
    fetches: Vec<Vec<PieceId>>,
    /// The tier serves the earliest due time first.
    waiting: BTreeSet<Waiting>,
    idle: usize,
    requests: BTreeMap<u64, (Retrieval, Vec<Piece>)>,
    bytes: BTreeMap<PieceId, u64>,
    random: RandomStream,
    /// Pieces that fail, per thousand.
    failing: u64,
    pub(super) ended: BTreeMap<u64, Duration>,
    requested_at: BTreeMap<u64, Instant>,
    steps: u64,
    /// Whether anything waits, for a drive or to be fetched.
    has_more: bool,
    /// Drive-seconds that passed while anything waited, and those of them in which the drive
    /// worked.
    pub(super) busy: (f64, f64),
}

impl World {
    pub(super) fn new(drives: usize, seed: u64) -> Self {
        Self {
            restores: Restores::new(drives),
            now: Instant::ZERO,
            agenda: BTreeSet::new(),
            fetches: Vec::new(),
            waiting: BTreeSet::new(),
            idle: drives,
            requests: BTreeMap::new(),
            bytes: BTreeMap::new(),
            random: Seed::new(seed).stream(),
            failing: 0,
            ended: BTreeMap::new(),
            requested_at: BTreeMap::new(),
            steps: 0,
            has_more: false,
            busy: (0.0, 0.0),
        }
    }

    fn request(&mut self, after: Duration, retrieval: Retrieval, pieces: Vec<Piece>) -> u64 {
        let number = self.requests.len() as u64;
        for (index, piece) in (0..).zip(&pieces) {
            self.bytes.insert(super::id(number, index), piece.bytes.get());
        }
        self.requests.insert(number, (retrieval, pieces));
        self.agenda.insert((self.now + after, Next::Asked(number)));
        number
    }

    /// Requests restores of one to five pieces at a hundred places, over ten minutes.
    pub(super) fn request_many(&mut self, count: u64) {
        for _ in 0..count {
            let pieces = (0..=self.random.below(5))
                .map(|_| {
                    let bytes = self.random.below(40) * MIB;
                    let is_immediate = self.random.below(8) == 0;
                    let piece = piece(self.random.below(100).into(), bytes);
                    Piece { place: piece.place.filter(|_| !is_immediate), ..piece }
                })
                .collect();
            let retrieval = Retrieval::URGENT_FIRST[usize::try_from(self.random.below(3)).unwrap()];
            let after = Duration::from_millis(self.random.below(600_000));
            self.request(after, retrieval, pieces);
        }
    }

    /// Runs until no event is left.
    pub(super) fn run(&mut self, mut observe: impl FnMut(Instant, &Event, &[Command])) {
        while let Some((at, next)) = self.agenda.pop_first() {
            let drives = self.restores.tiers()[0].drives;
            // The tail, with less to fetch than there are drives, is not counted.
            if self.has_more {
                let passed = at.since(self.now).as_secs_f64();
                self.busy.0 += passed * drives as f64;
                self.busy.1 += passed * (drives - self.idle) as f64;
            }
            self.now = at;
            let events = self.fire(next);
            for event in events {
                let mut out = Outbox::new();
                self.restores.step(self.now, event.clone(), &mut out);
                // With many restores a check takes a while.
                self.steps += 1;
                if self.steps.is_multiple_of(1 + self.requests.len() as u64 / 64) {
                    self.restores.check();
                }
                let commands: Vec<Command> = out.drain().collect();
                observe(self.now, &event, &commands);
                commands.into_iter().for_each(|command| self.execute(command));
            }
            while self.idle > 0
                && let Some((_, fetch)) = self.waiting.pop_first()
            {
                self.idle -= 1;
                let bytes: u64 = self.fetches[fetch].iter().map(|id| self.bytes[id]).sum();
                let takes = Duration::from_millis(20_000 + bytes / MIB * 16);
                self.agenda.insert((self.now + takes, Next::Read(fetch)));
            }
            self.has_more = !self.waiting.is_empty()
                || self.restores.lanes.iter().flatten().any(|lane| !lane.queue.is_empty());
            if let Some(due) = self.restores.deadline() {
                self.agenda.insert((due, Next::Timer));
            }
        }
    }

    fn fire(&mut self, next: Next) -> Vec<Event> {
        match next {
            Next::Asked(number) => {
                self.requested_at.insert(number, self.now);
                let (retrieval, pieces) = self.requests[&number].clone();
                let at = UnixTime::from_millis(self.now.as_nanos() / 1_000_000);
                vec![Event::Asked { restore: RestoreId::new(number), retrieval, at, pieces }]
            }
            Next::Read(fetch) => {
                self.idle += 1;
                self.results(fetch)
            }
            Next::Copied(fetch) => self.results(fetch),
            Next::Done(restore) => {
                let requested_at = self.requested_at[&restore.get()];
                if self.random.below(1000) < self.failing {
                    return vec![Event::Lost { restore }];
                }
                self.ended.insert(restore.get(), self.now.since(requested_at));
                vec![Event::Committed { restore }]
            }
            Next::Timer => vec![Event::Timer],
        }
    }

    fn results(&mut self, fetch: usize) -> Vec<Event> {
        let pieces = std::mem::take(&mut self.fetches[fetch]);
        let answer = |piece| {
            if self.random.below(1000) < self.failing {
                Event::Failed { piece }
            } else {
                Event::Came { piece }
            }
        };
        pieces.into_iter().map(answer).collect()
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Fetch { place, pieces, due } => {
                let fetch = self.fetches.len();
                self.fetches.push(pieces);
                if place.is_some() {
                    self.waiting.insert((due, fetch));
                } else {
                    self.agenda.insert((self.now, Next::Copied(fetch)));
                }
            }
            Command::Commit { restore } => {
                self.agenda.insert((self.now, Next::Done(restore)));
            }
            Command::Forget { .. } => {}
        }
    }
}

#[test]
fn every_restore_ends_after_transient_failures() {
    for seed in 0..20 {
        let mut world = World::new(1 + usize::try_from(seed % 5).unwrap(), seed);
        world.failing = 100 + 10 * seed;
        world.request_many(60);
        world.run(|_, _, _| ());
        assert_eq!(world.ended.len(), 60, "seed {seed}");
        let scheduler = &world.restores;
        assert!(
            scheduler.restores.is_empty()
                && scheduler.in_flight.is_empty()
                && scheduler.places.is_empty()
        );
        assert_eq!(scheduler.reserved(), ByteCount::ZERO);
    }
}

#[test]
fn no_drive_is_idle_while_anything_waits() {
    for seed in 0..10 {
        let mut world = World::new(4, seed);
        // 4 GiB at 16 places, and a thousand small ones at a hundred.
        let large = (0..16).map(|place| piece(place, 256 * MIB)).collect();
        world.request(Duration::ZERO, Retrieval::Standard, large);
        for number in 0..1000 {
            world.request(Duration::ZERO, Retrieval::Standard, vec![piece(number % 100, 100_000)]);
        }
        world.run(|_, _, _| ());
        let (all, busy) = world.busy;
        assert!(all > 100.0 && busy >= 0.999 * all, "seed {seed}: {busy} of {all} seconds");
    }
}

#[test]
fn expedited_restore_waits_for_at_most_one_visit() {
    let mut world = World::new(4, 3);
    for number in 0..10_000 {
        world.request(Duration::ZERO, Retrieval::Bulk, vec![piece(number, MIB)]);
    }
    let mut urgent = Vec::new();
    for minute in 1..100 {
        let pieces = vec![piece(20_000 + u128::from(minute), MIB)];
        urgent.push(world.request(Duration::from_secs(60 * minute), Retrieval::Expedited, pieces));
    }
    world.run(|_, _, _| ());
    let slowest = urgent.iter().map(|number| world.ended[number]).max().unwrap();
    assert!(slowest <= Duration::from_millis(2 * 20_016), "{slowest} for 20.016 s of a visit");
}

#[test]
fn expedited_restores_do_not_starve_bulk() {
    let mut world = World::new(1, 4);
    // Urgent restores keep the drive busy for two days without a pause; each takes 20 s.
    for number in 0..8640 {
        let pieces = vec![piece(1000 + u128::from(number), MIB)];
        world.request(Duration::from_secs(20 * number), Retrieval::Expedited, pieces);
    }
    let bulk = world.request(Duration::from_secs(60), Retrieval::Bulk, vec![piece(1, MIB)]);
    world.run(|_, _, _| ());
    let took = world.ended[&bulk];
    let within = Retrieval::Bulk.within();
    assert!(took <= within + Duration::from_secs(600), "{took}");
}
