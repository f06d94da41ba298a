//! What a tome's own parity cannot rebuild comes back from its group.

use fulgurite_units::Duration;
use proptest::prelude::*;

use super::nature::Nature;
use super::set::{assert_guarantees, lived};
use super::world::World;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn repair_uses_own_segment_first_then_fewest_disks() {
    let mut world = lived(Nature::CALM, 4, 90);
    (0..3).for_each(|_| world.pass(HOUR));
    world.spoil_all(2);
    world.read_all();
    (0..3).for_each(|_| world.pass(HOUR));
    let before = world.counts;
    assert!(before.healed > 50, "{before:?}");
    assert_eq!((before.asked, before.lost_segments), (0, 0), "no other disk spun up");
    let hurt = (0..world.nodes.len()).find(|tome| world.damage_beyond_parity(*tome)).unwrap();
    assert_eq!(world.beyond_parity().len(), 1);
    let name = world.objects.keys().find(|(tome, _)| *tome == hurt).unwrap().1.clone();
    world.get(hurt, &name);
    (0..3).for_each(|_| world.pass(HOUR));
    let after = world.counts;
    assert_eq!(world.beyond_parity(), []);
    assert_eq!((after.lost_segments, after.asked), (1, 3), "one block of each of three members");
    assert!(after.spins - before.spins <= 5, "{before:?} {after:?}");
    assert_guarantees(&world);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn damage_beyond_a_tome_is_repaired_by_its_group(seed: u64) {
        let mut world = World::new(Nature::ROUGH, seed);
        let mut hurt = 0;
        for _ in 0..16 {
            for _ in 0..8 {
                world.stir();
                world.pass(MINUTE);
                // One at a time: a group recovers as many blocks of an offset as it has parities,
                // and other segments have bad blocks of their own within their parity.
                if world.is_sound() {
                    world.spoil_old();
                }
            }
            let tome = world.below(10);
            if world.is_sound() {
                hurt += u32::from(world.damage_beyond_parity(tome));
            }
        }
        world.calm();
        world.read_all();
        // Every disk spins once more, and notices blocks that no client reads.
        (0..world.nodes.len()).for_each(|tome| world.put(tome));
        (0..10).for_each(|_| world.pass(HOUR));
        prop_assert_eq!(world.beyond_parity(), [], "{:?}", world.counts);
        for node in &world.nodes {
            let tome = node.tome.as_ref().unwrap();
            prop_assert_eq!(tome.unprotected().bytes.get(), 0, "all is protected in the end");
        }
        assert_guarantees(&world);
        prop_assert!(hurt == 0 || world.counts.lost_segments > 0);
        prop_assert!(hurt == 0 || world.counts.asked > 0, "{:?}", world.counts);
    }
}
