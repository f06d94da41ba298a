//! Tests the controller step by step.

use std::collections::BTreeMap;

use fulgurite_units::{ByteCount, Controller as _, Duration, Instant, Outbox, Ratio, settings};

use crate::limits::{RETRY_MIN, SPIN_UP_ATTEMPTS, SPIN_UP_BACKOFF};
use crate::{
    Command, Event, GroupId, GroupState, Loss, Members, Op, OpId, OpKind, Part, PlaceId, Policy,
    Rack, Refusal, SpinUps, presets, solve,
};

/// A shelf: groups 0, 1, 2 of four disks in one class, three of which are enough.
pub(super) struct Harness {
    pub(super) rack: Rack,
    pub(super) now: Instant,
    next: u64,
}

impl Harness {
    pub(super) fn new(policy: Policy) -> Self {
        Self::with_shape("shelf", policy)
    }

    fn with_shape(name: &str, policy: Policy) -> Self {
        let shape = presets::shape(name).unwrap();
        let rack = Rack::new(&shape, solve(&shape).unwrap(), policy);
        Self { rack, now: Instant::ZERO, next: 0 }
    }

    pub(super) fn step(&mut self, event: Event) -> Vec<Command> {
        let mut out = Outbox::new();
        self.rack.step(self.now, event, &mut out);
        self.rack.check();
        out.drain().collect()
    }

    pub(super) fn wait(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
    }

    /// Submits an operation and returns the resulting commands.
    pub(super) fn submit(&mut self, group: u32, kind: OpKind) -> (u64, Vec<Command>) {
        let id = self.next;
        self.next += 1;
        let members = Members::first(4);
        let enough = if kind == OpKind::Init { 0 } else { 3 };
        let bytes = ByteCount::new(1_000_000_000);
        let group = GroupId::new(group);
        let op = Op { id: OpId::new(id), group, kind, bytes, members, enough, due: None };
        (id, self.step(Event::Submit { op }))
    }

    pub(super) fn read(&mut self, group: u32) -> u64 {
        self.submit(group, OpKind::Read).0
    }

    /// Answers commands to disks, all at once and successfully, and the commands that follow.
    /// Returns the operations that run then.
    pub(super) fn obey(&mut self, commands: Vec<Command>) -> Vec<u64> {
        let (mut ran, mut left) = (Vec::new(), commands);
        while !left.is_empty() {
            let command = left.remove(0);
            match command {
                Command::SpinUp { place, .. } => left.extend(self.step(Event::Up { place })),
                Command::SpinDown { place } => left.extend(self.step(Event::Down { place })),
                Command::Run { op, .. } => ran.push(op.get()),
                Command::Refuse { .. } | Command::Alarm { .. } | Command::Overdrawn { .. } => {}
            }
        }
        ran
    }

    /// Ends an operation after a second. Returns the operations that run then.
    pub(super) fn done(&mut self, op: u64) -> Vec<u64> {
        self.wait(1);
        let commands = self.step(Event::Done { op: OpId::new(op) });
        self.obey(commands)
    }

    /// Runs everything that waits, one after the other, beginning with the running operation.
    fn order(&mut self, first: u64) -> Vec<u64> {
        let (mut order, mut runs) = (vec![first], vec![first]);
        while let Some(op) = runs.pop() {
            let more = self.done(op);
            assert!(more.len() < 2, "operations run one at a time");
            order.extend(&more);
            runs.extend(more);
        }
        order
    }
}

pub(super) fn spin_ups(commands: &[Command]) -> Vec<PlaceId> {
    let place = |command: &Command| match command {
        Command::SpinUp { place, .. } => Some(*place),
        Command::SpinDown { .. }
        | Command::Run { .. }
        | Command::Refuse { .. }
        | Command::Alarm { .. }
        | Command::Overdrawn { .. } => None,
    };
    commands.iter().filter_map(place).collect()
}

pub(super) fn refusals(commands: &[Command]) -> Vec<Refusal> {
    let refusal = |command: &Command| match command {
        Command::Refuse { refusal, .. } => Some(*refusal),
        Command::SpinUp { .. }
        | Command::SpinDown { .. }
        | Command::Run { .. }
        | Command::Alarm { .. }
        | Command::Overdrawn { .. } => None,
    };
    commands.iter().filter_map(refusal).collect()
}

#[test]
fn read_spins_up_its_group_and_runs() {
    let mut harness = Harness::new(Policy::pelican());
    let (read, begun) = harness.submit(1, OpKind::Read);
    let group = harness.rack.assignment().places(GroupId::new(1)).to_vec();
    assert_eq!(spin_ups(&begun), group);
    assert_eq!(harness.rack.group_state(GroupId::new(1)), GroupState::SpinningUp);
    assert_eq!(harness.obey(begun), [read]);
    assert_eq!(harness.rack.group_state(GroupId::new(1)), GroupState::Spinning);
    assert_eq!(harness.done(read), [0; 0]);
    let spinning = harness.rack.group_state(GroupId::new(1));
    assert_eq!(spinning, GroupState::Spinning, "an idle group keeps spinning");
}

#[test]
fn group_spins_down_before_another_spins_up() {
    let mut harness = Harness::new(Policy::pelican());
    let (first, begun) = harness.submit(0, OpKind::Read);
    assert_eq!(harness.obey(begun), [first]);
    let second = harness.read(1);
    harness.wait(1);
    let down = harness.step(Event::Done { op: OpId::new(first) });
    assert_eq!(down.len(), 4);
    let places = harness.rack.assignment().places(GroupId::new(0)).to_vec();
    for place in &places[..3] {
        assert_eq!(harness.step(Event::Down { place: *place }), [], "one disk still spins");
    }
    let up = harness.step(Event::Down { place: places[3] });
    assert_eq!(spin_ups(&up).len(), 4);
    assert_eq!(harness.obey(up), [second]);
}

#[test]
fn reads_of_a_group_are_batched() {
    let mut harness = Harness::new(Policy::pelican());
    let (first, begun) = harness.submit(0, OpKind::Read);
    harness.obey(begun);
    let others = [1, 2, 1, 0, 2, 1].map(|group| harness.read(group));
    let expected = [first, others[0], others[2], others[5], others[1], others[4], others[3]];
    assert_eq!(harness.order(first), expected);
    assert_eq!(harness.rack.counters().switches, 4);
}

#[test]
fn read_joins_the_spinning_group_if_allowed() {
    for (joins_running, expected) in [(true, [0, 2, 1]), (false, [0, 1, 2])] {
        let mut harness = Harness::new(Policy { joins_running, ..Policy::pelican() });
        let (first, begun) = harness.submit(0, OpKind::Read);
        harness.obey(begun);
        harness.read(1);
        harness.read(0);
        assert_eq!(harness.order(first), expected);
    }
}

#[test]
fn initialization_runs_first_and_on_demand() {
    let mut harness = Harness::new(Policy::pelican());
    let (init, begun) = harness.submit(0, OpKind::Init);
    harness.obey(begun);
    let inits = [1, 2].map(|group| harness.submit(group, OpKind::Init).0);
    let read = harness.read(2);
    // Group 2 is wanted, so it is initialized before group 1.
    assert_eq!(harness.order(init), [init, inits[1], read, inits[0]]);
}

#[test]
fn initialization_waits_for_an_inserted_disk() {
    for policy in
        [Policy::pelican(), Policy { spin_ups: SpinUps::Needed { spare: 0 }, ..Policy::default() }]
    {
        let mut harness = Harness::new(policy);
        let (read, begun) = harness.submit(0, OpKind::Read);
        harness.obey(begun);
        harness.done(read);
        let place = harness.rack.assignment().places(GroupId::new(0))[1];
        let part = Part::Place(place);
        harness.step(Event::Lost { part, loss: Loss::Gone });
        // Its group spins, so it is spun up at once; without it the initialization would be
        // useless.
        let spun_up = harness.step(Event::Back { part });
        let (init, begun) = harness.submit(0, OpKind::Init);
        let spun_up = [spin_ups(&spun_up), spin_ups(&begun)].concat();
        assert!(spun_up.contains(&place), "{spun_up:?}");
        assert!(!begun.iter().any(|command| matches!(command, Command::Run { .. })), "{begun:?}");
        let ups: Vec<Command> =
            spun_up.iter().flat_map(|&place| harness.step(Event::Up { place })).collect();
        assert_eq!(harness.obey(ups), [init]);
    }
    // A disk that never comes up is not waited for forever.
    let mut harness = Harness::new(Policy::pelican());
    let (read, begun) = harness.submit(0, OpKind::Read);
    harness.obey(begun);
    harness.done(read);
    let part = Part::Place(harness.rack.assignment().places(GroupId::new(0))[1]);
    harness.step(Event::Lost { part, loss: Loss::Gone });
    harness.step(Event::Back { part });
    let init = harness.submit(0, OpKind::Init).0;
    harness.wait(179);
    assert_eq!(harness.step(Event::Timer), []);
    assert_eq!(harness.rack.deadline(), Some(harness.now + Duration::from_secs(1)));
    harness.wait(1);
    let late = harness.step(Event::Timer);
    assert_eq!(harness.obey(late), [init]);
}

#[test]
fn initialization_is_not_delayed_forever() {
    let mut harness = Harness::new(Policy::pelican());
    let (first, begun) = harness.submit(0, OpKind::Read);
    harness.obey(begun);
    let init = harness.submit(1, OpKind::Init).0;
    harness.read(2);
    harness.wait(3600);
    assert_eq!(harness.done(first), [init]);
}

#[test]
fn full_queue_reports_when_to_retry() {
    let mut harness = Harness::new(Policy { client_queue: 2, ..Policy::pelican() });
    let (_, begun) = harness.submit(0, OpKind::Read);
    harness.obey(begun);
    harness.read(0);
    harness.read(1);
    let refused = refusals(&harness.submit(1, OpKind::Read).1);
    let [Refusal::Busy { retry_after }] = refused[..] else { panic!("{refused:?}") };
    // The average of 14 s and one measured switch that took no time, plus a tenth of two gigabytes
    // at 450 MiB/s.
    let seconds = retry_after.as_secs_f64();
    assert!((12.6..12.7).contains(&seconds), "{seconds}");
    assert!(
        refusals(&harness.submit(1, OpKind::Rebuild).1).is_empty(),
        "each side has its own limit"
    );
}

#[test]
fn one_lost_disk_raises_an_alarm_and_two_refuse_reads() {
    let mut harness = Harness::new(Policy::pelican());
    let (first, begun) = harness.submit(0, OpKind::Read);
    harness.obey(begun);
    harness.read(1);
    let places = harness.rack.assignment().places(GroupId::new(1)).to_vec();
    let lose = |place| Event::Lost { part: Part::Place(place), loss: Loss::Gone };
    let alarm = |away| Command::Alarm { group: GroupId::new(1), away };
    assert_eq!(harness.step(lose(places[2])), [alarm(1)]);
    let second = harness.step(lose(places[0]));
    assert_eq!(second[0], alarm(2));
    let too_few = Refusal::TooFew { usable: 2, retry_after: None };
    assert_eq!(refusals(&second), [too_few], "waiting operations are refused at once");
    assert_eq!(refusals(&harness.submit(1, OpKind::Read).1), [too_few]);
    let away: Vec<PlaceId> = harness.rack.away(GroupId::new(1)).collect();
    assert_eq!(away, [places[0], places[2]]);
    assert_eq!(harness.step(Event::Back { part: Part::Place(places[0]) }), []);
    let again = harness.read(1);
    assert_eq!(harness.order(first), [first, again]);
}

#[test]
fn failed_disk_is_retried_and_backs_off() {
    let mut harness = Harness::new(Policy::pelican());
    let (read, begun) = harness.submit(0, OpKind::Read);
    let places = spin_ups(&begun);
    let failing = Event::UpFailed { place: places[0] };
    let mut ran = Vec::new();
    for place in &places[1..] {
        ran.extend(harness.step(Event::Up { place: *place }));
    }
    assert_eq!(ran, [], "the group waits for the first attempt of each disk");
    let again = harness.step(failing);
    assert_eq!(spin_ups(&again), [places[0]]);
    let up: Members = [1, 2, 3].into_iter().collect();
    assert_eq!(again[1], Command::Run { op: OpId::new(read), up }, "three are enough");
    for _ in 2..SPIN_UP_ATTEMPTS {
        assert_eq!(spin_ups(&harness.step(failing)), [places[0]]);
    }
    let group = GroupId::new(0);
    assert_eq!(harness.step(failing), [Command::Alarm { group, away: 1 }]);
    assert_eq!(harness.rack.away(group).collect::<Vec<_>>(), [places[0]]);
    // It is tried again after its backoff, since its group still spins.
    assert_eq!(harness.rack.deadline(), Some(harness.now + SPIN_UP_BACKOFF));
    harness.now = harness.now + SPIN_UP_BACKOFF;
    assert_eq!(spin_ups(&harness.step(Event::Timer)), [places[0]]);
    for _ in 0..SPIN_UP_ATTEMPTS {
        harness.step(failing);
    }
    let doubled = SPIN_UP_BACKOFF + SPIN_UP_BACKOFF;
    assert_eq!(harness.rack.deadline(), Some(harness.now + doubled), "the backoff doubles");
}

#[test]
fn late_disk_is_not_waited_for() {
    let mut harness = Harness::new(Policy::pelican());
    let (read, begun) = harness.submit(0, OpKind::Read);
    let places = spin_ups(&begun);
    for place in &places[1..] {
        harness.step(Event::Up { place: *place });
    }
    harness.now = harness.rack.deadline().unwrap();
    let up: Members = [1, 2, 3].into_iter().collect();
    assert_eq!(harness.step(Event::Timer), [Command::Run { op: OpId::new(read), up }]);
    harness.step(Event::Up { place: places[0] });
    let second = harness.read(0);
    let all = Members::first(4);
    let ran = harness.step(Event::Done { op: OpId::new(read) });
    assert_eq!(ran, [Command::Run { op: OpId::new(second), up: all }], "it joins later");
}

#[test]
fn disk_that_does_not_stop_blocks_its_neighbor() {
    let mut harness = Harness::new(Policy::pelican());
    let (first, begun) = harness.submit(0, OpKind::Read);
    harness.obey(begun);
    harness.read(1);
    let down = harness.step(Event::Done { op: OpId::new(first) });
    let places = harness.rack.assignment().places(GroupId::new(0)).to_vec();
    assert_eq!(down.len(), 4);
    for place in &places[1..] {
        harness.step(Event::Down { place: *place });
    }
    let up = harness.step(Event::DownFailed { place: places[0] });
    assert_eq!(spin_ups(&up).len(), 3, "power is left for three of four");
    assert_eq!(harness.obey(up), [1]);
    let again = harness.rack.deadline().unwrap();
    harness.now = again;
    assert_eq!(harness.step(Event::Timer), [Command::SpinDown { place: places[0] }]);
    let more = harness.step(Event::Down { place: places[0] });
    assert_eq!(spin_ups(&more).len(), 1, "now there is power for the fourth");
}

#[test]
fn external_spin_up_is_spun_down() {
    let mut harness = Harness::new(Policy::pelican());
    let place = harness.rack.assignment().places(GroupId::new(2))[0];
    assert_eq!(harness.step(Event::ExternalSpinUp { place }), [Command::SpinDown { place }]);
    assert_eq!(harness.step(Event::Down { place }), []);
    assert_eq!(harness.step(Event::ExternalSpinUp { place }), [Command::SpinDown { place }]);
}

#[test]
fn rebuild_serves_clients_of_its_group() {
    let mut harness = Harness::new(Policy::pelican());
    let (first, begun) = harness.submit(0, OpKind::Rebuild);
    harness.obey(begun);
    let rebuilds = [0, 0].map(|group| harness.submit(group, OpKind::Rebuild).0);
    let piggyback = harness.read(0);
    assert_eq!(harness.order(first), [first, piggyback, rebuilds[0], rebuilds[1]]);
    assert_eq!(harness.rack.counters().switches, 1);
}

/// Two sides that never run dry each get their share, in turns that are worth their switch.
#[test]
fn turns_follow_the_weights() {
    const SECONDS: u32 = 4000;
    for share in [0.25, 0.5, 0.75] {
        let mut harness = Harness::new(Policy {
            background_share: Ratio::new(share).unwrap(),
            turn: Duration::from_secs(60),
            client_queue: 4,
            background_queue: 4,
            ..Policy::pelican()
        });
        let (mut runs, begun) = harness.submit(0, OpKind::Read);
        harness.obey(begun);
        let mut kinds = BTreeMap::from([(runs, OpKind::Read)]);
        let (mut rebuilds, mut turns, mut last) = (0u32, 0u32, OpKind::Read);
        for _ in 0..SECONDS {
            for (group, kind) in [(0, OpKind::Read), (1, OpKind::Rebuild)] {
                kinds.insert(harness.submit(group, kind).0, kind);
            }
            runs = harness.done(runs)[0];
            rebuilds += u32::from(kinds[&runs] == OpKind::Rebuild);
            turns += u32::from(kinds[&runs] != last);
            last = kinds[&runs];
        }
        let had = f64::from(rebuilds) / f64::from(SECONDS);
        assert!((had - share).abs() < 0.05, "{had} for a share of {share}");
        // With a hysteresis of 60 s, turns last minutes.
        assert!((10..80).contains(&turns), "{turns} turns for a share of {share}");
    }
}

#[test]
fn client_of_an_idle_rack_is_served_next() {
    let mut harness = Harness::new(Policy::pelican());
    let (mut runs, begun) = harness.submit(0, OpKind::Rebuild);
    harness.obey(begun);
    for _ in 0..1000 {
        harness.submit(0, OpKind::Rebuild);
        runs = harness.done(runs)[0];
    }
    let read = harness.read(1);
    assert_eq!(harness.done(runs), [read]);
}

#[test]
fn idle_group_is_spun_down_if_configured() {
    let idle = Some(Duration::from_secs(120));
    let mut harness = Harness::new(Policy { idle, ..Policy::pelican() });
    let (read, begun) = harness.submit(0, OpKind::Read);
    harness.obey(begun);
    assert_eq!(harness.done(read), [0; 0]);
    assert_eq!(harness.rack.deadline(), Some(harness.now + Duration::from_secs(120)));
    harness.wait(120);
    let down = harness.step(Event::Timer);
    assert_eq!(down.len(), 4);
    harness.obey(down);
    assert_eq!(harness.rack.group_state(GroupId::new(0)), GroupState::Asleep);
    assert_eq!(harness.rack.deadline(), None);
}

/// The prototype's trays can supply only one disk that spins up: classes of a half take turns.
#[test]
fn classes_spin_up_in_turn_if_configured() {
    let mut harness =
        Harness::with_shape("laptop", Policy { spins_up_in_turn: true, ..Policy::pelican() });
    let (_, first) = harness.submit(0, OpKind::Read);
    assert_eq!(spin_ups(&first).len(), 8);
    let (second, begun) = harness.submit(3, OpKind::Read);
    assert_eq!(begun, [], "the other class waits");
    let ran = harness.obey(first);
    assert_eq!(ran, [0, second]);
    let mut free = Harness::with_shape("laptop", Policy::pelican());
    free.submit(0, OpKind::Read);
    assert_eq!(spin_ups(&free.submit(3, OpKind::Read).1).len(), 8);
}

#[test]
fn tray_is_lost_and_comes_back() {
    let mut harness = Harness::with_shape("pelican", Policy::pelican());
    let tray = Part::Unit { kind: 0, index: 7 };
    let lost = harness.step(Event::Lost { part: tray, loss: Loss::Gone });
    assert_eq!(lost.len(), 16, "sixteen groups have one disk each in the tray");
    let chassis = Part::Unit { kind: 1, index: 3 };
    // Tray 7 is at x = 0, z = 7, in the same chassis.
    let lost = harness.step(Event::Lost { part: chassis, loss: Loss::Gone });
    assert_eq!(lost.len(), 48);
    let away = |harness: &Harness| -> usize {
        (0..48).map(|group| harness.rack.away(GroupId::new(group)).count()).sum()
    };
    assert_eq!(away(&harness), 192);
    harness.step(Event::Back { part: chassis });
    assert_eq!(away(&harness), 16, "the tray is still lost");
    harness.step(Event::Back { part: tray });
    assert_eq!(away(&harness), 0);
}

/// A stopped fan costs a column of twelve disks, one in each group of its class.
#[test]
fn stopped_fan_costs_each_group_of_a_class_one_disk() {
    let mut harness = Harness::with_shape("pelican", Policy::pelican());
    let (read, begun) = harness.submit(0, OpKind::Read);
    assert_eq!(harness.obey(begun), [read]);
    let place = harness.rack.assignment().places(GroupId::new(0))[0];
    let column = Part::Domain { kind: 1, index: 0 };
    let commands = harness.step(Event::Lost { part: column, loss: Loss::Barred });
    assert!(commands.contains(&Command::SpinDown { place }), "the spinning disk is spun down");
    let alarms = commands.iter().filter(|of| matches!(of, Command::Alarm { away: 1, .. })).count();
    assert_eq!(alarms, 12);
    assert_eq!(harness.obey(commands), [0; 0]);
    assert_eq!(refusals(&harness.submit(0, OpKind::Read).1), [], "23 disks are enough");
}

#[test]
fn second_initialization_is_refused() {
    let mut harness = Harness::new(Policy::pelican());
    harness.submit(0, OpKind::Init);
    let again = refusals(&harness.submit(0, OpKind::Init).1);
    assert_eq!(again, [Refusal::Busy { retry_after: RETRY_MIN }]);
}

#[test]
fn policy_round_trips() {
    let any = Policy { reach_bytes: None, ..Policy::default() };
    let timed = Policy { reach_time: Some(Duration::from_secs(9)), ..Policy::pelican() };
    for policy in [any, timed, Policy::pelican(), Policy::default()] {
        let text = toml::to_string(&policy).unwrap();
        assert_eq!(settings::from_toml::<Policy>(&text).unwrap(), policy, "{text}");
    }
    assert!(settings::from_toml::<Policy>("reach = 5").is_err());
}
