//! Degraded reads: an object's own tome is lost, or others of its group spin anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite_disks::{PlaceId, Power, Simulated, Times};
use fulgurite_tome::{DegradedReadCounts, GroupChecked, InjectedFault, SetOptions, TomeSet};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{ErrorKind, Ratio, Seed};

use crate::rebuild::{busiest, content, fill};
use crate::shelf::{Shelf, lose, metadata, noise, root, tomes};

/// Returns the objects of a tome, with their numbers.
fn objects_of<'a>(set: &TomeSet, names: &'a [String], tome: TomeId) -> Vec<(usize, &'a String)> {
    let own = |(_, name): &(usize, &String)| set.tome_of(name).unwrap() == tome;
    names.iter().enumerate().filter(own).collect()
}

pub(crate) async fn groups(set: &TomeSet) -> Vec<GroupChecked> {
    let mut groups = Vec::new();
    set.verify(|checked| groups.push(checked)).await.unwrap();
    groups
}

#[tokio::test]
async fn objects_of_lost_tomes_get_degraded_reads() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 24).await;
    let first = busiest(&set, &names);
    set.stop();
    drop(set);
    lose(&shelf.folder, first);

    let set = shelf.open();
    let own = objects_of(&set, &names, first);
    for (number, name) in &own {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, *number), "{name}");
    }
    let degraded_reads = set.status().await.degraded_reads;
    assert_eq!(degraded_reads, DegradedReadCounts { lost: own.len() as u64, asleep: 0 });
    set.stop();
    drop(set);

    let others: Vec<TomeId> = tomes().filter(|tome| *tome != first).collect();
    lose(&shelf.folder, others[0]);
    let set = shelf.open();
    for (number, name) in names.iter().enumerate() {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, number), "{name}");
    }
    set.stop();
    drop(set);

    // With three lost tomes of 3+2, some groups have too few left: only their objects fail.
    lose(&shelf.folder, others[1]);
    let set = shelf.open();
    let lost = [first, others[0], others[1]];
    let groups = groups(&set).await;
    let beyond = |group: &GroupChecked| lost.iter().all(|tome| group.tomes.contains(tome));
    let (mut read, mut refused) = (0, 0);
    for (number, name) in names.iter().enumerate() {
        match shelf.wait(set.get(name)).await {
            Ok(bytes) => {
                assert_eq!(bytes, content(name, number), "{name}");
                read += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                assert!(lost.contains(&set.tome_of(name).unwrap()));
                assert!(error.to_string().contains("only 2 members of group"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(read > 0);
    assert_eq!(refused > 0, groups.iter().any(beyond), "{refused} refused");
    assert!(
        groups.iter().any(|group| group.failure.is_some()),
        "groups with lost members are not compared"
    );
    set.stop();
}

#[tokio::test]
async fn unprotected_object_of_lost_tome_is_an_error() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 16).await;
    // Messages between tomes are lost: what is put now is on one disk only.
    tomes().for_each(|tome| shelf.faults.inject(tome, InjectedFault::Send));
    let mut put = BTreeMap::new();
    for number in 0..6 {
        let name = format!("alone {number}");
        put.insert(name.clone(), shelf.wait(set.put(&name, noise(&name, 900))).await.unwrap());
    }
    let lost = *put.values().next().unwrap();
    set.stop();
    drop(set);
    lose(&shelf.folder, lost);
    tomes().for_each(|tome| shelf.faults.mend(tome));
    let set = shelf.open();
    for (name, _) in put.iter().filter(|(_, tome)| **tome == lost) {
        let error = shelf.wait(set.get(name)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("not in every parity"), "{error}");
    }
    // Other objects in the same groups are intact.
    for (number, name) in objects_of(&set, &names, lost) {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, number), "{name}");
    }
    set.stop();
}

#[tokio::test]
async fn objects_of_failed_tome_get_degraded_reads() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 16).await;
    let tome = busiest(&set, &names);
    shelf.faults.inject(tome, InjectedFault::Write);
    shelf.wait(put_until_given_up(&set, tome)).await;
    assert!(!set.status().await.is_well());
    for (number, name) in objects_of(&set, &names, tome) {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, number), "{name}");
    }
    set.stop();
}

/// Puts objects until a tome that cannot write got a request.
async fn put_until_given_up(set: &TomeSet, tome: TomeId) {
    for number in 0..64 {
        let name = format!("more {number}");
        let put = set.put(&name, noise(&name, 500)).await;
        let status = set.status().await;
        let has_failed = status.tomes.iter().any(|one| one.tome == tome && one.failure.is_some());
        if has_failed {
            return;
        }
        put.unwrap();
    }
    panic!("tome {tome} got no request");
}

/// Returns options of a set with three tokens, so that two others of a group can spin.
fn many(shelf: &Shelf) -> SetOptions {
    let tomes = (0..60).map(TomeId::new);
    SetOptions {
        roots: tomes.map(|tome| (tome, root(&shelf.folder, tome))).collect(),
        split: "2+1".parse().unwrap(),
        ..shelf.options()
    }
}

#[tokio::test]
async fn object_of_sleeping_tome_is_read_from_spinning_members() {
    let mut shelf = Shelf::new();
    let places = (0..60).map(PlaceId::new);
    let disks = Simulated::new(places, Times::PELICAN, Ratio::ZERO, Seed::new(1));
    shelf.disks = Arc::new(disks);
    let set = TomeSet::init(many(&shelf)).unwrap();
    let names = fill(&shelf, &set, 0, 120).await;
    let by_tome = |tome: TomeId| objects_of(&set, &names, tome);
    let mut reads_without_spin_up = 0;
    for group in groups(&set).await {
        let [a, b, c] = group.tomes[..] else { panic!("2+1") };
        let (Some(first), Some(second)) = (by_tome(a).pop(), by_tome(c).pop()) else { continue };
        shelf.settle(&set).await;
        let both = async { tokio::join!(set.get(first.1), set.get(second.1)) };
        let (one, two) = shelf.wait(both).await;
        assert_eq!(one.unwrap(), content(first.1, first.0));
        assert_eq!(two.unwrap(), content(second.1, second.0));
        let spinning: BTreeSet<TomeId> = spinning(&set);
        if !spinning.contains(&a) || !spinning.contains(&c) || spinning.contains(&b) {
            continue;
        }
        for (number, name) in by_tome(b) {
            let (before, count) =
                (set.status().await.degraded_reads.asleep, spin_ups(&set, b).await);
            let read = shelf.wait(set.get(name)).await.unwrap();
            assert_eq!(read, content(name, number), "{name}");
            if set.status().await.degraded_reads.asleep > before {
                assert_eq!(spin_ups(&set, b).await, count, "its disk was not spun up");
                reads_without_spin_up += 1;
            }
        }
        if reads_without_spin_up > 2 {
            break;
        }
    }
    assert!(reads_without_spin_up > 0, "no object was read from spinning members");
    set.stop();
}

fn spinning(set: &TomeSet) -> BTreeSet<TomeId> {
    let powers = set.powers().into_iter().filter(|(_, power)| *power == Power::Active);
    powers.map(|(tome, _)| tome).collect()
}

async fn spin_ups(set: &TomeSet, tome: TomeId) -> u64 {
    let status = set.status().await;
    status.tomes.iter().find(|one| one.tome == tome).unwrap().spin_ups
}

#[tokio::test]
async fn retired_tome_stays_readable_and_does_not_return() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 24).await;
    set.stop();
    drop(set);
    let new = shelf.add();
    let set = shelf.init();
    assert_eq!(set.retire(TomeId::new(77)).await.unwrap_err().kind(), ErrorKind::NotFound);
    // Its objects are not protected while messages are lost; when the caller stops waiting for
    // that, the tome continues as it was.
    tomes().for_each(|tome| shelf.faults.inject(tome, InjectedFault::Send));
    let more = "one more";
    let tome = shelf.wait(set.put(more, noise(more, 400))).await.unwrap();
    let within = std::time::Duration::from_millis(300);
    let impatient = tokio::time::timeout(within, set.retire(tome)).await;
    assert!(impatient.is_err(), "{impatient:?}");
    assert!(set.status().await.moves.leaving.is_empty());
    tomes().for_each(|tome| shelf.faults.mend(tome));
    let planned = shelf.wait(set.retire(tome)).await.unwrap();
    assert!(!planned.under_way.is_empty(), "{planned:?}");
    assert_eq!(shelf.wait(set.get(more)).await.unwrap(), noise(more, 400));
    let other = tomes().find(|other| *other != tome).unwrap();
    let refused = shelf.wait(set.retire(other)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert!(refused.to_string().contains("rebuilt before"), "{refused}");
    // It is not opened again, though its disk is there, and its member slots continue to move.
    set.stop();
    drop(set);
    assert!(metadata(&shelf.folder, tome).exists());
    let set = shelf.open();
    let status = shelf.moved(&set).await;
    assert_eq!(status.moves.out, BTreeSet::from([tome]));
    assert!(status.is_well(), "{:?}", status.reasons);
    for (number, name) in names.iter().enumerate() {
        assert_ne!(set.tome_of(name).unwrap(), tome);
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, number), "{name}");
    }
    assert_ne!(set.tome_of(more).unwrap(), tome);
    assert_eq!(shelf.wait(set.get(more)).await.unwrap(), noise(more, 400));
    assert!(groups(&set).await.iter().any(|group| group.tomes.contains(&new)));
    // Now another one may be retired.
    let ready = shelf.wait(set.retire(other)).await;
    assert!(ready.is_ok(), "{ready:?}");
    set.stop();
}
