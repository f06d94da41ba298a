//! A tiny digital twin: events in the order (time, sequence), mechanics by seed, and a world with
//! bookkeeping of its own against which each command is checked. Nothing here trusts the
//! controller's state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fulgurite_units::{
    ByteCount, Controller, DriveIndex, Duration, Instant, Outbox, PlatterId, RandomStream, Seed,
    ShuttleIndex, SlotIndex, TrackIndex,
};

use super::batteries::Batteries;
use super::world::{Mounted, World, machine_of};
use crate::control::{
    Action, Command, CommandId, Error, Event, Fault, Inventory, Library, LibraryShape,
    LoosePlatter, Machine, Mechanics, Movement, Outcome, Output, PanelIndex, ParkedShuttle, Place,
    Policy, RailPosition, RequestId, ShelfIndex, Throughput, TrackSpan,
};

/// A library, its machines and its pending events.
#[derive(Clone, Debug)]
pub(super) struct Twin {
    pub(super) library: Library,
    pub(super) world: World,
    pub(super) now: Instant,
    /// Request, outcome and time, in the order in which they ended.
    pub(super) finished: Vec<(RequestId, Outcome, Instant)>,
    pub(super) rejected: Vec<(RequestId, Error)>,
    pub(super) transcript: String,
    /// Requests that are not answered yet.
    pub(super) pending: BTreeMap<RequestId, Event>,
    /// The slot in which each platter lives, or will live.
    pub(super) homes: BTreeMap<PlatterId, SlotIndex>,
    /// New platters not stored yet, and how many tracks they have.
    pub(super) unstored: BTreeMap<PlatterId, u32>,
    /// The chance in 1,000 that a command fails or a machine breaks with it.
    pub(super) failures_per_mille: u64,
    /// How long a repair takes; `None` is forever.
    pub(super) repair_after: Option<Duration>,
    /// Operations that fail, once each, by their description.
    pub(super) script: Vec<(&'static str, Failure)>,
    /// The time of the last request or repair from outside.
    pub(super) last_arrival: Instant,
    /// The batteries of the shuttles, if they have any.
    pub(super) batteries: Option<Batteries>,
    pub(super) hash: u64,
    pub(super) events: u64,
    mechanics: Option<Mechanics>,
    random: RandomStream,
    event_queue: BTreeMap<(Instant, u64), SimEvent>,
    running: BTreeMap<CommandId, (Instant, u64)>,
    sequence: u64,
    last_retry_id: u64,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is answered as failed.
    Fails(Fault),
    /// Its machine breaks halfway, and it is not answered.
    Breaks,
}

#[derive(Clone, Copy, Debug)]
enum SimEvent {
    Event(Event),
    Done { started: Instant, command: Command, fault: Option<Fault> },
}

pub(super) const TRACK: ByteCount = ByteCount::new(20_000_000);
pub(super) const OBJECTIVE: Duration = Duration::from_secs(15 * 3600);

/// Requests of the twin itself have numbers from here on.
const FIRST_RETRY_ID: u64 = 1_000_000;

impl Twin {
    /// Creates a library with the product's policy, whose machines take the paper's times.
    pub(super) fn new(shape: &LibraryShape, seed: u64) -> Self {
        Self::with_policy(shape, Policy::fulgurite(), seed)
    }

    pub(super) fn with_policy(shape: &LibraryShape, policy: Policy, seed: u64) -> Self {
        let has_shuttles = policy.movement != Movement::NoShuttles;
        let library = Library::with_policy(shape, policy).unwrap();
        let mut world = World::new(&library.floor);
        world.has_shuttles = has_shuttles;
        Self {
            world,
            library,
            now: Instant::ZERO,
            finished: Vec::new(),
            rejected: Vec::new(),
            transcript: String::new(),
            pending: BTreeMap::new(),
            homes: BTreeMap::new(),
            unstored: BTreeMap::new(),
            failures_per_mille: 0,
            repair_after: None,
            script: Vec::new(),
            last_arrival: Instant::ZERO,
            batteries: None,
            hash: 0xcbf2_9ce4_8422_2325,
            events: 0,
            mechanics: Some(Mechanics::new(Throughput::PAPER, TRACK)),
            random: Seed::new(seed).child(b"mechanics").stream(),
            event_queue: BTreeMap::new(),
            running: BTreeMap::new(),
            sequence: 0,
            last_retry_id: FIRST_RETRY_ID,
        }
    }

    /// Makes the machines take no time at all.
    pub(super) fn instant(mut self) -> Self {
        self.mechanics = None;
        self
    }

    pub(super) fn read(&mut self, at_ms: u64, request: u64, platter: u32, slot: u32, track: u32) {
        let deadline = Instant::from_nanos(at_ms * 1_000_000) + OBJECTIVE;
        self.read_until(at_ms, request, platter, slot, track, deadline);
    }

    pub(super) fn read_until(
        &mut self,
        at_ms: u64,
        request: u64,
        platter: u32,
        slot: u32,
        track: u32,
        deadline: Instant,
    ) {
        let (request, platter) = (RequestId::new(request), platter_id(platter));
        let slot = SlotIndex::new(slot);
        if let std::collections::btree_map::Entry::Vacant(home) = self.homes.entry(platter) {
            home.insert(slot);
            self.world.storage.insert(slot, platter);
        }
        let tracks = TrackSpan::new(TrackIndex::new(track), 1);
        self.at(at_ms, Event::Read { request, platter, slot, tracks, deadline });
    }

    pub(super) fn verify(
        &mut self,
        at_ms: u64,
        request: u64,
        platter: u32,
        slot: u32,
        track_count: u32,
    ) {
        let (request, platter) = (RequestId::new(request), platter_id(platter));
        let slot = SlotIndex::new(slot);
        let panel = self.library.shape().address(slot).unwrap().panel;
        self.homes.insert(platter, slot);
        let tracks = TrackSpan::new(TrackIndex::new(0), track_count);
        self.at(at_ms, Event::Verify { request, platter, panel, tracks });
    }

    pub(super) fn at(&mut self, at_ms: u64, event: Event) {
        self.schedule(Instant::from_nanos(at_ms * 1_000_000), SimEvent::Event(event));
    }

    pub(super) fn after(&mut self, wait: Duration, event: Event) {
        self.schedule(self.now + wait, SimEvent::Event(event));
    }

    pub(super) fn break_at(&mut self, at_ms: u64, machine: Machine) {
        self.at(at_ms, Event::Broke { machine });
    }

    pub(super) fn repair_at(&mut self, at_ms: u64, machine: Machine) {
        self.at(at_ms, Event::Repaired { machine });
    }

    /// Runs until no event is left, checking every invariant after every event.
    pub(super) fn run(&mut self) {
        while self.step() {
            assert!(self.events < 200_000, "the run does not end");
        }
    }

    /// Lets the next event happen, if there is any.
    pub(super) fn step(&mut self) -> bool {
        let next = self.event_queue.first_key_value().map(|((at, _), _)| *at);
        let timer = self.library.deadline().map(|at| at.max(self.now));
        if let Some(at) = timer.filter(|timer| next.is_none_or(|next| *timer < next)) {
            self.schedule(at, SimEvent::Event(Event::Timer));
        }
        let Some(((at, _), sim_event)) = self.event_queue.pop_first() else { return false };
        self.now = at;
        self.events += 1;
        let sim_event = self.drain_battery(sim_event);
        if let Some(event) = self.apply_event(sim_event) {
            // A broken machine is reported before battery levels, or it would be given work; so is
            // a repair, after which the battery is another.
            let first = matches!(event, Event::Broke { .. } | Event::Repaired { .. });
            if !first {
                self.report_batteries();
            }
            self.send(event);
            if first {
                self.report_batteries();
            }
        }
        true
    }

    fn send(&mut self, event: Event) {
        let mut out = Outbox::new();
        self.library.step(self.now, event, &mut out);
        self.library.check();
        for output in out.drain() {
            self.carry_out(output);
        }
    }

    /// Takes the energy of an operation from the battery of its shuttle; fails the operation if
    /// that is flat.
    fn drain_battery(&mut self, sim_event: SimEvent) -> SimEvent {
        let Some(batteries) = &mut self.batteries else { return sim_event };
        match sim_event {
            SimEvent::Done { started, command, fault: None } => {
                let flat = batteries.account_for(&command.action);
                SimEvent::Done { started, command, fault: flat.then_some(Fault::BatteryFlat) }
            }
            SimEvent::Event(Event::Repaired { machine: Machine::Shuttle(shuttle) })
                if self.world.shuttles[shuttle.as_usize()].broken =>
            {
                batteries.swap(shuttle);
                sim_event
            }
            SimEvent::Event(_) | SimEvent::Done { .. } => sim_event,
        }
    }

    fn report_batteries(&mut self) {
        let broken = |shuttle: ShuttleIndex| self.world.shuttles[shuttle.as_usize()].broken;
        let Some(batteries) = &mut self.batteries else { return };
        for (shuttle, percent) in batteries.new_reports(broken) {
            self.record(&format!("shuttle {shuttle} has {percent} percent"));
            self.send(Event::Battery { shuttle, percent });
        }
    }

    /// Runs, then repairs what is broken and repeats what failed; asserts that everything accepted
    /// is finished and every platter is in its slot.
    pub(super) fn run_to_rest(&mut self) {
        self.run();
        for _ in 0..20 {
            self.repair_all();
            self.resend_unstored();
            self.run();
            if self.world.broken().is_empty() && self.unstored.is_empty() {
                break;
            }
        }
        assert!(self.pending.is_empty(), "requests are left: {:?}", self.pending);
        assert_eq!(self.library.request_count(), 0, "requests are left");
        let left: Vec<_> = self.library.shelf.known().collect();
        assert!(left.is_empty(), "platters are left: {left:?}");
        assert!(self.running.is_empty(), "commands are left");
        if self.world.has_shuttles {
            self.world.assert_at_rest();
            let stored = self.world.storage.iter().map(|(slot, platter)| (*platter, *slot));
            assert_eq!(stored.collect::<BTreeMap<_, _>>(), self.homes, "platters are not home");
        }
    }

    /// Restarts the controller, with the machines as they are: operations in progress had no
    /// effect. Requests are sent again.
    pub(super) fn restart(&mut self) {
        self.world.stop_all();
        // The machines' pending answers are to commands that the new controller never gave.
        self.event_queue.retain(|_, sim_event| match sim_event {
            SimEvent::Event(event) => !matches!(event, Event::Passed { .. }),
            SimEvent::Done { .. } => false,
        });
        self.running.clear();
        if let Some(batteries) = &mut self.batteries {
            batteries.forget_reports();
        }
        let inventory = self.inventory();
        let (shape, policy) = (self.library.shape().clone(), self.library.policy().clone());
        self.library = Library::resume(&shape, policy, &inventory).unwrap();
        for (request, event) in std::mem::take(&mut self.pending) {
            let event = if let Event::Verify { platter, panel, tracks, .. } = event {
                let done = self.world.verified.get(&platter).copied().unwrap_or(0);
                let left = tracks.end().unwrap().get() - done;
                let tracks = TrackSpan::new(TrackIndex::new(done), left);
                Event::Verify { request, platter, panel, tracks }
            } else {
                event
            };
            self.after(Duration::ZERO, event);
        }
    }

    /// Returns where everything really is.
    fn inventory(&self) -> Inventory {
        let home = |platter: &PlatterId| {
            let stored = !self.unstored.contains_key(platter);
            stored.then(|| self.homes[platter])
        };
        let loose = |platter: PlatterId, place: Place, mounted: bool| LoosePlatter {
            platter,
            home: home(&platter),
            place,
            mounted,
        };
        let mut platters = Vec::new();
        for (index, shuttle) in (0..).map(ShuttleIndex::new).zip(&self.world.shuttles) {
            platters.extend(shuttle.picker.map(|id| loose(id, Place::Shuttle(index), false)));
        }
        for (index, drive) in (0..).map(DriveIndex::new).zip(&self.world.drives) {
            let bays = drive.bays.iter().map(|(slot, (id, mounted))| {
                loose(*id, Place::Drive(index, *slot), *mounted == Mounted::Yes)
            });
            platters.extend(bays);
        }
        for (slot, id) in &self.world.storage {
            if self.library.shape().is_spare(*slot) {
                platters.push(loose(*id, Place::Storage(*slot), false));
            }
        }
        let shuttles = self.world.shuttles.iter().map(|shuttle| ParkedShuttle {
            rail: RailPosition::new(shuttle.rail),
            shelf: ShelfIndex::new(shuttle.shelf),
        });
        Inventory { shuttles: shuttles.collect(), platters }
    }

    fn repair_all(&mut self) {
        self.failures_per_mille = 0;
        self.script.clear();
        for machine in self.world.broken() {
            self.after(Duration::ZERO, Event::Repaired { machine });
        }
        self.run();
    }

    /// Sends new platters again that could not be verified or stored.
    pub(super) fn resend_unstored(&mut self) {
        let unstored: Vec<_> = self.unstored.iter().map(|(id, tracks)| (*id, *tracks)).collect();
        for (platter, track_count) in unstored {
            let waits = self.pending.values().any(|event| {
                let (Event::Verify { platter: requested, .. }
                | Event::Store { platter: requested, .. }) = event
                else {
                    return false;
                };
                *requested == platter
            });
            if waits {
                continue;
            }
            match self.world.ejected.get(&platter) {
                Some(&panel) => {
                    let request = self.next_retry_id();
                    let done = self.world.verified.get(&platter).copied().unwrap_or(0);
                    let tracks = TrackSpan::new(TrackIndex::new(done), track_count - done);
                    let verify = Event::Verify { request, platter, panel, tracks };
                    self.after(Duration::ZERO, verify);
                }
                None => self.store(platter),
            }
        }
    }

    fn next_retry_id(&mut self) -> RequestId {
        self.last_retry_id += 1;
        RequestId::new(self.last_retry_id)
    }

    fn store(&mut self, platter: PlatterId) {
        let (request, slot) = (self.next_retry_id(), self.homes[&platter]);
        self.after(Duration::ZERO, Event::Store { request, platter, slot });
    }

    /// Returns the requests in the order in which they ended.
    pub(super) fn order(&self) -> Vec<u64> {
        let ends = self.finished.iter().map(|(request, ..)| request.get());
        ends.filter(|request| *request < FIRST_RETRY_ID).collect()
    }

    pub(super) fn outcome(&self, request: u64) -> Option<(Outcome, Instant)> {
        let mut ends = self.finished.iter().filter(|(id, ..)| id.get() == request);
        ends.next().map(|&(_, outcome, at)| (outcome, at))
    }

    fn schedule(&mut self, at: Instant, sim_event: SimEvent) -> (Instant, u64) {
        self.sequence += 1;
        self.event_queue.insert((at, self.sequence), sim_event);
        (at, self.sequence)
    }

    /// Makes it true in the world; returns the event for the controller.
    fn apply_event(&mut self, sim_event: SimEvent) -> Option<Event> {
        match sim_event {
            SimEvent::Event(event) => self.arrive(event),
            SimEvent::Done { command, fault: None, .. } if self.world.lacks(&command.action) => {
                self.running.remove(&command.id);
                self.world.fail(&command.action, Fault::PlatterMissing);
                self.forget_missing(&command.action);
                Some(Event::Failed { command: command.id, fault: Fault::PlatterMissing })
            }
            SimEvent::Done { command, fault: Some(fault), .. } => {
                self.running.remove(&command.id);
                if let Some(machine) = self.world.fail(&command.action, fault) {
                    self.plan_repair(machine);
                }
                if fault == Fault::PlatterMissing {
                    self.forget_missing(&command.action);
                }
                Some(Event::Failed { command: command.id, fault })
            }
            SimEvent::Done { started, command, fault: None } => {
                self.running.remove(&command.id);
                let done = self.tracks_done(&command.action, started);
                self.world.complete(&command.action, done);
                Some(match (command.action, done) {
                    (Action::VerifyPass { tracks, .. }, Some(done))
                        if done < tracks.track_count =>
                    {
                        Event::Halted { command: command.id, tracks_done: done }
                    }
                    _ => Event::Completed { command: command.id },
                })
            }
        }
    }

    fn forget_missing(&mut self, action: &Action) {
        if let Action::Pick { platter, .. } = action
            && !self.world.has(*platter)
        {
            self.homes.remove(platter);
            self.unstored.remove(platter);
        }
    }

    /// Returns how many tracks a pass has read by now.
    fn tracks_done(&self, action: &Action, started: Instant) -> Option<u32> {
        let Action::VerifyPass { tracks, .. } = action else { return None };
        let Some(mechanics) = self.mechanics else { return Some(tracks.track_count) };
        let one = mechanics.read(TrackSpan::new(tracks.first, 1)).as_nanos();
        let done = self.now.since(started).as_nanos() / one;
        Some(u32::try_from(done).unwrap().min(tracks.track_count))
    }

    /// Records requests and failures before the controller sees them. Returns `None` if the event
    /// does not happen after all.
    fn arrive(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::Read { request, .. } | Event::Store { request, .. } => {
                self.expect(request, event);
            }
            Event::Verify { request, platter, panel, tracks } => {
                if !self.world.has(platter) {
                    self.world.ejected.insert(platter, panel);
                }
                self.unstored.insert(platter, tracks.end().unwrap().get());
                self.expect(request, event);
            }
            Event::Broke { machine } => {
                if self.world.broken().contains(&machine) {
                    return None;
                }
                self.stop(machine);
                self.world.break_down(machine);
                self.plan_repair(machine);
                self.record(&format!("{machine:?} breaks"));
            }
            Event::Repaired { machine } => {
                if !self.world.broken().contains(&machine) {
                    return None;
                }
                self.world.repair(machine);
                self.last_arrival = self.now;
                self.record(&format!("{machine:?} is repaired"));
            }
            Event::Passed { command, at } => {
                let key = self.running.get(&command)?;
                let Some(SimEvent::Done { command, .. }) = self.event_queue.get(key) else {
                    return None;
                };
                let Action::Move { shuttle, .. } = command.action else { unreachable!() };
                self.world.passed(shuttle, at.get());
            }
            Event::Battery { .. }
            | Event::Cancel { .. }
            | Event::Completed { .. }
            | Event::Halted { .. }
            | Event::Failed { .. }
            | Event::Timer => {}
        }
        Some(event)
    }

    fn expect(&mut self, request: RequestId, event: Event) {
        self.last_arrival = self.now;
        let before = self.pending.insert(request, event);
        assert_eq!(before, None, "the test asks twice");
    }

    /// Drops the answer to what a machine was doing.
    fn stop(&mut self, machine: Machine) {
        let running: Vec<_> = self.running.iter().map(|(id, key)| (*id, *key)).collect();
        for (id, key) in running {
            let Some(SimEvent::Done { command, .. }) = self.event_queue.get(&key) else { continue };
            if machine_of(&command.action) == machine {
                self.event_queue.remove(&key);
                self.running.remove(&id);
            }
        }
    }

    fn plan_repair(&mut self, machine: Machine) {
        if let Some(wait) = self.repair_after {
            let wait = Duration::from_nanos(1 + self.random.below(wait.as_nanos()));
            self.after(wait, Event::Repaired { machine });
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Do(command) => self.start(command),
            Output::Halt { command } => self.halt(command),
            Output::Traveled(_) => {}
            Output::Finished { request, outcome } => {
                self.record(&format!("{request} finished: {outcome:?}"));
                self.finished.push((request, outcome, self.now));
                let request_event = self.pending.remove(&request);
                self.handle_answer(
                    request_event.expect("each answer belongs to one open request"),
                    Ok(outcome),
                );
            }
            Output::Rejected { request, reason } => {
                self.record(&format!("{request} rejected: {reason}"));
                self.rejected.push((request, reason.clone()));
                let request_event = self.pending.remove(&request);
                self.handle_answer(
                    request_event.expect("each answer belongs to one open request"),
                    Err(reason),
                );
            }
        }
    }

    /// Handles an answer; a platter whose verification ended gets its slot.
    fn handle_answer(&mut self, request_event: Event, answer: Result<Outcome, Error>) {
        match (request_event, answer) {
            (Event::Verify { platter, .. }, Ok(outcome)) => {
                assert!(!matches!(outcome, Outcome::Read | Outcome::Stored | Outcome::Canceled));
                if self.unstored.contains_key(&platter) {
                    self.store(platter);
                }
            }
            (Event::Store { platter, .. }, Ok(Outcome::Stored)) => {
                self.unstored.remove(&platter);
            }
            (Event::Verify { platter, .. }, Err(Error::PlatterExists { .. })) => {
                self.world.ejected.remove(&platter);
                self.store(platter);
            }
            (Event::Read { .. }, Ok(outcome)) => {
                assert!(!matches!(outcome, Outcome::Verified | Outcome::Stored));
            }
            _ => {}
        }
    }

    fn start(&mut self, command: Command) {
        self.world.start(&command.action);
        if let Some(batteries) = &self.batteries {
            batteries.start(&command.action);
        }
        let duration = self.mechanics.map_or(Duration::ZERO, |mechanics| {
            mechanics.duration(&command.action, &mut self.random)
        });
        let failure = self.draw_failure(&command.action);
        let action = describe(&command.action);
        self.record(&format!("{action} ({:.3} s)", duration.as_secs_f64()));
        let fault = match failure {
            Some(Failure::Fails(fault)) => Some(fault),
            Some(Failure::Breaks) => {
                let half = Duration::from_nanos(duration.as_nanos() / 2);
                self.after(half, Event::Broke { machine: machine_of(&command.action) });
                None
            }
            None => None,
        };
        if let Action::Move { from, to, reports: true, .. } = command.action {
            for third in 1..3 {
                let (a, b) = (from.get(), to.get());
                let at = if a < b { a + (b - a) / 3 * third } else { a - (a - b) / 3 * third };
                let after = Duration::from_nanos(duration.as_nanos() / 3 * third);
                self.after(after, Event::Passed { command: command.id, at: RailPosition::new(at) });
            }
        }
        let sim_event = SimEvent::Done { started: self.now, command, fault };
        let key = self.schedule(self.now + duration, sim_event);
        self.running.insert(command.id, key);
    }

    /// Lets a pass end with its current track.
    fn halt(&mut self, id: CommandId) {
        self.record("halt");
        let Some(mechanics) = self.mechanics else { return };
        let key = self.running.remove(&id).expect("only what runs is halted");
        let sim_event = self.event_queue.remove(&key).unwrap();
        let SimEvent::Done { started, command, .. } = sim_event else { unreachable!() };
        let Action::VerifyPass { tracks, .. } = command.action else {
            panic!("only verification is halted");
        };
        let one = mechanics.read(TrackSpan::new(tracks.first, 1)).as_nanos();
        let done = self.now.since(started).as_nanos().div_ceil(one) * one;
        let end = (started + Duration::from_nanos(done)).min(key.0);
        let key = self.schedule(end, sim_event);
        self.running.insert(id, key);
    }

    fn draw_failure(&mut self, action: &Action) -> Option<Failure> {
        if !self.script.is_empty() {
            let words = describe(action);
            if let Some(line) = self.script.iter().position(|(part, _)| words.contains(part)) {
                return Some(self.script.remove(line).1);
            }
        }
        if self.failures_per_mille == 0 || self.random.below(1000) >= self.failures_per_mille {
            return None;
        }
        let kind = self.random.below(4);
        if kind == 0 && self.mechanics.is_some() {
            return Some(Failure::Breaks);
        }
        Some(Failure::Fails(match machine_of(action) {
            Machine::Drive(_) if kind == 1 => Fault::DriveBroken,
            Machine::Drive(_) => Fault::Unreadable,
            Machine::Shuttle(_) if matches!(action, Action::Pick { .. }) && kind > 1 => {
                Fault::PlatterMissing
            }
            Machine::Shuttle(_) | Machine::Rail { .. } => Fault::ShuttleBroken,
        }))
    }

    fn record(&mut self, text: &str) {
        let ms = self.now.as_nanos() / 1_000_000;
        let from = self.transcript.len();
        writeln!(self.transcript, "{ms:<7} ms  {text}").unwrap();
        self.hash = self.transcript.as_bytes()[from..]
            .iter()
            .fold(self.hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// Returns one of the platters of the tests.
pub(super) fn platter_id(number: u32) -> PlatterId {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    PlatterId::from_bytes(bytes)
}

pub(super) fn platter_number(platter: PlatterId) -> u32 {
    let bytes = platter.to_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

pub(super) fn panel(number: u16) -> PanelIndex {
    PanelIndex::new(number)
}

/// Returns distinct slots that are homes.
pub(super) fn distinct_slots(
    shape: &LibraryShape,
    random: &mut RandomStream,
    count: usize,
) -> Vec<u32> {
    let mut slots = BTreeSet::new();
    let mut order = Vec::new();
    while order.len() < count {
        let slot = u32::try_from(random.below(u64::from(shape.slot_count()))).unwrap();
        if !shape.is_spare(SlotIndex::new(slot)) && slots.insert(slot) {
            order.push(slot);
        }
    }
    order
}

/// Describes an operation in words.
pub(super) fn describe(action: &Action) -> String {
    match action {
        Action::Move { shuttle, from, to, .. } => {
            format!("shuttle {shuttle} moves {:.3} m", from.meters_to(*to))
        }
        Action::Crab { shuttle, from, to } => format!("shuttle {shuttle} crabs {from} to {to}"),
        Action::Pick { shuttle, platter, from } => {
            format!("shuttle {shuttle} picks {} from {from:?}", short(*platter))
        }
        Action::Place { shuttle, platter, to } => {
            format!("shuttle {shuttle} places {} into {to:?}", short(*platter))
        }
        Action::Charge { shuttle } => format!("shuttle {shuttle} charges"),
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
    format!("platter {}", platter_number(platter))
}
