//! Objects into glass and back, with damage, restarts and a lost catalog on the way.

use std::path::{Path, PathBuf};

use fulgurite_archive::config::MediumOptions;
use fulgurite_archive::{
    ArchiveError, ByteRange, ListQuery, RecoverOptions, RestoreOutcome, StorageClass,
};

use crate::harness::{Client, config, key, noise};

const SIZES: [usize; 9] = [0, 1, 17, 4096, 65_536, 65_537, 160_000, 700_001, 2_000_000];

async fn fill(client: &Client, class: StorageClass) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (seed, bytes) in (0..).zip(SIZES) {
        let name = format!("tree/{class:?}/file {bytes} + %20 \u{e9}");
        let body = noise(seed, bytes);
        client.put(&name, class, &body).await.unwrap();
        files.push((name, body));
    }
    files
}

fn platters(data: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(data.join("platters"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "glass"))
        .collect();
    found.sort();
    found
}

async fn restore_all(client: &Client, files: &[(String, Vec<u8>)]) {
    for (name, _) in files {
        assert_eq!(client.restore(name).await.unwrap(), RestoreOutcome::Accepted);
    }
    for (name, body) in files {
        client.restored(name).await.unwrap();
        assert!(client.get(name, None).await.unwrap() == *body, "{name} differs");
    }
}

#[tokio::test]
async fn standard_objects_are_readable_directly_and_by_range() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    for (name, body) in fill(&client, StorageClass::Standard).await {
        assert!(client.get(&name, None).await.unwrap() == body);
        for (first, last) in [(0, 0), (65_535, 65_536), (1, 200_000)] {
            let range = ByteRange::From { first, last: Some(last) };
            let Ok((start, count)) = range.resolve(body.len() as u64) else { continue };
            let got = client.get(&name, Some(range)).await.unwrap();
            let start = usize::try_from(start).unwrap();
            assert!(got == body[start..start + usize::try_from(count).unwrap()]);
        }
    }
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn archived_objects_are_restored_from_glass_after_restart() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let files = fill(&client, StorageClass::DeepArchive).await;
    let (name, _) = &files[3];
    assert!(matches!(client.get(name, None).await, Err(ArchiveError::NotRestored { .. })));
    let report = client.archive.seal().await.unwrap();
    assert_eq!(report.objects, SIZES.len() as u64);
    assert_eq!(report.kept_staged, 0);
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.objects_staged, status.objects_on_glass), (0, SIZES.len() as u64));
    assert_eq!(status.log_bytes, 0, "the staged copies are gone");
    client.archive.stop().await.unwrap();
    drop(client);

    let client = Client::open(config(dir.path())).await;
    assert!(matches!(client.get(name, None).await, Err(ArchiveError::NotRestored { .. })));
    restore_all(&client, &files).await;
    assert_eq!(client.restore(name).await.unwrap(), RestoreOutcome::Extended);
    let page = client
        .archive
        .list(&client.bucket, ListQuery { limit: 1000, ..ListQuery::default() })
        .await
        .unwrap();
    assert_eq!(page.objects.len(), SIZES.len());
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn staged_object_is_restored_from_staging() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let files = fill(&client, StorageClass::Glacier).await;
    restore_all(&client, &files).await;
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn set_survives_three_lost_platters() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    // Less than a set, so that there is one set of up to 4 + 3 platters.
    let body = noise(9, 500_000);
    client.put("big", StorageClass::DeepArchive, &body).await.unwrap();
    let report = client.archive.seal().await.unwrap();
    assert_eq!(report.sets.len(), 1);
    assert_eq!((report.sets[0].information_platters, report.sets[0].redundancy_platters), (4, 3));
    let place = client.archive.locate(&client.bucket, &key("big")).await.unwrap();
    let mut lost: Vec<PathBuf> = place
        .iter()
        .map(|shard| dir.path().join(format!("platters/{}.glass", shard.platter.unwrap())))
        .collect();
    assert_eq!(lost.len(), 4);
    let fourth = lost.pop().unwrap();
    for path in &lost {
        std::fs::remove_file(path).unwrap();
    }
    restore_all(&client, &[("big".to_owned(), body.clone())]).await;
    assert!(client.archive.status().await.unwrap().repaired_by_set > 0);

    client.put("again", StorageClass::Standard, b"still serving").await.unwrap();
    std::fs::remove_file(&fourth).unwrap();
    client.archive.delete(&client.bucket, &key("big")).await.unwrap();
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn loss_beyond_redundancy_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    client.put("big", StorageClass::DeepArchive, &noise(9, 500_000)).await.unwrap();
    client.archive.seal().await.unwrap();
    let all = platters(dir.path());
    for path in &all[..4] {
        std::fs::remove_file(path).unwrap();
    }
    client.restore("big").await.unwrap();
    let error = client.restored("big").await.unwrap_err();
    assert!(error.contains("cross-platter code lost 4 platters"), "{error}");
    assert!(matches!(client.get("big", None).await, Err(ArchiveError::NotRestored { .. })));
    assert_eq!(client.archive.status().await.unwrap().objects_on_glass, 1);
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn delete_destroys_keys_and_frees_log_space() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let files = fill(&client, StorageClass::Standard).await;
    for (name, _) in &files {
        assert!(client.archive.delete(&client.bucket, &key(name)).await.unwrap());
        assert!(!client.archive.delete(&client.bucket, &key(name)).await.unwrap());
        assert!(matches!(client.get(name, None).await, Err(ArchiveError::NoSuchKey { .. })));
    }
    assert_eq!(client.archive.status().await.unwrap().log_bytes, 0);
    client.archive.stop().await.unwrap();
    let table = std::fs::read(dir.path().join("keys/table")).unwrap();
    assert!(table[128..].iter().all(|&byte| byte == 0), "every destroyed slot is zeros");
}

#[tokio::test]
async fn second_archive_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let second = fulgurite_archive::Archive::open(config(dir.path())).await;
    assert!(matches!(second, Err(ArchiveError::Locked { .. })));
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn lost_catalog_is_rebuilt_from_platters_and_keys() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let mut files = fill(&client, StorageClass::DeepArchive).await;
    client.archive.seal().await.unwrap();
    let (gone, _) = files.remove(2);
    client.archive.delete(&client.bucket, &key(&gone)).await.unwrap();
    let query = || ListQuery { limit: 1000, ..ListQuery::default() };
    let before = client.archive.list(&client.bucket, query()).await.unwrap().objects;
    client.archive.stop().await.unwrap();
    drop(client);

    std::fs::remove_dir_all(dir.path().join("catalog")).unwrap();
    // One platter of each of two sets is lost as well.
    std::fs::remove_file(&platters(dir.path())[0]).unwrap();
    let refused = fulgurite_archive::Archive::open(config(dir.path())).await;
    assert!(
        matches!(refused, Err(ArchiveError::Unusable { .. })),
        "an empty catalog is not created silently"
    );

    let data = config(dir.path());
    let options = RecoverOptions::default();
    let report =
        tokio::task::spawn_blocking(move || fulgurite_archive::recover(data, options, &|_| {}))
            .await
            .unwrap()
            .unwrap();
    assert_eq!(report.objects, files.len() as u64);
    assert_eq!(report.incomplete, 0);
    assert!(report.shredded >= 1, "the deleted object's body has no key");

    let client = Client::open(config(dir.path())).await;
    let after = client.archive.list(&client.bucket, query()).await.unwrap().objects;
    assert_eq!(before, after);
    restore_all(&client, &files).await;
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn correctable_sector_failures_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.glass.medium = MediumOptions::losing(1, fulgurite_units::Ratio::new(0.03).unwrap());
    let client = Client::open(config).await;
    let files = fill(&client, StorageClass::DeepArchive).await;
    client.archive.seal().await.unwrap();
    restore_all(&client, &files).await;
    let status = client.archive.status().await.unwrap();
    assert!(status.repaired_by_track > 0, "the simulated medium failed and was repaired");
    client.archive.stop().await.unwrap();
}
