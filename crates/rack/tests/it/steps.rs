//! Each disk fault during each operation: no space, failing write, sync, read, rename or open; on
//! one disk of each group, on more than a blob may lose, and on all.
//!
//! Acknowledged objects are there with their bytes, and no other bytes are ever returned. Once the
//! disks work again the rack recovers by verification alone.

use fulgurite_disks::PlaceId;
use fulgurite_rack::RackStore;
use fulgurite_rack::work::Failing;
use fulgurite_units::Duration;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _};

use crate::shelf::{Shelf, noise, shape};

/// Slightly more than a stripe.
const LENGTH: usize = 700_000;

const FAULTS: [Failing; 7] = [
    Failing::Full { after: 0 },
    Failing::Full { after: 50_000 },
    Failing::Write { after: 50_000 },
    Failing::Sync,
    Failing::Read,
    Failing::Name,
    Failing::Open,
];

/// The operation that runs while disks fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Put,
    Overwrite,
    Delete,
    /// Reads a blob with a damaged stack, so that it is repaired.
    Read,
    /// Verifies it.
    Verify,
    /// Rebuilds a disk, which is given up then.
    Rebuild,
    /// Replaces a disk that was removed.
    Replace,
    Recover,
}

fn key(name: &str) -> Path {
    Path::from(format!("bodies/{name}"))
}

async fn put(rack: &RackStore, name: &str, seed: u64) -> Result<(), Error> {
    rack.put(&key(name), noise(seed, LENGTH).into()).await.map(drop)
}

/// Reads an object. Returns which of `seeds` made its bytes; none when there is no object.
async fn found(rack: &RackStore, name: &str, seeds: &[u64]) -> Result<Option<u64>, Error> {
    let bytes = match rack.get(&key(name)).await {
        Ok(found) => found.bytes().await?,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let seed = seeds.iter().find(|&&seed| bytes == noise(seed, LENGTH));
    Ok(Some(*seed.expect("the bytes belong to one of the puts")))
}

/// Performs the operation, and returns whether it succeeded. Asserts what holds while disks fail.
async fn take(rack: &RackStore, step: Step, place: PlaceId) -> bool {
    match step {
        Step::Put => put(rack, "new", 2).await.is_ok(),
        Step::Overwrite => put(rack, "old", 3).await.is_ok(),
        Step::Delete => rack.delete(&key("old")).await.is_ok(),
        Step::Read => found(rack, "old", &[1]).await.is_ok_and(|found| found == Some(1)),
        Step::Verify => rack.scrub().await.is_ok_and(|report| report.problems.is_empty()),
        Step::Rebuild => rack.rebuild(place).await.is_ok_and(|report| report.problems.is_empty()),
        Step::Replace => rack.replace(place).await.is_ok_and(|report| report.problems.is_empty()),
        Step::Recover => rack.recover().await.is_ok_and(|found| found.problems.is_empty()),
    }
}

/// Returns the disks of each group, the group of the blob `old` first, and disks with a stack of it
/// before others.
async fn groups(shelf: &Shelf, rack: &RackStore) -> Vec<Vec<PlaceId>> {
    let with = shelf.stacks();
    let has = |place: &PlaceId| with.iter().any(|(at, _)| at == place);
    let groups = rack.status().await.unwrap().groups.into_iter();
    let disks = groups.map(|group| group.disks.iter().map(|disk| disk.place).collect());
    let mut groups: Vec<Vec<PlaceId>> = disks.collect();
    groups.iter_mut().for_each(|group| group.sort_by_key(|place| !has(place)));
    groups.sort_by_key(|group| !group.iter().any(has));
    groups
}

/// Returns the disk that an operation such as a rebuild or a replacement applies to.
async fn check(
    shelf: &Shelf,
    rack: &RackStore,
    (step, failing, count): (Step, Failing, usize),
) -> PlaceId {
    let context = format!("{step:?} while {failing:?} on {count}");
    // An object that stays, so that each verification covers its group.
    put(rack, "kept", 4).await.unwrap();
    put(rack, "old", 1).await.unwrap();
    let groups = groups(shelf, rack).await;
    // One of the last disks to fail.
    let place = groups[0][6];
    if matches!(step, Step::Read | Step::Verify) {
        for (_, file) in shelf.stacks().into_iter().filter(|(at, _)| *at == place) {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[5_000] ^= 1;
            std::fs::write(&file, bytes).unwrap();
        }
    }
    if step == Step::Replace {
        std::fs::remove_dir_all(shelf.root(place)).unwrap();
    }
    for group in &groups {
        group.iter().take(count).for_each(|&at| shelf.injected.fail(at, failing));
    }
    let is_done = take(rack, step, place).await;
    shape().places().for_each(|at| shelf.injected.repair(at));
    // Lets all backoffs expire.
    shelf.clock.advance(Duration::from_secs(2 * 86_400));

    if step == Step::Replace && !is_done {
        rack.replace(place).await.unwrap();
    }
    let mut reports = Vec::new();
    while reports.len() < 5 {
        let report = rack.scrub().await.unwrap();
        let is_whole = report.lost == 0 && report.problems.is_empty();
        reports.push(report);
        if is_whole {
            break;
        }
    }
    let last = reports.last().unwrap();
    assert!(last.lost == 0 && last.problems.is_empty(), "{context}: {reports:?}");
    let old = found(rack, "old", &[1, 3]).await.unwrap();
    let new = found(rack, "new", &[2]).await.unwrap();
    let expected = match (step, is_done) {
        (Step::Overwrite, true) => Some(3),
        (Step::Delete, true) => None,
        _ => Some(1),
    };
    assert_eq!(old, expected, "{context}: {is_done}");
    assert_eq!(new, (step == Step::Put && is_done).then_some(2), "{context}: {is_done}");
    assert_eq!(found(rack, "kept", &[4]).await.unwrap(), Some(4), "{context}");
    for name in ["old", "new"] {
        rack.delete(&key(name)).await.unwrap();
    }
    place
}

/// Checks with one failing disk, with one more than a blob may lose, and with all of a group.
async fn check_all(step: Step) {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    for failing in FAULTS {
        for count in [1, 3, 8] {
            check(&shelf, &rack, (step, failing, count)).await;
        }
    }
}

/// Like `check_all`, each on a new rack, because each leaves a disk given up.
async fn check_each(step: Step) {
    for failing in FAULTS {
        for count in [1, 3] {
            let shelf = Shelf::new();
            let rack = shelf.init().await;
            let place = check(&shelf, &rack, (step, failing, count)).await;
            // No unwanted stacks are left in the group, except on a disk that was given up.
            rack.scrub().await.unwrap();
            let mut stacks = shelf.stacks();
            stacks.retain(|(at, _)| step != Step::Rebuild || *at != place);
            let width = usize::try_from(shape().code().width()).unwrap();
            assert_eq!(stacks.len(), width, "{step:?} while {failing:?} on {count}");
        }
    }
}

#[tokio::test]
async fn put_survives_disk_faults() {
    check_all(Step::Put).await;
}

#[tokio::test]
async fn overwrite_survives_disk_faults() {
    check_all(Step::Overwrite).await;
}

#[tokio::test]
async fn delete_survives_disk_faults() {
    check_all(Step::Delete).await;
}

#[tokio::test]
async fn read_repair_survives_disk_faults() {
    check_all(Step::Read).await;
}

#[tokio::test]
async fn verification_survives_disk_faults() {
    check_all(Step::Verify).await;
}

#[tokio::test]
async fn rebuild_survives_disk_faults() {
    check_each(Step::Rebuild).await;
}

#[tokio::test]
async fn replacement_survives_disk_faults() {
    check_each(Step::Replace).await;
}

#[tokio::test]
async fn recovery_survives_disk_faults() {
    check_all(Step::Recover).await;
}
