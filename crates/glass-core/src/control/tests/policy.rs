//! What each policy promises, one scenario each.

use fulgurite_units::{DriveIndex, Duration, Instant, Ratio};

use super::twin::Twin;
use crate::control::state::Stage;
use crate::control::{DriveSlot, LibraryShape, Outcome, POLICY_NAMES, Policy};

/// One shuttle, one drive.
fn one_of_each() -> LibraryShape {
    LibraryShape {
        read_racks: 1,
        drives_per_read_rack: 1,
        shuttles_per_panel: 1,
        spare_slots_per_shelf: 1,
        ..LibraryShape::small()
    }
}

#[test]
fn every_named_policy_serves_requests() {
    for name in POLICY_NAMES {
        let mut twin = Twin::with_policy(&LibraryShape::small(), Policy::named(name).unwrap(), 1);
        for number in 0..40 {
            twin.read(0, u64::from(number), number % 20, 150 * (number % 20), number);
        }
        twin.verify(0, 100, 50, 5_555, 30);
        twin.run_to_rest();
        assert_eq!(twin.order().len(), 41, "{name}");
    }
}

#[test]
fn platters_are_fetched_by_oldest_read() {
    let mut twin = Twin::with_policy(&one_of_each(), Policy::silica(), 2);
    for (request, platter) in [(10, 1), (20, 2), (30, 3), (21, 2), (11, 1)] {
        twin.read(request, request, platter, 900 - 100 * platter, 0);
    }
    twin.run_to_rest();
    assert_eq!(twin.order(), [10, 11, 20, 21, 30]);
}

/// The oldest platter is far away; of the four oldest the near ones come first, until the oldest is
/// too old.
#[test]
fn nearest_goes_first_within_the_age_bound() {
    let order = |age_bound| {
        let policy = Policy { candidates: 4, customer_slots: 1, age_bound, ..Policy::silica() };
        let mut twin = Twin::with_policy(&one_of_each(), policy, 3);
        twin.read(0, 0, 9, 1_000, 0);
        twin.read(1, 1, 1, 6_900, 0);
        (2..12).for_each(|number| twin.read(2, u64::from(number), number, 10 * number, 0));
        twin.run_to_rest();
        let order = twin.order();
        order.iter().position(|request| *request == 1).unwrap()
    };
    let (patient, strict) = (order(Duration::from_secs(3600)), order(Duration::from_secs(60)));
    assert!(strict < patient, "{strict} and {patient}");
}

#[test]
fn customer_read_halts_a_verification() {
    let mut twin = Twin::new(&one_of_each(), 5);
    // 9,000 tracks of a third of a second: 50 minutes.
    twin.verify(0, 1, 1, 100, 9_000);
    twin.read(600_000, 2, 2, 200, 0);
    twin.run_to_rest();
    assert_eq!(twin.order(), [2, 1]);
    let (outcome, at) = twin.outcome(2).unwrap();
    assert_eq!(outcome, Outcome::Read);
    let waited = at.since(Instant::from_nanos(600_000_000_000));
    assert!(waited < Duration::from_secs(120), "the read waited {waited:?}");
    assert_eq!(twin.transcript.matches("halt").count(), 1);
    assert_eq!(twin.transcript.matches("verifies").count(), 2);
}

/// Four shuttles for two drives: their partitions share the one customer slot of a drive.
#[test]
fn customers_use_only_their_slots_with_spare_shuttles() {
    let shape = LibraryShape { drives_per_read_rack: 1, ..LibraryShape::small() };
    for (customer_slots, second_slots_used) in [(1, false), (2, true)] {
        let policy = Policy { customer_slots, ..Policy::silica() };
        let mut twin = Twin::with_policy(&shape, policy, 4);
        for number in 0..60 {
            twin.read(0, u64::from(number), number, 110 * number, 0);
        }
        twin.run_to_rest();
        assert_eq!(twin.library.policy().customer_slots, customer_slots);
        assert_eq!(twin.transcript.contains("Second"), second_slots_used, "{customer_slots}");
    }
}

/// Many customers get the second slots that verification does not need. With one drive that is none
/// until the new platter is on its way to its slot.
#[test]
fn customers_use_slots_that_new_platters_leave_free() {
    for (new_platter, most) in [(true, 1), (false, 2)] {
        let mut twin = Twin::new(&one_of_each(), 6);
        if new_platter {
            twin.verify(0, 1, 1, 100, 9_000);
        }
        for number in 2..60 {
            twin.read(600_000, u64::from(number), number, 100 * number, 0);
        }
        let mut at_once = 0;
        while twin.order().len() < 20 && twin.step() {
            let drive = twin.library.drives.get(DriveIndex::new(0));
            let bays = DriveSlot::BOTH.map(|slot| drive.bay(slot).platter());
            let inside = bays.into_iter().flatten();
            let stages = inside.map(|key| twin.library.shelf.get(key).stage());
            at_once = at_once.max(stages.filter(|s| matches!(s, Stage::Stored { .. })).count());
        }
        assert_eq!(at_once, most);
    }
}

/// Reads are held for half of the slack, to the nanosecond, and those that come until then share
/// one fetch.
#[test]
fn thrifty_policy_gathers_reads() {
    let mut twin = Twin::with_policy(&one_of_each(), Policy::thrifty(), 7);
    let due = Instant::from_nanos(7_200_000_000_000);
    for number in 0..6 {
        twin.read_until(600_000 * number, number, 1, 500, 0, due);
    }
    assert!(twin.step());
    let hold = Instant::from_nanos(3_600_000_000_000);
    assert_eq!(fulgurite_units::Controller::deadline(&twin.library), Some(hold));
    twin.run_to_rest();
    assert_eq!(twin.library.counters().fetches, 1);
    assert!(twin.finished.iter().all(|(.., at)| *at > hold));
}

#[test]
fn idle_shuttles_steal_and_borders_move() {
    let hot = |policy: Policy| {
        let mut twin = Twin::with_policy(&LibraryShape::small(), policy, 8);
        for number in 0..60 {
            twin.read(u64::from(number) * 5_000, u64::from(number), number, number, 0);
        }
        twin.run_to_rest();
        twin
    };
    let none = Policy { steal_tracks: None, ..Policy::silica() };
    let steals = hot(Policy { steal_tracks: Some(3), ..none.clone() });
    let moves = hot(Policy { rebalance: Some(Duration::from_secs(60)), ..none });
    assert!(steals.library.counters().steals > 0 && moves.library.counters().rebalances > 0);
}

/// A verified platter is shelved though customers keep coming and boundaries keep moving.
#[test]
fn customers_do_not_starve_shelving() {
    let policy = Policy { hold: Ratio::ZERO, ..Policy::fulgurite() };
    let mut twin = Twin::with_policy(&one_of_each(), policy, 9);
    twin.verify(0, 1_000, 99, 50, 10);
    for number in 0..80 {
        twin.read(60_000, u64::from(number), number, 60 * (number + 1), 0);
    }
    twin.run_to_rest();
    let stored = twin.transcript.find("Stored").unwrap();
    let before = twin.transcript[..stored].matches("finished: Read").count();
    assert!(before <= 20, "{before} customers went before");
}

/// One drive with two slots, and reads of many platters that need no shuttle.
#[test]
fn refilled_first_slot_does_not_starve_the_second() {
    let policy = Policy { customer_slots: 2, ..Policy::no_shuttles() };
    let mut twin = Twin::with_policy(&one_of_each(), policy, 9);
    for number in 0..200 {
        twin.read(0, u64::from(number), number, 10 * number, 0);
    }
    twin.run_to_rest();
    // The first to come is served first, or next.
    for (place, request) in twin.order().into_iter().enumerate() {
        assert!(request.abs_diff(place as u64) <= 1, "read {request} was answered as {place}");
    }
}

/// Five reads that are due in minutes arrive while the library works off many that are due in half
/// a day, all over it.
#[test]
fn urgent_reads_are_not_passed_over_for_later_ones() {
    let mut twin = Twin::new(&one_of_each(), 11);
    let due = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
    for number in 0..120 {
        twin.read_until(0, u64::from(number), number, 57 * number, 0, due(12 * 3600));
    }
    for number in 200..205 {
        let slot = 1_301 * (number - 199) - 1;
        twin.read_until(300_000, u64::from(number), number, slot, 0, due(600));
    }
    twin.run_to_rest();
    let order = twin.order();
    let places: Vec<_> =
        (200..205).map(|read| order.iter().position(|other| *other == read).unwrap()).collect();
    let (first, last) = (places.iter().min().unwrap(), places.iter().max().unwrap());
    // Platters in the drive or on their way already go first.
    assert!(last - first <= 6, "urgent reads were answered as {places:?}");
}
