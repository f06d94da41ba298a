//! A failure ends what needs the broken machine, by name, and everything else goes on; after the
//! repair everything is as before.

use fulgurite_units::{DriveIndex, Duration, ShuttleIndex};

use super::twin::{Failure, Twin, panel};
use crate::control::{
    Error, Fault, LibraryShape, Machine, Outcome, RailPosition, RequestId, ShelfIndex,
};

/// One shuttle with this many drives.
fn one_shuttle(drives: u16) -> LibraryShape {
    LibraryShape {
        read_racks: 1,
        drives_per_read_rack: drives,
        shuttles_per_panel: 1,
        spare_slots_per_shelf: 1,
        ..LibraryShape::small()
    }
}

fn failed(twin: &Twin, request: u64) -> Fault {
    let (outcome, _) = twin.outcome(request).expect("the request ended");
    let Outcome::Failed(fault) = outcome else { panic!("request {request} ended as {outcome:?}") };
    fault
}

fn is_read(twin: &Twin, request: u64) -> bool {
    matches!(twin.outcome(request), Some((Outcome::Read, _)))
}

fn is_unreachable(twin: &Twin, request: u64) -> bool {
    let mut rejected = twin.rejected.iter();
    rejected.any(|(id, reason)| {
        *id == RequestId::new(request) && matches!(reason, Error::Unreachable { .. })
    })
}

#[test]
fn missing_platter_fails_only_its_own_reads() {
    let mut twin = Twin::new(&one_shuttle(1), 1);
    twin.read(0, 1, 1, 100, 0);
    twin.read(0, 2, 1, 100, 4);
    twin.read(0, 3, 2, 200, 0);
    twin.world.storage.pop_first();
    twin.run_to_rest();
    assert_eq!(failed(&twin, 1), Fault::PlatterMissing);
    assert_eq!(failed(&twin, 2), Fault::PlatterMissing);
    assert!(is_read(&twin, 3));
}

#[test]
fn unreadable_track_fails_one_read() {
    let mut twin = Twin::new(&one_shuttle(1), 2);
    for request in 1..=4 {
        twin.read(0, request, 1, 100, 10 * u32::try_from(request).unwrap());
    }
    let fails = Failure::Fails(Fault::Unreadable);
    twin.script = vec![("reads 1 tracks for 2", fails), ("seeks track 30", fails)];
    twin.run();
    assert_eq!(failed(&twin, 2), Fault::Unreadable);
    assert_eq!(failed(&twin, 3), Fault::Unreadable);
    assert!(is_read(&twin, 1) && is_read(&twin, 4));
    twin.run_to_rest();
}

#[test]
fn platter_that_fails_verification_is_still_stored() {
    let mut twin = Twin::new(&one_shuttle(1), 7);
    twin.verify(0, 1, 1, 100, 50);
    twin.script = vec![("verifies", Failure::Fails(Fault::Unreadable))];
    twin.run();
    assert_eq!(failed(&twin, 1), Fault::Unreadable);
    assert_eq!(twin.transcript.matches("Stored").count(), 1);
    twin.run_to_rest();
}

/// Whatever a shuttle does when it breaks: requests that nothing can serve end, new ones are
/// rejected meanwhile, and after the repair everything can be read and every platter gets home.
#[test]
fn shuttle_broken_anywhere_works_after_repair() {
    let breaks = [
        "shuttle 0 moves",
        "shuttle 0 crabs",
        "shuttle 0 picks platter 1 from Storage",
        "shuttle 0 places platter 1 into Drive",
        "shuttle 0 picks platter 1 from Drive",
        "shuttle 0 places platter 1 into Storage",
    ];
    for operation in breaks {
        for failure in [Failure::Breaks, Failure::Fails(Fault::ShuttleBroken)] {
            let mut twin = Twin::new(&one_shuttle(2), 6);
            twin.read(0, 1, 1, 1_234, 0);
            twin.read(0, 2, 2, 3_456, 0);
            twin.read(900_000, 3, 3, 250, 0);
            twin.script = vec![(operation, failure)];
            twin.run();
            assert!(is_unreachable(&twin, 3), "{operation}: no shuttle is left to fetch");
            assert!(twin.pending.is_empty(), "{operation}: every request has an answer");
            twin.repair_at(1_000_000, Machine::Shuttle(ShuttleIndex::new(0)));
            for request in 4..=6 {
                let platter = u32::try_from(request - 3).unwrap();
                let slot = [1_234, 3_456, 250][platter as usize - 1];
                twin.read(1_000_001, request, platter, slot, 0);
            }
            twin.run_to_rest();
            assert!((4..=6).all(|request| is_read(&twin, request)), "{operation}");
        }
    }
}

#[test]
fn broken_drive_keeps_its_platter_until_repair() {
    for operation in ["drive 0 mounts", "drive 0 reads", "drive 0 unmounts"] {
        let mut twin = Twin::new(&one_shuttle(2), 4);
        for number in 1..=6 {
            twin.read(0, u64::from(number), number, 100 * number, 0);
        }
        twin.script = vec![(operation, Failure::Breaks)];
        twin.run();
        assert!(twin.pending.is_empty(), "{operation}: the other drive serves the remaining reads");
        let ended = (1..=6).filter(|request| !is_read(&twin, *request));
        assert!(ended.count() <= 1, "{operation}: one platter is inside");
        assert_eq!(twin.world.drives[0].bays.len(), 1);
        twin.repair_at(2_000_000, Machine::Drive(DriveIndex::new(0)));
        for number in 1..=6 {
            twin.read(2_000_001, 10 + u64::from(number), number, 100 * number, 0);
        }
        twin.run_to_rest();
        assert!((11..=16).all(|request| is_read(&twin, request)));
    }
}

/// With every rail of a rack broken the panel is cut in two: reads beyond the cut are rejected, the
/// others are served.
#[test]
fn cut_panel_serves_its_reachable_part() {
    let shape = one_shuttle(1);
    let mut twin = Twin::new(&shape, 5);
    let rails: Vec<Machine> = (0..shape.shelves_per_panel)
        .map(|shelf| Machine::Rail {
            panel: panel(0),
            shelf: ShelfIndex::new(shelf),
            from: RailPosition::new(7_000_000),
            to: RailPosition::new(7_100_000),
        })
        .collect();
    twin.read(0, 1, 1, 6_500, 0);
    // After this read the shuttle is on the side of the drives.
    twin.read(300_000, 5, 2, 100, 0);
    for rail in &rails {
        twin.break_at(600_000, *rail);
    }
    twin.read(600_001, 2, 1, 6_500, 0);
    twin.read(600_001, 3, 2, 100, 0);
    for rail in &rails {
        twin.repair_at(1_200_000, *rail);
    }
    twin.read(1_200_001, 4, 1, 6_500, 0);
    twin.run_to_rest();
    assert!(is_read(&twin, 1) && is_read(&twin, 3) && is_read(&twin, 4));
    assert!(is_unreachable(&twin, 2));
}

/// A platter whose home cannot be reached waits in a spare slot until it can.
#[test]
fn displaced_platter_returns_home_after_repair() {
    let shape = one_shuttle(1);
    let mut twin = Twin::new(&shape, 9);
    twin.read(0, 1, 1, 6_500, 0);
    while twin.world.drives[0].bays.is_empty() {
        assert!(twin.step());
    }
    let address = shape.address(fulgurite_units::SlotIndex::new(6_500)).unwrap();
    let rail = Machine::Rail {
        panel: panel(0),
        shelf: address.shelf,
        from: RailPosition::new(9_000_000),
        to: RailPosition::new(9_700_000),
    };
    twin.after(Duration::ZERO, crate::control::Event::Broke { machine: rail });
    twin.run();
    assert!(is_read(&twin, 1));
    let away = twin.world.storage.keys().next().copied().unwrap();
    assert!(shape.is_spare(away), "it is in {away}");
    twin.run_to_rest();
}
