//! What a set of tomes promises, tried in the world.

use std::collections::BTreeSet;

use fulgurite_units::Duration;
use proptest::prelude::*;

use super::world::{Known, Nature, World};
use crate::TomeError;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A world in which clients and nature have done something for so many minutes.
fn lived(nature: Nature, seed: u64, minutes: u32) -> World {
    let mut world = World::new(nature, seed);
    for _ in 0..minutes {
        world.stir();
        world.pass(MINUTE);
    }
    world
}

/// Every object that was acknowledged as protected is got back without any two tomes, and every one
/// that was acknowledged at all from its own.
fn promises_hold(world: &World, gone: &BTreeSet<usize>) -> (u32, u32) {
    let (mut own, mut recovered) = (0, 0);
    for ((tome, name), (bytes, known)) in &world.objects {
        let node = &world.nodes[*tome];
        if matches!(known, Known::Local | Known::Protected) {
            let mut read = |spot| node.disk.get(&spot).cloned();
            let read = crate::alone::object(&node.awake, name, &mut read);
            assert_eq!(read.as_ref(), Ok(bytes), "{name} of tome {tome}");
            own += 1;
        }
        if *known == Known::Protected && gone.contains(tome) {
            assert_eq!(
                world.recover(*tome, name, gone).as_ref(),
                Ok(bytes),
                "{name} without {gone:?}"
            );
            recovered += 1;
        }
    }
    (own, recovered)
}

#[test]
fn a_quiet_set_protects_what_it_takes_and_sleeps() {
    let mut world = lived(Nature::CALM, 1, 120);
    world.pass(HOUR);
    world.pass(HOUR);
    let counts = world.counts;
    assert!(counts.local > 30, "{counts:?}");
    assert!(counts.read > 0, "{counts:?}");
    let all = world.objects.values().map(|(_, known)| known);
    assert!(all.clone().count() > 20 && all.clone().all(|known| *known == Known::Protected));
    for node in &world.nodes {
        let tome = node.tome.as_ref().unwrap();
        assert!(!tome.turns(), "nothing is left to do");
        assert_eq!(tome.unprotected().bytes.get(), 0);
    }
}

#[test]
fn any_two_tomes_may_be_lost_and_not_three() {
    let mut world = lived(Nature::CALM, 2, 90);
    let mut all = 0;
    for first in 0..10 {
        for second in 0..first {
            let gone = BTreeSet::from([first, second]);
            all += promises_hold(&world, &gone).1;
        }
    }
    assert!(all > 100, "{all} objects were recovered");
    world.pass(HOUR);
    let protected = world.objects.iter().find(|(_, (_, known))| *known == Known::Protected);
    let ((tome, name), _) = protected.unwrap();
    let (tome, name) = (*tome, name.clone());
    let object = world.nodes[tome].awake.object(&name).unwrap();
    let region = world.nodes[tome].awake.region(object.blocks[0].0).unwrap();
    let seats = region.group().seats().iter().map(|seat| seat.tome.get() as usize);
    let others = seats.filter(|seat| *seat != tome).take(2);
    let gone: BTreeSet<usize> = others.chain([tome]).collect();
    let lost = world.recover(tome, &name, &gone).unwrap_err();
    let group = region.group().id();
    assert_eq!(lost, TomeError::GroupLost { group, have: 2, need: 3 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_set_in_a_rough_world_keeps_its_promises(seed: u64) {
        let mut world = World::new(Nature::ROUGH, seed);
        for round in 0..6 {
            for _ in 0..40 {
                world.stir();
                world.pass(MINUTE);
            }
            let first = world.below(10);
            let gone = BTreeSet::from([first, (first + 1 + round) % 10]);
            promises_hold(&world, &gone);
        }
        world.calm();
        (0..8).for_each(|_| world.pass(HOUR));
        for node in &world.nodes {
            let tome = node.tome.as_ref().unwrap();
            prop_assert_eq!(tome.unprotected().bytes.get(), 0, "everything is protected in the end");
        }
        for group in world.groups.iter() {
            prop_assert!(world.check(group).wants().is_none());
        }
        prop_assert!(world.counts.crashes > 0 && world.counts.protected > 0);
    }
}
