//! Degraded reads: an object's own tome is lost, or others of its group spin anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fulgurite_disks::{PlaceId, Power, Simulated, Times};
use fulgurite_tome::{DegradedReadCounts, GroupChecked, InjectedFault, SetOptions, TomeSet};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{ErrorKind, Ratio, Seed};

use crate::rebuilt::{busiest, content, fill};
use crate::shelf::{Shelf, lose, metadata, noise, root, tomes};

/// Returns the objects of a tome, with their numbers.
fn of<'a>(set: &TomeSet, names: &'a [String], tome: TomeId) -> Vec<(usize, &'a String)> {
    let own = |(_, name): &(usize, &String)| set.tome_of(name).unwrap() == tome;
    names.iter().enumerate().filter(own).collect()
}

pub(crate) async fn groups(set: &TomeSet) -> Vec<GroupChecked> {
    let mut groups = Vec::new();
    set.verify(|checked| groups.push(checked)).await.unwrap();
    groups
}

#[tokio::test]
async fn objects_of_lost_tomes_are_read_of_their_groups_while_enough_are_left() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 24).await;
    let first = busiest(&set, &names);
    set.stop();
    drop(set);
    lose(&shelf.folder, first);

    let set = shelf.open();
    let own = of(&set, &names, first);
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
    assert!(groups.iter().any(|group| group.trouble.is_some()), "nobody compares the lost");
    set.stop();
}

#[tokio::test]
async fn what_was_not_protected_when_its_tome_was_lost_is_refused_and_never_wrong() {
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
    for (number, name) in of(&set, &names, lost) {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, number), "{name}");
    }
    set.stop();
}

#[tokio::test]
async fn a_tome_that_fails_in_the_middle_is_read_around() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let names = fill(&shelf, &set, 0, 16).await;
    let tome = busiest(&set, &names);
    shelf.faults.inject(tome, InjectedFault::Write);
    shelf.wait(put_until_given_up(&set, tome)).await;
    assert!(!set.status().await.is_well());
    for (number, name) in of(&set, &names, tome) {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name, number), "{name}");
    }
    set.stop();
}

/// Puts objects until a tome that cannot write has been asked.
async fn put_until_given_up(set: &TomeSet, tome: TomeId) {
    for number in 0..64 {
        let name = format!("more {number}");
        let put = set.put(&name, noise(&name, 500)).await;
        let status = set.status().await;
        let asked = status.tomes.iter().any(|one| one.tome == tome && one.trouble.is_some());
        if asked {
            return;
        }
        put.unwrap();
    }
    panic!("tome {tome} was never asked");
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
async fn an_object_of_a_disk_that_sleeps_is_read_of_others_that_turn() {
    let mut shelf = Shelf::new();
    let places = (0..60).map(PlaceId::new);
    let disks = Simulated::new(places, Times::PELICAN, Ratio::ZERO, Seed::new(1));
    shelf.disks = Arc::new(disks);
    let set = TomeSet::init(many(&shelf)).unwrap();
    let names = fill(&shelf, &set, 0, 120).await;
    let by_tome = |tome: TomeId| of(&set, &names, tome);
    let mut woke_nobody = 0;
    for group in groups(&set).await {
        let [a, b, c] = group.tomes[..] else { panic!("2+1") };
        let (Some(first), Some(second)) = (by_tome(a).pop(), by_tome(c).pop()) else { continue };
        shelf.settle(&set).await;
        let both = async { tokio::join!(set.get(first.1), set.get(second.1)) };
        let (one, two) = shelf.wait(both).await;
        assert_eq!(one.unwrap(), content(first.1, first.0));
        assert_eq!(two.unwrap(), content(second.1, second.0));
        let turning: BTreeSet<TomeId> = turning(&set);
        if !turning.contains(&a) || !turning.contains(&c) || turning.contains(&b) {
            continue;
        }
        for (number, name) in by_tome(b) {
            let (before, wakes) = (set.status().await.degraded_reads.asleep, woken(&set, b).await);
            let read = shelf.wait(set.get(name)).await.unwrap();
            assert_eq!(read, content(name, number), "{name}");
            if set.status().await.degraded_reads.asleep > before {
                assert_eq!(woken(&set, b).await, wakes, "nobody was woken for it");
                woke_nobody += 1;
            }
        }
        if woke_nobody > 2 {
            break;
        }
    }
    assert!(woke_nobody > 0, "no object was read of others that turn");
    set.stop();
}

fn turning(set: &TomeSet) -> BTreeSet<TomeId> {
    let powers = set.powers().into_iter().filter(|(_, power)| *power == Power::Active);
    powers.map(|(tome, _)| tome).collect()
}

async fn woken(set: &TomeSet, tome: TomeId) -> u64 {
    let status = set.status().await;
    status.tomes.iter().find(|one| one.tome == tome).unwrap().wakes
}

#[tokio::test]
async fn a_tome_that_is_taken_out_is_read_meanwhile_and_does_not_come_back() {
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
