//! What the policy promises, one scenario each.

use expect_test::expect;
use fulgurite_units::{Duration, Instant};

use super::twin::Twin;
use crate::limits::{FETCHES_IN_A_ROW_MAX, READS_PER_VISIT_MAX};
use crate::{LibraryShape, Outcome};

/// One shuttle, one drive.
fn one_of_each() -> LibraryShape {
    LibraryShape {
        read_racks: 1,
        drives_per_read_rack: 1,
        shuttles_per_panel: 1,
        ..LibraryShape::small()
    }
}

#[test]
fn one_read_step_by_step() {
    let mut twin = Twin::new(&LibraryShape::small(), 1);
    twin.read(0, 1, 7, 1234, 5);
    twin.run_to_rest();
    expect![[r#"
        0       ms  shuttle 0 moves 2.214 m (13.864 s)
        13863   ms  shuttle 0 crabs 1 to 2 (2.942 s)
        16805   ms  shuttle 0 picks platter 7 from Storage(SlotIndex(1234)) (2.216 s)
        19021   ms  shuttle 0 moves 2.214 m (13.864 s)
        32884   ms  shuttle 0 places platter 7 into Drive(DriveIndex(0), Customer) (2.005 s)
        34889   ms  drive 0 mounts platter 7 in Customer (1.000 s)
        35889   ms  drive 0 seeks track 5 of platter 7 (0.930 s)
        36819   ms  drive 0 reads 1 tracks for 1 (0.333 s)
        37153   ms  1 finished: Read
        37153   ms  drive 0 unmounts platter 7 in Customer (1.000 s)
        38153   ms  shuttle 0 picks platter 7 from Drive(DriveIndex(0), Customer) (1.898 s)
        40051   ms  shuttle 0 moves 2.214 m (13.864 s)
        53914   ms  shuttle 0 places platter 7 into Storage(SlotIndex(1234)) (2.028 s)
    "#]]
    .assert_eq(&twin.transcript);
}

#[test]
fn one_new_platter_step_by_step() {
    let mut twin = Twin::new(&LibraryShape::small(), 1);
    twin.verify(0, 1, 7, 1234, 100);
    twin.run_to_rest();
    expect![[r#"
        0       ms  shuttle 0 moves 1.200 m (7.899 s)
        7898    ms  shuttle 0 crabs 1 to 2 (2.942 s)
        10840   ms  shuttle 0 crabs 2 to 3 (2.982 s)
        13822   ms  shuttle 0 crabs 3 to 4 (2.936 s)
        16758   ms  shuttle 0 crabs 4 to 5 (2.942 s)
        19700   ms  shuttle 0 picks platter 7 from EjectBay(PanelIndex(0)) (2.100 s)
        21799   ms  shuttle 0 moves 1.200 m (7.899 s)
        29698   ms  shuttle 0 crabs 5 to 4 (2.946 s)
        32644   ms  shuttle 0 crabs 4 to 3 (2.992 s)
        35636   ms  shuttle 0 crabs 3 to 2 (2.987 s)
        38623   ms  shuttle 0 places platter 7 into Drive(DriveIndex(0), Verification) (1.948 s)
        40571   ms  drive 0 mounts platter 7 in Verification (1.000 s)
        41571   ms  drive 0 verifies 100 tracks from 0 (33.333 s)
        74904   ms  1 finished: Verified
        74904   ms  drive 0 unmounts platter 7 in Verification (1.000 s)
        75904   ms  shuttle 0 picks platter 7 from Drive(DriveIndex(0), Verification) (2.224 s)
        78128   ms  shuttle 0 moves 2.214 m (13.864 s)
        91991   ms  shuttle 0 places platter 7 into Storage(SlotIndex(1234)) (1.984 s)
        93976   ms  1000001 finished: Stored
    "#]]
    .assert_eq(&twin.transcript);
}

#[test]
fn platters_come_in_the_order_of_their_oldest_read() {
    let mut twin = Twin::new(&one_of_each(), 2);
    // The same slot order would be 3, 2, 1; platter 2 is asked for twice and served once.
    for (request, platter) in [(10, 1), (20, 2), (30, 3), (21, 2), (11, 1)] {
        twin.read(request, request, platter, 900 - 100 * u32::from(platter), 0);
    }
    twin.run_to_rest();
    assert_eq!(twin.order(), [10, 11, 20, 21, 30]);
}

#[test]
fn reads_that_arrive_while_a_platter_is_mounted_are_served_at_once() {
    let mut twin = Twin::new(&one_of_each(), 3);
    twin.read(0, 1, 1, 100, 0);
    twin.read(1, 2, 2, 200, 0);
    twin.run();
    let (_, first) = twin.outcome(1).unwrap();
    let during = first.as_nanos() / 1_000_000 - 100;

    let mut twin = Twin::new(&one_of_each(), 3);
    twin.read(0, 1, 1, 100, 0);
    twin.read(1, 2, 2, 200, 0);
    twin.read(during, 3, 1, 100, 9);
    twin.run_to_rest();
    assert_eq!(twin.order(), [1, 3, 2]);
}

#[test]
fn neighboring_tracks_need_no_second_seek() {
    let mut twin = Twin::new(&one_of_each(), 4);
    twin.read(0, 1, 1, 100, 8);
    twin.read(0, 2, 1, 100, 9);
    twin.read(0, 3, 1, 100, 20);
    twin.run_to_rest();
    assert_eq!(twin.transcript.matches("seeks").count(), 2);
}

#[test]
fn a_customer_stops_a_verification() {
    let mut twin = Twin::new(&one_of_each(), 5);
    // 9,000 tracks of a third of a second: 50 minutes.
    twin.verify(0, 1, 1, 100, 9_000);
    twin.read(600_000, 2, 2, 200, 0);
    twin.run_to_rest();
    assert_eq!(twin.order(), [2, 1, 1_000_001]);
    let (outcome, at) = twin.outcome(2).unwrap();
    assert_eq!(outcome, Outcome::Read);
    let waited = at.since(Instant::from_nanos(600_000_000_000));
    assert!(waited < Duration::from_secs(120), "the read waited {waited:?}");
    assert_eq!(twin.transcript.matches("halt").count(), 1);
    assert_eq!(twin.transcript.matches("switches").count(), 2, "there and back");
    // The customer's platter leaves while the verification goes on.
    assert_eq!(twin.transcript.matches("verifies").count(), 2);
}

#[test]
fn a_halted_pass_without_progress_is_taken_up_again() {
    let mut twin = Twin::instant(&LibraryShape::small(), 6);
    for platter in 0..20 {
        twin.verify(0, 100 + u64::from(platter), platter, 70 + u32::from(platter), 5);
    }
    for request in 0..50 {
        twin.read(0, request, 100 + u8::try_from(request % 7).unwrap(), request_slot(request), 0);
    }
    twin.run_to_rest();
    assert_eq!(twin.finished.len(), 20 + 20 + 50);
    assert_eq!(twin.now, Instant::ZERO);
}

fn request_slot(request: u64) -> u32 {
    1000 + u32::try_from(request % 7).unwrap() * 500
}

#[test]
fn one_popular_platter_does_not_keep_the_drive() {
    let mut twin = Twin::instant(&one_of_each(), 7);
    let crowd = u64::from(READS_PER_VISIT_MAX) + 400;
    twin.read(0, 0, 1, 100, 0);
    twin.read(0, 9_999, 2, 200, 0);
    for request in 1..crowd {
        twin.read(0, request, 1, 100, 0);
    }
    twin.run_to_rest();
    let served_before = twin.order().iter().position(|request| *request == 9_999).unwrap();
    assert_eq!(served_before, usize::try_from(READS_PER_VISIT_MAX).unwrap());
    assert_eq!(twin.finished.len(), usize::try_from(crowd).unwrap() + 1);
}

#[test]
fn customers_do_not_starve_new_platters() {
    // Ten drives for one shuttle: there is always a customer to fetch for.
    let mut twin = Twin::new(&LibraryShape { drives_per_read_rack: 10, ..one_of_each() }, 8);
    for number in 0..60 {
        twin.read(0, u64::from(number), 10 + number, 100 + u32::from(number), 0);
    }
    twin.verify(1, 100, 1, 50, 1);
    twin.run_to_rest();
    let collected = twin.transcript.find("from EjectBay").unwrap();
    let fetches = twin.transcript[..collected].matches("from Storage").count();
    // The first fetch began before the new platter came.
    assert_eq!(fetches, usize::try_from(FETCHES_IN_A_ROW_MAX).unwrap() + 1);
}

#[test]
fn a_canceled_read_is_not_fetched() {
    let mut twin = Twin::new(&one_of_each(), 9);
    twin.read(0, 1, 1, 100, 0);
    twin.read(0, 2, 2, 200, 0);
    twin.at(10, crate::Event::Cancel { request: crate::RequestId::new(2) });
    // Too late, and never asked: both without effect.
    twin.at(900_000, crate::Event::Cancel { request: crate::RequestId::new(1) });
    twin.at(900_000, crate::Event::Cancel { request: crate::RequestId::new(77) });
    twin.run_to_rest();
    assert_eq!(twin.outcome(2).unwrap().0, Outcome::Canceled);
    assert_eq!(twin.outcome(1).unwrap().0, Outcome::Read);
    assert_eq!(twin.transcript.matches("picks").count(), 2, "platter 2 stays where it is");
}

/// Shelving takes a shuttle into the partition of another, where it hides platters.
#[test]
fn a_hidden_platter_is_skipped_until_it_can_be_reached() {
    // Rack 5, shelf 1: at the far end, while new platters are verified next to the eject bay.
    let home = 5_105;
    let mut twin = Twin::new(&LibraryShape::small(), 10);
    twin.verify(0, 1, 1, home, 30);
    twin.run();
    let line =
        twin.transcript.lines().find(|line| line.contains("shuttle 0 places platter 1 into S"));
    let placing_ms: u64 = line.unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let (_, stored) = twin.outcome(1_000_001).unwrap();

    let mut twin = Twin::new(&LibraryShape::small(), 10);
    twin.verify(0, 1, 1, home, 30);
    // 2 lies beside the slot that is being filled, 3 and 4 on other shelves.
    twin.read(placing_ms + 200, 2, 2, home + 1, 0);
    twin.read(placing_ms + 300, 3, 3, home + 100, 0);
    twin.read(placing_ms + 300, 4, 4, home + 200, 0);
    twin.run_to_rest();
    let order: Vec<u64> = twin.order().into_iter().filter(|request| *request < 100).collect();
    assert_eq!(order, [1, 3, 2, 4]);
    assert!(twin.outcome(2).unwrap().1 > stored);

    // With nothing else to do, it is fetched as soon as the other shuttle is done.
    let mut twin = Twin::new(&LibraryShape::small(), 10);
    twin.verify(0, 1, 1, home, 30);
    twin.read(placing_ms + 200, 2, 2, home + 1, 0);
    twin.run_to_rest();
    let stored_ms = stored.as_nanos() / 1_000_000;
    let fetch = format!("{stored_ms:<7} ms  shuttle 2");
    assert!(twin.transcript.contains(&fetch), "{}", twin.transcript);
}
