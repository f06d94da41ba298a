//! What operators are shown of objects, and the effects of a missing platter or a damaged staging
//! segment.

use std::sync::Arc;

use fulgurite_archive::{RecoverOptions, StorageClass};

use crate::harness::{Client, config, key, noise};

#[tokio::test]
async fn locate_and_status_follow_an_object_to_its_slot() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let places =
        async |name: &str| client.archive.locate(&client.bucket, &key(name)).await.unwrap();
    client.put("disk", StorageClass::Standard, &noise(1, 1000)).await.unwrap();
    client.put("glass", StorageClass::Glacier, &noise(2, 100_000)).await.unwrap();
    let [online] = &places("disk").await[..] else { panic!("one place") };
    assert_eq!((online.residence.as_str(), online.bytes), ("online", 1016));
    let [staged] = &places("glass").await[..] else { panic!("one place") };
    assert_eq!((staged.residence.as_str(), staged.platter), ("staged", None));
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.objects_online, status.objects_staged), (1, 1));
    // Headers, entries and padding come to a few hundred bytes per body.
    let ciphertext = 1016 + 100_032;
    assert!((ciphertext + 256..ciphertext + 1024).contains(&status.log_bytes));
    assert_eq!(status.staged_bytes, 100_000);
    assert!(status.staged_oldest.is_some() && status.sets.is_empty());

    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.bytes), (1, 100_032));
    let found = places("glass").await;
    assert_eq!(found.iter().map(|place| place.bytes).sum::<u64>(), 100_032);
    for place in &found {
        assert_eq!(place.residence, "glass");
        assert_eq!(place.set, Some(report.sets[0].set));
        assert!(place.slot.is_some() && place.track_first <= place.track_last);
        let file = dir.path().join(format!("platters/{}.glass", place.platter.unwrap()));
        assert!(file.exists());
    }
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.objects_staged, status.objects_on_glass), (0, 1));
    assert_eq!((status.staged_bytes, status.staged_oldest), (0, None));
    assert!((1016 + 128..1016 + 512).contains(&status.log_bytes));
    assert_eq!(status.sets, report.sets);
    assert_eq!(status.sets[0].state, "released");
    let verified = client.archive.verify(None, &Arc::default()).await.unwrap().platters;
    assert_eq!(verified.len() as u64, status.platters);
    assert!(verified.iter().all(|platter| platter.error.is_none() && platter.sectors > 0));
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn damaged_staged_body_is_quarantined() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let body = noise(1, 50_000);
    client.put("a damaged", StorageClass::DeepArchive, &body).await.unwrap();
    client.put("b whole", StorageClass::DeepArchive, &body).await.unwrap();
    flip(dir.path(), 40_000);
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged), (1, 1));
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.objects_staged, status.objects_on_glass), (1, 1));
    assert_eq!((status.staged_oldest, status.staged_bytes), (None, 0));
    assert_eq!(status.staged_damaged[0].key, "a damaged");
    client.restore("b whole").await.unwrap();
    client.restored("b whole").await.unwrap();
    assert!(client.get("b whole", None).await.unwrap() == body);
    client.restore("a damaged").await.unwrap();
    let error = client.restored("a damaged").await.unwrap_err();
    assert!(error.contains("not what was ingested"), "{error}");
    client.archive.stop().await.unwrap();
}

/// Flips a byte of the only staging segment.
fn flip(dir: &std::path::Path, at: usize) {
    let segment = dir.join("staging/00000000.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
}

#[tokio::test]
async fn truncated_staging_segment_blocks_only_its_bodies() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let body = noise(1, 50_000);
    client.put("a whole", StorageClass::DeepArchive, &body).await.unwrap();
    client.put("b cut off", StorageClass::DeepArchive, &body).await.unwrap();
    let segment = dir.path().join("staging/00000000.seg");
    std::fs::File::options().write(true).open(&segment).unwrap().set_len(70_000).unwrap();
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged), (1, 1));
    let status = client.archive.status().await.unwrap();
    let [damaged] = &status.staged_damaged[..] else { panic!("one damaged body") };
    assert_eq!((damaged.key.as_str(), damaged.bytes), ("b cut off", 50_000));
    assert_eq!((status.staged_bytes, status.objects_staged), (0, 1));

    // It costs no more platters, and later bodies go to glass.
    assert_eq!(client.archive.seal().await.unwrap().sets.len(), 0);
    client.put("c later", StorageClass::DeepArchive, &body).await.unwrap();
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.sets.len()), (1, 1));
    client.archive.delete(&client.bucket, &key("b cut off")).await.unwrap();
    let status = client.archive.status().await.unwrap();
    assert!(status.staged_damaged.is_empty() && status.staged_bytes == 0);
    for name in ["a whole", "c later"] {
        client.restore(name).await.unwrap();
        client.restored(name).await.unwrap();
        assert!(client.get(name, None).await.unwrap() == body);
    }
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn set_of_only_damaged_bodies_does_not_end_sealing() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    // The first body leaves no space for the second in its set, of 640 KiB with its lists.
    client.put("a damaged", StorageClass::DeepArchive, &noise(1, 620_000)).await.unwrap();
    client.put("b whole", StorageClass::DeepArchive, &noise(2, 200_000)).await.unwrap();
    flip(dir.path(), 100_000);
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged, report.damaged), (1, 1, 1));
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.objects_on_glass, status.staged_bytes), (1, 0));
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn body_over_several_sets_is_verified_whole_and_retried() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    // A set holds 640 KiB: the body needs three, and its damage lies in the first.
    let body = noise(1, 1_500_000);
    client.put("wide", StorageClass::DeepArchive, &body).await.unwrap();
    flip(dir.path(), 100_000);
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged), (0, 1));
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.staged_damaged.len(), status.objects_on_glass), (1, 0));
    client.archive.stop().await.unwrap();
    drop(client);

    flip(dir.path(), 100_000);
    let client = Client::open(config(dir.path())).await;
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.staged_damaged.len(), status.staged_bytes), (0, 1_500_000));
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged), (1, 0));
    client.restore("wide").await.unwrap();
    client.restored("wide").await.unwrap();
    assert!(client.get("wide", None).await.unwrap() == body);
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn keys_of_missing_platters_survive_recovery_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let body = noise(1, 100_000);
    client.put("here", StorageClass::DeepArchive, &body).await.unwrap();
    client.archive.seal().await.unwrap();
    client.put("away", StorageClass::DeepArchive, &body).await.unwrap();
    let away = client.archive.seal().await.unwrap().sets[0].set;
    let places = client.archive.locate(&client.bucket, &key("away")).await.unwrap();
    assert!(places.iter().all(|place| place.set == Some(away)));
    client.archive.stop().await.unwrap();
    drop(client);

    let (folder, shelf) = (dir.path().join("platters"), dir.path().join("shelf"));
    std::fs::create_dir(&shelf).unwrap();
    let recover = async || {
        std::fs::remove_dir_all(dir.path().join("catalog")).unwrap();
        let config = config(dir.path());
        let options = RecoverOptions::default();
        tokio::task::spawn_blocking(move || fulgurite_archive::recover(config, options, &|_| {}))
            .await
            .unwrap()
            .unwrap()
    };
    let all: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    let moved: Vec<_> = all
        .into_iter()
        .filter(|path| {
            let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let bytes = std::fs::read(path).unwrap();
            let text = away.to_string();
            // The header names the set in its description.
            id != text && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
        .collect();
    assert!(!moved.is_empty(), "platters name their set");
    for path in &moved {
        std::fs::rename(path, shelf.join(path.file_name().unwrap())).unwrap();
    }
    assert_eq!(recover().await.objects, 1);
    for _ in 0..2 {
        // Each start sweeps keys of the previous run; the work below gives it the time.
        let client = Client::open(config(dir.path())).await;
        client.restore("here").await.unwrap();
        client.restored("here").await.unwrap();
        client.put("more", StorageClass::DeepArchive, &body).await.unwrap();
        client.archive.seal().await.unwrap();
        client.archive.delete(&client.bucket, &key("more")).await.unwrap();
        client.archive.stop().await.unwrap();
    }
    for path in &moved {
        std::fs::rename(shelf.join(path.file_name().unwrap()), path).unwrap();
    }
    let report = recover().await;
    // Only the deleted objects count as shredded.
    assert_eq!((report.objects, report.shredded), (2, 2));
    let client = Client::open(config(dir.path())).await;
    client.restore("away").await.unwrap();
    client.restored("away").await.unwrap();
    assert!(client.get("away", None).await.unwrap() == body);
    client.archive.stop().await.unwrap();
}
