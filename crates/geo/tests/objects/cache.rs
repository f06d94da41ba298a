//! Gets with a fragment cache: what they still request from other sites. Time advances only while
//! all tasks wait, so that no site seems slow.

use std::time::Duration;

use bytes::Bytes;
use fulgurite_geo::objects::{FragmentCache, GeoStore, Snapshot};
use fulgurite_tier::Progress;
use fulgurite_units::{ByteCount, Clock, Instant, UnixTime};
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};
use tempfile::TempDir;

use crate::shelf::Shelf;

/// A program at the first of three sites, with a cache and an object.
struct World {
    shelf: Shelf,
    store: GeoStore,
    folder: TempDir,
    object: Bytes,
}

fn key() -> Path {
    Path::from("one")
}

impl World {
    async fn new() -> Self {
        let shelf = Shelf::new(3, 2, 1);
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::new(|| UnixTime::from_millis(1), || Instant::from_nanos(0));
        let cache = FragmentCache::open(folder.path(), ByteCount::new(64 << 20), clock).unwrap();
        let mut options = shelf.options();
        options.near = Some("site-0".to_owned());
        options.cache = Some(cache);
        let store = GeoStore::init(options).await.unwrap();
        let mut object = vec![0; 300_000];
        fulgurite_units::Seed::new(3).stream().fill(&mut object);
        let world = Self { shelf, store, folder, object: Bytes::from(object) };
        let payload = PutPayload::from(world.object.clone());
        world.store.put(&key(), payload).await.unwrap();
        world
    }

    async fn get(&self) -> Snapshot {
        let got = self.store.get(&key()).await.unwrap().bytes().await.unwrap();
        assert_eq!(got, self.object);
        self.store.snapshot()
    }

    /// Gets until a fragment is in the cache: the notification that the bytes are written must
    /// arrive first.
    async fn fill(&self) -> Snapshot {
        for _ in 0..1000 {
            self.get().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            let snapshot = self.store.snapshot();
            if snapshot.cache_bytes > 0 {
                return snapshot;
            }
        }
        panic!("nothing was cached: {:?}", self.store.snapshot());
    }
}

fn remote_bytes_read(snapshot: &Snapshot) -> u64 {
    snapshot.sites[1..].iter().map(|site| site.bytes_read).sum()
}

#[tokio::test(start_paused = true)]
async fn cached_get_reads_no_remote_fragments() {
    let world = World::new().await;
    let before = world.fill().await;
    assert!(before.cache_misses > 0 && before.cache_bytes > 150_000, "{before:?}");
    let after = world.get().await;
    assert_eq!(remote_bytes_read(&after), remote_bytes_read(&before));
    assert!(after.cache_hits > before.cache_hits);
    // The rows are still read: the cache does not know which version is the last one.
    assert!(after.read_rounds > before.read_rounds);
    let part = world.store.get_range(&key(), 70_000..290_001).await.unwrap();
    assert_eq!(part, world.object.slice(70_000..290_001));
    assert_eq!(remote_bytes_read(&world.store.snapshot()), remote_bytes_read(&before));
}

#[tokio::test(start_paused = true)]
async fn cache_serves_while_remote_fragments_are_gone() {
    let world = World::new().await;
    world.fill().await;
    for site in [1, 2] {
        let blobs = world.shelf.blobs_of(site).await;
        for blob in world.shelf.blob_keys(site).await {
            blobs.delete(&blob).await.unwrap();
        }
    }
    world.get().await;
    // Without the rows of a quorum the last version is unknown.
    world.shelf.fail("site-1");
    world.shelf.fail("site-2");
    world.store.get(&key()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn verification_reads_from_sites_though_fragments_are_cached() {
    let world = World::new().await;
    let before = world.fill().await;
    let report = world.store.verify(&Progress::default()).await.unwrap();
    assert_eq!((report.objects, report.bytes), (1, 300_000), "{report:?}");
    let after = world.store.snapshot();
    assert!(remote_bytes_read(&after) >= remote_bytes_read(&before) + 150_000, "{after:?}");
    assert_eq!(after.cache_hits, before.cache_hits);
}

#[tokio::test(start_paused = true)]
async fn damaged_cache_entry_is_fetched_again() {
    let world = World::new().await;
    let before = world.fill().await;
    let mut damaged = 0;
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(byte) = bytes.get_mut(1000) {
            *byte ^= 1;
            std::fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0);
    let after = world.get().await;
    assert!(remote_bytes_read(&after) > remote_bytes_read(&before));
    // It is cached again in the background.
    let mut read = remote_bytes_read(&after);
    for _ in 0..1000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let now = remote_bytes_read(&world.get().await);
        if now == read {
            return;
        }
        read = now;
    }
    panic!("each get reads bytes from other sites: {:?}", world.store.snapshot());
}

#[tokio::test(start_paused = true)]
async fn garbage_collection_evicts_cached_fragments() {
    let world = World::new().await;
    world.fill().await;
    world.store.delete(&key()).await.unwrap();
    let day = 24 * 3_600_000;
    world.shelf.now.fetch_add(day, std::sync::atomic::Ordering::Relaxed);
    world.store.collect(&|_| {}).await.unwrap();
    assert_eq!(world.store.snapshot().cache_bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn get_ignores_cached_old_version() {
    let world = World::new().await;
    world.fill().await;
    let new = Bytes::from(vec![9; 300_000]);
    // By another program, which does not know of the cache.
    let other = GeoStore::open(world.shelf.options()).await.unwrap();
    other.put(&key(), PutPayload::from(new.clone())).await.unwrap();
    for _ in 0..3 {
        let got = world.store.get(&key()).await.unwrap().bytes().await.unwrap();
        assert_eq!(got, new);
    }
}
