//! Sealing in a live archive: libraries of two panels, disks that fail for a while, panics, and
//! concurrent work.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fulgurite_archive::config::LibraryShape;
use fulgurite_archive::status::JobState;
use fulgurite_archive::{Archive, ArchiveError, BucketName, ManualClock, StorageClass};
use fulgurite_units::{SlotIndex, UnixTime};

use crate::harness::{Client, config, copy, is_same, key, noise};

async fn put(client: &Client, name: &str, seed: u64) -> Vec<u8> {
    let body = noise(seed, 30_000);
    client.put(name, StorageClass::DeepArchive, &body).await.unwrap();
    body
}

async fn read_back(client: &Client, name: &str, body: &[u8]) {
    client.restore(name).await.unwrap();
    client.restored(name).await.unwrap();
    assert!(client.get(name, None).await.unwrap() == body, "{name} differs");
}

#[tokio::test]
async fn platter_files_are_accessible_to_the_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    put(&client, "deep", 1).await;
    client.archive.seal().await.unwrap();
    let platters = std::fs::read_dir(dir.path().join("platters")).unwrap();
    let modes: Vec<u32> = platters
        .map(|platter| platter.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    assert!(modes.len() >= 4 && modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
}

/// Returns the paper's library - two panels, its racks, drives and shuttles - with only one platter
/// slot on each shelf of each rack, so that it can be filled.
fn two_panels() -> LibraryShape {
    LibraryShape { slots_per_shelf: 2, ..LibraryShape::mdu() }
}

#[tokio::test]
async fn two_panel_library_stores_sets_until_full() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.glass.library.shape = two_panels();
    let client = Client::open(config).await;
    // A set of one object has an information platter and three of redundancy: 35 sets fill it.
    let homes = usize::try_from(two_panels().zone_count()).unwrap();
    let mut bodies = Vec::new();
    for number in 0..homes / 4 {
        let name = format!("set {number}");
        bodies.push((name.clone(), put(&client, &name, number as u64).await));
        let report = client.archive.seal().await.unwrap();
        assert_eq!((report.objects, report.sets.len()), (1, 1), "{name}");
    }
    let mut panels = BTreeSet::new();
    for (name, body) in &bodies {
        let places = client.archive.locate(&client.bucket, &key(name)).await.unwrap();
        let slot = SlotIndex::new(places[0].slot.unwrap());
        panels.insert(two_panels().address(slot).unwrap().panel);
        read_back(&client, name, body).await;
    }
    assert_eq!(panels.len(), 2, "sets lie on both panels");
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.platters, status.repaired_by_set), (homes as u64, 0), "{status:?}");
    // There is no slot for one more, which is reported; the archive continues otherwise.
    put(&client, "one more", 99).await;
    let full = client.archive.seal().await.unwrap_err();
    assert!(matches!(full, ArchiveError::Full { .. }), "{full:?}");
    assert_eq!(client.archive.verify(None, &Arc::default()).await.unwrap().platters.len(), homes);
    client.archive.stop().await.unwrap();
}

/// Puts a file in the place of the platters' folder, to simulate a failing disk.
fn break_platters(data: &Path) {
    std::fs::rename(data.join("platters"), data.join("away")).unwrap();
    std::fs::write(data.join("platters"), b"").unwrap();
}

fn repair_platters(data: &Path) {
    std::fs::remove_file(data.join("platters")).unwrap();
    std::fs::rename(data.join("away"), data.join("platters")).unwrap();
}

#[tokio::test]
async fn long_disk_failure_only_delays_sealing() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let body = put(&client, "first", 1).await;
    break_platters(dir.path());
    for tries in 1..=12 {
        client.archive.seal().await.unwrap_err();
        let status = client.archive.status().await.unwrap();
        assert_eq!(status.seal_failures[0].tries, tries, "{status:?}");
        assert_eq!(status.sets_given_up, 0);
        assert!(status.pipeline.starts_with("waiting to retry"), "{}", status.pipeline);
    }
    assert!(client.archive.is_ready() && client.archive.degraded().len() == 1);
    let second = put(&client, "second", 2).await;
    client.archive.seal().await.unwrap_err();
    repair_platters(dir.path());
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged), (2, 0));
    assert_eq!(client.archive.degraded(), Vec::<String>::new());
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.pipeline.as_str(), status.seal_failures.len()), ("idle", 0));
    read_back(&client, "first", &body).await;
    read_back(&client, "second", &second).await;
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn panic_fails_one_work_item_and_the_thread_continues() {
    // In a write drive, after one where platters are synced, in a read drive that verifies, in the
    // sealing thread.
    for point in ["write-half", "write-synced", "verify-platter", "release-batch"] {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.fail_point = Some((format!("{point}:panic"), 0));
        let client = Client::open(config).await;
        let body = put(&client, "object", 1).await;
        let failed = client.archive.seal().await.unwrap_err();
        assert!(matches!(failed, ArchiveError::Internal { .. }), "{point}: {failed:?}");
        let status = client.archive.status().await.unwrap();
        assert_eq!(status.panics, 1, "{point}");
        client.archive.seal().await.unwrap();
        read_back(&client, "object", &body).await;
        let status = client.archive.status().await.unwrap();
        assert_eq!((status.objects_on_glass, status.staged_bytes), (1, 0), "{point}");
        client.archive.stop().await.unwrap();
    }
    // In the restoring thread, and in a read drive that restores.
    for point in ["restore-read", "read-platter"] {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        config.fail_point = Some((format!("{point}:panic"), 0));
        let client = Client::open(config).await;
        let bodies = [put(&client, "a", 1).await, put(&client, "b", 2).await];
        client.archive.seal().await.unwrap();
        for (name, body) in ["a", "b"].into_iter().zip(&bodies) {
            read_back(&client, name, body).await;
        }
        let status = client.archive.status().await.unwrap();
        assert_eq!((status.panics, status.restored_objects), (1, 2), "{point}: {status:?}");
        client.archive.stop().await.unwrap();
    }
}

#[tokio::test]
async fn copies_expire_during_sealing_and_after_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    // A thousandfold slow motion: a set would take days.
    config.glass.library.time_scale = 1000.0;
    config.fail_point = Some(("expire-committed:panic".to_owned(), 0));
    let day = config.day;
    let clock = ManualClock::at(UnixTime::from_millis(1_767_609_000_250));
    let archive = Archive::open_with_clock(config, clock.clock()).await.unwrap();
    let bucket = BucketName::new("vault").unwrap();
    archive.create_bucket(&bucket).await.unwrap();
    let client = Client { archive, bucket };
    for name in ["a", "b"] {
        // Restored from staging, which needs no machine.
        let body = put(&client, name, 1).await;
        read_back(&client, name, &body).await;
    }
    let sealing = {
        let archive = client.archive.clone();
        tokio::spawn(async move { archive.seal().await })
    };
    let soon = async |what: &str, is_so: &dyn Fn(&fulgurite_archive::status::Status) -> bool| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let status = client.archive.status().await.unwrap();
            if is_so(&status) {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "{what}: {status:?}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    soon("the set is written", &|status| {
        status.sets.first().is_some_and(|set| set.state == "written")
    })
    .await;
    clock.advance(day + day);
    // The first run panics after its commit, and the job backs off.
    soon("it panics", &|status| {
        let expiring = status.jobs.iter().find(|job| job.name == "expiring");
        status.panics == 1 && expiring.is_some_and(|job| job.state == JobState::Resting)
    })
    .await;
    clock.advance(fulgurite_archive::limits::JOB_TICK);
    soon("both copies expire", &|status| status.restored_objects == 0).await;
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.panics, status.sets[0].state.as_str()), (1, "written"));
    client.archive.stop().await.unwrap();
    assert!(matches!(sealing.await.unwrap(), Err(ArchiveError::Stopping)));
}

/// An archive with such a geometry could accept objects and never seal them. The directory is not
/// touched, so nothing in it is lost or moved, and with a valid geometry everything works.
#[tokio::test]
async fn geometry_without_header_space_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (data, before) = (dir.path().join("data"), dir.path().join("before"));
    let no_room = || {
        let mut config = config(&data);
        config.glass.geometry.sector_payload_bytes = 1024;
        config
    };
    let refused = || async {
        let error = Archive::open(no_room()).await.unwrap_err();
        assert!(matches!(error, ArchiveError::InvalidArgument { .. }), "{error}");
        for words in ["\"tiny\"", "sector_payload_bytes is 1024 and has to be ", "a track has 7"] {
            assert!(error.to_string().contains(words), "{error}");
        }
    };
    refused().await;
    assert!(!data.exists());
    let client = Client::open(config(&data)).await;
    let staged = put(&client, "staged", 1).await;
    let online = noise(2, 3000);
    client.put("online", StorageClass::Standard, &online).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);
    copy(&data, &before);
    refused().await;
    assert!(is_same(&data, &before).unwrap());
    let client = Client::open(config(&data)).await;
    assert!(client.get("online", None).await.unwrap() == online);
    assert_eq!(client.archive.seal().await.unwrap().objects, 1);
    read_back(&client, "staged", &staged).await;
    client.archive.stop().await.unwrap();
}
