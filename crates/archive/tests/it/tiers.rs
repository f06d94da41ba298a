//! Classes whose home is a tier of objects: a directory here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulgurite_archive::config::{ArchiveConfig, Classes, Home, TierName, TierOptions};
use fulgurite_archive::status::VerifiedTier;
use fulgurite_archive::{
    Archive, ArchiveError, BodyClaim, ByteRange, CompletedPart, ObjectMeta, RecoverOptions,
    RecoverReport, Residence, RestoreOutcome, StorageClass, UploadOptions, WriteCondition, recover,
};
use fulgurite_units::UploadId;

use crate::harness::{Client, config as config_of, files, key, noise};

const CLASSES: [StorageClass; 3] =
    [StorageClass::Standard, StorageClass::GlacierIr, StorageClass::Glacier];

/// A directory for an archive, and one for its tier.
pub(crate) struct Place {
    pub(crate) data: tempfile::TempDir,
    pub(crate) tier: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = || tempfile::tempdir().unwrap();
        Self { data: dir(), tier: dir() }
    }

    /// Configures the tier as the home of everything but `DEEP_ARCHIVE`; `GLACIER` is read after a
    /// restore.
    pub(crate) fn config(&self) -> ArchiveConfig {
        let mut config = config_of(self.data.path());
        let cold = TierName::new("cold").unwrap();
        for class in CLASSES {
            config.classes.assign(class, Home::Tier(cold.clone()), None).unwrap();
        }
        let url = format!("file://{}", self.tier.path().display());
        config.tiers.insert(cold, TierOptions { url, ..TierOptions::default() });
        config
    }

    pub(crate) async fn open(&self) -> Client {
        Client::open(self.config()).await
    }

    /// Returns the files of bodies and entries in the tier.
    pub(crate) fn bodies(&self) -> Vec<PathBuf> {
        let folder = self.tier.path().join("bodies");
        if folder.exists() { files(&folder) } else { Vec::new() }
    }
}

/// Waits until nothing is staged, or reports what is.
pub(crate) async fn moved(client: &Client) {
    wait("all bodies to be moved", async || {
        let status = client.archive.status().await.unwrap();
        (status.moving_bytes == 0 && status.objects_staged == 0).then_some(())
    })
    .await;
}

pub(crate) async fn wait<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(found) = poll().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("timeout: {what}");
}

pub(crate) async fn residence(client: &Client, name: &str) -> Residence {
    client.archive.head(&client.bucket, &key(name)).await.unwrap().residence
}

fn name_of(class: StorageClass) -> String {
    format!("an object of {}", class.name())
}

#[tokio::test]
async fn objects_move_to_their_tier_and_are_readable_there() {
    let place = Place::new();
    let client = place.open().await;
    let bodies: Vec<Vec<u8>> = (0..3).map(|seed| noise(seed, 700_000)).collect();
    for (class, body) in CLASSES.into_iter().zip(&bodies) {
        client.put(&name_of(class), class, body).await.unwrap();
    }
    client.put("empty", StorageClass::GlacierIr, b"").await.unwrap();
    moved(&client).await;
    assert_eq!(place.bodies().len(), 8, "each has a body and an entry");
    for (class, body) in CLASSES.into_iter().zip(&bodies) {
        let name = name_of(class);
        assert_eq!(residence(&client, &name).await, Residence::Tier);
        if class == StorageClass::Glacier {
            let refused = client.get(&name, None).await.unwrap_err();
            assert!(matches!(refused, ArchiveError::NotRestored { .. }), "{refused}");
            assert_eq!(client.restore(&name).await.unwrap(), RestoreOutcome::Accepted);
            client.restored(&name).await.unwrap();
        }
        assert_eq!(client.get(&name, None).await.unwrap(), *body);
        let range = ByteRange::From { first: 65_530, last: Some(400_000) };
        assert_eq!(client.get(&name, Some(range)).await.unwrap(), body[65_530..=400_000]);
        let last = ByteRange::Suffix { bytes: 3 };
        assert_eq!(client.get(&name, Some(last)).await.unwrap(), body[699_997..]);
    }
    assert_eq!(client.get("empty", None).await.unwrap(), b"");
    let refused = client.restore("empty").await.unwrap_err();
    assert!(matches!(refused, ArchiveError::NotArchived { .. }), "{refused}");
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn large_body_is_uploaded_in_parts_and_restored() {
    let place = Place::new();
    let client = place.open().await;
    let body = noise(9, 20 << 20);
    client.put("large", StorageClass::GlacierIr, &body).await.unwrap();
    // The earlier read was from staging, this one is from the tier.
    assert!(client.get("large", None).await.unwrap() == body);
    moved(&client).await;
    assert!(client.get("large", None).await.unwrap() == body);
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn deleted_and_replaced_bodies_leave_the_tier() {
    let place = Place::new();
    let client = place.open().await;
    for seed in 0..3 {
        client.put("a", StorageClass::Standard, &noise(seed, 1_000)).await.unwrap();
    }
    client.put("b", StorageClass::Glacier, &noise(7, 1_000)).await.unwrap();
    moved(&client).await;
    wait("the replaced bodies to be removed", async || (place.bodies().len() == 4).then_some(()))
        .await;
    // A reader continues to read the object as it was when it started.
    client.put("a", StorageClass::Standard, &noise(3, 300_000)).await.unwrap();
    moved(&client).await;
    let bucket = &client.bucket;
    let mut reader = client.archive.get(bucket, &key("a"), None).await.unwrap();
    assert!(client.archive.delete(bucket, &key("a")).await.unwrap());
    let mut read = Vec::new();
    while let Some(bytes) = reader.next().await {
        read.extend_from_slice(&bytes.unwrap());
    }
    assert_eq!(read, noise(3, 300_000));
    drop(reader);
    assert!(client.archive.delete(bucket, &key("b")).await.unwrap());
    wait("all bodies to be removed", async || place.bodies().is_empty().then_some(())).await;
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn unavailable_tier_is_named_and_blocks_nothing_else() {
    let place = Place::new();
    let client = place.open().await;
    client.put("there", StorageClass::GlacierIr, &noise(1, 1_000)).await.unwrap();
    moved(&client).await;
    client.archive.stop().await.unwrap();
    drop(client);

    let away = place.tier.path().with_extension("away");
    std::fs::rename(place.tier.path(), &away).unwrap();
    for is_folder in [false, true] {
        let client = place.open().await;
        let error = client.get("there", None).await.unwrap_err();
        assert!(matches!(error, ArchiveError::TierUnavailable { .. }), "{error}");
        assert!(error.to_string().contains("cold"), "{error}");
        client.archive.stop().await.unwrap();
        drop(client);
        if !is_folder {
            // The empty mount point of an unmounted disk is not the tier.
            std::fs::create_dir(place.tier.path()).unwrap();
        }
    }
    let client = place.open().await;
    client.put("new", StorageClass::GlacierIr, &noise(2, 1_000)).await.unwrap();
    assert_eq!(client.get("new", None).await.unwrap(), noise(2, 1_000));
    client.put("deep", StorageClass::DeepArchive, &noise(3, 1_000)).await.unwrap();
    client.archive.seal().await.unwrap();
    assert_eq!(residence(&client, "deep").await, Residence::Glass);
    let degraded = client.archive.degraded();
    assert!(degraded.iter().any(|line| line.contains("tier \"cold\"")), "{degraded:?}");
    assert_eq!(place.bodies(), Vec::<PathBuf>::new(), "nothing is written outside the tier");
    client.archive.stop().await.unwrap();
    drop(client);

    std::fs::remove_dir_all(place.tier.path()).unwrap();
    std::fs::rename(&away, place.tier.path()).unwrap();
    let client = place.open().await;
    moved(&client).await;
    for (name, seed) in [("there", 1), ("new", 2)] {
        assert_eq!(client.get(name, None).await.unwrap(), noise(seed, 1_000));
    }
    client.archive.stop().await.unwrap();
}

/// Returns ways in which a body can differ from the one that was written.
fn damages(original: &[u8], another: &Path) -> [(&'static str, Vec<u8>); 4] {
    let mut flipped = original.to_vec();
    flipped[100_000] ^= 1;
    [
        ("a bit", flipped),
        ("cut short", original[..150_000].to_vec()),
        ("another's", std::fs::read(another).unwrap()),
        ("empty", Vec::new()),
    ]
}

/// Returns the verification result of the only tier.
async fn verified(client: &Client) -> VerifiedTier {
    let mut report = client.archive.verify(None, &Arc::default()).await.unwrap();
    assert_eq!(report.tiers.len(), 1, "{report:?}");
    report.tiers.remove(0)
}

#[tokio::test]
async fn altered_tier_bytes_are_reported_and_never_served() {
    let place = Place::new();
    let client = place.open().await;
    let bodies = [noise(1, 200_000), noise(2, 200_000)];
    client.put("one", StorageClass::GlacierIr, &bodies[0]).await.unwrap();
    moved(&client).await;
    let first = body_file(&place, &[]);
    client.put("two", StorageClass::GlacierIr, &bodies[1]).await.unwrap();
    moved(&client).await;
    let second = body_file(&place, &[&first]);
    let original = std::fs::read(&first).unwrap();
    let sound = verified(&client).await;
    let bytes = 2 * original.len() as u64;
    assert_eq!((sound.bodies, sound.bytes, sound.bodies_damaged, sound.error), (2, bytes, 0, None));
    for (what, bytes) in damages(&original, &second) {
        std::fs::write(&first, &bytes).unwrap();
        let error = client.get("one", None).await.unwrap_err();
        assert!(matches!(error, ArchiveError::Corrupt { .. }), "{what}: {error}");
        let found = verified(&client).await;
        assert_eq!((found.bodies, found.bodies_damaged, found.error), (2, 1, None), "{what}");
        assert_eq!(found.damaged[0].key, "one", "{what}");
        assert_eq!(client.get("two", None).await.unwrap(), bodies[1], "{what}");
    }
    std::fs::remove_file(&first).unwrap();
    let error = client.get("one", None).await.unwrap_err();
    assert!(error.to_string().contains("tier \"cold\" is missing"), "{error}");
    assert_eq!(verified(&client).await.bodies_damaged, 1);
    std::fs::write(&first, &original).unwrap();
    assert_eq!(client.get("one", None).await.unwrap(), bodies[0]);
    let entry = |body: &Path| body.with_extension("entry");
    std::fs::copy(entry(&second), entry(&first)).unwrap();
    let found = verified(&client).await;
    assert!(found.damaged[0].error.contains("is of another body"), "{found:?}");
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn damaged_tier_body_is_reported_and_not_restored() {
    let place = Place::new();
    let client = place.open().await;
    client.put("one", StorageClass::Glacier, &noise(1, 200_000)).await.unwrap();
    moved(&client).await;
    let places = client.archive.locate(&client.bucket, &key("one")).await.unwrap();
    assert_eq!((places.len(), places[0].residence.as_str()), (1, "tier"));
    assert_eq!(places[0].tier.as_deref(), Some("cold"));
    let file = body_file(&place, &[]);
    let original = std::fs::read(&file).unwrap();
    let mut flipped = original.clone();
    flipped[100_000] ^= 1;
    std::fs::write(&file, &flipped).unwrap();
    client.restore("one").await.unwrap();
    let failed = wait("the restore to fail", async || {
        client.archive.status().await.unwrap().failed_restores.into_iter().next()
    })
    .await;
    assert!(failed.error.contains("in tier \"cold\", is not what was ingested"), "{failed:?}");
    assert!(client.get("one", None).await.is_err());
    client.archive.stop().await.unwrap();
    drop(client);

    std::fs::write(&file, &original[..100_000]).unwrap();
    std::fs::remove_dir_all(place.data.path().join("catalog")).unwrap();
    let report = recovered(place.config()).await.unwrap();
    assert_eq!(report.objects, 0, "{report:?}");
    assert!(report.unusable[0].contains("in tier \"cold\" has 100000 bytes"), "{report:?}");
}

/// Returns the only body file of the tier that is not in `known`.
fn body_file(place: &Place, known: &[&Path]) -> PathBuf {
    let is_new = |path: &PathBuf| path.extension().is_none() && !known.contains(&path.as_path());
    let mut found: Vec<PathBuf> = place.bodies().into_iter().filter(is_new).collect();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// Removed from the configuration, its objects could not be read; an empty one is not missed.
#[tokio::test]
async fn tier_with_objects_must_stay_in_the_configuration() {
    let place = Place::new();
    let client = place.open().await;
    client.put("there", StorageClass::GlacierIr, &noise(1, 1_000)).await.unwrap();
    moved(&client).await;
    client.archive.stop().await.unwrap();
    drop(client);
    let without =
        || ArchiveConfig { tiers: BTreeMap::new(), classes: Classes::default(), ..place.config() };
    let refused = Archive::open(without()).await.unwrap_err();
    assert!(matches!(refused, ArchiveError::Unusable { .. }), "{refused}");
    assert!(refused.to_string().contains("tier \"cold\""), "{refused}");
    let client = place.open().await;
    client.archive.delete(&client.bucket, &key("there")).await.unwrap();
    wait("the body to be removed", async || place.bodies().is_empty().then_some(())).await;
    client.archive.stop().await.unwrap();
    drop(client);
    Archive::open(without()).await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn recovery_finds_objects_in_the_tier() {
    let place = Place::new();
    let client = place.open().await;
    for (class, seed) in CLASSES.into_iter().zip(0..) {
        client.put(&name_of(class), class, &noise(seed, 200_000)).await.unwrap();
    }
    client.put("gone", StorageClass::Standard, b"gone").await.unwrap();
    moved(&client).await;
    client.archive.delete(&client.bucket, &key("gone")).await.unwrap();
    wait("the body to be removed", async || (place.bodies().len() == 6).then_some(())).await;
    client.archive.stop().await.unwrap();
    drop(client);
    std::fs::remove_dir_all(place.data.path().join("catalog")).unwrap();

    // The empty mount point of an unmounted disk: nothing is recovered without its content.
    let away = place.tier.path().with_extension("away");
    std::fs::rename(place.tier.path(), &away).unwrap();
    std::fs::create_dir(place.tier.path()).unwrap();
    let refused = recovered(place.config()).await.unwrap_err();
    assert!(matches!(refused, ArchiveError::TierUnavailable { .. }), "{refused}");
    assert!(refused.to_string().contains("tier \"cold\""), "{refused}");
    std::fs::remove_dir(place.tier.path()).unwrap();
    std::fs::rename(&away, place.tier.path()).unwrap();

    let report = recovered(place.config()).await.unwrap();
    assert_eq!((report.objects, report.incomplete), (3, 0), "{report:?}");
    assert_eq!(report.unusable, Vec::<String>::new());
    let client = place.open().await;
    for (class, seed) in CLASSES.into_iter().zip(0..) {
        let name = name_of(class);
        assert_eq!(residence(&client, &name).await, Residence::Tier);
        if class == StorageClass::Glacier {
            client.restore(&name).await.unwrap();
            client.restored(&name).await.unwrap();
        }
        assert_eq!(client.get(&name, None).await.unwrap(), noise(seed, 200_000));
        assert!(client.archive.delete(&client.bucket, &key(&name)).await.unwrap());
    }
    wait("all bodies to be removed", async || place.bodies().is_empty().then_some(())).await;
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.objects_in_tiers, status.objects_staged), (0, 0));
    client.archive.stop().await.unwrap();
}

pub(crate) async fn recovered(config: ArchiveConfig) -> Result<RecoverReport, ArchiveError> {
    let work = move || recover(config, RecoverOptions::default(), &|_| {});
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn put_part(client: &Client, upload: UploadId, number: u32, body: &[u8]) -> CompletedPart {
    let claim = BodyClaim { bytes: Some(body.len() as u64), ..BodyClaim::default() };
    let (bucket, key) = (&client.bucket, key("parts"));
    let mut writer = client.archive.put_part(bucket, &key, upload, number, claim).await.unwrap();
    writer.write(Bytes::copy_from_slice(body)).await.unwrap();
    let etag = writer.finish(None).await.unwrap().etag;
    CompletedPart { number, etag, checksum: None }
}

#[tokio::test]
async fn staged_body_is_readable_once_its_class_is_online() {
    let place = Place::new();
    let mut config = place.config();
    // A file in the place of the tier's folder: nothing can be written there.
    let file = place.tier.path().join("file");
    std::fs::write(&file, b"").unwrap();
    for tier in config.tiers.values_mut() {
        tier.url = format!("file://{}/tier", file.display());
    }
    let client = Client::open(config).await;
    let (class, body) = (StorageClass::Standard, noise(1, 70_000));
    client.put("whole", class, &body).await.unwrap();
    client.put("at once", StorageClass::GlacierIr, &body).await.unwrap();
    let meta = ObjectMeta::default();
    let options = UploadOptions { class, meta, algorithm: None, full_object: false };
    let begun = client.archive.create_upload(&client.bucket, &key("parts"), options).await;
    let upload = begun.unwrap().upload_id;
    let parts = [noise(2, 5 << 20), noise(3, 70_000)];
    let first = put_part(&client, upload, 1, &parts[0]).await;
    client.archive.stop().await.unwrap();
    drop(client);
    std::fs::remove_dir_all(place.data.path().join("catalog")).unwrap();

    recovered(config_of(place.data.path())).await.unwrap();
    let client = Client::open(config_of(place.data.path())).await;
    let listed = [first, put_part(&client, upload, 2, &parts[1]).await].to_vec();
    let (bucket, condition) = (&client.bucket, WriteCondition::default());
    let key = key("parts");
    let done = client.archive.complete_upload(bucket, &key, upload, listed, condition, None);
    done.await.unwrap();
    for (name, body) in [("whole", &body), ("at once", &body), ("parts", &parts.concat())] {
        assert_eq!(residence(&client, name).await, Residence::Online, "{name}");
        assert!(client.get(name, None).await.unwrap() == *body, "{name}");
    }
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn tier_belongs_to_one_archive() {
    let (place, other) = (Place::new(), Place::new());
    let client = place.open().await;
    client.put("mine", StorageClass::GlacierIr, &noise(1, 1_000)).await.unwrap();
    moved(&client).await;
    let mut config = other.config();
    config.tiers = place.config().tiers;
    let other = Client::open(config).await;
    other.put("yours", StorageClass::GlacierIr, &noise(2, 1_000)).await.unwrap();
    let failure = wait("the failure to be reported", async || {
        other.archive.degraded().into_iter().find(|line| line.contains("tier \"cold\""))
    })
    .await;
    assert!(failure.contains("of archive"), "{failure}");
    assert_eq!(place.bodies().len(), 2, "no body of the other archive was stored");
    assert_eq!(other.get("yours", None).await.unwrap(), noise(2, 1_000));
    other.archive.stop().await.unwrap();
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn unknown_and_invalid_tiers_are_refused() {
    let place = Place::new();
    let mut wrong = place.config();
    wrong.tiers.clear();
    let refused = Archive::open(wrong).await.unwrap_err();
    assert!(refused.to_string().contains("there is no such tier"), "{refused}");
    for (url, why) in [
        ("nowhere", "must begin with"),
        ("ftp://host/path", "not one of"),
        ("file://relative", "absolute path"),
        ("s3://", "no bucket"),
    ] {
        let mut wrong = place.config();
        for tier in wrong.tiers.values_mut() {
            url.clone_into(&mut tier.url);
        }
        let refused = Archive::open(wrong).await.unwrap_err().to_string();
        assert!(refused.contains(why) && refused.contains("cold"), "{url}: {refused}");
    }
    let plain = Client::open(config_of(place.data.path())).await;
    let refused = plain.put("ir", StorageClass::GlacierIr, b"x").await.unwrap_err();
    assert!(matches!(refused, ArchiveError::InvalidStorageClass { .. }), "{refused}");
    plain.archive.stop().await.unwrap();
}
