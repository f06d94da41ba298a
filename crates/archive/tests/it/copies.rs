//! Damaged restored copies: detected by GET, by RestoreObject and by verify, dropped, and restored
//! again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_archive::{ArchiveError, Progress, RestoreOutcome, StorageClass};

use crate::harness::{Client, config, key, noise};

/// Damage to the restored log while the archive is stopped.
#[derive(Clone, Copy, Debug)]
enum LogDamage {
    Bit,
    CutOff,
    Missing,
}

fn segments(data: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(data.join("restored")).unwrap();
    let all = all.map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "seg")).collect()
}

fn damage_log(data: &Path, damage: LogDamage) {
    let segments = segments(data);
    assert!(!segments.is_empty());
    for path in segments {
        match damage {
            LogDamage::Bit => {
                // Everywhere after its header, so that each object's copy is hit.
                let mut bytes = std::fs::read(&path).unwrap();
                bytes.iter_mut().skip(100).step_by(1000).for_each(|byte| *byte ^= 1);
                std::fs::write(&path, bytes).unwrap();
            }
            LogDamage::CutOff => std::fs::write(&path, b"").unwrap(),
            LogDamage::Missing => std::fs::remove_file(&path).unwrap(),
        }
    }
}

/// Returns an archive with two restored objects on glass, whose copies were damaged while it was
/// stopped.
async fn harmed(data: &Path, damage: LogDamage) -> (Client, Vec<(&'static str, Vec<u8>)>) {
    let client = Client::open(config(data)).await;
    let bodies = vec![("a", noise(1, 90_000)), ("b", noise(2, 90_000))];
    for (name, body) in &bodies {
        client.put(name, StorageClass::DeepArchive, body).await.unwrap();
    }
    client.archive.seal().await.unwrap();
    for (name, _) in &bodies {
        client.restore(name).await.unwrap();
        client.restored(name).await.unwrap();
    }
    client.archive.stop().await.unwrap();
    drop(client);
    damage_log(data, damage);
    (Client::open(config(data)).await, bodies)
}

async fn has_copy(client: &Client, name: &str) -> bool {
    client.archive.head(&client.bucket, &key(name)).await.unwrap().restore.is_some()
}

#[tokio::test]
async fn get_drops_a_damaged_copy_and_allows_a_restore() {
    for damage in [LogDamage::Bit, LogDamage::CutOff, LogDamage::Missing] {
        let dir = tempfile::tempdir().unwrap();
        let (client, bodies) = harmed(dir.path(), damage).await;
        for (name, body) in &bodies {
            let failed = client.get(name, None).await.unwrap_err();
            assert!(matches!(failed, ArchiveError::Corrupt { .. }), "{damage:?}: {failed:?}");
            assert!(!has_copy(&client, name).await, "{damage:?}: {name} still has its copy");
            let again = client.get(name, None).await.unwrap_err();
            assert!(matches!(again, ArchiveError::NotRestored { .. }), "{damage:?}: {again:?}");
            assert_eq!(client.restore(name).await.unwrap(), RestoreOutcome::Accepted, "{damage:?}");
            client.restored(name).await.unwrap();
            assert!(client.get(name, None).await.unwrap() == *body, "{damage:?}: {name} differs");
        }
        let status = client.archive.status().await.unwrap();
        assert_eq!((status.copies_dropped, status.restored_objects), (2, 2), "{damage:?}");
        client.archive.stop().await.unwrap();
    }
}

#[tokio::test]
async fn restore_verifies_the_copy_before_extending_it() {
    for damage in [LogDamage::Bit, LogDamage::CutOff, LogDamage::Missing] {
        let dir = tempfile::tempdir().unwrap();
        let (client, bodies) = harmed(dir.path(), damage).await;
        for (name, body) in &bodies {
            assert_eq!(client.restore(name).await.unwrap(), RestoreOutcome::Accepted, "{damage:?}");
            client.restored(name).await.unwrap();
            assert!(client.get(name, None).await.unwrap() == *body, "{damage:?}: {name} differs");
            // An intact copy is extended.
            assert_eq!(client.restore(name).await.unwrap(), RestoreOutcome::Extended);
        }
        client.archive.stop().await.unwrap();
    }
}

#[tokio::test]
async fn verify_drops_damaged_restored_copies() {
    let dir = tempfile::tempdir().unwrap();
    let (client, bodies) = harmed(dir.path(), LogDamage::Bit).await;
    let report = client.archive.verify(None, &Arc::default()).await.unwrap();
    assert!(report.platters.iter().all(|platter| platter.error.is_none()));
    assert_eq!((report.copies, report.copies_damaged), (2, 2));
    let names: BTreeSet<(&str, bool)> =
        report.damaged_copies.iter().map(|copy| (copy.key.as_str(), copy.is_dropped)).collect();
    assert_eq!(names, BTreeSet::from([("a", true), ("b", true)]), "{report:?}");
    for (name, _) in &bodies {
        assert!(!has_copy(&client, name).await);
        client.restore(name).await.unwrap();
        client.restored(name).await.unwrap();
    }
    // The copies restored again are intact and stay.
    let progress = Arc::<Progress>::default();
    let report = client.archive.verify(None, &progress).await.unwrap();
    assert_eq!((report.copies, report.copies_damaged), (2, 0));
    let platters = report.platters;
    let files = platters.iter().map(|read| format!("platters/{}.glass", read.platter));
    let files: u64 = files.map(|name| dir.path().join(name).metadata().unwrap().len()).sum();
    let (done, total) = progress.bytes();
    let (done, total) = (done.get(), total.get());
    assert_eq!(done, total);
    // A platter file ends with a record after its tracks; each frame of a copy has a tag.
    let (records, frames) = (1024 * platters.len() as u64, 2 * 2);
    assert_eq!(total, files - records + 2 * 90_000 + 16 * frames);
    for (name, body) in &bodies {
        assert!(client.get(name, None).await.unwrap() == *body);
    }
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.copies_dropped, status.restored_objects), (2, 2));
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn temporarily_unreadable_copy_is_reported_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    client.put("a", StorageClass::DeepArchive, &noise(1, 90_000)).await.unwrap();
    client.archive.seal().await.unwrap();
    client.restore("a").await.unwrap();
    client.restored("a").await.unwrap();
    let aside = dir.path().join("aside");
    for segment in segments(dir.path()) {
        std::fs::rename(&segment, &aside).unwrap();
        std::fs::create_dir(&segment).unwrap();
        let report = client.archive.verify(None, &Arc::default()).await.unwrap();
        std::fs::remove_dir(&segment).unwrap();
        std::fs::rename(&aside, &segment).unwrap();
        assert_eq!((report.copies, report.copies_damaged), (1, 1), "{report:?}");
        assert!(!report.damaged_copies[0].is_dropped, "{report:?}");
        assert!(report.platters.len() > 1, "the platters are read all the same");
    }
    let report = client.archive.verify(None, &Arc::default()).await.unwrap();
    assert_eq!((report.copies, report.copies_damaged), (1, 0), "{report:?}");
    client.archive.stop().await.unwrap();
}
