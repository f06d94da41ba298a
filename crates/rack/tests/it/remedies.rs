//! Failures beside the disks: the ledger, the index, the identity files, a process out of file
//! handles. Tests what is lost, what is reported, and that the rack goes on.

use std::path::{Path as File, PathBuf};

use fulgurite_disks::{Backend as _, Fault, Observed, PlaceId};
use fulgurite_rack::work::Failing;
use fulgurite_rack::{RackStore, Snapshot};
use fulgurite_units::Duration;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use crate::shelf::{Shelf, noise, shape};

const LENGTH: usize = 3_000_000;

fn key(number: u64) -> Path {
    Path::from(format!("bodies/{number}"))
}

async fn put(rack: &RackStore, number: u64) {
    rack.put(&key(number), noise(number, LENGTH).into()).await.unwrap();
}

async fn is_there(rack: &RackStore, number: u64) -> bool {
    rack.get(&key(number)).await.unwrap().bytes().await.unwrap() == noise(number, LENGTH)
}

fn width() -> usize {
    usize::try_from(shape().code().width()).unwrap()
}

fn failures(status: &Snapshot) -> Vec<String> {
    let disks = status.groups.iter().flat_map(|group| &group.disks);
    disks.filter_map(|disk| disk.failure.clone()).collect()
}

/// Returns the disks of a group.
async fn disks(rack: &RackStore, group: usize) -> Vec<PlaceId> {
    let status = rack.status().await.unwrap();
    status.groups[group].disks.iter().map(|disk| disk.place).collect()
}

/// Waits until the snapshot meets a condition.
async fn until(rack: &RackStore, condition: impl Fn(&Snapshot) -> bool) -> Snapshot {
    loop {
        let status = rack.status().await.unwrap();
        if condition(&status) {
            return status;
        }
        tokio::task::yield_now().await;
    }
}

fn copy(from: &File, to: &File) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            std::fs::copy(&path, &copied).unwrap();
        }
    }
}

fn end(rack: RackStore) {
    rack.stop();
    drop(rack);
}

#[tokio::test]
async fn unwritable_ledger_holds_spin_ups_back() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    end(rack);
    let rack = shelf.open();
    shelf.injected.fail_ledger(true);
    let (also, recorded) = (rack.clone(), rack.ledger().await.unwrap().len());
    let written = tokio::spawn(async move { put(&also, 1).await });
    let status = until(&rack, |status| !failures(status).is_empty()).await;
    let reported = failures(&status);
    assert!(
        reported
            .iter()
            .all(|reported| reported.starts_with("not spun up, because the spin-up cannot")),
        "{reported:?}"
    );
    shelf.clock.advance(Duration::from_secs(5));
    let is_down = |place| shelf.disks.observe(place).unwrap() == Observed::Standby;
    rack.status().await.unwrap();
    assert!(shape().places().all(is_down), "no disk spins");
    shelf.injected.fail_ledger(false);
    shelf.clock.advance(Duration::from_secs(5));
    written.await.unwrap();
    assert_eq!(failures(&rack.status().await.unwrap()), [] as [&str; 0]);
    assert!(rack.ledger().await.unwrap().len() > recorded);
    assert!(is_there(&rack, 1).await);
}

#[tokio::test]
async fn rack_opens_despite_a_damaged_ledger() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    end(rack);
    let ledger = shelf.folder.path().join("rack/ledger");
    for damaged in [&b""[..], b"{\"format\":\"fulgurite-spin-up", b"\0\0\0\n\n\n"] {
        std::fs::write(&ledger, damaged).unwrap();
        let rack = shelf.open();
        assert!(is_there(&rack, 1).await);
        assert!(!rack.ledger().await.unwrap().is_empty());
        end(rack);
    }
    std::fs::remove_file(&ledger).unwrap();
    assert!(is_there(&shelf.open(), 1).await);
}

#[tokio::test]
async fn lack_of_file_handles_fails_no_disk() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    let before = shelf.stacks();
    shape().places().for_each(|place| shelf.injected.fail(place, Failing::Open));
    let error = rack.get(&key(1)).await.unwrap_err().to_string();
    assert!(error.contains("Too many open files"), "{error}");
    let spin_ups = rack.ledger().await.unwrap().len();
    let error = rack.put(&key(2), noise(2, LENGTH).into()).await.unwrap_err().to_string();
    assert!(error.contains("Too many open files"), "{error}");
    assert_eq!(rack.ledger().await.unwrap().len(), spin_ups, "no other group is spun up for it");
    shape().places().for_each(|place| shelf.injected.repair(place));
    assert!(is_there(&rack, 1).await);
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.lost, report.problems.len()), (0, 0));
    assert_eq!(shelf.stacks(), before, "nothing was rebuilt elsewhere");
    put(&rack, 2).await;
}

#[tokio::test]
async fn disk_that_failed_identification_once_is_not_lost() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let first = disks(&rack, 0).await;
    end(rack);
    let rack = shelf.open();
    first.iter().for_each(|&place| shelf.injected.fail(place, Failing::Open));
    put(&rack, 1).await;
    assert!(
        shelf.stacks().iter().all(|(place, _)| !first.contains(place)),
        "it is in another group"
    );
    let reported = failures(&rack.status().await.unwrap());
    assert!(
        reported.len() == first.len() && reported[0].contains("Too many open files"),
        "{reported:?}"
    );
    first.iter().for_each(|&place| shelf.injected.repair(place));
    // After their backoff they are tried again with their group.
    shelf.clock.advance(Duration::from_secs(61));
    rack.scrub().await.unwrap();
    let recovered = rack.recover().await.unwrap();
    assert_eq!(recovered.problems, [] as [&str; 0]);
    assert_eq!(failures(&rack.status().await.unwrap()), [] as [&str; 0]);
}

#[tokio::test]
async fn returned_right_disk_is_detected() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    let stacks = shelf.stacks();
    end(rack);
    let (one, other) = (shelf.root(stacks[0].0), shelf.root(stacks[1].0));
    let aside = shelf.folder.path().join("aside");
    let swap = || {
        std::fs::rename(&one, &aside).unwrap();
        std::fs::rename(&other, &one).unwrap();
        std::fs::rename(&aside, &other).unwrap();
    };
    swap();
    let rack = shelf.open();
    assert!(is_there(&rack, 1).await);
    assert_eq!(failures(&rack.status().await.unwrap()).len(), 2);
    shelf.clock.advance(Duration::from_secs(3601));
    until(&rack, |status| failures(status).len() == 2).await;
    swap();
    shelf.clock.advance(Duration::from_secs(2 * 3601));
    until(&rack, |status| failures(status).is_empty()).await;
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.lost, report.problems.len()), (0, 0));
}

#[tokio::test]
async fn damaged_identity_file_is_rebuilt_from_its_copy() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    end(rack);
    let place = shelf.stacks()[0].0;
    let files = ["fulgurite-disk.json", "fulgurite-disk.copy.json"];
    let files: Vec<PathBuf> = files.iter().map(|name| shelf.root(place).join(name)).collect();
    let whole = std::fs::read(&files[0]).unwrap();
    assert_eq!(std::fs::read(&files[1]).unwrap(), whole);
    let mut damages = vec![None, Some(Vec::new()), Some(whole[..whole.len() / 2].to_vec())];
    for at in [3, 30, 60, 90, 130, 150] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        damages.push(Some(flipped));
    }
    let damage = |file: &File, damaged: &Option<Vec<u8>>| match damaged {
        Some(bytes) => std::fs::write(file, bytes).unwrap(),
        None => std::fs::remove_file(file).unwrap(),
    };
    for damaged in &damages {
        for file in &files {
            damage(file, damaged);
            let rack = shelf.open();
            assert!(is_there(&rack, 1).await);
            assert_eq!(failures(&rack.status().await.unwrap()), [] as [&str; 0], "{damaged:?}");
            end(rack);
            assert!(files.iter().all(|file| std::fs::read(file).unwrap() == whole), "{damaged:?}");
        }
    }
    // Both are damaged: the disk is reported and not changed; the others are enough.
    files.iter().for_each(|file| damage(file, &damages[2]));
    let rack = shelf.open();
    assert!(is_there(&rack, 1).await);
    assert_eq!(failures(&rack.status().await.unwrap()).len(), 1);
    assert!(files.iter().all(|file| std::fs::read(file).unwrap() == damages[2].clone().unwrap()));
    let report = rack.rebuild(place).await.unwrap();
    assert_eq!((report.made, report.problems.len()), (1, 0));
}

#[tokio::test]
async fn nothing_is_acknowledged_below_its_redundancy() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let first = disks(&rack, 0).await;
    // Two disks of eight fail, and seven are needed.
    shelf.injected.fail(first[1], Failing::Write { after: 50_000 });
    shelf.injected.fail(first[4], Failing::Full { after: 70_000 });
    put(&rack, 1).await;
    first.iter().for_each(|&place| shelf.injected.repair(place));
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.blobs, report.lost, report.problems.len()), (1, 0, 0));
    // The first group's begun stacks were garbage-collected at once; the blob is complete in
    // another.
    let stacks = shelf.stacks();
    assert_eq!(stacks.len(), width());
    assert!(stacks.iter().all(|(place, _)| !first.contains(place)));
    assert!(is_there(&rack, 1).await);
}

#[tokio::test]
async fn full_group_is_retried_before_a_put_is_refused() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let groups = rack.status().await.unwrap().groups.len();
    for place in disks(&rack, 0).await {
        shelf.injected.fail(place, Failing::Full { after: 10_000 });
    }
    put(&rack, 1).await;
    for place in disks(&rack, 0).await {
        shelf.injected.repair(place);
    }
    for group in 1..groups {
        for place in disks(&rack, group).await {
            shelf.injected.fail(place, Failing::Full { after: 10_000 });
        }
    }
    put(&rack, 2).await;
    assert!(is_there(&rack, 2).await);
}

#[tokio::test]
async fn damage_in_distinct_stripes_is_repaired() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    let stacks = shelf.stacks();
    let whole: Vec<Vec<u8>> = stacks.iter().map(|(_, file)| std::fs::read(file).unwrap()).collect();
    for (stripe, (_, file)) in stacks.iter().take(4).enumerate() {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[4096 + stripe * 131_080 + 99] ^= 2;
        std::fs::write(file, bytes).unwrap();
    }
    assert!(is_there(&rack, 1).await);
    rack.scrub().await.unwrap();
    assert_eq!(shelf.stacks(), stacks);
    let now: Vec<Vec<u8>> = stacks.iter().map(|(_, file)| std::fs::read(file).unwrap()).collect();
    assert!(now == whole);
}

#[tokio::test]
async fn removed_stacks_folder_loses_stacks_not_the_disk() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    let stacks = shelf.stacks();
    std::fs::remove_dir_all(stacks[0].1.parent().unwrap()).unwrap();
    assert!(is_there(&rack, 1).await);
    let report = rack.scrub().await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
    assert_eq!(shelf.stacks().len(), width());
}

#[tokio::test]
async fn garbage_on_absent_disks_is_collected_later() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    put(&rack, 2).await;
    let away = shelf.stacks()[0].0;
    end(rack);
    shelf.disks.inject(away, Fault::Dead).unwrap();
    let rack = shelf.open();
    rack.delete(&key(1)).await.unwrap();
    rack.delete(&key(2)).await.unwrap();
    let sweep = put(&rack, 3);
    sweep.await;
    let left = shelf.stacks().len() - width();
    assert!((1..=2).contains(&left), "only the stacks on the absent disk: {left}");
    shelf.disks.inject(away, Fault::Repaired).unwrap();
    shelf.clock.advance(Duration::from_secs(7 * 3600));
    until(&rack, |status| failures(status).is_empty()).await;
    rack.scrub().await.unwrap();
    assert_eq!(shelf.stacks().len(), width());
}

#[tokio::test]
async fn lost_index_is_recovered_despite_a_dead_disk() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    let id = rack.rack();
    let (dead, _) = shelf.stacks().remove(0);
    end(rack);
    shelf.disks.inject(dead, Fault::Dead).unwrap();
    std::fs::remove_dir_all(shelf.folder.path().join("rack")).unwrap();
    // A new rack does not help: each disk names its rack.
    let refused = RackStore::init(shelf.options()).await.unwrap_err().to_string();
    assert!(refused.contains(&id.to_string()), "{refused}");
    let other = fulgurite_units::RackId::from_bytes([9; 16]);
    RackStore::adopt(shelf.options(), other).await.unwrap_err();
    let rack = RackStore::adopt(shelf.options(), id).await.unwrap();
    let found = rack.recover().await.unwrap();
    assert_eq!((found.blobs, found.problems), (1, Vec::<String>::new()));
    assert!(is_there(&rack, 1).await);
    let reported = failures(&rack.status().await.unwrap());
    assert_eq!(reported.len(), 1, "{reported:?}");
    // The read or this verification rebuilt the stack on the dead disk.
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.lost - report.made, report.problems.len()), (0, 0));
    assert_eq!(rack.scrub().await.unwrap().lost, 0);
    end(rack);
    let refused = RackStore::adopt(shelf.options(), other).await.unwrap_err().to_string();
    assert!(refused.contains("knows its disks or objects"), "{refused}");
    assert!(is_there(&shelf.open(), 1).await);
}

#[tokio::test]
async fn older_index_loses_nothing_and_reuses_no_sequence() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    put(&rack, 5).await;
    let version = |number: u64| noise(number, LENGTH);
    rack.put(&key(2), version(20).into()).await.unwrap();
    end(rack);
    let (index, older) =
        (shelf.folder.path().join("rack/index"), shelf.folder.path().join("older"));
    copy(&index, &older);
    let rack = shelf.open();
    for number in 0..9 {
        rack.put(&key(2), version(21 + number).into()).await.unwrap();
    }
    put(&rack, 3).await;
    rack.delete(&key(5)).await.unwrap();
    put(&rack, 4).await;
    end(rack);
    std::fs::remove_dir_all(&index).unwrap();
    copy(&older, &index);
    shelf.clock.advance(Duration::from_secs(1));
    let rack = shelf.open();
    // An object whose stacks were garbage-collected gives an error that names it, and a
    // verification reports it.
    let error = rack.get(&key(5)).await.unwrap_err().to_string();
    assert!(error.contains("usable stacks") && error.contains("missing"), "{error}");
    assert!(!rack.scrub().await.unwrap().problems.is_empty());
    // New writes are newer than those that the older index does not know.
    rack.put(&key(2), version(99).into()).await.unwrap();
    let found = rack.recover().await.unwrap();
    assert!(found.blobs >= 2, "{found:?}");
    assert!(is_there(&rack, 1).await && is_there(&rack, 3).await && is_there(&rack, 4).await);
    let now = rack.get(&key(2)).await.unwrap().bytes().await.unwrap();
    assert!(now == version(99), "the latest version");
    rack.delete(&key(5)).await.unwrap();
    assert_eq!(rack.scrub().await.unwrap().problems, [] as [&str; 0]);
}

#[tokio::test]
async fn damaged_index_is_an_error_and_disks_keep_the_blobs() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    let id = rack.rack();
    end(rack);
    let index = shelf.folder.path().join("rack/index");
    std::fs::remove_dir_all(&index).unwrap();
    std::fs::create_dir(&index).unwrap();
    let error = RackStore::open(shelf.options()).unwrap_err().to_string();
    assert!(error.contains("its creation was never completed"), "{error}");
    let rack = RackStore::adopt(shelf.options(), id).await.unwrap();
    assert_eq!(rack.recover().await.unwrap().blobs, 1);
    assert!(is_there(&rack, 1).await);
    let listed = rack.list_with_delimiter(None).await.unwrap();
    assert_eq!(listed.common_prefixes.len(), 1);
}

#[tokio::test]
async fn further_failures_during_a_rebuild_are_tolerated() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    for number in 1..5 {
        put(&rack, number).await;
    }
    let places = disks(&rack, 0).await;
    shelf.injected.fail(places[2], Failing::Read);
    shelf.injected.fail(places[5], Failing::Write { after: 200_000 });
    let report = rack.rebuild(places[0]).await.unwrap();
    assert!(!report.problems.is_empty(), "the report lists what was not rebuilt");
    for number in 1..5 {
        assert!(is_there(&rack, number).await);
    }
    places.iter().for_each(|&place| shelf.injected.repair(place));
    // Without another request, the rest is verified without delay.
    shelf.clock.advance(Duration::from_secs(3601));
    until(&rack, |status| status.groups[0].verified.is_some()).await;
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.lost, report.problems.len()), (0, 0), "{report:?}");
}
