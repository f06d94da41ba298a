//! Puts that are acknowledged at a tier: acknowledged objects survive the loss of the machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use fulgurite_archive::config::{ArchiveConfig, Home, TierName, TierOptions};
use fulgurite_archive::limits::{JOB_TICK, TIER_BACKOFF};
use fulgurite_archive::{
    Archive, ArchiveError, BodyClaim, BucketName, CompletedPart, ManualClock, ObjectMeta,
    RecoverOptions, StorageClass, UploadOptions, WriteCondition,
};
use fulgurite_units::UnixTime;
use futures::stream::{BoxStream, StreamExt as _};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Extensions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::RwLock;

use crate::harness::{Client, config, key, noise};
use crate::tiers::moved;

/// An archive whose puts are acknowledged at the tier "sites", a directory. The home of STANDARD is
/// that tier, of GLACIER glass, of `GLACIER_IR` another directory.
struct Fixture {
    client: Client,
    clock: ManualClock,
    sites: PathBuf,
    config: ArchiveConfig,
    dirs: [tempfile::TempDir; 2],
}

fn acknowledged_at_sites(data: &std::path::Path, folders: &std::path::Path) -> ArchiveConfig {
    let mut config = config(data);
    for (name, class) in [("sites", StorageClass::Standard), ("warm", StorageClass::GlacierIr)] {
        let url = format!("file://{}", folders.join(name).display());
        let name = TierName::new(name).unwrap();
        config.classes.assign(class, Home::Tier(name.clone()), None).unwrap();
        config.tiers.insert(name, TierOptions { url, ..TierOptions::default() });
    }
    config.acknowledged_at = Some(TierName::new("sites").unwrap());
    config
}

async fn open(config: ArchiveConfig, clock: &ManualClock) -> Client {
    let archive = Archive::open_with_clock(config, clock.clock()).await.unwrap();
    let bucket = BucketName::new("vault").unwrap();
    match archive.create_bucket(&bucket).await {
        Ok(_) | Err(ArchiveError::BucketAlreadyOwnedByYou { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    Client { archive, bucket }
}

impl Fixture {
    async fn open() -> Self {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let config = acknowledged_at_sites(dirs[0].path(), dirs[1].path());
        let clock = ManualClock::at(UnixTime::from_millis(1_767_609_000_250));
        let client = open(config.clone(), &clock).await;
        Self { client, clock, sites: dirs[1].path().join("sites"), config, dirs }
    }

    /// Returns the names of bodies in the tier that have an entry.
    fn at_sites(&self) -> BTreeSet<String> {
        let Ok(found) = fs::read_dir(self.sites.join("bodies")) else {
            return BTreeSet::new();
        };
        let names: BTreeSet<String> =
            found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.iter().filter_map(|name| name.strip_suffix(".entry")).map(str::to_owned).collect()
    }

    /// Waits until this many bodies are in the tier, and this many objects staged.
    async fn until(&self, bodies: usize, staged: u64) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let found = self.client.archive.status().await.unwrap().objects_staged;
            if (self.at_sites().len(), found) == (bodies, staged) {
                return;
            }
            let at_sites = self.at_sites();
            assert!(std::time::Instant::now() < deadline, "{at_sites:?} and {found} staged");
            // Removals wait for the next run of the tier's job.
            self.clock.advance(JOB_TICK);
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Uploads an object in two parts.
    async fn put_parts(&self, name: &str, class: StorageClass, parts: [&[u8]; 2]) {
        let Client { archive, bucket } = &self.client;
        let (name, meta) = (key(name), ObjectMeta::default());
        let options = UploadOptions { class, meta, algorithm: None, full_object: false };
        let upload = archive.create_upload(bucket, &name, options).await.unwrap().upload_id;
        let mut listed = Vec::new();
        for (number, body) in (1..).zip(parts) {
            let claim = BodyClaim { bytes: Some(body.len() as u64), ..BodyClaim::default() };
            let mut part = archive.put_part(bucket, &name, upload, number, claim).await.unwrap();
            part.write(Bytes::copy_from_slice(body)).await.unwrap();
            let etag = part.finish(None).await.unwrap().etag;
            listed.push(CompletedPart { number, etag, checksum: None });
        }
        let condition = WriteCondition::default();
        archive.complete_upload(bucket, &name, upload, listed, condition, None).await.unwrap();
    }

    /// Simulates the loss of the machine: its keys are stored elsewhere, and everything else is
    /// rebuilt from the tiers.
    async fn on_another_machine(&self) -> (Client, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys");
        fs::create_dir(&keys).unwrap();
        fs::create_dir(dir.path().join("platters")).unwrap();
        for file in fs::read_dir(self.dirs[0].path().join("keys")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), keys.join(file.file_name())).unwrap();
        }
        let config = acknowledged_at_sites(dir.path(), self.dirs[1].path());
        let recovered = config.clone();
        let work = move || {
            fulgurite_archive::recover(recovered, RecoverOptions::default(), &|_| {}).unwrap()
        };
        tokio::task::spawn_blocking(work).await.unwrap();
        (open(config, &self.clock).await, dir)
    }
}

const LARGE: usize = 20 << 20;

#[tokio::test]
async fn acknowledged_copy_stays_in_tier_until_body_is_home() {
    let fixture = Fixture::open().await;
    let put = async |name, class| fixture.client.put(name, class, &noise(1, 70_000)).await.unwrap();
    put("glass", StorageClass::Glacier).await;
    assert_eq!(fixture.at_sites().len(), 1, "before any job ran");
    put("deleted", StorageClass::Glacier).await;
    fixture.put_parts("parts", StorageClass::DeepArchive, [&noise(2, 6 << 20), b"end"]).await;
    assert_eq!(fixture.at_sites().len(), 4);
    fixture.client.archive.delete(&fixture.client.bucket, &key("deleted")).await.unwrap();
    fixture.until(3, 2).await;

    // The tier is the home of the first, and another tier the home of the second.
    put("sites", StorageClass::Standard).await;
    assert_eq!(fixture.at_sites().len(), 4);
    put("warm", StorageClass::GlacierIr).await;
    fixture.until(4, 2).await;
    assert_eq!(fixture.client.get("sites", None).await.unwrap(), noise(1, 70_000));
    assert_eq!(fixture.client.get("warm", None).await.unwrap(), noise(1, 70_000));

    fixture.client.archive.seal().await.unwrap();
    fixture.until(1, 0).await;
    for name in ["glass", "parts"] {
        fixture.client.restore(name).await.unwrap();
        fixture.client.restored(name).await.unwrap();
    }
    assert_eq!(fixture.client.get("glass", None).await.unwrap(), noise(1, 70_000));
    fixture.client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn acknowledged_copy_is_verified_and_not_uploaded_again() {
    let fixture = Fixture::open().await;
    // Larger than a part, so that reading it back takes a while.
    fixture.client.put("one", StorageClass::Standard, &noise(1, LARGE)).await.unwrap();
    let [body] = Vec::from_iter(fixture.at_sites()).try_into().unwrap();
    let made = |name: &str| {
        fs::metadata(fixture.sites.join("bodies").join(name)).unwrap().modified().unwrap()
    };
    let entry = format!("{body}.entry");
    let before = (made(&body), made(&entry));
    fixture.until(1, 0).await;
    assert_eq!((made(&body), made(&entry)), before);
    fixture.client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn unavailable_tier_refuses_puts_without_side_effects() {
    let fixture = Fixture::open().await;
    let put = async |name, seed, class| fixture.client.put(name, class, &noise(seed, 70_000)).await;
    put("glass", 1, StorageClass::Glacier).await.unwrap();
    put("sites", 1, StorageClass::Standard).await.unwrap();
    fixture.until(2, 1).await;
    let away = fixture.sites.with_extension("away");
    for leaves_empty_folder in [false, true] {
        fs::rename(&fixture.sites, &away).unwrap();
        if leaves_empty_folder {
            fs::create_dir(&fixture.sites).unwrap();
        }
        for (name, class) in [
            ("glass", StorageClass::Glacier),
            ("sites", StorageClass::Standard),
            ("new", StorageClass::DeepArchive),
        ] {
            let refused = put(name, 2, class).await;
            assert!(matches!(refused, Err(ArchiveError::TierUnavailable { .. })), "{refused:?}");
        }
        if leaves_empty_folder {
            // Nothing was written to the mount point of an unmounted disk.
            fs::remove_dir(&fixture.sites).unwrap();
        }
        fs::rename(&away, &fixture.sites).unwrap();
    }
    // Earlier objects are still there, and an unacknowledged one is not.
    fixture.clock.advance(TIER_BACKOFF + TIER_BACKOFF);
    assert_eq!(fixture.client.get("sites", None).await.unwrap(), noise(1, 70_000));
    let missing = fixture.client.get("new", None).await;
    assert!(matches!(missing, Err(ArchiveError::NoSuchKey { .. })), "{missing:?}");
    put("new", 3, StorageClass::Standard).await.unwrap();
    fixture.until(3, 1).await;
    fixture.client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn acknowledged_objects_survive_loss_of_the_machine() {
    let fixture = Fixture::open().await;
    let put = async |name, seed, class| {
        fixture.client.put(name, class, &noise(seed, 70_000)).await.unwrap();
    };
    put("staged", 1, StorageClass::Glacier).await;
    put("over", 1, StorageClass::Glacier).await;
    put("over", 2, StorageClass::Glacier).await;
    put("at home", 3, StorageClass::Standard).await;
    put("deleted", 4, StorageClass::Glacier).await;
    fixture.put_parts("parts", StorageClass::DeepArchive, [&noise(5, 6 << 20), b"end"]).await;
    fixture.client.archive.delete(&fixture.client.bucket, &key("deleted")).await.unwrap();

    // At this moment, whatever waits to be moved or removed.
    let (client, _dir) = fixture.on_another_machine().await;
    assert_eq!(client.get("at home", None).await.unwrap(), noise(3, 70_000));
    let parts = [noise(5, 6 << 20), b"end".to_vec()].concat();
    for (name, body) in [("staged", noise(1, 70_000)), ("over", noise(2, 70_000)), ("parts", parts)]
    {
        client.restore(name).await.unwrap();
        client.restored(name).await.unwrap();
        assert!(client.get(name, None).await.unwrap() == body, "{name}");
    }
    let missing = client.get("deleted", None).await;
    assert!(matches!(missing, Err(ArchiveError::NoSuchKey { .. })), "{missing:?}");
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn recovery_keeps_copies_of_staged_bodies_only() {
    let fixture = Fixture::open().await;
    let put = async |name, class| fixture.client.put(name, class, &noise(1, 70_000)).await.unwrap();
    put("glass", StorageClass::Glacier).await;
    fixture.client.archive.seal().await.unwrap();
    fixture.until(0, 0).await;
    put("staged", StorageClass::Glacier).await;
    put("warm", StorageClass::GlacierIr).await;
    fixture.client.archive.stop().await.unwrap();
    let before = fixture.at_sites();
    let Fixture { client, clock, sites, config, dirs } = fixture;
    drop(client);
    fs::remove_dir_all(config.data.join("catalog")).unwrap();
    let recovered = config.clone();
    let work =
        move || fulgurite_archive::recover(recovered, RecoverOptions::default(), &|_| {}).unwrap();
    tokio::task::spawn_blocking(work).await.unwrap();
    let client = open(config.clone(), &clock).await;
    let fixture = Fixture { client, clock, sites, config, dirs };
    assert!(before.len() >= 2 && fixture.at_sites().is_superset(&before), "{before:?}");
    fixture.until(1, 1).await;
    fixture.client.archive.seal().await.unwrap();
    fixture.until(0, 0).await;
    fixture.client.archive.stop().await.unwrap();
}

/// A store in memory that blocks where its test wants it to. It may lose the first bodies put into
/// it and still acknowledge them.
#[derive(Debug, Default)]
struct Gated {
    inside: InMemory,
    to_lose: AtomicUsize,
    /// Bodies whose put has arrived, including blocked ones.
    puts_arrived: AtomicUsize,
    puts: RwLock<()>,
    /// Bodies and entries whose removal has arrived, including blocked ones.
    going: Arc<AtomicUsize>,
    removals: Arc<RwLock<()>>,
}

impl std::fmt::Display for Gated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a gated store")
    }
}

#[async_trait]
impl ObjectStore for Gated {
    async fn put_opts(&self, at: &Path, body: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let is_body = at.as_ref().contains("bodies/") && !at.as_ref().ends_with(".entry");
        if is_body {
            self.puts_arrived.fetch_add(1, Ordering::SeqCst);
            drop(self.puts.read().await);
        }
        let to_lose = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        if is_body && self.to_lose.fetch_update(order, order, to_lose).is_ok() {
            return Ok(PutResult { e_tag: None, version: None, extensions: Extensions::default() });
        }
        self.inside.put_opts(at, body, opts).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inside.put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, at: &Path, opts: GetOptions) -> Result<GetResult> {
        self.inside.get_opts(at, opts).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (gate, going) = (Arc::clone(&self.removals), Arc::clone(&self.going));
        let paths = paths.then(move |path| {
            let gate = Arc::clone(&gate);
            going.fetch_add(1, Ordering::SeqCst);
            async move {
                drop(gate.read().await);
                path
            }
        });
        self.inside.delete_stream(paths.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<object_store::ObjectMeta>> {
        self.inside.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inside.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, opts: CopyOptions) -> Result<()> {
        self.inside.copy_opts(from, to, opts).await
    }
}

/// Configures an archive that acknowledges puts at a gated store, which is also the home of
/// `class`.
fn at_gate(data: &std::path::Path, store: &Arc<Gated>, class: StorageClass) -> ArchiveConfig {
    let mut config = config(data);
    let name = TierName::new("gated").unwrap();
    config.classes.assign(class, Home::Tier(name.clone()), None).unwrap();
    let (url, inside) = ("gated:it".to_owned(), Arc::clone(store) as Arc<dyn ObjectStore>);
    config.acknowledged_at = Some(name.clone());
    config.tiers.insert(name, TierOptions { url, store: Some(inside), ..TierOptions::default() });
    config
}

/// Waits for a condition that other tasks fulfill.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn failed_read_back_uploads_again_before_freeing_staging() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Gated { to_lose: AtomicUsize::new(1), ..Gated::default() });
    let client = Client::open(at_gate(dir.path(), &store, StorageClass::Standard)).await;
    client.put("a", StorageClass::Standard, &noise(1, 70_000)).await.unwrap();
    moved(&client).await;
    assert_eq!(store.to_lose.load(Ordering::SeqCst), 0);
    assert_eq!(client.get("a", None).await.unwrap(), noise(1, 70_000));
    client.archive.stop().await.unwrap();
}

/// Some bodies on the last list of removals are acknowledged before their turn comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removal_spares_bodies_acknowledged_meanwhile() {
    const PUTS: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::<Gated>::default();
    // GLACIER goes to glass: its bodies are only copies at the gated store.
    let client = Client::open(at_gate(dir.path(), &store, StorageClass::GlacierIr)).await;
    client.put("old", StorageClass::Glacier, &noise(0, 7000)).await.unwrap();
    let no_puts = store.puts.write().await;
    let no_removals = store.removals.write().await;
    let before = store.puts_arrived.load(Ordering::SeqCst);
    let puts: Vec<_> = (0..PUTS)
        .map(|at| {
            let client = client.clone();
            tokio::spawn(async move {
                client.put(&format!("new {at}"), StorageClass::Glacier, &noise(1, 7000)).await
            })
        })
        .collect();
    let all_came = || store.puts_arrived.load(Ordering::SeqCst) == before + PUTS;
    until("all puts are in progress", all_came).await;
    // A blocked removal has the bodies of those puts on its list, as far as they come after it.
    client.archive.delete(&client.bucket, &key("old")).await.unwrap();
    until("a removal waits", || store.going.load(Ordering::SeqCst) > 0).await;
    drop(no_puts);
    for put in puts {
        put.await.unwrap().unwrap();
    }
    drop(no_removals);
    let bodies = || store.inside.list(Some(&Path::from("bodies"))).count();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while bodies().await > 2 * PUTS {
        assert!(std::time::Instant::now() < deadline, "the old body is removed");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // Another run of the job, and another removal after it.
    client.put("last", StorageClass::Glacier, &noise(0, 7000)).await.unwrap();
    client.archive.delete(&client.bucket, &key("last")).await.unwrap();
    while bodies().await > 2 * PUTS {
        assert!(std::time::Instant::now() < deadline, "the last body is removed");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(bodies().await, 2 * PUTS, "each put has its body and its entry");
    client.archive.stop().await.unwrap();
}

/// A client that times out completes its upload a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_completions_create_one_object_in_the_tier() {
    let (dir, store) = (tempfile::tempdir().unwrap(), Arc::<Gated>::default());
    let client = Client::open(at_gate(dir.path(), &store, StorageClass::Standard)).await;
    let name = key("parts");
    let options = UploadOptions {
        class: StorageClass::Standard,
        meta: ObjectMeta::default(),
        algorithm: None,
        full_object: false,
    };
    let begun = client.archive.create_upload(&client.bucket, &name, options).await.unwrap();
    let claim = BodyClaim { bytes: Some(7000), ..BodyClaim::default() };
    let part = client.archive.put_part(&client.bucket, &name, begun.upload_id, 1, claim).await;
    let mut part = part.unwrap();
    part.write(Bytes::from(noise(1, 7000))).await.unwrap();
    let etag = part.finish(None).await.unwrap().etag;
    let no_puts = store.puts.write().await;
    let complete = || {
        let (client, name, etag) = (client.clone(), name.clone(), etag.clone());
        tokio::spawn(async move {
            let listed = vec![CompletedPart { number: 1, etag, checksum: None }];
            let (upload, condition) = (begun.upload_id, WriteCondition::default());
            let Client { archive, bucket } = &client;
            archive.complete_upload(bucket, &name, upload, listed, condition, None).await
        })
    };
    let (first, second) = (complete(), complete());
    let puts_arrived = || store.puts_arrived.load(Ordering::SeqCst);
    until("one put is in progress", || puts_arrived() > 0).await;
    // The second one has enough time to arrive as well, and does not.
    let both = until("both puts are in progress", || puts_arrived() > 1);
    tokio::time::timeout(std::time::Duration::from_millis(500), both).await.unwrap_err();
    drop(no_puts);
    let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
    assert_eq!(first.etag, second.etag);
    assert_eq!(puts_arrived(), 1, "the part is uploaded once");
    moved(&client).await;
    client.archive.stop().await.unwrap();
    drop(client);

    // The tier has entries for one object only.
    let lost = tempfile::tempdir().unwrap();
    fs::create_dir(lost.path().join("platters")).unwrap();
    fs::rename(dir.path().join("keys"), lost.path().join("keys")).unwrap();
    let config = at_gate(lost.path(), &store, StorageClass::Standard);
    let recovered = config.clone();
    let work = move || fulgurite_archive::recover(recovered, RecoverOptions::default(), &|_| {});
    let report = tokio::task::spawn_blocking(work).await.unwrap().unwrap();
    assert_eq!((report.objects, report.incomplete, report.unconfirmed), (1, 0, 0), "{report:?}");
    let client = Client::open(config).await;
    assert_eq!(client.get("parts", None).await.unwrap(), noise(1, 7000));
    client.archive.stop().await.unwrap();
}
