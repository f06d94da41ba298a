//! Lost tomes are rebuilt by others: every protected byte is back.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_tome::{InjectedFault, TomeSet, UnpluggedTome};
use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::limits::SILENT_MEMBER_TIMEOUT;
use fulgurite_units::{Duration, ErrorKind};

use crate::shelf::{BLOCK, Shelf, lose, metadata, noise, pull, recovered, root, tomes};

/// Puts objects of one to eight blocks, and protects them.
pub(crate) async fn fill(shelf: &Shelf, set: &TomeSet, first: usize, count: usize) -> Vec<String> {
    let names: Vec<String> =
        (first..first + count).map(|number| format!("object {number}")).collect();
    for (number, name) in names.iter().enumerate() {
        shelf.wait(set.put(name, content(name, number))).await.unwrap();
    }
    for name in &names {
        shelf.wait(set.protected(name)).await.unwrap();
    }
    shelf.settle(set).await;
    names
}

pub(crate) fn content(name: &str, number: usize) -> Vec<u8> {
    noise(name, (number % 8 + 1) * BLOCK - 5)
}

pub(crate) async fn all_there(shelf: &Shelf, set: &TomeSet, names: &[String]) {
    for (number, name) in names.iter().enumerate() {
        let read = shelf.wait(set.get(name)).await.unwrap();
        assert_eq!(read, content(name, number), "{name}");
    }
    shelf.settle(set).await;
}

pub(crate) fn busiest(set: &TomeSet, names: &[String]) -> TomeId {
    let mut counts: BTreeMap<TomeId, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(set.tome_of(name).unwrap()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).unwrap().0
}

/// Asserts that each object is recovered without its tome and any other one.
fn any_two_may_be_lost(shelf: &Shelf, of: &BTreeMap<String, TomeId>, gone: &BTreeSet<TomeId>) {
    let left: Vec<TomeId> = tomes()
        .chain([TomeId::new(8), TomeId::new(9)])
        .filter(|tome| !gone.contains(tome))
        .collect();
    let left: Vec<TomeId> =
        left.into_iter().filter(|tome| metadata(&shelf.folder, *tome).exists()).collect();
    let mut all: BTreeMap<TomeId, UnpluggedTome> =
        left.iter().map(|tome| (*tome, pull(&shelf.folder, *tome))).collect();
    for (number, (name, tome)) in of.iter().enumerate() {
        let object = all[tome].metadata().object(name).unwrap().clone();
        let other = left[number % left.len()];
        if other == *tome {
            continue;
        }
        let lost = BTreeSet::from([*tome, other]);
        let bytes = recovered(&mut all, &lost, *tome, &object);
        let length = usize::try_from(object.bytes).unwrap();
        assert_eq!(bytes, noise(name, length), "{name} without {lost:?}");
    }
}

fn places(set: &TomeSet, names: &[String]) -> BTreeMap<String, TomeId> {
    names.iter().map(|name| (name.clone(), set.tome_of(name).unwrap())).collect()
}

#[tokio::test]
async fn lost_tome_is_rebuilt_on_an_added_one() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 24).await;
    let lost = busiest(&set, &names);
    let refused = set.rebuild(lost).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert_eq!(set.rebuild(TomeId::new(77)).await.unwrap_err().kind(), ErrorKind::NotFound);
    set.stop();
    drop(set);
    lose(&shelf.folder, lost);

    let new = shelf.add();
    let set = shelf.init();
    let status = set.status().await;
    assert_eq!(status.reasons.len(), 1, "{:?}", status.reasons);
    let own: Vec<&String> =
        names.iter().filter(|name| set.tome_of(name).unwrap() == lost).collect();
    assert!(own.len() > 2, "lost objects are known");
    let planned = set.rebuild(lost).await.unwrap();
    assert!(!planned.under_way.is_empty());
    let status = shelf.moved(&set).await;
    assert_eq!(status.moves.out, BTreeSet::from([lost]));
    assert!(status.is_well(), "{:?}", status.reasons);
    all_there(&shelf, &set, &names).await;
    assert!(names.iter().any(|name| set.tome_of(name).unwrap() == new));
    assert!(names.iter().all(|name| set.tome_of(name).unwrap() != lost));
    // It works like any other set.
    let more = fill(&shelf, &set, 100, 8).await;
    let places = places(&set, &[names.clone(), more.clone()].concat());
    set.stop();
    drop(set);
    any_two_may_be_lost(&shelf, &places, &BTreeSet::from([lost]));
    let set = shelf.open();
    let status = set.status().await;
    assert_eq!((status.reasons, status.moves.out), (vec![], BTreeSet::from([lost])));
    all_there(&shelf, &set, &names).await;
    all_there(&shelf, &set, &more).await;
    set.stop();
}

#[tokio::test]
async fn member_slots_without_room_wait_for_added_tomes() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 24).await;
    let first = busiest(&set, &names);
    let second = tomes().find(|tome| *tome != first).unwrap();
    set.stop();
    drop(set);
    lose(&shelf.folder, first);
    lose(&shelf.folder, second);

    let set = shelf.open();
    set.rebuild(first).await.unwrap();
    set.rebuild(second).await.unwrap();
    for _ in 0..50 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        if set.status().await.reasons.iter().any(|why| why.contains("add a tome")) {
            break;
        }
    }
    let reasons = set.status().await.reasons;
    assert!(reasons.iter().any(|why| why.contains("add a tome")), "{reasons:?}");
    set.stop();
    drop(set);
    shelf.add();
    shelf.add();
    // The rebuild continues by itself.
    let set = shelf.init();
    let status = shelf.moved(&set).await;
    assert_eq!(status.moves.out, BTreeSet::from([first, second]));
    assert!(status.is_well(), "{:?}", status.reasons);
    all_there(&shelf, &set, &names).await;
    let places = places(&set, &names);
    set.stop();
    drop(set);
    any_two_may_be_lost(&shelf, &places, &BTreeSet::from([first, second]));
}

#[tokio::test]
async fn rebuild_does_not_wait_for_another_lost_tome() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 24).await;
    let first = busiest(&set, &names);
    // Another one of its groups.
    let own = names.iter().find(|name| set.tome_of(name).unwrap() == first).unwrap();
    let group = set.groups_of(own).unwrap().remove(0);
    let second = group.slots().iter().map(|slot| slot.tome).find(|tome| *tome != first).unwrap();
    set.stop();
    drop(set);
    lose(&shelf.folder, first);
    lose(&shelf.folder, second);
    shelf.add();
    shelf.add();
    let set = shelf.init();
    let begun = shelf.clock.clock().passed();
    let planned = set.rebuild(first).await.unwrap().under_way.len();
    assert!(planned > 1);
    let status = shelf.moved(&set).await;
    assert_eq!(status.moves.out, BTreeSet::from([first]));
    let took = shelf.clock.clock().passed().since(begun);
    // No move waits until a silent member is skipped.
    assert!(took < SILENT_MEMBER_TIMEOUT, "{took:?} for {planned} moves");
    for (number, name) in names.iter().enumerate() {
        let read = shelf.wait(set.get(name)).await.unwrap();
        assert_eq!(read, content(name, number), "{name}");
    }
    set.stop();
}

/// Sets a tome's folders aside or restores them.
pub(crate) fn carry(shelf: &Shelf, tome: TomeId, is_back: bool) {
    for path in [root(&shelf.folder, tome), metadata(&shelf.folder, tome)] {
        let aside = path.with_extension("aside");
        let (from, to) = if is_back { (aside, path) } else { (path, aside) };
        std::fs::rename(from, to).unwrap();
    }
}

#[tokio::test]
async fn returning_tome_keeps_member_slots_that_have_not_moved() {
    for some_move in [false, true] {
        let shelf = Shelf::new();
        let set = shelf.init();
        let names = fill(&shelf, &set, 0, 16).await;
        let away = busiest(&set, &names);
        set.stop();
        drop(set);
        carry(&shelf, away, false);
        shelf.add();
        let set = shelf.init();
        let planned = set.rebuild(away).await.unwrap().under_way.len();
        assert!(planned > 1);
        while some_move && set.status().await.moves.under_way.len() == planned {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            shelf.clock.advance(Duration::from_millis(200));
        }
        set.stop();
        drop(set);
        carry(&shelf, away, true);

        let set = shelf.open();
        let status = shelf.moved(&set).await;
        assert_eq!(status.reasons, Vec::<String>::new());
        // All moves may have ended before the set was stopped: then it has no member slot to keep.
        assert!(status.moves.out.len() <= usize::from(some_move));
        all_there(&shelf, &set, &names).await;
        let places = places(&set, &names);
        if !some_move {
            assert!(places.values().any(|tome| *tome == away));
        }
        set.stop();
        drop(set);
        any_two_may_be_lost(&shelf, &places, &BTreeSet::new());
        // Regions that lost their member slots are free from the next start on.
        let set = shelf.open();
        let gone = names[0].clone();
        shelf.wait(set.delete(&gone)).await.unwrap();
        set.stop();
        drop(set);
        let set = shelf.open();
        assert_eq!(set.tome_of(&gone).unwrap_err().kind(), ErrorKind::NotFound);
        all_there(&shelf, &set, &names[8..]).await;
        fill(&shelf, &set, 100, 8).await;
        set.stop();
    }
}

#[tokio::test]
async fn unprotected_object_is_lost_with_its_tome_and_reported() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 8).await;
    for tome in tomes() {
        shelf.faults.inject(tome, InjectedFault::Send);
    }
    let tome = shelf.wait(set.put("late", noise("late", 3 * BLOCK))).await.unwrap();
    set.stop();
    drop(set);
    tomes().for_each(|tome| shelf.faults.mend(tome));
    lose(&shelf.folder, tome);
    shelf.add();
    let set = shelf.init();
    set.rebuild(tome).await.unwrap();
    let status = shelf.moved(&set).await;
    let reported: Vec<&String> = status.reasons.iter().filter(|why| why.contains("late")).collect();
    assert_eq!(reported.len(), 1, "{:?}", status.reasons);
    assert_eq!(set.tome_of("late").unwrap_err().kind(), ErrorKind::NotFound);
    all_there(&shelf, &set, &names).await;
    // Its name is free.
    shelf.wait(set.put("late", noise("late", BLOCK))).await.unwrap();
    shelf.wait(set.protected("late")).await.unwrap();
    set.stop();
}

#[tokio::test]
async fn member_slot_is_replanned_when_its_target_is_lost() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 8).await;
    let lost = busiest(&set, &names);
    set.stop();
    drop(set);
    lose(&shelf.folder, lost);
    let first = shelf.add();
    let set = shelf.init();
    let planned = set.rebuild(lost).await.unwrap().under_way;
    assert!(planned.iter().any(|moving| moving.planned.to.tome == first));
    set.stop();
    drop(set);
    lose(&shelf.folder, first);
    shelf.add();
    let set = shelf.init();
    set.rebuild(first).await.unwrap();
    let status = shelf.moved(&set).await;
    assert_eq!(status.moves.out, BTreeSet::from([lost, first]));
    assert!(status.is_well(), "{:?}", status.reasons);
    all_there(&shelf, &set, &names).await;
    set.stop();
}
