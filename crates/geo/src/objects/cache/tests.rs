//! Tests of the cache alone: what it holds and evicts, and what it does when its disk fails.

use fulgurite_geo_core::{Fragment, SiteIndex, WriteId};
use fulgurite_units::{Instant, UnixTime};

use super::*;

fn clock() -> Clock {
    let count = AtomicU64::new(1_800_000_000_000);
    let wall = move || UnixTime::from_millis(count.fetch_add(1000, Ordering::Relaxed));
    Clock::new(wall, || Instant::from_nanos(0))
}

fn blob(write: u128) -> Key {
    names::blob(Fragment { write: WriteId(write), index: 1, site: SiteIndex(1) }, 3).unwrap()
}

fn open(folder: &Path, bytes: u64) -> FragmentCache {
    FragmentCache::open(folder, ByteCount::new(bytes), clock()).unwrap()
}

async fn insert(cache: &FragmentCache, write: u128, stored: &[u8]) {
    cache.insert(&blob(write), Bytes::copy_from_slice(stored));
    // All permits are back once no write is running.
    let writes = u32::try_from(CACHE_WRITES).unwrap();
    drop(cache.0.writes.acquire_many(writes).await.unwrap());
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[tokio::test]
async fn cached_fragment_survives_restart() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1000);
    assert_eq!(cache.get(&blob(1), 0..4).await, None);
    insert(&cache, 1, b"0123456789").await;
    assert_eq!(cache.get(&blob(1), 2..5).await.unwrap(), "234");
    assert_eq!(cache.counts(), CacheCounts { hits: 1, misses: 1, bytes: 10 });
    drop(cache);
    std::fs::write(folder.path().join("theirs"), "not ours").unwrap();
    let half = format!("{}{NEW}", file_name(&blob(2)).unwrap());
    std::fs::write(folder.path().join(half), "half").unwrap();
    let cache = open(folder.path(), 1000);
    assert_eq!(cache.get(&blob(1), 0..10).await.unwrap(), "0123456789");
    assert!(!cache.has(&blob(2)));
    // The lock, a file that is not ours, and the fragment; the incomplete file is gone.
    assert_eq!(files(folder.path()), 3);
}

#[tokio::test]
async fn lru_eviction_order_survives_restart() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 100);
    for write in 0..4 {
        insert(&cache, write, &[7; 25]).await;
    }
    assert!(cache.get(&blob(0), 0..1).await.is_some());
    insert(&cache, 4, &[7; 25]).await;
    assert!(cache.has(&blob(0)) && !cache.has(&blob(1)) && cache.has(&blob(4)));
    assert_eq!((cache.counts().bytes, files(folder.path())), (100, 5));
    // An entry larger than its share is not cached.
    insert(&cache, 5, &[7; 99]).await;
    assert!(!cache.has(&blob(5)) && cache.has(&blob(2)));
    assert!(cache.get(&blob(2), 0..1).await.is_some());
    drop(cache);
    let cache = open(folder.path(), 50);
    assert_eq!((cache.counts().bytes, files(folder.path())), (50, 3));
    assert!(cache.has(&blob(2)), "it was used last");
}

#[tokio::test]
async fn cache_folder_is_exclusive() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 100);
    let again = FragmentCache::open(folder.path(), ByteCount::new(100), clock());
    let error = again.unwrap_err().to_string();
    assert!(error.contains("another program uses the cache"), "{error}");
    drop(cache);
    open(folder.path(), 100);
}

#[tokio::test(start_paused = true)]
async fn failed_disk_disables_cache_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1000);
    insert(&cache, 1, &[7; 10]).await;
    // A folder blocks the path of the next fragment.
    let blocked = folder.path().join(file_name(&blob(2)).unwrap());
    std::fs::create_dir_all(blocked.join("inside")).unwrap();
    insert(&cache, 2, &[7; 10]).await;
    assert_eq!(cache.get(&blob(1), 0..1).await, None, "the cache is disabled");
    insert(&cache, 3, &[7; 10]).await;
    assert_eq!(cache.counts().bytes, 10);
    tokio::time::advance(CACHE_COOLDOWN).await;
    assert!(cache.get(&blob(1), 0..1).await.is_some());
    insert(&cache, 3, &[7; 10]).await;
    assert_eq!(cache.counts().bytes, 20);
}

#[tokio::test]
async fn evicted_or_missing_files_leave_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1000);
    for write in 1..4 {
        insert(&cache, write, &[7; 10]).await;
    }
    cache.evict(&blob(1)).await;
    assert_eq!(files(folder.path()), 3);
    std::fs::remove_file(folder.path().join(file_name(&blob(2)).unwrap())).unwrap();
    assert_eq!(cache.get(&blob(2), 0..1).await, None);
    // A truncated one.
    std::fs::write(folder.path().join(file_name(&blob(3)).unwrap()), "7").unwrap();
    assert_eq!(cache.get(&blob(3), 0..10).await, None);
    assert_eq!((cache.counts().bytes, files(folder.path())), (0, 1));
}
