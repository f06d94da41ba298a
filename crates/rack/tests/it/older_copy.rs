//! An older copy of the index, the ledger or a disk beside newer others: it is reported which one
//! it is, nothing that the newer ones know is removed, and the suggested remedy works.
//!
//! A run ends cleanly, or its directory is copied while it is open, which is what a kill leaves.

use std::path::{Path as File, PathBuf};

use fulgurite_disks::PlaceId;
use fulgurite_rack::work::Failing;
use fulgurite_rack::{Notification, RackStore};
use fulgurite_units::Duration;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::shelf::{Shelf, noise, shape};

const LENGTH: usize = 300_000;

fn key(number: u64) -> Path {
    Path::from(format!("bodies/{number}"))
}

async fn put(rack: &RackStore, number: u64) {
    rack.put(&key(number), noise(number, LENGTH).into()).await.unwrap();
}

async fn check(rack: &RackStore, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        let found = rack.get(&key(number)).await.unwrap().bytes().await.unwrap();
        assert_eq!(found, noise(number, LENGTH), "{number}");
    }
}

async fn is_missing(rack: &RackStore, number: u64) -> bool {
    matches!(rack.head(&key(number)).await, Err(object_store::Error::NotFound { .. }))
}

fn end(rack: RackStore) {
    rack.stop();
    drop(rack);
}

fn copy(from: &File, to: &File) {
    if from.is_file() {
        std::fs::copy(from, to).unwrap();
        return;
    }
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// Restores a file or a folder from a copy.
fn bring_back(shelf: &Shelf, older: &File, name: &str) {
    let (old, new) = (older.join(name), shelf.folder.path().join(name));
    if new.is_dir() {
        std::fs::remove_dir_all(&new).unwrap();
    } else if new.exists() {
        std::fs::remove_file(&new).unwrap();
    }
    copy(&old, &new);
    shelf.clock.advance(Duration::from_secs(1));
}

/// How the run with the newer files ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    InOrder,
    Killed,
}

/// Creates a rack written by two runs: 1 to 3 are in the older copy, of which 2 was deleted since
/// and 3 overwritten; 4 and 5 are newer. The disk of the first stack has been given up meanwhile.
async fn grown(end_of_it: End) -> (Shelf, PathBuf, PlaceId) {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    for number in 1..=3 {
        put(&rack, number).await;
    }
    end(rack);
    let older = shelf.folder.path().join("older");
    std::fs::create_dir(&older).unwrap();
    copy(&shelf.folder.path().join("rack"), &older.join("rack"));
    let (first, _) = shelf.stacks().remove(0);
    for place in shape().places() {
        copy(&shelf.root(place), &older.join(format!("disk-{place}")));
    }
    let rack = shelf.open();
    rack.delete(&key(2)).await.unwrap();
    rack.put(&key(3), noise(33, LENGTH).into()).await.unwrap();
    put(&rack, 4).await;
    let report = rack.rebuild(first).await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
    put(&rack, 5).await;
    match end_of_it {
        End::InOrder => end(rack),
        End::Killed => {
            // Copies the directory while it is open, which is what a kill leaves; then the run ends
            // normally.
            let killed = shelf.folder.path().join("killed");
            copy(&shelf.folder.path().join("rack"), &killed.join("rack"));
            end(rack);
            bring_back(&shelf, &killed, "rack");
        }
    }
    (shelf, older, first)
}

/// Checks that all acknowledged objects are there, and no others.
async fn check_grown(rack: &RackStore) {
    check(rack, [1, 4, 5]).await;
    let three = rack.get(&key(3)).await.unwrap().bytes().await.unwrap();
    assert_eq!(three, noise(33, LENGTH));
    assert!(is_missing(rack, 2).await);
}

/// Checks that everything is undamaged, also after a garbage collection.
async fn check_whole(rack: &RackStore) {
    rack.scrub().await.unwrap();
    put(rack, 9).await;
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.lost, report.problems), (0, Vec::new()));
}

#[tokio::test]
async fn older_index_is_detected_by_its_ledger_and_recovered() {
    for end_of_it in [End::InOrder, End::Killed] {
        let (shelf, older, _) = grown(end_of_it).await;
        let stacks = shelf.stacks();
        bring_back(&shelf, &older, "rack/index");
        let rack = shelf.open();
        // Detected before any disk is accessed.
        let status = rack.status().await.unwrap();
        assert!(status.index_is_older, "{end_of_it:?}");
        assert!(status.degraded_kinds()[0].contains("`fulgurite tier recover NAME`"));
        // A write spins up a group; stacks that the index lists as unwanted stay.
        put(&rack, 6).await;
        let left = shelf.stacks();
        assert!(stacks.iter().all(|stack| left.contains(stack)), "nothing is garbage-collected");
        end(rack);
        let rack = shelf.open();
        assert!(rack.status().await.unwrap().index_is_older, "it survives a restart");
        let found = rack.recover().await.unwrap();
        // One of them was deleted, and one overwritten.
        assert_eq!((found.problems, found.gone), (Vec::new(), 2), "{end_of_it:?}");
        assert_eq!(rack.status().await.unwrap().degraded_kinds(), [] as [&str; 0]);
        check_grown(&rack).await;
        check(&rack, [6]).await;
        check_whole(&rack).await;
        end(rack);
        let rack = shelf.open();
        assert!(!rack.status().await.unwrap().index_is_older);
        check_grown(&rack).await;
    }
}

#[tokio::test]
async fn older_rack_directory_is_detected_by_its_disks() {
    for end_of_it in [End::InOrder, End::Killed] {
        let (shelf, older, _) = grown(end_of_it).await;
        let stacks = shelf.stacks();
        bring_back(&shelf, &older, "rack");
        let rack = shelf.open();
        // Detected only when the first disk comes up.
        assert!(!rack.status().await.unwrap().index_is_older);
        put(&rack, 6).await;
        assert!(rack.status().await.unwrap().index_is_older, "{end_of_it:?}");
        let left = shelf.stacks();
        assert!(stacks.iter().all(|stack| left.contains(stack)), "nothing is garbage-collected");
        assert_eq!(rack.recover().await.unwrap().problems, [] as [&str; 0]);
        assert!(!rack.status().await.unwrap().index_is_older);
        check_grown(&rack).await;
        check_whole(&rack).await;
    }
}

#[tokio::test]
async fn older_ledger_is_reported_and_loses_only_spin_ups() {
    for end_of_it in [End::InOrder, End::Killed] {
        let (shelf, older, _) = grown(end_of_it).await;
        bring_back(&shelf, &older, "rack/ledger");
        let rack = shelf.open();
        assert!(!rack.status().await.unwrap().index_is_older);
        check_grown(&rack).await;
        end(rack);
        let rack = shelf.open();
        check_grown(&rack).await;
        check_whole(&rack).await;
    }
}

#[tokio::test]
async fn older_disk_is_detected_and_repaired_unprompted() {
    for end_of_it in [End::InOrder, End::Killed] {
        let (shelf, older, given_up) = grown(end_of_it).await;
        let newer = shelf.stacks();
        let was_there = |path: &File| older.join(path.strip_prefix(shelf.folder.path()).unwrap());
        let (place, path) = newer
            .iter()
            .find(|(place, path)| *place != given_up && !was_there(path).exists())
            .unwrap();
        bring_back(&shelf, &older, &format!("disk-{place}"));
        assert!(!path.exists());
        let rack = shelf.open();
        check_grown(&rack).await;
        // Its group is verified at once, which rebuilds what the disk lacked.
        loop {
            let status = rack.status().await.unwrap();
            let has = |group: &&fulgurite_rack::GroupSnapshot| {
                group.disks.iter().any(|disk| disk.place == *place)
            };
            if status.groups.iter().find(has).unwrap().verified.is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        check_whole(&rack).await;
        check_grown(&rack).await;
    }
}

#[tokio::test]
async fn index_without_start_count_is_no_older_copy() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    end(rack);
    // The counts on the disks and in the ledger are lost.
    for place in shape().places() {
        std::fs::remove_file(shelf.root(place).join("fulgurite-start.json")).unwrap();
    }
    let ledger = shelf.folder.path().join("rack/ledger");
    std::fs::remove_file(&ledger).unwrap();
    let rack = shelf.open();
    check(&rack, [1]).await;
    check_whole(&rack).await;
    assert_eq!(rack.status().await.unwrap().degraded_kinds(), [] as [&str; 0]);
}

#[tokio::test]
async fn damaged_start_count_of_a_disk_is_replaced() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    end(rack);
    for place in shape().places() {
        let file = shelf.root(place).join("fulgurite-start.json");
        let text = std::fs::read_to_string(&file).unwrap();
        let (before, _) = text.rsplit_once(',').unwrap();
        std::fs::write(&file, format!("{before},9]}}")).unwrap();
    }
    let rack = shelf.open();
    check(&rack, [1]).await;
    check_whole(&rack).await;
    assert_eq!(rack.status().await.unwrap().degraded_kinds(), [] as [&str; 0]);
    end(rack);
    // Of the disks that had to come up since.
    for (place, _) in shelf.stacks() {
        let text = std::fs::read_to_string(shelf.root(place).join("fulgurite-start.json")).unwrap();
        let counts: Vec<&str> = text.split(['[', ',', ']']).collect();
        assert_eq!(counts[2], counts[3], "{text}");
    }
}

#[tokio::test]
async fn subscribers_are_notified_of_unrepaired_blobs() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    let lost = shelf.stacks();
    let mut watch = rack.watch().await.unwrap();
    // Two disks of eight are unreadable: no other place is left for their stacks.
    for (place, _) in &lost[..2] {
        shelf.injected.fail(*place, Failing::Read);
    }
    for place in shape().places().filter(|place| !lost.iter().any(|(at, _)| at == place)) {
        shelf.injected.fail(place, Failing::Full { after: 0 });
    }
    check(&rack, [1]).await;
    let (blob, detail) = loop {
        match watch.next().await.unwrap().unwrap() {
            Notification::Unrepaired { blob, detail, .. } => break (blob, detail),
            Notification::Snapshot { .. } | Notification::Step { .. } => {}
        }
    };
    assert!(lost[0].1.display().to_string().contains(&blob.to_string()), "{blob}");
    assert!(detail.contains("still lacks redundancy"), "{detail}");
    // Later subscribers see the count.
    let first = rack.watch().await.unwrap().next().await;
    let Some(Ok(Notification::Snapshot { rack: snapshot, .. })) = first else {
        panic!("{first:?}")
    };
    assert_eq!(snapshot.unrepaired, 1);
    rack.stop();
    while let Some(seen) = watch.next().await {
        assert!(!matches!(seen.unwrap(), Notification::Unrepaired { .. }), "it is reported once");
    }
}

/// The start count of a disk in a newer program's file stays there.
#[tokio::test]
async fn newer_start_count_is_not_overwritten() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    put(&rack, 1).await;
    end(rack);
    let newer = br#"{"format":"fulgurite-start-2","start":[9,9],"added":1}"#;
    for place in shape().places() {
        std::fs::write(shelf.root(place).join("fulgurite-start.json"), newer).unwrap();
    }
    let rack = shelf.open();
    put(&rack, 2).await;
    check(&rack, [1, 2]).await;
    end(rack);
    for place in shape().places() {
        let found = std::fs::read(shelf.root(place).join("fulgurite-start.json")).unwrap();
        assert_eq!(found, newer, "place {place}");
    }
}
