//! The cost of a damaged or lost catalog: nothing that keys, platters, logs and readable rows can
//! restore, and never a byte of a log.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fulgurite_archive::{
    Archive, ArchiveError, BodyClaim, BucketName, ListQuery, ObjectMeta, RecoverOptions,
    RecoverReport, Residence, StorageClass, UploadOptions,
};
use fulgurite_units::{Seed, UploadId};

use crate::harness::{Client, config, copy, copy_live, files, key, noise};

/// The content of an archive before its catalog is damaged.
struct Content {
    bodies: BTreeMap<String, Vec<u8>>,
    upload: UploadId,
}

const CLASSES: [(&str, StorageClass); 3] = [
    ("glass", StorageClass::DeepArchive),
    ("staged", StorageClass::DeepArchive),
    ("standard", StorageClass::Standard),
];

fn empty_bucket() -> BucketName {
    BucketName::new("empty").unwrap()
}

/// Puts objects on glass, staged and `STANDARD`, some deleted, an open upload and an empty bucket.
async fn fill(client: &Client) -> Content {
    let mut bodies = BTreeMap::new();
    for (seed, (prefix, class)) in (0..).zip(CLASSES) {
        for at in 0..4 {
            // An empty body has only an entry in the log, and a location on glass.
            let bytes = if at == 3 { 0 } else { 20_000 };
            let (name, body) = (format!("{prefix} {at}"), noise(seed * 10 + at, bytes));
            client.put(&name, class, &body).await.unwrap();
            bodies.insert(name, body);
        }
        client.archive.delete(&client.bucket, &key(&format!("{prefix} 1"))).await.unwrap();
        bodies.remove(&format!("{prefix} 1"));
        if prefix == "glass" {
            client.archive.seal().await.unwrap();
            client.archive.delete(&client.bucket, &key("glass 2")).await.unwrap();
            bodies.remove("glass 2");
        }
    }
    client.archive.create_bucket(&empty_bucket()).await.unwrap();
    let options = UploadOptions {
        class: StorageClass::Standard,
        meta: ObjectMeta::default(),
        algorithm: None,
        full_object: false,
    };
    let name = key("upload");
    let begun = client.archive.create_upload(&client.bucket, &name, options).await.unwrap();
    let upload = begun.upload_id;
    for (number, body) in [(1, noise(99, 30_000)), (2, Vec::new())] {
        let claim = BodyClaim::default();
        let part = client.archive.put_part(&client.bucket, &name, upload, number, claim).await;
        let mut part = part.unwrap();
        part.write(Bytes::from(body)).await.unwrap();
        part.finish(None).await.unwrap();
    }
    Content { bodies, upload }
}

/// Asserts that exactly the expected content is there.
async fn check(data: &Path, contents: &Content, context: &str) {
    let client = Client::open(config(data)).await;
    let query = ListQuery { limit: 1000, ..ListQuery::default() };
    let listed = client.archive.list(&client.bucket, query).await.unwrap().objects;
    let names: Vec<&String> = listed.iter().map(|object| &object.key).collect();
    assert_eq!(names, contents.bodies.keys().collect::<Vec<_>>(), "{context}");
    for object in &listed {
        let expected = match object.key.split(' ').next().unwrap() {
            "glass" => Residence::Glass,
            "staged" => Residence::Staged,
            _ => Residence::Online,
        };
        assert_eq!(object.residence, expected, "{context}: {}", object.key);
        if expected != Residence::Online {
            client.restore(&object.key).await.unwrap();
            client.restored(&object.key).await.unwrap();
        }
        let body = client.get(&object.key, None).await.unwrap();
        assert!(body == contents.bodies[&object.key], "{context}: {}", object.key);
    }
    client.archive.head_bucket(&empty_bucket()).await.unwrap();
    let parts = client
        .archive
        .list_parts(&client.bucket, &key("upload"), contents.upload, 0, 10)
        .await
        .unwrap();
    assert_eq!(parts.1.len(), 2, "{context}");
    // It keeps working: staged objects are sealed, deletes succeed.
    client.archive.seal().await.unwrap();
    client.archive.delete(&client.bucket, &key("staged 0")).await.unwrap();
    client.archive.stop().await.unwrap();
}

async fn recover(data: &Path, is_forced: bool) -> Result<RecoverReport, ArchiveError> {
    let config = config(data);
    let options = RecoverOptions { salvage: is_forced, ..RecoverOptions::default() };
    let work = move || fulgurite_archive::recover(config, options, &|_| {});
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Returns the bytes of all segments, in logs or orphaned.
fn segment_bytes(data: &Path) -> u64 {
    let is_segment = |file: &PathBuf| file.extension().is_some_and(|name| name == "seg");
    files(data).iter().filter(|file| is_segment(file)).map(|f| f.metadata().unwrap().len()).sum()
}

async fn filled(data: &Path) -> Content {
    let client = Client::open(config(data)).await;
    let contents = fill(&client).await;
    client.archive.stop().await.unwrap();
    contents
}

/// Number of flips to try; the environment may raise it.
fn flip_count() -> u64 {
    std::env::var("FULGURITE_FLIP_COUNT").map_or(6, |count| count.parse().unwrap())
}

#[tokio::test]
async fn flipped_bit_anywhere_in_the_catalog_loses_nothing() {
    let whole = tempfile::tempdir().unwrap();
    let contents = filled(whole.path()).await;
    let mut recovered = 0;
    for seed in 0..flip_count() {
        let dir = tempfile::tempdir().unwrap();
        copy(whole.path(), dir.path());
        let mut random = Seed::new(seed).stream();
        let files: Vec<PathBuf> = files(&dir.path().join("catalog"))
            .into_iter()
            .filter(|file| file.metadata().unwrap().len() > 0)
            .collect();
        let file = &files[usize::try_from(random.below(files.len() as u64)).unwrap()];
        let mut content = fs::read(file).unwrap();
        let at = usize::try_from(random.below(content.len() as u64)).unwrap();
        content[at] ^= 1 << random.below(8);
        fs::write(file, content).unwrap();
        let context = format!("seed {seed}: byte {at} of {}", file.display());
        match recover(dir.path(), false).await {
            Ok(report) => {
                recovered += 1;
                assert!(!report.catalog_damages.is_empty(), "{context}");
                let old_catalog = PathBuf::from(report.catalog_kept.unwrap());
                assert!(old_catalog.join("spaces").exists(), "{context}: the old catalog is kept");
                assert_eq!((report.uploads, report.parts_lost), (1, 0), "{context}");
            }
            Err(error) => {
                assert!(error.to_string().contains("rows are readable"), "{context}: {error}")
            }
        }
        check(dir.path(), &contents, &context).await;
    }
    assert!(recovered > 0, "some flips were seen");
}

#[tokio::test]
async fn undamaged_catalog_is_rebuilt_only_with_salvage() {
    let dir = tempfile::tempdir().unwrap();
    let contents = filled(dir.path()).await;
    let error = recover(dir.path(), false).await.unwrap_err();
    assert!(error.to_string().contains("--salvage"), "{error}");
    let report = recover(dir.path(), true).await.unwrap();
    assert_eq!(report.objects, contents.bodies.len() as u64);
    assert_eq!((report.incomplete, report.keys_unexplained), (0, 0), "{report:?}");
    check(dir.path(), &contents, "forced").await;
}

#[tokio::test]
async fn recovery_without_a_catalog_unlinks_no_segment() {
    let dir = tempfile::tempdir().unwrap();
    let contents = filled(dir.path()).await;
    let before = segment_bytes(dir.path());
    fs::remove_dir_all(dir.path().join("catalog")).unwrap();
    let report = recover(dir.path(), false).await.unwrap();
    assert_eq!(segment_bytes(dir.path()), before);
    assert_eq!(
        (report.objects, report.incomplete),
        (contents.bodies.len() as u64, 0),
        "{report:?}"
    );
    assert_eq!((report.uploads, report.keys_unexplained), (1, 0), "{report:?}");
    // An empty bucket exists only in the catalog.
    let client = Client::open(config(dir.path())).await;
    client.archive.create_bucket(&empty_bucket()).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);
    check(dir.path(), &contents, "no catalog").await;
}

/// A catalog from the middle of a run is restored: no start serves it, and a recovery finds
/// everything that came after it.
#[tokio::test]
async fn catalog_copied_mid_run_loses_no_later_object() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    let client = Client::open(config(data)).await;
    let mut contents = fill(&client).await;
    let folder = tempfile::tempdir().unwrap();
    let copied = folder.path().join("catalog");
    copy_live(&data.join("catalog"), &copied);
    for (name, class) in [("staged 9", StorageClass::Glacier), ("standard 9", CLASSES[2].1)] {
        let body = noise(50, 20_000);
        client.put(name, class, &body).await.unwrap();
        contents.bodies.insert(name.to_owned(), body);
    }
    client.archive.stop().await.unwrap();
    drop(client);
    fs::rename(data.join("catalog"), data.join("newer")).unwrap();
    copy(&copied, &data.join("catalog"));
    let refused = Archive::open(config(data)).await.unwrap_err();
    assert!(refused.to_string().contains("older than the archive"), "{refused}");
    let report = recover(data, true).await.unwrap();
    assert_eq!(
        (report.objects, report.incomplete),
        (contents.bodies.len() as u64, 0),
        "{report:?}"
    );
    check(data, &contents, "mid-run").await;
}

#[tokio::test]
async fn recovery_that_finds_nothing_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    client.put("staged", StorageClass::DeepArchive, &noise(1, 10_000)).await.unwrap();
    client.archive.stop().await.unwrap();
    drop(client);
    fs::rename(dir.path().join("catalog"), dir.path().join("mislaid")).unwrap();
    // Bytes that carry no information.
    for file in files(&dir.path().join("staging")) {
        let bytes = fs::read(&file).unwrap().len();
        fs::write(&file, noise(2, bytes)).unwrap();
    }
    let before = segment_bytes(dir.path());
    let error = recover(dir.path(), false).await.unwrap_err();
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert!(!dir.path().join("catalog").exists());
    assert_eq!(segment_bytes(dir.path()), before);
}

#[tokio::test]
async fn lost_identity_is_rebuilt_from_the_key_table() {
    let dir = tempfile::tempdir().unwrap();
    let contents = filled(dir.path()).await;
    let path = dir.path().join("archive.json");
    let identity = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    check(dir.path(), &contents, "a start").await;
    assert_eq!(fs::read(&path).unwrap(), identity);
    fs::remove_file(&path).unwrap();
    recover(dir.path(), true).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), identity);
}

/// The two moments at which an interrupted recovery leaves something behind.
#[tokio::test]
async fn interrupted_catalog_rename_is_finished_or_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let contents = filled(dir.path()).await;
    let data = dir.path();
    let report = recover(data, true).await.unwrap();
    let old_catalog = PathBuf::from(report.catalog_kept.unwrap());
    // The new catalog is complete, and the old one was just moved away.
    fs::rename(data.join("catalog"), data.join("catalog.recovered")).unwrap();
    check(data, &contents, "no catalog").await;
    assert!(!data.join("catalog.recovered").exists());
    // The new catalog is complete, and the old one is still in place.
    fs::rename(data.join("catalog"), data.join("catalog.recovered")).unwrap();
    fs::rename(old_catalog, data.join("catalog")).unwrap();
    let error = recover(data, false).await.unwrap_err();
    assert!(error.to_string().contains("rows are readable"), "{error}");
    assert!(
        !data.join("catalog.recovered").exists(),
        "a recovered catalog beside another is removed"
    );
}
