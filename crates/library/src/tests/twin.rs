//! A tiny digital twin: events in the order (time, sequence), mechanics by seed, and a world of its
//! own bookkeeping that each command is held against. Nothing here trusts the controller's state,
//! except to ask which trip a shuttle is on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fulgurite_units::{
    ByteCount, Controller, Duration, Instant, Outbox, PlatterId, RandomStream, Seed, ShuttleIndex,
    SlotIndex, TrackIndex,
};

use super::world::World;
use crate::state::TripKind;
use crate::{
    Action, Command, CommandId, Error, Event, Fault, Library, LibraryShape, Mechanics, Outcome,
    Output, PanelIndex, RequestId, Throughput, TrackSpan,
};

pub(super) struct Twin {
    pub(super) library: Library,
    pub(super) world: World,
    pub(super) now: Instant,
    /// Request, outcome and time, in the order of the ends.
    pub(super) finished: Vec<(RequestId, Outcome, Instant)>,
    pub(super) rejected: Vec<(RequestId, Error)>,
    pub(super) transcript: String,
    /// The slot each new platter gets once its verification ended.
    pub(super) slots: BTreeMap<PlatterId, SlotIndex>,
    /// The chance in 1,000 that a command fails.
    pub(super) faults_per_mille: u64,
    /// Operations that fail, once each, by how they are described.
    pub(super) script: Vec<(&'static str, Fault)>,
    mechanics: Option<Mechanics>,
    random: RandomStream,
    agenda: BTreeMap<(Instant, u64), Happening>,
    running: BTreeMap<CommandId, (Instant, u64)>,
    sequence: u64,
    /// Reads that no drive has begun: their order of arrival, platter and slot.
    waiting: BTreeMap<RequestId, (u64, PlatterId, SlotIndex)>,
    verifying: BTreeMap<RequestId, PlatterId>,
    trips: Vec<Option<(TripKind, PlatterId)>>,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Event(Event),
    Done { started: Instant, command: Command, fault: Option<Fault> },
}

pub(super) const TRACK: ByteCount = ByteCount::new(20_000_000);

impl Twin {
    /// A library whose machines take the paper's times.
    pub(super) fn new(shape: &LibraryShape, seed: u64) -> Self {
        Self::with(shape, seed, Some(Mechanics::new(Throughput::PAPER, TRACK)))
    }

    /// A library whose machines take no time at all.
    pub(super) fn instant(shape: &LibraryShape, seed: u64) -> Self {
        Self::with(shape, seed, None)
    }

    fn with(shape: &LibraryShape, seed: u64, mechanics: Option<Mechanics>) -> Self {
        let library = Library::new(shape).unwrap();
        Self {
            world: World::new(&library.floor),
            trips: vec![None; library.shuttles.len()],
            library,
            now: Instant::ZERO,
            finished: Vec::new(),
            rejected: Vec::new(),
            transcript: String::new(),
            slots: BTreeMap::new(),
            faults_per_mille: 0,
            script: Vec::new(),
            mechanics,
            random: Seed::new(seed).child(b"mechanics").stream(),
            agenda: BTreeMap::new(),
            running: BTreeMap::new(),
            sequence: 0,
            waiting: BTreeMap::new(),
            verifying: BTreeMap::new(),
        }
    }

    pub(super) fn read(&mut self, at_ms: u64, request: u64, platter: u8, slot: u32, track: u32) {
        let (request, platter) = (RequestId::new(request), platter_id(platter));
        let slot = SlotIndex::new(slot);
        self.world.storage.entry(slot).or_insert(platter);
        let tracks = TrackSpan::new(TrackIndex::new(track), 1);
        self.at(at_ms, Event::Read { request, platter, slot, tracks });
    }

    pub(super) fn verify(
        &mut self,
        at_ms: u64,
        request: u64,
        platter: u8,
        slot: u32,
        track_count: u32,
    ) {
        let (request, platter) = (RequestId::new(request), platter_id(platter));
        let slot = SlotIndex::new(slot);
        let panel = self.library.shape().address(slot).unwrap().panel;
        self.slots.insert(platter, slot);
        let tracks = TrackSpan::new(TrackIndex::new(0), track_count);
        self.at(at_ms, Event::Verify { request, platter, panel, tracks });
    }

    pub(super) fn at(&mut self, at_ms: u64, event: Event) {
        let at = Instant::from_nanos(at_ms * 1_000_000);
        self.plan(at, Happening::Event(event));
    }

    /// Runs until nothing is left to happen, checking every invariant after every event.
    pub(super) fn run(&mut self) {
        while let Some(((at, _), happening)) = self.agenda.pop_first() {
            self.now = at;
            let event = self.happen(happening);
            self.arrive(event);
            let mut out = Outbox::new();
            self.library.step(self.now, event, &mut out);
            self.library.check();
            self.audit_fetches();
            for output in out.drain() {
                self.carry_out(output);
            }
        }
    }

    /// Runs, then holds that everything accepted is finished and everything is at rest.
    pub(super) fn run_to_rest(&mut self) {
        self.run();
        assert_eq!(self.library.request_count(), 0, "requests are left");
        assert!(self.library.platters.is_empty(), "platters are left: {:?}", self.library.platters);
        assert!(self.library.outstanding.is_empty(), "commands are left");
        self.world.assert_at_rest();
    }

    /// A number that differs as soon as any command, its order or its time differs.
    pub(super) fn hash(&self) -> u64 {
        self.transcript.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Requests in the order in which they ended.
    pub(super) fn order(&self) -> Vec<u64> {
        self.finished.iter().map(|(request, ..)| request.get()).collect()
    }

    pub(super) fn outcome(&self, request: u64) -> Option<(Outcome, Instant)> {
        let mut ends = self.finished.iter().filter(|(id, ..)| id.get() == request);
        ends.next().map(|&(_, outcome, at)| (outcome, at))
    }

    fn plan(&mut self, at: Instant, happening: Happening) -> (Instant, u64) {
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), happening);
        (at, self.sequence)
    }

    /// Makes it true in the world; returns what the controller is told.
    fn happen(&mut self, happening: Happening) -> Event {
        match happening {
            Happening::Event(event) => event,
            Happening::Done { command, fault: None, .. } if self.world.lacks(&command.action) => {
                self.running.remove(&command.id);
                self.world.stop(&command.action);
                Event::Failed { command: command.id, fault: Fault::PlatterMissing }
            }
            Happening::Done { command, fault: Some(fault), .. } => {
                self.running.remove(&command.id);
                self.world.fail(&command.action, fault);
                Event::Failed { command: command.id, fault }
            }
            Happening::Done { started, command, fault: None } => {
                self.running.remove(&command.id);
                let done = self.tracks_done(&command.action, started);
                self.world.complete(&self.library.floor, &command.action, done);
                match (command.action, done) {
                    (Action::VerifyPass { tracks, .. }, Some(done))
                        if done < tracks.track_count =>
                    {
                        Event::Halted { command: command.id, tracks_done: done }
                    }
                    _ => Event::Completed { command: command.id },
                }
            }
        }
    }

    /// How many tracks a pass has read by now.
    fn tracks_done(&self, action: &Action, started: Instant) -> Option<u32> {
        let Action::VerifyPass { tracks, .. } = action else { return None };
        let Some(mechanics) = self.mechanics else { return Some(tracks.track_count) };
        let one = mechanics.read(TrackSpan::new(tracks.first, 1)).as_nanos();
        let done = self.now.since(started).as_nanos() / one;
        Some(u32::try_from(done).unwrap().min(tracks.track_count))
    }

    /// Notes what is asked, before the controller sees it.
    fn arrive(&mut self, event: Event) {
        match event {
            Event::Read { request, platter, slot, .. } => {
                self.waiting.insert(request, (self.sequence, platter, slot));
                self.sequence += 1;
            }
            Event::Verify { request, platter, panel, .. } => {
                self.verifying.insert(request, platter);
                self.world.eject(panel, platter);
            }
            Event::Store { .. }
            | Event::Cancel { .. }
            | Event::Completed { .. }
            | Event::Halted { .. }
            | Event::Failed { .. }
            | Event::Timer => {}
        }
    }

    fn carry_out(&mut self, output: Output) {
        let ms = self.now.as_nanos() / 1_000_000;
        match output {
            Output::Do(command) => self.start(command),
            Output::Halt { command } => self.halt(command),
            Output::Finished { request, outcome } => {
                writeln!(self.transcript, "{ms:<7} ms  {request} finished: {outcome:?}").unwrap();
                self.waiting.remove(&request);
                self.finished.push((request, outcome, self.now));
                self.store_next(request, outcome);
            }
            Output::Rejected { request, reason } => {
                writeln!(self.transcript, "{ms:<7} ms  {request} rejected: {reason}").unwrap();
                self.waiting.remove(&request);
                self.rejected.push((request, reason));
            }
        }
    }

    fn start(&mut self, command: Command) {
        self.world.start(&self.library.floor, &command.action);
        if let Action::Read { request, .. } = command.action {
            self.waiting.remove(&request);
        }
        let duration = self.mechanics.map_or(Duration::ZERO, |mechanics| {
            mechanics.duration(&command.action, &mut self.random)
        });
        let fault = self.draw_fault(&command.action);
        let ms = self.now.as_nanos() / 1_000_000;
        let action = describe(&command.action);
        let seconds = duration.as_secs_f64();
        writeln!(self.transcript, "{ms:<7} ms  {action} ({seconds:.3} s)").unwrap();
        let happening = Happening::Done { started: self.now, command, fault };
        let key = self.plan(self.now + duration, happening);
        self.running.insert(command.id, key);
    }

    /// Lets a pass end with the track it is in.
    fn halt(&mut self, id: CommandId) {
        let ms = self.now.as_nanos() / 1_000_000;
        writeln!(self.transcript, "{ms:<7} ms  halt").unwrap();
        let Some(mechanics) = self.mechanics else { return };
        let key = self.running.remove(&id).expect("only what runs is halted");
        let happening = self.agenda.remove(&key).unwrap();
        let Happening::Done { started, command, .. } = happening else { unreachable!() };
        let Action::VerifyPass { tracks, .. } = command.action else {
            panic!("only verification is halted");
        };
        let one = mechanics.read(TrackSpan::new(tracks.first, 1)).as_nanos();
        let done = self.now.since(started).as_nanos().div_ceil(one) * one;
        let end = (started + Duration::from_nanos(done)).min(key.0);
        let key = self.plan(end, happening);
        self.running.insert(id, key);
    }

    /// A platter whose verification ended gets its slot.
    fn store_next(&mut self, request: RequestId, outcome: Outcome) {
        let Some(platter) = self.verifying.remove(&request) else { return };
        assert_ne!(outcome, Outcome::Read, "a verification is no read");
        let slot = self.slots[&platter];
        let request = RequestId::new(request.get() + 1_000_000);
        self.plan(self.now, Happening::Event(Event::Store { request, platter, slot }));
    }

    fn draw_fault(&mut self, action: &Action) -> Option<Fault> {
        let words = describe(action);
        if let Some(line) = self.script.iter().position(|(part, _)| words.contains(part)) {
            return Some(self.script.remove(line).1);
        }
        if self.faults_per_mille == 0 || self.random.below(1000) >= self.faults_per_mille {
            return None;
        }
        let fatal = self.random.below(4) == 0;
        Some(match action {
            Action::Pick { .. } if !fatal => Fault::PlatterMissing,
            Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. } => Fault::ShuttleBroken,
            Action::Mount { .. }
            | Action::Unmount { .. }
            | Action::Switch { .. }
            | Action::Seek { .. }
            | Action::Read { .. }
            | Action::VerifyPass { .. } => {
                if fatal {
                    Fault::DriveBroken
                } else {
                    Fault::Unreadable
                }
            }
        })
    }

    /// No read is overtaken: a platter fetched now has an older read than any other platter that
    /// lies in its slot in the same partition and is not hidden by another shuttle.
    fn audit_fetches(&mut self) {
        for (index, before) in self.trips.iter_mut().enumerate() {
            let trip = self.library.shuttles[index].trip.as_ref();
            let trip = trip.map(|trip| (trip.kind, trip.platter));
            let is_new = *before != trip;
            *before = trip;
            let Some((TripKind::Fetch, chosen)) = trip.filter(|_| is_new) else { continue };
            let shuttle = ShuttleIndex::new(u16::try_from(index).unwrap());
            let oldest = self.waiting.values().filter(|(_, platter, _)| *platter == chosen);
            let oldest = oldest.map(|(arrival, ..)| *arrival).min();
            let oldest = oldest.expect("a platter is fetched for somebody");
            for (request, &(arrival, platter, slot)) in &self.waiting {
                let reachable = platter != chosen
                    && self.world.storage.get(&slot) == Some(&platter)
                    && self.library.floor.owner(slot) == Some(shuttle)
                    && !self.library.is_obscured(slot, shuttle);
                assert!(
                    !reachable || arrival > oldest,
                    "request {request} for {platter} was overtaken by {chosen}"
                );
            }
        }
    }
}

/// One of 256 platters of the tests.
pub(super) fn platter_id(number: u8) -> PlatterId {
    PlatterId::from_bytes([number; 16])
}

pub(super) fn panel(number: u16) -> PanelIndex {
    PanelIndex::new(number)
}

/// Sets of slots that no two platters share.
pub(super) fn distinct_slots(
    shape: &LibraryShape,
    random: &mut RandomStream,
    count: usize,
) -> Vec<u32> {
    let mut slots = BTreeSet::new();
    let mut order = Vec::new();
    while order.len() < count {
        let slot = u32::try_from(random.below(u64::from(shape.slot_count()))).unwrap();
        if slots.insert(slot) {
            order.push(slot);
        }
    }
    order
}

/// An operation in words.
pub(super) fn describe(action: &Action) -> String {
    match action {
        Action::Move { shuttle, from, to } => {
            format!("shuttle {shuttle} moves {:.3} m", from.meters_to(*to))
        }
        Action::Crab { shuttle, from, to } => format!("shuttle {shuttle} crabs {from} to {to}"),
        Action::Pick { shuttle, platter, from } => {
            format!("shuttle {shuttle} picks {} from {from:?}", short(*platter))
        }
        Action::Place { shuttle, platter, to } => {
            format!("shuttle {shuttle} places {} into {to:?}", short(*platter))
        }
        Action::Mount { drive, slot, platter } => {
            format!("drive {drive} mounts {} in {slot:?}", short(*platter))
        }
        Action::Unmount { drive, slot, platter } => {
            format!("drive {drive} unmounts {} in {slot:?}", short(*platter))
        }
        Action::Switch { drive, to } => format!("drive {drive} switches to {to:?}"),
        Action::Seek { drive, platter, track } => {
            format!("drive {drive} seeks track {track} of {}", short(*platter))
        }
        Action::Read { drive, request, tracks, .. } => {
            format!("drive {drive} reads {} tracks for {request}", tracks.track_count)
        }
        Action::VerifyPass { drive, tracks, .. } => {
            let TrackSpan { first, track_count } = tracks;
            format!("drive {drive} verifies {track_count} tracks from {first}")
        }
    }
}

fn short(platter: PlatterId) -> String {
    format!("platter {}", platter.to_bytes()[0])
}
