//! When something breaks, what needs it ends by name and everything else goes on.

use super::twin::{Twin, platter_id};
use crate::{Error, Event, Fault, LibraryShape, Outcome, RequestId};

/// One shuttle with as many drives as said.
fn one_shuttle(drives: u16) -> LibraryShape {
    LibraryShape {
        read_racks: 1,
        drives_per_read_rack: drives,
        shuttles_per_panel: 1,
        ..LibraryShape::small()
    }
}

fn failed(twin: &Twin, request: u64) -> Fault {
    let (outcome, _) = twin.outcome(request).expect("the request ended");
    let Outcome::Failed(fault) = outcome else { panic!("request {request} ended as {outcome:?}") };
    fault
}

fn is_unreachable(twin: &Twin, request: u64) -> bool {
    let mut rejected = twin.rejected.iter();
    rejected
        .any(|(id, why)| *id == RequestId::new(request) && matches!(why, Error::Unreachable { .. }))
}

#[test]
fn a_missing_platter_ends_its_reads_and_no_others() {
    let mut twin = Twin::new(&one_shuttle(1), 1);
    twin.read(0, 1, 1, 100, 0);
    twin.read(0, 2, 1, 100, 4);
    twin.read(0, 3, 2, 200, 0);
    twin.world.storage.pop_first();
    twin.run_to_rest();
    assert_eq!(failed(&twin, 1), Fault::PlatterMissing);
    assert_eq!(failed(&twin, 2), Fault::PlatterMissing);
    assert_eq!(twin.outcome(3).unwrap().0, Outcome::Read);
}

#[test]
fn an_unreadable_track_ends_one_read() {
    let mut twin = Twin::new(&one_shuttle(1), 2);
    for request in 1..=4 {
        twin.read(0, request, 1, 100, 10 * u32::try_from(request).unwrap());
    }
    twin.script =
        vec![("reads 1 tracks for 2", Fault::Unreadable), ("seeks track 30", Fault::Unreadable)];
    twin.run_to_rest();
    assert_eq!(failed(&twin, 2), Fault::Unreadable);
    assert_eq!(failed(&twin, 3), Fault::Unreadable);
    assert_eq!(twin.outcome(1).unwrap().0, Outcome::Read);
    assert_eq!(twin.outcome(4).unwrap().0, Outcome::Read);
}

#[test]
fn a_platter_that_cannot_be_mounted_goes_home() {
    let mut twin = Twin::new(&one_shuttle(1), 3);
    twin.read(0, 1, 1, 100, 0);
    twin.read(0, 2, 2, 200, 0);
    twin.script = vec![("mounts platter 1", Fault::Unreadable)];
    twin.run_to_rest();
    assert_eq!(failed(&twin, 1), Fault::Unreadable);
    assert_eq!(twin.outcome(2).unwrap().0, Outcome::Read);
}

#[test]
fn a_broken_drive_leaves_the_work_to_the_others() {
    let mut twin = Twin::new(&one_shuttle(2), 4);
    for number in 1..=6u8 {
        twin.read(0, u64::from(number), number, 100 * u32::from(number), 0);
    }
    twin.script = vec![("reads 1 tracks for 2", Fault::DriveBroken)];
    twin.run();
    assert_eq!(failed(&twin, 2), Fault::DriveBroken);
    for request in [1, 3, 4, 5, 6] {
        assert_eq!(twin.outcome(request).unwrap().0, Outcome::Read, "read {request}");
    }
}

#[test]
fn without_a_drive_everything_ends_and_nothing_is_accepted() {
    let mut twin = Twin::new(&one_shuttle(1), 5);
    for number in 1..=3u8 {
        twin.read(0, u64::from(number), number, 100 * u32::from(number), 0);
    }
    twin.read(900_000, 4, 4, 400, 0);
    twin.verify(900_000, 5, 5, 500, 10);
    twin.script = vec![("drive 0 unmounts", Fault::DriveBroken)];
    twin.run();
    assert_eq!(twin.outcome(1).unwrap().0, Outcome::Read, "it was read before");
    assert_eq!(failed(&twin, 2), Fault::DriveBroken);
    assert_eq!(failed(&twin, 3), Fault::DriveBroken);
    assert!(is_unreachable(&twin, 4) && is_unreachable(&twin, 5));
    assert_eq!(twin.library.request_count(), 0);
}

#[test]
fn a_broken_shuttle_stops_its_partition_only() {
    let mut twin = Twin::new(&LibraryShape::small(), 6);
    // Shelves 0 and 1 of the first rack are shuttle 0's, shelf 9 is shuttle 1's.
    twin.read(0, 1, 1, 0, 0);
    twin.read(0, 2, 2, 100, 0);
    twin.read(0, 3, 3, 900, 0);
    twin.read(900_000, 4, 4, 1, 0);
    twin.script = vec![("shuttle 0 places", Fault::ShuttleBroken)];
    twin.run();
    assert_eq!(failed(&twin, 1), Fault::ShuttleBroken);
    assert_eq!(failed(&twin, 2), Fault::ShuttleBroken);
    assert_eq!(twin.outcome(3).unwrap().0, Outcome::Read);
    assert!(is_unreachable(&twin, 4));
}

/// Two shuttles share a drive; one breaks down while a platter of its own is in it.
#[test]
fn a_neighbor_clears_the_drive_it_shares() {
    let shape = LibraryShape { shuttles_per_panel: 2, ..one_shuttle(1) };
    let mut twin = Twin::new(&shape, 10);
    twin.read(0, 1, 1, 0, 0);
    twin.read(0, 2, 2, 900, 0);
    twin.script = vec![("picks platter 1 from Drive", Fault::ShuttleBroken)];
    twin.run_to_rest();
    assert_eq!(twin.outcome(1).unwrap().0, Outcome::Read);
    assert_eq!(twin.outcome(2).unwrap().0, Outcome::Read);
    assert!(twin.transcript.contains("shuttle 1 places platter 1 into Storage"));
}

/// A platter in a broken drive is asked for again before it is taken out: it goes home and to
/// another drive.
#[test]
fn a_platter_leaves_a_broken_drive() {
    let start = |twin: &mut Twin| {
        twin.read(0, 1, 1, 100, 0);
        twin.read(0, 2, 2, 200, 0);
        twin.script = vec![("mounts platter 1", Fault::DriveBroken)];
    };
    let mut twin = Twin::new(&one_shuttle(2), 11);
    start(&mut twin);
    twin.run();
    let (_, ended) = twin.outcome(1).unwrap();

    let mut twin = Twin::new(&one_shuttle(2), 11);
    start(&mut twin);
    twin.read(ended.as_nanos() / 1_000_000 + 500, 3, 1, 100, 0);
    twin.run_to_rest();
    assert_eq!(failed(&twin, 1), Fault::DriveBroken);
    assert_eq!(twin.outcome(2).unwrap().0, Outcome::Read);
    assert_eq!(twin.outcome(3).unwrap().0, Outcome::Read);
}

#[test]
fn a_platter_that_fails_verification_is_stored_all_the_same() {
    let mut twin = Twin::new(&one_shuttle(1), 7);
    twin.verify(0, 1, 1, 100, 50);
    twin.script = vec![("verifies", Fault::Unreadable)];
    twin.run_to_rest();
    assert_eq!(failed(&twin, 1), Fault::Unreadable);
    assert_eq!(twin.outcome(1_000_001).unwrap().0, Outcome::Stored);
    assert!(twin.world.storage.values().any(|platter| *platter == platter_id(1)));
}

#[test]
fn a_store_that_cannot_be_carried_out_ends() {
    let mut twin = Twin::new(&one_shuttle(1), 8);
    twin.verify(0, 1, 1, 100, 50);
    twin.script = vec![("places platter 1 into Storage", Fault::ShuttleBroken)];
    twin.run();
    assert_eq!(failed(&twin, 1_000_001), Fault::ShuttleBroken);
    assert_eq!(twin.library.request_count(), 0);
}

#[test]
fn a_timer_changes_nothing() {
    let mut twin = Twin::new(&one_shuttle(1), 9);
    twin.read(0, 1, 1, 100, 0);
    for at in [0, 1, 5_000, 30_000, 500_000] {
        twin.at(at, Event::Timer);
    }
    twin.run_to_rest();
    let mut without = Twin::new(&one_shuttle(1), 9);
    without.read(0, 1, 1, 100, 0);
    without.run_to_rest();
    assert_eq!(twin.transcript, without.transcript);
}
