//! Large bodies span several platters of a set, and can be restored whatever happens to one of
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use fulgurite_archive::config::{ArchiveConfig, MediumOptions};
use fulgurite_archive::status::ShardLocation;
use fulgurite_archive::{
    BodyClaim, CompletedPart, ObjectMeta, RecoverOptions, StorageClass, UploadOptions,
    WriteCondition,
};
use fulgurite_units::{ByteCount, Ratio};

use crate::harness::{Client, config, key, noise, tiny_geometry};

/// Track bytes of these platters.
const TRACK: u64 = 5 * (8 << 10);

/// Configures platters of 16 tracks, in sets of 4 + 3, and shards of two tracks.
fn sharded(data: &std::path::Path) -> ArchiveConfig {
    let mut config = config(data);
    config.glass.geometry.groups = 8;
    config.glass.shard_size = ByteCount::new(2 * TRACK + 5);
    config
}

async fn places(client: &Client, name: &str) -> Vec<ShardLocation> {
    client.archive.locate(&client.bucket, &key(name)).await.unwrap()
}

async fn restore(client: &Client, files: &[(String, Vec<u8>)]) {
    for (name, _) in files {
        client.restore(name).await.unwrap();
    }
    for (name, body) in files {
        client.restored(name).await.unwrap();
        assert!(client.get(name, None).await.unwrap() == *body, "{name} differs");
    }
}

/// Puts bodies of these sizes, named "file 0" and so on.
async fn put(client: &Client, sizes: &[usize]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for (seed, &bytes) in (0..).zip(sizes) {
        let (name, body) = (format!("file {seed}"), noise(seed, bytes));
        client.put(&name, StorageClass::DeepArchive, &body).await.unwrap();
        files.push((name, body));
    }
    files
}

/// Rebuilds the catalog from the platters and opens the archive again, under `config`.
async fn recovered(client: Client, config: ArchiveConfig, objects: usize) -> Client {
    client.archive.stop().await.unwrap();
    drop(client);
    std::fs::remove_dir_all(config.data.join("catalog")).unwrap();
    let (archive_config, options) = (config.clone(), RecoverOptions::default());
    let report = tokio::task::spawn_blocking(move || {
        fulgurite_archive::recover(archive_config, options, &|_| {})
    })
    .await
    .unwrap()
    .unwrap();
    assert_eq!((report.objects, report.incomplete), (objects as u64, 0), "{report:?}");
    Client::open(config).await
}

#[tokio::test]
async fn sharded_body_survives_platter_and_catalog_loss() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(sharded(dir.path())).await;
    // 10, 10 and 3 tracks, and bodies of which a track holds many.
    let files = put(&client, &[400_000, 400_000, 120_000, 1000, 0, 80_000]).await;
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.sets.len(), report.objects, report.kept_staged), (1, 6, 0));
    assert_eq!(client.archive.status().await.unwrap().log_bytes, 0, "the staged copies are gone");
    for (number, shards) in [(0, 4), (1, 4), (2, 2), (3, 1), (4, 1), (5, 1)] {
        let (name, body) = &files[number];
        let found = places(&client, name).await;
        let platters: BTreeSet<_> = found.iter().map(|place| place.platter).collect();
        assert_eq!((found.len(), platters.len()), (shards, shards), "{name}");
        let bytes: Vec<u64> = found.iter().map(|place| place.bytes).collect();
        let frames = body.len().div_ceil(64 << 10);
        assert_eq!(bytes.iter().sum::<u64>(), (body.len() + 16 * frames) as u64);
        assert!(bytes.iter().max().unwrap() - bytes.iter().min().unwrap() <= TRACK, "{bytes:?}");
    }
    let verified = client.archive.verify(None, &Arc::default()).await.unwrap().platters;
    assert!(verified.len() == 7 && verified.iter().all(|platter| platter.error.is_none()));
    restore(&client, &files[..1]).await;
    assert_eq!(client.archive.status().await.unwrap().repaired_by_set, 0);

    let lost = places(&client, "file 1").await[1].platter.unwrap();
    std::fs::remove_file(dir.path().join(format!("platters/{lost}.glass"))).unwrap();
    restore(&client, &files[1..]).await;
    assert!(client.archive.status().await.unwrap().repaired_by_set > 0);

    // Another shard size does not affect what was written before.
    let mut config = sharded(dir.path());
    config.glass.shard_size = ByteCount::gib(4);
    let client = recovered(client, config, files.len()).await;
    restore(&client, &files).await;
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn body_continues_in_next_set_after_an_unreadable_shard() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = sharded(dir.path());
    // A third of the tracks needs its group; occasionally a group is lost, and its set is needed.
    config.glass.medium = MediumOptions::losing(1, Ratio::new(0.29).unwrap());
    let client = Client::open(config.clone()).await;
    let mut files = Vec::new();
    // Which shards the medium loses differs each time, because platter ids are random.
    for round in 0.. {
        assert!(round < 20, "the medium keeps no body from its platter");
        let mut sets_max = 0;
        for number in 0..8 {
            let (name, body) = (format!("file {round} {number}"), noise(number, 300_000));
            client.put(&name, StorageClass::DeepArchive, &body).await.unwrap();
            files.push((name, body));
        }
        while client.archive.status().await.unwrap().objects_staged > 0 {
            client.archive.seal().await.unwrap();
        }
        for (name, body) in &files {
            let found = places(&client, name).await;
            let sets: BTreeSet<_> = found.iter().map(|place| place.set).collect();
            sets_max = sets_max.max(sets.len());
            let bytes: u64 = found.iter().map(|place| place.bytes).sum();
            assert_eq!(bytes, (body.len() + 16 * body.len().div_ceil(64 << 10)) as u64, "{name}");
        }
        if sets_max > 1 {
            break;
        }
    }
    restore(&client, &files).await;
    let client = recovered(client, config, files.len()).await;
    restore(&client, &files).await;
    client.archive.stop().await.unwrap();
}

/// Uploads an object in parts of 5 MiB, S3's minimum.
async fn upload(client: &Client, name: &str, body: &[u8]) {
    let options = UploadOptions {
        class: StorageClass::DeepArchive,
        meta: ObjectMeta::default(),
        algorithm: None,
        full_object: false,
    };
    let (bucket, name) = (&client.bucket, key(name));
    let id = client.archive.create_upload(bucket, &name, options).await.unwrap().upload_id;
    let mut parts = Vec::new();
    for (number, part) in (1..).zip(body.chunks(5 << 20)) {
        let claim = BodyClaim { bytes: Some(part.len() as u64), ..BodyClaim::default() };
        let mut writer = client.archive.put_part(bucket, &name, id, number, claim).await.unwrap();
        for piece in part.chunks(300_000) {
            writer.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        let etag = writer.finish(None).await.unwrap().etag;
        parts.push(CompletedPart { number, etag, checksum: None });
    }
    let condition = WriteCondition::default();
    client.archive.complete_upload(bucket, &name, id, parts, condition, None).await.unwrap();
}

#[tokio::test]
async fn large_upload_spans_several_platters() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    // Platters of 48 MiB, more than the object, in tracks of 1 MiB.
    config.glass.geometry.sector_payload_bytes = 64 << 10;
    config.glass.geometry.track_information_sectors = 16;
    config.glass.geometry.groups = 24;
    config.glass.shard_size = ByteCount::mib(11);
    let client = Client::open(config).await;
    let body = noise(7, 38 << 20);
    upload(&client, "b large", &body).await;
    for name in ["a small", "c small"] {
        client.put(name, StorageClass::DeepArchive, &body[..100_000]).await.unwrap();
    }
    assert_eq!(client.archive.seal().await.unwrap().sets.len(), 1);
    // Seven parts of 5 MiB and one of 3; two do not fill a shard.
    let found = places(&client, "b large").await;
    assert!(found.len() == 8 && (0..).zip(&found).all(|(body, place)| place.body == body));
    let platters: Vec<_> = found.iter().map(|place| place.platter).collect();
    assert!(platters.chunks(2).all(|pair| pair[0] == pair[1]), "{platters:?}");
    assert_eq!(platters.iter().collect::<BTreeSet<_>>().len(), 4);
    let small = (places(&client, "a small").await, places(&client, "c small").await);
    assert_eq!(small.0[0].platter, small.1[0].platter, "small bodies share a platter");

    let lost = platters[3].unwrap();
    std::fs::remove_file(dir.path().join(format!("platters/{lost}.glass"))).unwrap();
    restore(&client, &[("b large".to_owned(), body)]).await;
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn zero_shard_size_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    assert_eq!(config.glass.geometry, tiny_geometry());
    config.glass.shard_size = ByteCount::ZERO;
    let error = fulgurite_archive::Archive::open(config).await.unwrap_err();
    assert_eq!(error.to_string(), "shard_size is zero, but must be at least one byte");
}
