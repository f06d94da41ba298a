//! Tests placement over sets.

use std::collections::BTreeMap;

use fulgurite_units::ByteCount;
use proptest::prelude::*;

use crate::{Code, PlaceId, place};

const PELICAN: Code = Code { data: 15, redundancy: 3 };

/// Six sets of four disks, numbered consecutively.
fn pelicans_sets() -> Vec<Vec<PlaceId>> {
    (0..6).map(|set| (4 * set..4 * set + 4).map(PlaceId::new).collect()).collect()
}

fn placed(spare: impl Fn(u32) -> Option<u64>) -> Option<(Vec<u32>, bool)> {
    let spare = |place: PlaceId| spare(place.get()).map(ByteCount::new);
    let placement = place(&pelicans_sets(), PELICAN, ByteCount::new(10), spare)?;
    let mut places: Vec<u32> = placement.places.iter().map(|place| place.get()).collect();
    places.sort_unstable();
    Some((places, placement.is_set_tolerant))
}

#[test]
fn each_set_gets_three_stacks_on_its_emptiest_disks() {
    // In each set, disk 4 * set + set % 4 has the least space.
    let spare = |place| Some(if place % 4 == place / 4 % 4 { 50 } else { 100 });
    let (places, is_tolerant) = placed(spare).unwrap();
    let expected: Vec<u32> = (0..24).filter(|place| place % 4 != place / 4 % 4).collect();
    assert_eq!((places, is_tolerant), (expected, true));
}

#[test]
fn one_dead_disk_of_a_set_is_tolerated() {
    let (places, is_tolerant) = placed(|place| (place != 5).then_some(100)).unwrap();
    assert!(is_tolerant && !places.contains(&5));
    assert_eq!(places.iter().filter(|place| **place / 4 == 1).count(), 3);
}

#[test]
fn two_dead_disks_of_a_set_are_not_tolerated() {
    let dead = |place: u32| place == 4 || place == 5;
    let spare = |place: u32| (!dead(place)).then_some(if place == 23 { 20 } else { 10 });
    let (places, is_tolerant) = placed(spare).unwrap();
    assert!(!is_tolerant, "one set has four stacks, one more than may be lost");
    assert_eq!(places.iter().filter(|place| **place / 4 == 1).count(), 2);
    assert_eq!(places.len(), 18);
}

#[test]
fn too_few_disks_with_space_give_no_placement() {
    assert_eq!(placed(|place| Some(if place < 17 { 10 } else { 9 })), None);
    assert!(placed(|place| Some(if place < 18 { 10 } else { 9 })).is_some());
}

#[test]
fn stack_sizes_are_whole_stripes() {
    let fragment = ByteCount::kib(128);
    let stack = |blob| PELICAN.stack_bytes(ByteCount::new(blob), fragment).get();
    assert_eq!(stack(0), 0);
    assert_eq!(stack(1), 131_072);
    assert_eq!(stack(15 * 131_072), 131_072);
    assert_eq!(stack(15 * 131_072 + 1), 262_144);
}

proptest! {
    /// For any sets and code: as many distinct disks as stacks, all with space; and no disk with
    /// more space in the same set was passed over.
    #[test]
    fn placement_is_fair(
        sizes in prop::collection::vec(1usize..6, 1..8),
        data in 1u32..10,
        redundancy in 0u32..4,
        rooms in prop::collection::vec(0u64..30, 48),
    ) {
        let mut next = 0..;
        let sets: Vec<Vec<PlaceId>> = sizes.iter()
            .map(|size| next.by_ref().take(*size).map(PlaceId::new).collect())
            .collect();
        let spare = |place: PlaceId| {
            let room = rooms[place.get() as usize];
            (room > 3).then_some(ByteCount::new(room))
        };
        let stack = ByteCount::new(10);
        let has_room = |place: &&PlaceId| spare(**place).is_some_and(|spare| spare >= stack);
        let with_room = sets.iter().flatten().filter(has_room).count();
        let code = Code { data, redundancy };
        let found = place(&sets, code, stack, spare);
        prop_assert_eq!(found.is_some(), with_room >= code.width() as usize);
        let Some(placement) = found else { return Ok(()) };
        prop_assert_eq!(placement.places.len(), code.width() as usize);
        let mut of_set: BTreeMap<usize, u32> = BTreeMap::new();
        let mut seen = placement.places.clone();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), placement.places.len());
        for (at, set) in sets.iter().enumerate() {
            let (taken, left): (Vec<PlaceId>, Vec<PlaceId>) =
                set.iter().partition(|place| placement.places.contains(place));
            let least = taken.iter().filter_map(|place| spare(*place)).min();
            let most = left.iter().filter(has_room).filter_map(|place| spare(*place)).max();
            prop_assert!(least.is_none() || least >= most);
            prop_assert!(taken.iter().all(|place| has_room(&place)));
            of_set.insert(at, u32::try_from(taken.len()).unwrap());
        }
        let is_tolerant = of_set.values().all(|count| *count <= redundancy);
        prop_assert_eq!(placement.is_set_tolerant, is_tolerant);
    }
}
