//! Checks that the full scrub reads every written block within its period, and how many spin-ups
//! that takes: a set of tomes over more than a year of simulated time.

use fulgurite_units::{Duration, Instant};

use super::nature::Nature;
use super::world::World;
use crate::limits::{FULL_SCRUB, SCRUB_LAG_DIVISOR};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A pass may be late by a 24th of the disk.
const READ_WITHIN: Duration =
    Duration::from_nanos(FULL_SCRUB.as_nanos() + FULL_SCRUB.as_nanos() / SCRUB_LAG_DIVISOR);
/// Spin-ups of a disk for the scrub alone in a pass: one for each 24th of its blocks. With only 54
/// blocks the step rounds to two, so that is every second block, and one more at the start of the
/// period.
const SCRUB_SPIN_UPS_MAX: usize = 54 / 2 + 1;

/// Returns a set with some objects, all of them protected.
fn written() -> World {
    let mut world = World::new(Nature::CALM, 24);
    for tome in 0..world.nodes.len() {
        (0..3).for_each(|_| world.put(tome));
    }
    world.pass(DAY);
    assert_eq!(world.unprotected(), 0, "only the scrub is left to do");
    world
}

/// Returns when the block that was not read or written for longest was last accessed, and the
/// number of blocks.
fn oldest(world: &World) -> (Instant, usize) {
    let mut all = Vec::new();
    for node in &world.nodes {
        for physical_block in
            node.metadata.regions().flat_map(|(_, region)| region.physical_blocks())
        {
            all.push(node.last_access[&physical_block]);
        }
    }
    (all.iter().copied().min().unwrap(), all.len())
}

/// Runs for more than two passes; `clients` may act each day.
fn years(world: &mut World, clients: impl Fn(&mut World, u64)) {
    let blocks = world.layout.blocks();
    assert_eq!(
        usize::try_from(blocks).unwrap() / 2 + 1,
        SCRUB_SPIN_UPS_MAX,
        "the bound fits this layout"
    );
    for day in 0..750 {
        clients(world, day);
        world.pass(DAY);
        let (at, count) = oldest(world);
        assert!(count > 100, "{count} blocks are written");
        let age = world.now.since(at);
        assert!(age <= READ_WITHIN, "day {day}: a block was not read or written for {age:?}");
    }
    assert!(READ_WITHIN < Duration::from_secs(365 * 24 * 3600), "the bound is within a year");
    for (tome, node) in world.nodes.iter().enumerate() {
        assert_eq!(node.metadata.scrubbed().passes, 2, "tome {tome}");
    }
}

#[test]
fn scrub_covers_idle_disks_with_bounded_spin_ups() {
    let mut world = written();
    let before: Vec<usize> = world.nodes.iter().map(|node| node.spin_ups).collect();
    years(&mut world, |_, _| {});
    for (tome, (node, before)) in world.nodes.iter().zip(before).enumerate() {
        let spin_ups = node.spin_ups - before;
        assert_eq!(node.scrub_spin_ups, spin_ups, "tome {tome}: no client had a request");
        let passes = 750.0 / (FULL_SCRUB.as_secs_f64() / DAY.as_secs_f64());
        let most = (SCRUB_SPIN_UPS_MAX as f64 * passes).ceil();
        assert!((20.0..=most).contains(&(spin_ups as f64)), "tome {tome}: {spin_ups} of {most}");
    }
}

#[test]
fn scrub_uses_client_spin_ups() {
    let mut world = written();
    let alone: usize = {
        let mut world = written();
        years(&mut world, |_, _| {});
        world.nodes.iter().map(|node| node.scrub_spin_ups).sum()
    };
    let all: Vec<(usize, String)> = world.objects.keys().cloned().collect();
    years(&mut world, |world, day| {
        // One object of each tome in five days: less than one block of these small disks is due.
        for half in 0..2 {
            let number = usize::try_from(day * 2 + half).unwrap();
            let (tome, name) = &all[number % 10 * 3 + number / 10 % 3];
            world.get(*tome, name);
        }
    });
    assert!(world.counts.read >= 1400, "{} reads", world.counts.read);
    let own: usize = world.nodes.iter().map(|node| node.scrub_spin_ups).sum();
    assert!(own < alone / 10, "{own} spin-ups for the scrub, and {alone} without clients");
}
