//! Requests to a tier whose disks spin down, and their times: a store in memory that records them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fulgurite_archive::config::{ArchiveConfig, Calm, Home, MovePolicy, TierName, TierOptions};
use fulgurite_archive::status::WaitingTier;
use fulgurite_archive::{
    Archive, BucketName, ManualClock, RestoreRequest, Retrieval, StorageClass,
};
use fulgurite_units::{ByteCount, Deadline, Duration, ReadBack, UnixTime};
use futures::stream::{self, BoxStream, StreamExt as _};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};

use crate::harness::{Client, config as config_of, key, noise};
use crate::tiers::{moved, recovered, wait};

/// Start of the clock of these tests.
const BEGUN: u64 = 1_767_609_000_250;

#[derive(Debug, Default)]
struct ColdStore {
    inner: InMemory,
    /// Due time and offset of each read that had a due time.
    requests: Mutex<Vec<(UnixTime, u64)>>,
    /// Files that the archive read back to verify its own writes.
    read_back: Mutex<Vec<String>>,
    /// Number of reads that are to break off halfway.
    breaks: AtomicUsize,
    is_calm: AtomicBool,
}

impl std::fmt::Display for ColdStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a sleeper")
    }
}

#[async_trait]
impl ObjectStore for ColdStore {
    async fn put_opts(&self, at: &Path, body: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(at, body, opts).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, at: &Path, opts: GetOptions) -> Result<GetResult> {
        let due = opts.extensions.get::<Deadline>().copied();
        if opts.extensions.get::<ReadBack>().is_some() {
            self.read_back.lock().unwrap().push(at.to_string());
        }
        let mut found = self.inner.get_opts(at, opts).await?;
        let Some(Deadline(due)) = due else { return Ok(found) };
        self.requests.lock().unwrap().push((due, found.range.start));
        let breaks = |left: usize| left.checked_sub(1);
        if self.breaks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, breaks).is_ok() {
            let (range, meta) = (found.range.clone(), found.meta.clone());
            let bytes = found.bytes().await?;
            let half = bytes.slice(..bytes.len() / 2);
            let broken = Error::Generic { store: "sleeper", source: "it broke off".into() };
            let parts = stream::iter([Ok(half), Err(broken)]).boxed();
            let payload = GetResultPayload::Stream(parts);
            let (attributes, extensions) = Default::default();
            found = GetResult { payload, meta, range, attributes, extensions };
        }
        Ok(found)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, opts: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, opts).await
    }
}

/// Configures the tier as the home of `GLACIER`.
fn config(
    data: &std::path::Path,
    cold_store: &Arc<ColdStore>,
    move_policy: MovePolicy,
) -> ArchiveConfig {
    let mut config = config_of(data);
    let rack = TierName::new("rack").unwrap();
    config.classes.assign(StorageClass::Glacier, Home::Tier(rack.clone()), None).unwrap();
    let store = Some(Arc::clone(cold_store) as Arc<dyn ObjectStore>);
    let url = "rack".to_owned();
    let options =
        TierOptions { url, store, move_policy, with_entries: true, ..TierOptions::default() };
    config.tiers.insert(rack, options);
    config
}

async fn open(config: ArchiveConfig) -> (ManualClock, Client) {
    let clock = ManualClock::at(UnixTime::from_millis(BEGUN));
    let archive = Archive::open_with_clock(config, clock.clock()).await.unwrap();
    let bucket = BucketName::new("vault").unwrap();
    archive.create_bucket(&bucket).await.unwrap();
    (clock, Client { archive, bucket })
}

#[tokio::test]
async fn restores_send_due_times_and_resume_interrupted_reads() {
    let (dir, cold_store) = (tempfile::tempdir().unwrap(), Arc::<ColdStore>::default());
    let (_clock, client) = open(config(dir.path(), &cold_store, MovePolicy::AtOnce)).await;
    let body = noise(1, 300_000);
    for name in ["soon", "later"] {
        client.put(name, StorageClass::Glacier, &body).await.unwrap();
    }
    moved(&client).await;
    for (name, retrieval, minutes) in
        [("later", Retrieval::Bulk, 12 * 60), ("soon", Retrieval::Expedited, 5)]
    {
        cold_store.breaks.store(2, Ordering::SeqCst);
        let request = RestoreRequest { days: 1, retrieval };
        client.archive.restore(&client.bucket, &key(name), request).await.unwrap();
        client.restored(name).await.unwrap();
        let requests = std::mem::take(&mut *cold_store.requests.lock().unwrap());
        let due = UnixTime::from_millis(BEGUN + minutes * 60_000);
        let bytes = 300_000 + 16 * 5;
        let half = bytes / 2;
        assert_eq!(requests, [(due, 0), (due, half), (due, half + (bytes - half) / 2)]);
        assert!(client.get(name, None).await.unwrap() == body);
    }
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn restore_without_progress_fails_and_is_retried() {
    let (dir, cold_store) = (tempfile::tempdir().unwrap(), Arc::<ColdStore>::default());
    let (clock, client) = open(config(dir.path(), &cold_store, MovePolicy::AtOnce)).await;
    client.put("a", StorageClass::Glacier, &noise(1, 100)).await.unwrap();
    moved(&client).await;
    // Half of one byte is nothing: from there on it makes no progress.
    cold_store.breaks.store(usize::MAX, Ordering::SeqCst);
    client.restore("a").await.unwrap();
    let error = client.restored("a").await.unwrap_err();
    assert!(error.contains("tier \"rack\"") && error.contains("it broke off"), "{error}");
    cold_store.breaks.store(0, Ordering::SeqCst);
    clock.advance(Duration::from_secs(10));
    wait("the copy", async || client.get("a", None).await.ok()).await;
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn bodies_wait_for_low_tier_load_or_an_order() {
    let (dir, cold_store) = (tempfile::tempdir().unwrap(), Arc::<ColdStore>::default());
    let polled = Arc::clone(&cold_store);
    let move_policy = MovePolicy::Deferred {
        calm_age: Duration::from_secs(60),
        age: Duration::from_secs(86_400),
        bytes: ByteCount::gib(1),
        calm: Calm::new(move || polled.is_calm.load(Ordering::SeqCst)),
    };
    let (clock, client) = open(config(dir.path(), &cold_store, move_policy)).await;
    client.put("a", StorageClass::Glacier, &noise(1, 5000)).await.unwrap();
    let staged = async || client.archive.status().await.unwrap().objects_staged;
    clock.advance(Duration::from_secs(3600));
    // Once the job has processed a later put, it has seen the first one.
    client.put("b", StorageClass::Standard, b"online").await.unwrap();
    assert_eq!(staged().await, 1);
    cold_store.is_calm.store(true, Ordering::SeqCst);
    clock.advance(Duration::from_secs(1));
    moved(&client).await;
    cold_store.is_calm.store(false, Ordering::SeqCst);
    client.put("c", StorageClass::Glacier, &noise(2, 5000)).await.unwrap();
    assert_eq!(staged().await, 1);
    client.archive.seal().await.unwrap();
    moved(&client).await;
    client.put("d", StorageClass::Glacier, &noise(3, 5000)).await.unwrap();
    clock.advance(Duration::from_secs(86_400));
    moved(&client).await;
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn waiting_tiers_are_reported_and_can_be_awaited() {
    let (dir, cold_store) = (tempfile::tempdir().unwrap(), Arc::<ColdStore>::default());
    let move_policy = MovePolicy::Deferred {
        calm_age: Duration::from_secs(86_400),
        age: Duration::from_secs(86_400),
        bytes: ByteCount::gib(1),
        calm: Calm::new(|| false),
    };
    let (_clock, client) = open(config(dir.path(), &cold_store, move_policy)).await;
    let status = async || client.archive.status().await.unwrap();
    assert_eq!(status().await.tiers_waiting, []);
    client.archive.wait_until_moved().await.unwrap();
    client.put("a", StorageClass::Glacier, &noise(1, 5000)).await.unwrap();
    // Rows store whole seconds.
    let since = UnixTime::from_millis(BEGUN / 1000 * 1000);
    let named = [WaitingTier { tier: "rack".to_owned(), since }];
    assert_eq!(status().await.tiers_waiting, named);
    client.archive.wait_until_moved().await.unwrap();
    let after = status().await;
    assert_eq!((after.tiers_waiting, after.moving_bytes, after.objects_staged), (vec![], 0, 0));
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn read_back_is_not_sent_as_a_restore() {
    let (dir, cold_store) = (tempfile::tempdir().unwrap(), Arc::<ColdStore>::default());
    let (_clock, client) = open(config(dir.path(), &cold_store, MovePolicy::AtOnce)).await;
    client.put("a", StorageClass::Glacier, &noise(1, 5000)).await.unwrap();
    moved(&client).await;
    let read_back = || std::mem::take(&mut *cold_store.read_back.lock().unwrap());
    let read = read_back();
    assert_eq!(read.len(), 2, "the entry and the body: {read:?}");
    client.restore("a").await.unwrap();
    client.restored("a").await.unwrap();
    assert_eq!(read_back(), [""; 0], "these are reads for a restore");
    client.archive.verify(None, &Arc::default()).await.unwrap();
    let mut again = read_back();
    again.sort();
    assert_eq!(again, {
        let mut read = read;
        read.sort();
        read
    });
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn bodies_identify_their_owner_after_index_loss() {
    let (dir, cold_store) = (tempfile::tempdir().unwrap(), Arc::<ColdStore>::default());
    let made = || config(dir.path(), &cold_store, MovePolicy::AtOnce);
    let (_clock, client) = open(made()).await;
    let small = noise(1, 5000);
    let large = noise(2, 9 << 20);
    client.put("small", StorageClass::Glacier, &small).await.unwrap();
    client.put("large", StorageClass::Glacier, &large).await.unwrap();
    moved(&client).await;
    client.archive.stop().await.unwrap();
    drop(client);
    let lose_index = async || {
        let all: Vec<Path> =
            cold_store.inner.list(None).map(|meta| meta.unwrap().location).collect().await;
        for path in all {
            if path.as_ref().ends_with(".entry") || path.as_ref().ends_with(".json") {
                cold_store.inner.delete(&path).await.unwrap();
            }
        }
    };

    // With its catalog it keeps working: the tier is claimed again, and no body is reported as
    // damaged.
    lose_index().await;
    let client = Client::open(made()).await;
    client.put("more", StorageClass::Glacier, &small).await.unwrap();
    moved(&client).await;
    let verified = client.archive.verify(None, &Arc::default()).await.unwrap();
    let found = verified.tiers.iter().map(|tier| (tier.bodies, tier.bodies_damaged, &tier.error));
    assert_eq!(found.collect::<Vec<_>>(), [(3, 0, &None)]);
    client.archive.stop().await.unwrap();
    drop(client);

    // Without the catalog, bodies are identified by the entries they carry.
    lose_index().await;
    std::fs::remove_dir_all(dir.path().join("catalog")).unwrap();
    let report = recovered(made()).await.unwrap();
    assert_eq!((report.objects, report.incomplete), (3, 0), "{report:?}");
    let client = Client::open(made()).await;
    for (name, body) in [("small", &small), ("large", &large), ("more", &small)] {
        client.restore(name).await.unwrap();
        client.restored(name).await.unwrap();
        assert!(client.get(name, None).await.unwrap() == *body);
    }
    client.archive.stop().await.unwrap();
    drop(client);

    // The same entries keep another archive from claiming the tier.
    lose_index().await;
    let other = tempfile::tempdir().unwrap();
    let client = Client::open(config(other.path(), &cold_store, MovePolicy::AtOnce)).await;
    client.put("mine", StorageClass::Glacier, &small).await.unwrap();
    wait("the tier to be refused", async || {
        let degraded = client.archive.degraded();
        degraded.iter().any(|line| line.contains("its bodies are of archive")).then_some(())
    })
    .await;
    client.archive.stop().await.unwrap();
}
