//! Objects that are likely read together are placed so that few disks spin up for them.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_disks::Cause;
use fulgurite_tome::TomeSet;
use fulgurite_tome_core::TomeId;
use fulgurite_units::AffinityGroup;

use crate::shelf::{BLOCK, Shelf, noise};

/// Writers, whose objects are interleaved.
const WRITERS: u64 = 3;
/// Objects of each writer.
const EACH: u64 = 4;

fn name(affinity: u64, number: u64) -> String {
    format!("{affinity}/{number}")
}

/// Puts all objects, each once the disks stand still again; returns which tomes have those of each
/// writer.
async fn put(shelf: &Shelf, set: &TomeSet, is_grouped: bool) -> BTreeMap<u64, BTreeSet<TomeId>> {
    let mut tomes = BTreeMap::<u64, BTreeSet<TomeId>>::new();
    for number in 0..EACH {
        for affinity in 0..WRITERS {
            let name = name(affinity, number);
            let affinity_group = is_grouped.then(|| AffinityGroup::new(affinity));
            let put = set.put_with_affinity(&name, noise(&name, BLOCK), affinity_group);
            tomes.entry(affinity).or_default().insert(shelf.wait(put).await.unwrap());
            shelf.settle(set).await;
        }
    }
    tomes
}

/// Returns the spin-ups for reading all objects of one writer, one after the other.
async fn spin_ups_to_read(shelf: &Shelf, set: &TomeSet, affinity: u64) -> usize {
    let reads = |all: Vec<fulgurite_disks::SpinUp>| {
        all.iter().filter(|spin_up| matches!(spin_up.cause, Cause::Request(_))).count()
    };
    let before = reads(set.spin_ups().await);
    for number in 0..EACH {
        let name = name(affinity, number);
        assert_eq!(shelf.wait(set.get(&name)).await.unwrap(), noise(&name, BLOCK));
    }
    let after = reads(set.spin_ups().await);
    shelf.settle(set).await;
    after - before
}

#[tokio::test]
async fn affinity_group_is_placed_on_one_tome() {
    let (apart, together) = (Shelf::new(), Shelf::new());
    let mut spin_ups = BTreeMap::new();
    for (shelf, is_grouped) in [(&apart, false), (&together, true)] {
        let set = shelf.init();
        let tomes = put(shelf, &set, is_grouped).await;
        for affinity in 0..WRITERS {
            let count = tomes[&affinity].len();
            assert!(if is_grouped { count == 1 } else { count > 1 }, "{is_grouped} {tomes:?}");
            *spin_ups.entry(is_grouped).or_default() +=
                spin_ups_to_read(shelf, &set, affinity).await;
        }
        let own: BTreeSet<_> = tomes.values().flatten().collect();
        assert!(own.len() > 1, "writers do not crowd on one: {tomes:?}");
        set.stop();
    }
    let spin_ups: BTreeMap<bool, usize> = spin_ups;
    assert_eq!(usize::try_from(WRITERS).unwrap(), spin_ups[&true], "{spin_ups:?}");
    assert!(spin_ups[&false] > spin_ups[&true], "{spin_ups:?}");
}

#[tokio::test]
async fn affinity_group_leaves_lost_or_full_tome() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let affinity = Some(AffinityGroup::new(7));
    let mut tomes = Vec::new();
    for number in 0..24 {
        let name = name(7, number);
        let put = set.put_with_affinity(&name, noise(&name, 3 * BLOCK), affinity);
        tomes.push(shelf.wait(put).await.unwrap());
        shelf.wait(set.protected(&name)).await.unwrap();
    }
    let count = |tome: TomeId| tomes.iter().filter(|other| **other == tome).count();
    assert!(tomes[..3].iter().all(|tome| *tome == tomes[0]), "{tomes:?}");
    assert!(tomes.iter().any(|tome| *tome != tomes[0]), "it is not filled up: {tomes:?}");
    assert!(tomes.iter().all(|tome| count(*tome) > 1), "{tomes:?}");
    let last = *tomes.last().unwrap();
    shelf.wait(set.retire(last)).await.unwrap();
    let name = name(7, 99);
    let next =
        shelf.wait(set.put_with_affinity(&name, noise(&name, BLOCK), affinity)).await.unwrap();
    assert_ne!(next, last);
    set.stop();
}
