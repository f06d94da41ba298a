//! All shuttles arrive, however crowded the panel and whichever has the right of way.

use fulgurite_units::Seed;

use super::swarm::cases;
use super::twin::{Twin, distinct_slots};
use crate::control::{LibraryShape, Movement, Policy, RightOfWay};

fn crowd(shape: &LibraryShape, policy: Policy, seed: u64, reads: u64) -> Twin {
    let mut twin = Twin::with_policy(shape, policy, seed);
    let mut random = Seed::new(seed).child(b"crowd").stream();
    let slots = distinct_slots(shape, &mut random, 30);
    for request in 0..reads {
        let platter = u32::try_from(random.below(30)).unwrap();
        twin.read(random.below(100_000), request, platter, slots[platter as usize], 0);
    }
    twin.run_to_rest();
    assert_eq!(twin.order().len() as u64, reads);
    twin
}

/// Two shelves of ten places each.
fn tiny(shuttles: u16) -> LibraryShape {
    LibraryShape {
        read_racks: 2,
        drives_per_read_rack: 2,
        storage_racks: 3,
        shelves_per_panel: 2,
        slots_per_shelf: 20,
        shuttles_per_panel: shuttles,
        shuttle_width_mm: 700,
        ..LibraryShape::small()
    }
}

/// At the limit on the shuttles of a panel.
#[test]
fn full_panels_do_not_deadlock() {
    for right_of_way in [RightOfWay::Age, RightOfWay::Identifier] {
        for movement in [Movement::ShortestPaths, Movement::Partitions] {
            let policy = Policy { movement, right_of_way, ..Policy::fulgurite() };
            for seed in 0..4 * u64::from(cases(1)) {
                crowd(&tiny(5), policy.clone(), seed, 60);
                crowd(&tiny(6), policy.clone(), seed, 60);
            }
        }
    }
}

#[test]
fn crowded_panels_do_not_deadlock() {
    for right_of_way in [RightOfWay::Age, RightOfWay::Identifier] {
        for movement in [Movement::ShortestPaths, Movement::Partitions] {
            let policy = Policy { movement, right_of_way, ..Policy::fulgurite() };
            for seed in 0..10 {
                let twin = crowd(&tiny(4), policy.clone(), seed, 60);
                let counters = twin.library.counters();
                let met = counters.waits > 0 && counters.give_ways > 0;
                assert!(met || movement == Movement::Partitions, "no shuttles met: {counters:?}");
            }
        }
    }
}

/// Two shuttles from opposite ends, each headed for the other end on the same shelf.
#[test]
fn shuttles_that_meet_head_on_pass_each_other() {
    for right_of_way in [RightOfWay::Age, RightOfWay::Identifier] {
        let policy = Policy { right_of_way, ..Policy::shortest_paths() };
        crowd(&tiny(2), policy.clone(), 1, 30);
        crowd(&tiny(3), policy, 2, 30);
    }
}

/// Partitions keep shuttles out of each other's way (Silica, section 7.5).
#[test]
fn partitions_have_less_congestion() {
    let waits = |policy: Policy| {
        let shape = LibraryShape { shuttles_per_panel: 8, ..LibraryShape::small() };
        (0..4).map(|seed| crowd(&shape, policy.clone(), seed, 80).library.counters().waits).sum()
    };
    let (partitioned, free): (u64, u64) =
        (waits(Policy::silica()), waits(Policy::shortest_paths()));
    assert!(partitioned < free, "{partitioned} waits in partitions, {free} without");
}
