//! Tests that only the needed disks of a group are spun up.

use fulgurite_units::Duration;

use super::schedule::{Harness, refusals, spin_ups};
use crate::limits::SPIN_UP_ATTEMPTS;
use crate::{Command, Event, Loss, Op, OpId, OpKind, Order, Part, PlaceId, Policy, SpinUps};

fn needed() -> Harness {
    Harness::new(Policy {
        order: Order::Batches,
        spin_ups: SpinUps::Needed { spare: 0 },
        ..Policy::default()
    })
}

fn runs(commands: &[Command]) -> Vec<(OpId, u32)> {
    let run = |command: &Command| match command {
        Command::Run { op, up } => Some((*op, up.count())),
        Command::SpinUp { .. }
        | Command::SpinDown { .. }
        | Command::Refuse { .. }
        | Command::Alarm { .. }
        | Command::Overdrawn { .. } => None,
    };
    commands.iter().filter_map(run).collect()
}

#[test]
fn read_spins_up_only_needed_disks_in_rotation() {
    let mut harness = needed();
    let (first, spun_up) = harness.submit(0, OpKind::Read);
    let places = spin_ups(&spun_up);
    assert_eq!(places.len(), 3, "any three of four");
    assert_eq!(harness.obey(spun_up), [first]);
    harness.done(first);
    // Another group of its class forces this one down.
    let (second, commands) = harness.submit(1, OpKind::Read);
    assert_eq!(harness.obey(commands), [second]);
    harness.done(second);
    let (third, commands) = harness.submit(0, OpKind::Read);
    let mut ran = Vec::new();
    let mut again = Vec::new();
    for command in commands {
        let Command::SpinDown { place } = command else { continue };
        again.extend(harness.step(Event::Down { place }));
    }
    let others = spin_ups(&again);
    assert_eq!(others.len(), 3);
    assert_ne!(others, places, "they include the disk that stayed down");
    ran.extend(harness.obey(again));
    assert_eq!(ran, [third]);
}

#[test]
fn write_spins_up_all_disks_of_a_group() {
    let mut harness = needed();
    let (read, spun_up) = harness.submit(0, OpKind::Read);
    harness.obey(spun_up);
    let (write, nothing) = harness.submit(0, OpKind::Write);
    assert_eq!(nothing, [], "the read runs");
    let rest = harness.step(Event::Done { op: OpId::new(read) });
    let missing = spin_ups(&rest);
    assert_eq!((missing.len(), runs(&rest)), (1, Vec::new()), "it waits for the fourth");
    let commands = harness.step(Event::Up { place: missing[0] });
    assert_eq!(runs(&commands), [(OpId::new(write), 4)]);
}

#[test]
fn group_stays_up_for_requested_disks() {
    let mut harness = needed();
    let (read, spun_up) = harness.submit(0, OpKind::Read);
    harness.obey(spun_up);
    let (write, _) = harness.submit(0, OpKind::Write);
    let missing = spin_ups(&harness.step(Event::Done { op: OpId::new(read) }));
    let (_, nothing) = harness.submit(1, OpKind::Read);
    assert_eq!(nothing, []);
    let commands = harness.step(Event::Up { place: missing[0] });
    assert_eq!(runs(&commands), [(OpId::new(write), 4)]);
}

#[test]
fn disk_that_fails_to_spin_up_is_substituted() {
    let mut harness = needed();
    let (read, spun_up) = harness.submit(0, OpKind::Read);
    let places = spin_ups(&spun_up);
    for place in &places[1..] {
        harness.step(Event::Up { place: *place });
    }
    let mut last = Vec::new();
    for _ in 0..SPIN_UP_ATTEMPTS {
        last = harness.step(Event::UpFailed { place: places[0] });
    }
    let other = spin_ups(&last);
    assert_eq!(other.len(), 1, "{last:?}");
    assert!(!places.contains(&other[0]));
    let commands = harness.step(Event::Up { place: other[0] });
    assert_eq!(runs(&commands), [(OpId::new(read), 3)]);
}

#[test]
fn disk_lost_while_spinning_up_is_substituted() {
    let mut harness = needed();
    let (read, spun_up) = harness.submit(0, OpKind::Read);
    let places = spin_ups(&spun_up);
    let lost = Event::Lost { part: Part::Place(places[0]), loss: Loss::Gone };
    let mut commands = harness.step(lost);
    for place in &places[1..] {
        commands.extend(harness.step(Event::Up { place: *place }));
    }
    let other: Vec<PlaceId> = spin_ups(&commands);
    assert_eq!(other.len(), 1);
    let commands = harness.step(Event::Up { place: other[0] });
    assert_eq!(runs(&commands), [(OpId::new(read), 3)]);
}

/// A straggler that an operation lacks is waited for as long as the group is patient, and no
/// longer.
#[test]
fn wait_for_a_straggler_is_bounded() {
    let mut harness = needed();
    let (read, spun_up) = harness.submit(0, OpKind::Read);
    harness.obey(spun_up);
    let (write, _) = harness.submit(0, OpKind::Write);
    let missing = spin_ups(&harness.step(Event::Done { op: OpId::new(read) }));
    assert_eq!(missing.len(), 1);
    let limit = Policy::default().rise_limit;
    let deadline = fulgurite_units::Controller::deadline(&harness.rack);
    assert_eq!(deadline, Some(harness.now + limit), "a timer is set");
    harness.wait(limit.as_nanos() / Duration::from_secs(1).as_nanos());
    let commands = harness.step(Event::Timer);
    assert_eq!(runs(&commands), [(OpId::new(write), 3)], "with the three that are up");
}

/// Reads a blob whose stacks are on other disks than those that are up.
#[test]
fn later_read_spins_up_its_own_disks() {
    let mut harness = needed();
    let (first, spun_up) = harness.submit(0, OpKind::Read);
    let up = spin_ups(&spun_up);
    harness.obey(spun_up);
    let group = crate::GroupId::new(0);
    let places = harness.rack.assignment().places(group).to_vec();
    let asleep = places.iter().position(|place| !up.contains(place)).unwrap();
    let members = [asleep, (asleep + 1) % 4].into_iter().collect();
    let (id, bytes) = (OpId::new(99), fulgurite_units::ByteCount::new(1));
    let kind = OpKind::Read;
    let op = Op { id, group, kind, bytes, members, enough: 2, due: None };
    let commands = harness.step(Event::Submit { op });
    assert_eq!(spin_ups(&commands), [places[asleep]], "it spins up while the first is read");
    assert_eq!(harness.step(Event::Done { op: OpId::new(first) }), []);
    let commands = harness.step(Event::Up { place: places[asleep] });
    assert_eq!(runs(&commands), [(id, 4)]);
    assert_eq!(refusals(&commands), []);
}

/// A spare disk is spun up with the others. The slowest of them is not waited for, and does not
/// keep the group up.
#[test]
fn read_with_a_spare_disk_skips_the_slowest() {
    let policy = Policy {
        order: Order::Batches,
        spin_ups: SpinUps::Needed { spare: 1 },
        ..Policy::default()
    };
    let mut harness = Harness::new(policy);
    let (read, spun_up) = harness.submit(0, OpKind::Read);
    let places = spin_ups(&spun_up);
    assert_eq!(places.len(), 4);
    let answers = places[1..].iter().map(|place| harness.step(Event::Up { place: *place }));
    let commands: Vec<Command> = answers.collect::<Vec<_>>().concat();
    assert_eq!(runs(&commands), [(OpId::new(read), 3)]);
    harness.submit(1, OpKind::Read);
    let down = harness.step(Event::Done { op: OpId::new(read) });
    let is_down = |place: &PlaceId| down.contains(&Command::SpinDown { place: *place });
    assert!(places.iter().all(is_down), "{down:?}");
}
