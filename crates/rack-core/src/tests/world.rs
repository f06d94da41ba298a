//! A simulated world around a controller, with disks that take time, stall, fail, are spun up
//! externally and are lost; and an observer that sees only events and commands.
//!
//! Every guarantee of the crate is checked: no domain supplies too many disks, nothing runs on a
//! disk that does not spin, groups keep their order, and in the end nothing waits. Controllers
//! broken on purpose must be detected, or the observer is worthless.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{
    ByteCount, Controller, Duration, Instant, Outbox, RandomStream, Ratio, Seed,
};
use proptest::prelude::*;

use crate::event::{Command, Event, Loss, Op, OpKind, Part, Side};
use crate::limits::DEFAULT_DEADLINE;
use crate::shape::{Kind, Shape};
use crate::{
    Assignment, Budget, Due, GroupId, Members, OpId, Order, PlaceId, Policy, Rack, Refusal,
    SpinUps, presets, solve,
};

/// The true state of a disk, whatever the controller thinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Disk {
    /// Whether it takes power and air.
    spins: bool,
    is_mounted: bool,
    /// Whether it was spun up externally.
    is_external: bool,
    /// Incremented by a new command or a loss, which cancels pending answers.
    generation: u32,
}

/// A future event of a disk or an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ScheduledEvent {
    Up(PlaceId, u32),
    UpFailed(PlaceId, u32),
    Down(PlaceId, u32),
    DownFailed(PlaceId, u32),
    Done(OpId),
    /// A random event.
    Chance,
}

/// The violation of a guarantee, as found by the observer.
type Violation = String;

struct World<C> {
    controller: C,
    shape: Shape,
    assignment: Assignment,
    now: Instant,
    agenda: BTreeSet<(Instant, u64, ScheduledEvent)>,
    sequence: u64,
    disks: Vec<Disk>,
    random: RandomStream,
    /// Failure rate in percent; zero at the end.
    failure_rate: u64,
    lost: Vec<Part>,
    next_op: u64,
    ops: BTreeMap<OpId, Op>,
    running: BTreeMap<OpId, Op>,
    /// For each group and side, the accepted operations that have not run yet, in order.
    order: BTreeMap<(GroupId, Side), Vec<OpId>>,
    violation: Option<Violation>,
    runs: u64,
    /// Default deadline of operations per side, if the controller orders by deadline; and the
    /// deadlines of all operations.
    usual: [Option<Duration>; 2],
    due: BTreeMap<OpId, Instant>,
    /// Maximum spin-ups of a disk per day, and when each disk had its spin-ups.
    per_day: Option<u32>,
    spin_ups: Vec<Vec<Instant>>,
}

impl<C: Controller<Event = Event, Command = Command>> World<C> {
    fn new(
        shape: Shape,
        assignment: Assignment,
        controller: C,
        seed: u64,
        failure_rate: u64,
    ) -> Self {
        Self {
            controller,
            now: Instant::ZERO,
            agenda: BTreeSet::new(),
            sequence: 0,
            disks: vec![Disk::default(); shape.place_count()],
            shape,
            assignment,
            random: Seed::new(seed).child(b"world").stream(),
            failure_rate,
            lost: Vec::new(),
            next_op: 0,
            ops: BTreeMap::new(),
            running: BTreeMap::new(),
            order: BTreeMap::new(),
            violation: None,
            runs: 0,
            usual: [None; 2],
            due: BTreeMap::new(),
            per_day: None,
            spin_ups: Vec::new(),
        }
    }

    /// Sets the policy whose guarantees are checked.
    fn with_policy(mut self, policy: &Policy) -> Self {
        self.usual = match (policy.order, policy.budget) {
            (Order::Batches, None) => [None; 2],
            // An operation exempt from the budget must not wait behind one that is not.
            (Order::Batches, Some(_)) => [None, Some(DEFAULT_DEADLINE)],
            (Order::Due(due), _) => [Some(due.usual); 2],
        };
        self.per_day = policy.budget.map(|budget| budget.max_spinups_per_day.max(1));
        self.spin_ups = vec![Vec::new(); self.disks.len()];
        self
    }

    fn default_deadline(&self, side: Side) -> Option<Duration> {
        self.usual[usize::from(side == Side::Background)]
    }

    /// Checks that no disk is spun up more often in a day than allowed, except by exempt
    /// operations.
    fn record_spin_up(&mut self, place: PlaceId, op: OpId, kind: OpKind) {
        let Some(per_day) = self.per_day else { return };
        let day = Duration::from_secs(86_400);
        let now = self.now;
        let spin_ups = &mut self.spin_ups[place.as_usize()];
        spin_ups.retain(|at| now.since(*at) < day);
        let is_over = spin_ups.len() >= per_day as usize;
        spin_ups.push(now);
        if is_over && !matches!(kind, OpKind::Init | OpKind::Rebuild) {
            self.report_violation(format!("disk {place} is spun up too often, for operation {op}"));
        }
    }

    fn report_violation(&mut self, detail: impl Into<String>) {
        self.violation.get_or_insert_with(|| detail.into());
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn pick(&mut self, count: usize) -> u32 {
        u32::try_from(self.random.below(count as u64)).unwrap()
    }

    fn schedule(&mut self, seconds: u64, scheduled: ScheduledEvent) {
        let ms = seconds * 1000 + self.random.below(1000);
        self.sequence += 1;
        let at = self.now + Duration::from_millis(ms);
        self.agenda.insert((at, self.sequence, scheduled));
    }

    fn send(&mut self, event: Event) {
        let mut out = Outbox::new();
        self.controller.step(self.now, event, &mut out);
        self.controller.check();
        for command in out.drain().collect::<Vec<_>>() {
            self.obey(command);
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::SpinUp { place, op, kind } => {
                self.record_spin_up(place, op, kind);
                self.spin_up(place);
            }
            Command::SpinDown { place } => {
                let disk = &mut self.disks[place.as_usize()];
                disk.generation += 1;
                let disk = *disk;
                let stays = self.chance(self.failure_rate / 4);
                let scheduled =
                    if stays { ScheduledEvent::DownFailed } else { ScheduledEvent::Down };
                self.schedule(1, scheduled(place, disk.generation));
                self.disks[place.as_usize()].is_mounted = false;
            }
            Command::Run { op, up } => self.run(op, up),
            Command::Refuse { op, refusal } => {
                let Some(known) = self.ops.remove(&op) else {
                    return self.report_violation(format!(
                        "operation {op} is refused but was never submitted"
                    ));
                };
                let order = self.order.entry((known.group, known.kind.side())).or_default();
                order.retain(|of| *of != op);
                if let Refusal::TooFew { usable, .. } = refusal
                    && usable >= known.enough
                {
                    self.report_violation(format!("operation {op} is refused with enough disks"));
                }
            }
            Command::Overdrawn { group, kind } => {
                if !matches!(kind, OpKind::Init | OpKind::Rebuild) {
                    self.report_violation(format!("group {group} is spun up beyond its budget"));
                }
            }
            Command::Alarm { group, away } => {
                if away == 0 {
                    self.report_violation(format!("an alarm for group {group} without a reason"));
                }
            }
        }
    }

    fn spin_up(&mut self, place: PlaceId) {
        if self.is_lost(place) {
            return self.report_violation(format!("disk {place} is lost but commanded to spin up"));
        }
        let disk = &mut self.disks[place.as_usize()];
        disk.spins = true;
        disk.generation += 1;
        let generation = disk.generation;
        self.check_domains();
        let (fails, stalls) = (self.chance(self.failure_rate), self.chance(self.failure_rate / 2));
        if fails {
            self.schedule(15, ScheduledEvent::UpFailed(place, generation));
        } else {
            let seconds = if stalls { 100 } else { 9 };
            self.schedule(seconds, ScheduledEvent::Up(place, generation));
        }
    }

    fn run(&mut self, id: OpId, up: Members) {
        let Some(op) = self.ops.remove(&id) else {
            return self.report_violation(format!("operation {id} runs but was never submitted"));
        };
        let places = self.assignment.places(op.group);
        let unmounted = up.positions().find(|at| !self.disks[places[*at].as_usize()].is_mounted);
        if let Some(at) = unmounted {
            let place = places[at];
            self.report_violation(format!(
                "operation {id} runs on disk {place}, which is spun down"
            ));
        }
        if up.intersection(op.members).count() < op.enough {
            self.report_violation(format!("operation {id} runs with too few disks"));
        }
        let order = self.order.entry((op.group, op.kind.side())).or_default();
        // Operations that came before it, in the order in which they are due.
        let before: Vec<OpId> = order.iter().copied().take_while(|of| *of != id).collect();
        let is_overtaken = |of: &OpId| match self.default_deadline(op.kind.side()) {
            None => true,
            Some(_) => self.due.get(of) <= self.due.get(&id),
        };
        if op.kind != OpKind::Init && before.iter().any(is_overtaken) {
            self.report_violation(format!("operation {id} overtakes one of its own group"));
        }
        self.order.entry((op.group, op.kind.side())).or_default().retain(|of| *of != id);
        self.running.insert(id, op);
        self.runs += 1;
        self.schedule(1, ScheduledEvent::Done(id));
    }

    /// Checks that no hard domain supplies more disks than it can, apart from external spin-ups.
    fn check_domains(&mut self) {
        let mut violations = Vec::new();
        for domain in self.shape.domains().iter().filter(|domain| domain.kind == Kind::Hard) {
            let mut used = vec![0; domain.shared.count()];
            for (place, disk) in self.shape.places().zip(&self.disks) {
                used[domain.shared.index_of(place) as usize] +=
                    u32::from(disk.spins && !disk.is_external);
            }
            if used.iter().any(|used| *used > domain.capacity) {
                violations.push(format!("{} exceeds its capacity", domain.shared.name));
            }
        }
        violations.into_iter().for_each(|violation| self.report_violation(violation));
    }

    /// Processes the next event. Returns false if there is none.
    fn run_next(&mut self) -> bool {
        let next = self.agenda.first().map(|(at, _, _)| *at);
        if let Some(deadline) = self.controller.deadline()
            && next.is_none_or(|next| deadline <= next)
        {
            self.now = self.now.max(deadline);
            self.send(Event::Timer);
            return true;
        }
        let Some((at, _, scheduled)) = self.agenda.pop_first() else { return false };
        self.now = at;
        self.deliver(scheduled);
        true
    }

    fn deliver(&mut self, scheduled: ScheduledEvent) {
        let (place, generation) = match scheduled {
            ScheduledEvent::Up(place, generation)
            | ScheduledEvent::UpFailed(place, generation)
            | ScheduledEvent::Down(place, generation)
            | ScheduledEvent::DownFailed(place, generation) => (place, generation),
            ScheduledEvent::Done(op) => {
                self.running.remove(&op);
                return self.send(Event::Done { op });
            }
            ScheduledEvent::Chance => return self.random_event(),
        };
        let disk = &mut self.disks[place.as_usize()];
        if disk.generation != generation {
            return;
        }
        let event = match scheduled {
            ScheduledEvent::Up(..) => {
                (disk.spins, disk.is_mounted) = (true, true);
                Event::Up { place }
            }
            ScheduledEvent::UpFailed(..) => {
                (disk.spins, disk.is_external) = (false, false);
                Event::UpFailed { place }
            }
            ScheduledEvent::Down(..) => {
                (disk.spins, disk.is_external) = (false, false);
                Event::Down { place }
            }
            ScheduledEvent::DownFailed(..) | ScheduledEvent::Done(_) | ScheduledEvent::Chance => {
                Event::DownFailed { place }
            }
        };
        self.send(event);
    }

    /// Submits an operation, or injects or repairs a failure.
    fn random_event(&mut self) {
        let groups = self.assignment.groups().len();
        if !self.chance(self.failure_rate) {
            let group = GroupId::new(self.pick(groups));
            return self.submit(group, None);
        }
        let place = PlaceId::new(self.pick(self.disks.len()));
        match self.random.below(5) {
            0 => self.lose(Part::Place(place), Loss::Gone),
            1 => self.lose(Part::Place(place), Loss::Barred),
            2 => {
                let kind = self.pick(self.shape.units().len());
                let index = self.pick(self.shape.units()[kind as usize].count());
                self.lose(Part::Unit { kind, index }, Loss::Gone);
            }
            3 => {
                let kind = self.pick(self.shape.domains().len());
                let index = self.pick(self.shape.domains()[kind as usize].shared.count());
                self.lose(Part::Domain { kind, index }, Loss::Barred);
            }
            _ => {
                let is_lost = self.is_lost(place);
                let disk = &mut self.disks[place.as_usize()];
                if !disk.spins && !is_lost {
                    (disk.spins, disk.is_external) = (true, true);
                    self.send(Event::ExternalSpinUp { place });
                }
            }
        }
        while self.lost.len() > 2 {
            let part = self.lost.remove(0);
            self.repair(part);
        }
    }

    fn submit(&mut self, group: GroupId, kind: Option<OpKind>) {
        let kinds = [OpKind::Read, OpKind::Read, OpKind::Write, OpKind::Delete, OpKind::Rebuild];
        let drawn = kinds[self.pick(kinds.len()) as usize];
        let kind = kind.unwrap_or(drawn);
        let id = OpId::new(self.next_op);
        self.next_op += 1;
        let code = self.shape.code();
        let mut members = Members::first(self.assignment.places(group).len());
        // Only some of them have a stack of the blob.
        while kind == OpKind::Read && members.count() > code.width() {
            members = members.without(self.pick(Members::CAPACITY) as usize);
        }
        let enough = if kind == OpKind::Init { 0 } else { code.data };
        let bytes = ByteCount::mib(self.random.below(2000));
        let has_deadline = self.random.below(2) == 0;
        let within = Duration::from_secs(1 << self.random.below(16));
        let due = has_deadline.then(|| self.now + within);
        let op = Op { id, group, kind, bytes, members, enough, due };
        let usual = self.default_deadline(kind.side()).unwrap_or_default();
        self.due.insert(id, due.unwrap_or_else(|| self.now + usual));
        self.ops.insert(id, op);
        if kind != OpKind::Init {
            self.order.entry((group, kind.side())).or_default().push(id);
        }
        self.send(Event::Submit { op });
    }

    /// Returns the places of a part, from the shape alone.
    fn places_of(&self, part: Part) -> Vec<PlaceId> {
        match part {
            Part::Place(place) => vec![place],
            Part::Unit { kind, index } => self.shape.units()[kind as usize].members(index).to_vec(),
            Part::Domain { kind, index } => {
                self.shape.domains()[kind as usize].shared.members(index).to_vec()
            }
        }
    }

    fn is_lost(&self, place: PlaceId) -> bool {
        self.lost.iter().any(|part| self.places_of(*part).contains(&place))
    }

    fn lose(&mut self, part: Part, loss: Loss) {
        if self.lost.contains(&part) {
            return;
        }
        self.lost.push(part);
        for place in self.places_of(part) {
            let disk = &mut self.disks[place.as_usize()];
            if loss == Loss::Gone {
                disk.generation += 1;
                (disk.spins, disk.is_mounted, disk.is_external) = (false, false, false);
            }
        }
        self.send(Event::Lost { part, loss });
    }

    fn repair(&mut self, part: Part) {
        self.send(Event::Back { part });
    }

    /// Runs with this many random events, then until all operations have ended.
    fn live(&mut self, events: u64) -> Result<u64, Violation> {
        for group in self.assignment.groups() {
            self.submit(group, Some(OpKind::Init));
        }
        for _ in 0..events {
            let seconds = self.random.below(9);
            self.schedule(seconds, ScheduledEvent::Chance);
            let until = self.now + Duration::from_secs(5);
            while self.now < until && self.violation.is_none() && self.run_next() {}
        }
        self.failure_rate = 0;
        while let Some(part) = self.lost.pop() {
            self.repair(part);
        }
        for _ in 0..400_000 {
            if self.violation.is_some() || self.is_quiet() || !self.run_next() {
                break;
            }
        }
        if !self.is_quiet() {
            let waiting = self.ops.len();
            self.report_violation(format!("{waiting} operations wait forever"));
        }
        self.violation.clone().map_or(Ok(self.runs), Err)
    }

    fn is_quiet(&self) -> bool {
        self.ops.is_empty() && self.running.is_empty()
    }
}

fn rack(name: &str) -> (Shape, Assignment) {
    let shape = presets::shape(name).unwrap();
    let assignment = solve(&shape).unwrap();
    (shape, assignment)
}

fn policies() -> impl Strategy<Value = Policy> {
    let reach = prop_oneof![Just(None), (0u64..8).prop_map(|gib| Some(ByteCount::gib(gib)))];
    let time = prop_oneof![Just(None), (0u64..60).prop_map(|s| Some(Duration::from_secs(s)))];
    let idle = prop_oneof![Just(None), (1u64..100).prop_map(|s| Some(Duration::from_secs(s)))];
    let spin_ups =
        prop_oneof![Just(SpinUps::All), (0u32..3).prop_map(|spare| SpinUps::Needed { spare })];
    let flags = (any::<bool>(), any::<bool>(), spin_ups);
    let seconds = |most: u64| (0..most).prop_map(Duration::from_secs);
    let due = (seconds(400), seconds(4000), seconds(400))
        .prop_map(|(patience, usual, stay)| Order::Due(Due { patience, usual, stay }));
    let order = prop_oneof![Just(Order::Batches), due];
    let budget = (1u32..60).prop_map(|max_spinups_per_day| Budget { max_spinups_per_day });
    let choice = (order, prop_oneof![Just(None), budget.prop_map(Some)]);
    (reach, time, idle, (flags, choice), 1usize..4, 2usize..30, 0u32..=100).prop_map(
        |(reach_bytes, reach_time, idle, (flags, (order, budget)), at_once, queue, share)| Policy {
            order,
            budget,
            reach_bytes,
            reach_time,
            idle,
            joins_running: flags.0,
            spins_up_in_turn: flags.1,
            spin_ups: flags.2,
            at_once,
            client_queue: queue,
            background_queue: queue,
            background_share: Ratio::new(f64::from(share) / 100.0).unwrap(),
            ..Policy::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn every_guarantee_holds(
        seed: u64, policy in policies(), failure_rate in 0u64..40, laptop: bool,
    ) {
        let (shape, assignment) = rack(if laptop { "laptop" } else { "shelf" });
        let rack = Rack::new(&shape, assignment.clone(), policy);
        let mut world =
            World::new(shape, assignment, rack, seed, failure_rate).with_policy(&policy);
        let runs = world.live(150);
        prop_assert!(runs.is_ok(), "{:?}", runs);
        prop_assert!(runs.unwrap() > 0, "no operation ran");
    }
}

/// The same seed gives the same commands.
#[test]
fn same_seed_gives_the_same_commands() {
    let run = || {
        let (shape, assignment) = rack("laptop");
        let rack = Rack::new(&shape, assignment.clone(), Policy::default());
        let mut world = World::new(shape, assignment, rack, 7, 20);
        (world.live(200), world.now, world.controller.counters())
    };
    assert_eq!(run(), run());
}

/// A controller broken on purpose: its events or commands are altered on the way.
struct Broken {
    rack: Rack,
    sabotage: Sabotage,
    pending: Option<Command>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sabotage {
    /// Treats disks as spun down as soon as they are commanded to.
    DoesNotWait,
    /// Drops spin-down commands.
    Sleeps,
    /// Drops every tenth operation.
    Forgets,
    /// Runs operations on disks that were not reported up.
    RunsBlindly,
    /// Swaps two successive operations.
    Exchanges,
}

impl Broken {
    /// Alters a command. Returns the event that the controller gets at once, if any.
    fn change(&mut self, command: Command, out: &mut Outbox<Command>) -> Option<Event> {
        let (down, run) = match command {
            Command::SpinDown { place } => (Some(place), None),
            Command::Run { op, .. } => (None, Some(op)),
            Command::SpinUp { .. }
            | Command::Refuse { .. }
            | Command::Alarm { .. }
            | Command::Overdrawn { .. } => (None, None),
        };
        match self.sabotage {
            Sabotage::DoesNotWait => {
                out.push(command);
                down.map(|place| Event::Down { place })
            }
            Sabotage::Sleeps if down.is_some() => None,
            Sabotage::Forgets => {
                let forgotten = run.filter(|op| op.get() % 10 == 9);
                if forgotten.is_none() {
                    out.push(command);
                }
                forgotten.map(|op| Event::Done { op })
            }
            Sabotage::RunsBlindly => {
                let all = |op| Command::Run { op, up: Members::first(4) };
                out.push(run.map_or(command, all));
                None
            }
            Sabotage::Exchanges if run.is_some() && self.pending.is_none() => {
                self.pending = Some(command);
                run.map(|op| Event::Done { op })
            }
            Sabotage::Exchanges | Sabotage::Sleeps => {
                out.push(command);
                if run.is_some() {
                    self.pending.take().into_iter().for_each(|pending| out.push(pending));
                }
                None
            }
        }
    }
}

impl Controller for Broken {
    type Event = Event;
    type Command = Command;

    fn step(&mut self, now: Instant, event: Event, out: &mut Outbox<Command>) {
        let mut own = Outbox::new();
        self.rack.step(now, event, &mut own);
        let mut commands: Vec<Command> = own.drain().collect();
        let mut at = 0;
        while at < commands.len() {
            let command = commands[at];
            at += 1;
            let Some(answer) = self.change(command, out) else { continue };
            self.rack.step(now, answer, &mut own);
            commands.extend(own.drain());
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.rack.deadline()
    }

    fn check(&self) {}
}

#[test]
fn broken_controller_is_detected() {
    let says = [
        (Sabotage::DoesNotWait, "exceeds its capacity"),
        (Sabotage::Sleeps, "wait forever"),
        (Sabotage::Forgets, "overtakes one"),
        (Sabotage::RunsBlindly, "which is spun down"),
        (Sabotage::Exchanges, "which is spun down"),
    ];
    for (sabotage, words) in says {
        let (shape, assignment) = rack("shelf");
        let rack = Rack::new(&shape, assignment.clone(), Policy::default());
        let broken = Broken { rack, sabotage, pending: None };
        let failure_rate = if sabotage == Sabotage::RunsBlindly { 30 } else { 0 };
        let mut world = World::new(shape, assignment, broken, 3, failure_rate);
        let violation = world.live(300).expect_err("a broken controller was not detected");
        assert!(violation.contains(words), "{sabotage:?}: {violation}");
    }
}
