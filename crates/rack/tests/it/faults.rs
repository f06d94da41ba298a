//! Failures of disks and their effect on blobs.

use fulgurite_disks::{Fault, PlaceId};
use fulgurite_rack::work::Failing;
use object_store::path::Path;
use object_store::{Attribute, ObjectStore as _, ObjectStoreExt as _, PutOptions};

use crate::shelf::{Shelf, noise, shape};

const LENGTH: usize = 3_000_000;

fn key() -> Path {
    Path::from("bodies/1")
}

async fn read(rack: &fulgurite_rack::RackStore) -> Vec<u8> {
    rack.get(&key()).await.unwrap().bytes().await.unwrap().to_vec()
}

/// How many stacks of a blob may be lost.
fn redundancy() -> usize {
    usize::try_from(shape().code().redundancy).unwrap()
}

fn width() -> usize {
    usize::try_from(shape().code().width()).unwrap()
}

#[tokio::test]
async fn blob_survives_losing_r_stacks_and_is_repaired() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let bytes = noise(1, LENGTH);
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    let stacks = shelf.stacks();
    assert_eq!(stacks.len(), width());
    for (_, file) in stacks.iter().take(redundancy()) {
        std::fs::remove_file(file).unwrap();
    }
    assert!(read(&rack).await == bytes);
    let report = rack.scrub().await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
    assert_eq!(shelf.stacks().len(), width(), "rebuilt by the read or the verification");
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.blobs, report.lost), (1, 0));
}

#[tokio::test]
async fn loss_beyond_redundancy_names_blob_group_and_disks() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    rack.put(&key(), noise(1, LENGTH).into()).await.unwrap();
    let stacks = shelf.stacks();
    for (_, file) in stacks.iter().take(redundancy() + 1) {
        std::fs::remove_file(file).unwrap();
    }
    let error = rack.get(&key()).await.unwrap_err().to_string();
    for (place, _) in stacks.iter().take(redundancy() + 1) {
        assert!(error.contains(&format!("on disk {place}: missing")), "{error}");
    }
    assert!(error.contains("of group "), "{error}");
}

#[tokio::test]
async fn verification_rebuilds_a_damaged_stack() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let bytes = noise(2, LENGTH);
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    let (_, file) = shelf.stacks().remove(3);
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[5000] ^= 4;
    std::fs::write(&file, &damaged).unwrap();
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.lost, report.made, report.problems.len()), (1, 1, 0));
    assert!(std::fs::read(&file).unwrap() == whole);
    assert!(read(&rack).await == bytes);
}

#[tokio::test]
async fn full_or_failing_disk_does_not_fail_a_write() {
    for failing in [Failing::Full { after: 1000 }, Failing::Write { after: 50_000 }, Failing::Sync]
    {
        let shelf = Shelf::new();
        let rack = shelf.init().await;
        // One disk of each group.
        let groups = rack.status().await.unwrap().groups;
        let failed: Vec<PlaceId> = groups.iter().map(|group| group.disks[0].place).collect();
        failed.iter().for_each(|&place| shelf.injected.fail(place, failing));
        let bytes = noise(3, LENGTH);
        rack.put(&key(), bytes.clone().into()).await.unwrap();
        assert!(read(&rack).await == bytes);
        failed.iter().for_each(|&place| shelf.injected.repair(place));
        let report = rack.scrub().await.unwrap();
        let still = (report.blobs, report.problems);
        assert_eq!(still, (1, Vec::<String>::new()), "{failing:?}");
        assert!(read(&rack).await == bytes);
    }
}

#[tokio::test]
async fn reopened_rack_keeps_objects_and_collects_garbage() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let bytes = noise(4, LENGTH);
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    rack.put(&Path::from("bodies/2"), noise(5, LENGTH).into()).await.unwrap();
    rack.put(&Path::from("small"), "few bytes".into()).await.unwrap();
    rack.delete(&Path::from("bodies/2")).await.unwrap();
    rack.stop();
    drop(rack);
    let rack = shelf.open();
    assert!(read(&rack).await == bytes);
    let small = rack.get(&Path::from("small")).await.unwrap().bytes().await.unwrap();
    assert_eq!(small, "few bytes");
    assert_eq!(shelf.stacks().len(), 2 * width());
    rack.put(&Path::from("bodies/3"), noise(6, LENGTH).into()).await.unwrap();
    assert_eq!(shelf.stacks().len(), 2 * width(), "stacks of the deleted blob are collected");
}

#[tokio::test]
async fn metadata_and_status_spin_up_no_disk() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    rack.put(&key(), noise(7, LENGTH).into()).await.unwrap();
    rack.put(&Path::from("small"), "few bytes".into()).await.unwrap();
    rack.stop();
    drop(rack);
    let rack = shelf.open();
    let before = rack.ledger().await.unwrap().len();
    let listed = rack.list_with_delimiter(None).await.unwrap();
    assert_eq!((listed.objects.len(), listed.common_prefixes.len()), (1, 1));
    assert_eq!(rack.head(&key()).await.unwrap().size, u64::try_from(LENGTH).unwrap());
    rack.get(&Path::from("small")).await.unwrap().bytes().await.unwrap();
    rack.put(&Path::from("other"), "few bytes".into()).await.unwrap();
    rack.delete(&key()).await.unwrap();
    let status = rack.status().await.unwrap();
    let disks = status.groups.iter().flat_map(|group| &group.disks);
    assert!(disks.clone().all(|disk| !disk.power.is_spinning()));
    assert!(disks.count() == shape().place_count());
    assert_eq!(rack.ledger().await.unwrap().len(), before);
}

#[tokio::test]
async fn stacks_of_a_dead_disk_are_rebuilt_on_others() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let bytes = noise(8, LENGTH);
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    let (dead, file) = shelf.stacks().remove(0);
    rack.stop();
    drop(rack);
    shelf.disks.inject(dead, Fault::Dead).unwrap();
    std::fs::remove_file(&file).unwrap();
    let rack = shelf.open();
    assert!(read(&rack).await == bytes);
    let report = rack.rebuild(dead).await.unwrap();
    assert_eq!((report.blobs, report.lost, report.made), (1, 1, 1), "{report:?}");
    let stacks = shelf.stacks();
    assert_eq!(stacks.len(), width());
    assert!(stacks.iter().all(|(place, _)| *place != dead));
    assert!(read(&rack).await == bytes);
    // The disk is replaced.
    std::fs::remove_dir_all(shelf.root(dead)).unwrap();
    shelf.disks.inject(dead, Fault::Repaired).unwrap();
    let report = rack.replace(dead).await.unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.blobs, report.lost), (1, 0));
}

#[tokio::test]
async fn lost_index_is_recovered_from_the_disks() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let bytes = noise(9, LENGTH);
    rack.put(&key(), noise(1, LENGTH).into()).await.unwrap();
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    // A small object without attributes is lost with the index; one with attributes is not.
    let (named, empty, plain) = (Path::from("named"), Path::from("empty"), Path::from("plain"));
    let attribute = (Attribute::Metadata("entry".into()), "of its own");
    for (path, bytes) in [(&named, "small"), (&empty, "")] {
        let attributes = [attribute.clone()].into_iter().collect();
        let options = PutOptions { attributes, ..PutOptions::default() };
        rack.put_opts(path, bytes.into(), options).await.unwrap();
    }
    rack.put(&plain, "small".into()).await.unwrap();
    let id = rack.rack();
    rack.stop();
    drop(rack);
    std::fs::remove_dir_all(shelf.folder.path().join("rack")).unwrap();
    let refused = fulgurite_rack::RackStore::open(shelf.options()).unwrap_err().to_string();
    assert!(refused.contains("it has no index"), "{refused}");
    let rack = fulgurite_rack::RackStore::adopt(shelf.options(), id).await.unwrap();
    let found = rack.recover().await.unwrap();
    assert_eq!((found.blobs, found.problems), (3, Vec::<String>::new()));
    assert!(read(&rack).await == bytes);
    for (path, bytes) in [(&named, "small"), (&empty, "")] {
        let found = rack.get(path).await.unwrap();
        let value = found.attributes.get(&attribute.0).map(|value| value.to_string());
        assert_eq!(value.as_deref(), Some(attribute.1));
        assert_eq!(found.bytes().await.unwrap(), bytes);
    }
    assert!(matches!(rack.get(&plain).await, Err(object_store::Error::NotFound { .. })));
}

#[tokio::test]
async fn disks_of_another_rack_are_reported_and_unchanged() {
    let (one, other) = (Shelf::new(), Shelf::new());
    let rack = one.init().await;
    rack.put(&key(), noise(1, LENGTH).into()).await.unwrap();
    let locked = fulgurite_rack::RackStore::open(one.options()).unwrap_err().to_string();
    assert!(locked.contains("open in another process"), "{locked}");
    // Another rack is created on a disk of this one.
    let place = PlaceId::new(5);
    let mut options = other.options();
    options.roots.insert(place, one.root(place));
    let before = std::fs::read(one.root(place).join("fulgurite-disk.json")).unwrap();
    let refused = fulgurite_rack::RackStore::init(options).await.unwrap_err().to_string();
    assert!(refused.contains(&rack.rack().to_string()), "{refused}");
    let after = std::fs::read(one.root(place).join("fulgurite-disk.json")).unwrap();
    assert_eq!(before, after);
    // Two places with one directory.
    let mut options = other.options();
    options.roots.insert(place, other.root(PlaceId::new(6)));
    let refused = fulgurite_rack::RackStore::init(options).await.unwrap_err().to_string();
    assert!(refused.contains("places 5 and 6 have the same directory"), "{refused}");
}

#[tokio::test]
async fn swapped_disks_are_reported_and_not_used() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let bytes = noise(1, LENGTH);
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    let stacks = shelf.stacks();
    let (one, other) = (stacks[0].0, stacks[1].0);
    rack.stop();
    drop(rack);
    let aside = shelf.folder.path().join("aside");
    std::fs::rename(shelf.root(one), &aside).unwrap();
    std::fs::rename(shelf.root(other), shelf.root(one)).unwrap();
    std::fs::rename(&aside, shelf.root(other)).unwrap();
    let rack = shelf.open();
    assert!(read(&rack).await == bytes);
    let status = rack.status().await.unwrap();
    let reported: Vec<String> = status
        .groups
        .iter()
        .flat_map(|group| &group.disks)
        .filter_map(|disk| disk.failure.clone())
        .collect();
    let swapped_with = |place: PlaceId| format!("in its place is the disk of place {place}");
    assert!(reported.iter().any(|reported| reported.contains(&swapped_with(one))), "{reported:?}");
    assert!(
        reported.iter().any(|reported| reported.contains(&swapped_with(other))),
        "{reported:?}"
    );
}

#[tokio::test]
async fn dropped_rack_stops_despite_a_running_read() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    rack.put(&key(), noise(1, 6 * LENGTH).into()).await.unwrap();
    let body = rack.get(&key()).await.unwrap();
    drop(rack);
    // The running read still completes; after it nothing holds the rack.
    assert_eq!(body.bytes().await.unwrap().len(), 6 * LENGTH);
    let mut opened = fulgurite_rack::RackStore::open(shelf.options());
    while let Err(error) = &opened {
        assert!(error.to_string().contains("open in another process"), "{error}");
        tokio::task::yield_now().await;
        opened = fulgurite_rack::RackStore::open(shelf.options());
    }
    assert!(opened.unwrap().head(&key()).await.is_ok());
}

#[tokio::test]
async fn ledger_records_why_each_group_was_spun_up() {
    use fulgurite_disks::CauseKind;
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    rack.put(&key(), noise(1, LENGTH).into()).await.unwrap();
    rack.stop();
    drop(rack);
    let rack = shelf.open();
    read(&rack).await;
    rack.scrub().await.unwrap();
    let spin_ups = rack.ledger().await.unwrap();
    let kinds: Vec<CauseKind> = spin_ups.iter().map(|spin_up| spin_up.cause.kind()).collect();
    assert_eq!(kinds.first(), Some(&CauseKind::Request), "{kinds:?}");
    let status = rack.status().await.unwrap();
    let spun: u64 = status.groups.iter().map(|group| group.spin_ups).sum();
    assert_eq!(spun, 8, "six initializations, one write and one read: {status:?}");
}

#[tokio::test]
async fn full_group_overflows_and_full_rack_is_an_error() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let groups = rack.status().await.unwrap().groups;
    let fill = |group: usize| {
        let disks = groups[group].disks.iter();
        disks.for_each(|disk| shelf.injected.fail(disk.place, Failing::Full { after: 100_000 }));
    };
    fill(0);
    let bytes = noise(1, LENGTH);
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    assert!(read(&rack).await == bytes);
    let whose: Vec<PlaceId> = groups[0].disks.iter().map(|disk| disk.place).collect();
    let is_whole = |file: &std::path::Path| std::fs::metadata(file).unwrap().len() > 500_000;
    let stacks = shelf.stacks();
    let whole = stacks.iter().filter(|(_, file)| is_whole(file));
    assert!(whole.clone().all(|(place, _)| !whose.contains(place)));
    assert_eq!(whole.count(), width());
    (1..groups.len()).for_each(fill);
    let other = Path::from("bodies/2");
    let error = rack.put(&other, noise(2, LENGTH).into()).await.unwrap_err().to_string();
    assert!(error.contains("rack is full: no group has space for a blob of "), "{error}");
    assert!(read(&rack).await == bytes);
    shape().places().for_each(|place| shelf.injected.repair(place));
    rack.put(&other, noise(2, LENGTH).into()).await.unwrap();
}

#[tokio::test]
async fn unreadable_disks_are_tolerated_while_enough_remain() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let bytes = noise(1, LENGTH);
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    let places: Vec<PlaceId> = shelf.stacks().into_iter().map(|(place, _)| place).collect();
    for &place in &places[..redundancy()] {
        shelf.injected.fail(place, Failing::Read);
    }
    assert!(read(&rack).await == bytes);
    shape().places().for_each(|place| shelf.injected.fail(place, Failing::Read));
    let error = rack.get(&key()).await.unwrap_err().to_string();
    assert!(error.contains("the disk did not answer (injected)"), "{error}");
    shape().places().for_each(|place| shelf.injected.repair(place));
    assert!(read(&rack).await == bytes);
}

#[tokio::test]
async fn loss_of_one_failure_unit_loses_nothing() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let keys: Vec<Path> = (0..3).map(|number| Path::from(format!("bodies/{number}"))).collect();
    for (number, key) in keys.iter().enumerate() {
        rack.put(key, noise(number as u64, LENGTH / 4).into()).await.unwrap();
    }
    rack.stop();
    drop(rack);
    // Each tray and each chassis fails in turn.
    let shape = shape();
    for unit in shape.units() {
        for index in 0..u32::try_from(unit.count()).unwrap() {
            let out = unit.members(index);
            out.iter().for_each(|&place| shelf.disks.inject(place, Fault::Dead).unwrap());
            let rack = shelf.open();
            for (number, key) in keys.iter().enumerate() {
                let found = rack.get(key).await.unwrap().bytes().await.unwrap();
                assert!(found == noise(number as u64, LENGTH / 4), "{} {index}", unit.name);
            }
            rack.stop();
            drop(rack);
            out.iter().for_each(|&place| shelf.disks.inject(place, Fault::Repaired).unwrap());
        }
    }
    let report = shelf.open().scrub().await.unwrap();
    assert_eq!((report.blobs, report.lost, report.problems.len()), (3, 0, 0));
}
