//! Tests that the earliest deadline comes first, and that delays for batching are bounded.

use fulgurite_units::{ByteCount, Controller as _, Duration, Instant, Outbox};
use proptest::prelude::*;

use crate::due::{ClassView, DueQueue, Visit};
use crate::pace::Measured;
use crate::queue::Waiting;
use crate::{
    Command, Due, Event, GroupId, Members, Op, OpId, OpKind, Order, Policy, Rack, presets, solve,
};

const GB: ByteCount = ByteCount::new(1_000_000_000);
const HOUR: u64 = 3600;

/// A shelf whose disks obey at once; time passes only on request.
struct Shelf {
    rack: Rack,
    now: Instant,
    ran: Vec<u64>,
    next: u64,
}

impl Shelf {
    fn new(due: Due) -> Self {
        let shape = presets::shape("shelf").unwrap();
        let policy = Policy { order: Order::Due(due), ..Policy::default() };
        let rack = Rack::new(&shape, solve(&shape).unwrap(), policy);
        Self { rack, now: Instant::ZERO, ran: Vec::new(), next: 0 }
    }

    fn step(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut out = Outbox::new();
            self.rack.step(self.now, event, &mut out);
            self.rack.check();
            for command in out.drain() {
                match command {
                    Command::SpinUp { place, .. } => events.push(Event::Up { place }),
                    Command::SpinDown { place } => events.push(Event::Down { place }),
                    Command::Run { op, .. } => self.ran.push(op.get()),
                    Command::Refuse { .. } | Command::Alarm { .. } | Command::Overdrawn { .. } => {
                        panic!("unexpected refusal: {command:?}")
                    }
                }
            }
        }
    }

    /// Submits a read that is due in `within` seconds, or at the default deadline.
    fn read(&mut self, group: u32, within: Option<u64>) -> u64 {
        let id = self.next;
        self.next += 1;
        let op = Op {
            id: OpId::new(id),
            group: GroupId::new(group),
            kind: OpKind::Read,
            bytes: GB,
            members: Members::first(4),
            enough: 3,
            due: within.map(|seconds| self.now + Duration::from_secs(seconds)),
        };
        self.step(Event::Submit { op });
        id
    }

    /// Ends the running operation after two seconds.
    fn done(&mut self) {
        let op = OpId::new(*self.ran.last().unwrap());
        self.now = self.now + Duration::from_secs(2);
        self.step(Event::Done { op });
    }

    /// Advances the time to the deadline.
    fn wait(&mut self) -> Duration {
        let deadline = self.rack.deadline().expect("an operation waits");
        let waited = deadline.since(self.now);
        self.now = deadline;
        self.step(Event::Timer);
        waited
    }
}

#[test]
fn earlier_deadline_overtakes_a_thousand_others() {
    let mut shelf = Shelf::new(Due::default());
    for _ in 0..900 {
        shelf.read(0, Some(12 * HOUR));
    }
    let same = shelf.read(0, Some(60));
    let other = shelf.read(1, Some(60));
    for _ in 0..30 {
        shelf.done();
    }
    let at = |op| shelf.ran.iter().position(|ran| *ran == op).expect("it ran");
    assert_eq!(at(same), 1, "next in its group");
    assert!(at(other) < 20, "its group is served before it is late: {}", at(other));
    assert!(at(other) > 5, "but not earlier than needed: {}", at(other));
    let back = shelf.ran.last().unwrap();
    assert!(*back < 900, "the others are served meanwhile: {back}");
}

#[test]
fn equal_deadlines_do_not_interrupt_a_visit() {
    let mut shelf = Shelf::new(Due::default());
    for _ in 0..20 {
        shelf.read(0, Some(30));
    }
    shelf.read(1, Some(25));
    for _ in 0..20 {
        shelf.done();
    }
    assert_eq!(shelf.ran, (0..21).collect::<Vec<_>>());
}

#[test]
fn batching_delay_is_bounded() {
    let patience = Duration::from_secs(120);
    let mut shelf = Shelf::new(Due { patience, ..Due::default() });
    let first = shelf.read(0, None);
    assert_eq!(shelf.ran, [0; 0], "it waits for its batch");
    let waited = shelf.wait();
    // A switch is estimated at 14 s until one was measured.
    assert_eq!(waited, Duration::from_secs(106));
    assert_eq!(shelf.ran, [first]);
    let more = shelf.read(0, None);
    shelf.done();
    assert_eq!(shelf.ran, [first, more], "the spinning group is served at once");
    shelf.done();
    let other = shelf.read(1, None);
    assert_eq!(shelf.ran.len(), 2);
    let soon = shelf.read(2, Some(60));
    assert_eq!(shelf.ran.last(), Some(&soon), "an operation due sooner does not wait");
    shelf.done();
    shelf.wait();
    assert_eq!(shelf.ran.last(), Some(&other));
}

#[test]
fn busy_group_is_left_eventually() {
    let stay = Duration::from_secs(100);
    let mut shelf = Shelf::new(Due { stay, ..Due::default() });
    shelf.read(0, None);
    let other = shelf.read(1, None);
    let mut visits = 0;
    while shelf.ran.last() != Some(&other) {
        shelf.read(0, None);
        shelf.done();
        visits += 1;
        assert!(visits < 60, "the group is left");
    }
    assert!(visits >= 49, "but not before its stay is over: {visits}");
}

fn waiting(id: u64, group: u32, since: u64, within: Option<u64>) -> Waiting {
    let since = Instant::ZERO + Duration::from_secs(since);
    let op = Op {
        id: OpId::new(id),
        group: GroupId::new(group),
        kind: OpKind::Read,
        bytes: GB,
        members: Members::NONE,
        enough: 0,
        due: within.map(|seconds| since + Duration::from_secs(seconds)),
    };
    Waiting { op, since }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Nothing is lost, each group is served by deadline, and delayed operations become wanted
    /// within their patience.
    #[test]
    fn nothing_is_lost_and_delays_are_bounded(
        steps in prop::collection::vec(
            (0u32..5, 0u64..30, prop::option::of(0u64..4000), any::<bool>()), 1..80),
        patience in 0u64..200,
        usual in 0u64..4000,
    ) {
        let [patience, usual] = [patience, usual].map(Duration::from_secs);
        let due = Due { patience, usual, ..Due::default() };
        let mut queue = DueQueue::new(5, 1_000, due);
        let pace = presets::shape("shelf").unwrap().pace();
        let mut spinning: Option<Visit> = None;
        let (mut now, mut came, mut went) = (0, 0, 0);
        for (id, (group, pause, within, pops)) in (0..).zip(steps) {
            now += pause;
            queue.insert(waiting(id, group, now, within), group as usize);
            came += 1;
            let now = Instant::ZERO + Duration::from_secs(now);
            let view = ClassView { now, spinning, measured: Measured::new(pace) };
            let front = queue.front(&view);
            let over = queue.iter().any(|(number, of)| {
                let spins = spinning.is_some_and(|visit| visit.number == number);
                !spins && queue.head(number) == Some(of) && of.since + patience <= now
            });
            prop_assert!(!over || front.is_some(), "an operation is due but no group is served");
            if let Some(number) = front.filter(|_| pops) {
                let of = |waiting: &Waiting| {
                    waiting.op.due.unwrap_or_else(|| waiting.since + usual)
                };
                let own = queue.iter().filter(|(of, _)| *of == number);
                let first = own.map(|(_, at)| of(at)).min();
                let taken = queue.pop(number).unwrap();
                prop_assert_eq!(Some(of(&taken)), first);
                went += 1;
                let is_other = spinning.is_none_or(|visit| visit.number != number);
                let since = spinning.filter(|_| !is_other).map_or(now, |visit| visit.since);
                spinning = Some(Visit { number, since, is_fresh: false });
            }
            queue.check();
            prop_assert_eq!(queue.len(), came - went);
        }
    }
}
