//! Cache of other sites' fragments, in a local folder. A get reads all but one of its fragments
//! from other sites; the next get of the same version need not.
//!
//! ```text
//! FOLDER/lock                  held by the one program that uses the folder
//! FOLDER/WRITE.CHUNK.INDEX     the stored payload of a fragment, with the checksums of its blocks
//! FOLDER/....new               one that is being written
//! ```
//!
//! Fragments never change and their names are never reused, so no entry can be stale. Each is
//! verified on every use; a damaged one is dropped and fetched from its site. Which version
//! is the last one is still read from the sites. Only versions known to be durable are read from
//! the cache: others may be made obsolete by programs that do not know of it.
//!
//! Nothing depends on it: nothing is fsynced, and if the disk fails or is full, the cache is
//! disabled for a while. Eviction is LRU. Bytes of removed objects stay until then, unless this
//! program removes them itself.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use fulgurite_units::{ByteCount, Clock};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::objects::limits::{CACHE_COOLDOWN, CACHE_ENTRIES_MAX, CACHE_SHARE, CACHE_WRITES};
use crate::objects::{GeoError, Result, names};
use crate::stores::Key;

/// Lock file, held by one program.
const LOCK: &str = "lock";
/// Suffix of files that are being written.
const NEW: &str = ".new";

/// Cache of other sites' fragments. Clones share one cache.
#[derive(Clone, Debug)]
pub struct FragmentCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    bytes_max: u64,
    clock: Clock,
    index: Mutex<Index>,
    writes: Arc<Semaphore>,
    /// Time of the last disk failure.
    failed: Mutex<Option<Instant>>,
    hits: AtomicU64,
    misses: AtomicU64,
    /// Holds the lock for the lifetime of the cache.
    _lock: File,
}

/// Counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheCounts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) bytes: u64,
}

/// Index of the cached fragments, in LRU order.
#[derive(Debug, Default)]
struct Index {
    entries: BTreeMap<String, Entry>,
    lru: BTreeMap<u64, String>,
    bytes: u64,
    /// Bytes reserved by running writes.
    reserved: u64,
    used: u64,
}

#[derive(Debug)]
struct Entry {
    bytes: u64,
    used: u64,
}

impl Index {
    /// Adds a fragment as the most recently used.
    fn put(&mut self, name: String, bytes: u64) {
        self.remove(&name);
        self.used += 1;
        self.bytes += bytes;
        self.lru.insert(self.used, name.clone());
        self.entries.insert(name, Entry { bytes, used: self.used });
    }

    fn remove(&mut self, name: &str) -> bool {
        let Some(entry) = self.entries.remove(name) else { return false };
        self.lru.remove(&entry.used);
        self.bytes -= entry.bytes;
        true
    }

    fn touch(&mut self, name: &str) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        self.lru.remove(&entry.used);
        self.used += 1;
        entry.used = self.used;
        self.lru.insert(self.used, name.to_owned());
    }

    /// Reserves room for so many bytes. Returns the least recently used entries that it evicts for
    /// that.
    fn reserve(&mut self, bytes: u64, bytes_max: u64) -> Vec<String> {
        let mut evicted = Vec::new();
        self.reserved += bytes;
        while self.bytes + self.reserved > bytes_max || self.entries.len() >= CACHE_ENTRIES_MAX {
            let Some(name) = self.lru.first_key_value().map(|(_, name)| name.clone()) else {
                break;
            };
            self.remove(&name);
            evicted.push(name);
        }
        evicted
    }
}

/// Returns the file name of a fragment; none if the blob is not a fragment.
fn file_name(blob: &Key) -> Option<String> {
    let (write, chunk, index) = names::parse_blob(blob)?;
    Some(format!("{write}.{chunk:08x}.{index:02x}"))
}

/// Whether a file belongs to the cache. Others in the folder are not touched.
fn is_cache_file(name: &str) -> bool {
    let mut parts = name.split('.').map(|part| {
        let hex = part.bytes().all(|b| b.is_ascii_hexdigit());
        (hex, part.len())
    });
    [32, 8, 2].into_iter().all(|length| parts.next() == Some((true, length)))
        && parts.next().is_none()
}

impl FragmentCache {
    /// Opens a cache of at most so many bytes in a folder, which is created if missing.
    ///
    /// # Errors
    /// If the folder cannot be used, or another program uses it.
    pub fn open(folder: &Path, bytes: ByteCount, clock: Clock) -> Result<Self> {
        let failed = |action: &'static str| {
            let path = folder.display().to_string();
            move |source| GeoError::File { action, path, source }
        };
        std::fs::create_dir_all(folder).map_err(failed("create the cache"))?;
        let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK));
        let lock = lock.map_err(failed("open the lock of the cache"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let folder = folder.display();
                let reason =
                    format!("another program uses the cache {folder}: give each program its own");
                return Err(GeoError::Invalid { reason });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock the cache")(error)),
        }
        let index = load_index(folder).map_err(failed("list the cache"))?;
        let inner = Inner {
            folder: folder.to_owned(),
            bytes_max: bytes.get(),
            clock,
            index: Mutex::new(index),
            writes: Arc::new(Semaphore::new(CACHE_WRITES)),
            failed: Mutex::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            _lock: lock,
        };
        inner.reserve(0);
        Ok(Self(Arc::new(inner)))
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = self.0.index().bytes;
        CacheCounts { hits: get(&self.0.hits), misses: get(&self.0.misses), bytes }
    }

    /// Whether a fragment is in the index.
    pub(crate) fn has(&self, blob: &Key) -> bool {
        let name = file_name(blob);
        !self.0.is_disabled() && name.is_some_and(|name| self.0.index().entries.contains_key(&name))
    }

    /// Reads a range of the stored payload of a fragment, without verifying it.
    pub(crate) async fn get(&self, blob: &Key, range: Range<u64>) -> Option<Bytes> {
        let name = file_name(blob)?;
        if !self.has(blob) {
            Inner::count(&self.0.misses);
            return None;
        }
        let inner = Arc::clone(&self.0);
        let read = tokio::task::spawn_blocking(move || inner.read(&name, &range)).await;
        let read = read.ok().flatten();
        Inner::count(if read.is_some() { &self.0.hits } else { &self.0.misses });
        read
    }

    /// Caches the stored payload of a verified fragment, if that is easily possible.
    pub(crate) fn insert(&self, blob: &Key, stored: Bytes) {
        let is_too_large = stored.len() as u64 > self.0.bytes_max / CACHE_SHARE;
        let Some(name) = file_name(blob) else { return };
        if is_too_large || self.0.is_disabled() || self.has(blob) {
            return;
        }
        // Reads do not wait for it: if no write slot is free, the fragment is not cached.
        let Ok(permit) = Arc::clone(&self.0.writes).try_acquire_owned() else { return };
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || {
            inner.write(name, &stored);
            // Once all permits are back, no write is running and none holds the folder open.
            drop(inner);
            drop(permit);
        });
    }

    /// Drops a fragment: it is damaged, or was removed from its site.
    pub(crate) async fn evict(&self, blob: &Key) {
        let Some(name) = file_name(blob) else { return };
        let inner = Arc::clone(&self.0);
        let dropped = tokio::task::spawn_blocking(move || {
            if inner.index().remove(&name) {
                inner.remove(&name);
            }
        });
        // The caller has no use for the result.
        let _ = dropped.await;
    }
}

impl Inner {
    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn is_disabled(&self) -> bool {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|failed| failed.elapsed() < CACHE_COOLDOWN)
    }

    /// Disables the cache for a while.
    fn disable(&self, error: &std::io::Error) {
        let was_disabled = self.is_disabled();
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if !was_disabled {
            let folder = self.folder.display();
            let seconds = CACHE_COOLDOWN.as_secs();
            tracing::warn!(%folder, %error, seconds, "the cache failed and is disabled");
        }
    }

    fn remove(&self, name: &str) {
        match std::fs::remove_file(self.folder.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => self.disable(&error),
            Ok(()) | Err(_) => {}
        }
    }

    /// Reserves room, evicting the least recently used fragments.
    fn reserve(&self, bytes: u64) {
        let evicted = self.index().reserve(bytes, self.bytes_max);
        for name in evicted {
            self.remove(&name);
        }
    }

    fn read(&self, name: &str, range: &Range<u64>) -> Option<Bytes> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let bytes = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(self.folder.join(name))?;
            file.seek(SeekFrom::Start(range.start))?;
            let mut bytes = vec![0; length];
            file.read_exact(&mut bytes)?;
            let now = std::time::Duration::from_millis(self.clock.now().as_millis());
            // The modification time keeps the LRU order across restarts.
            let _ = file.set_modified(SystemTime::UNIX_EPOCH + now);
            Ok(bytes)
        };
        match bytes() {
            Ok(bytes) => {
                self.index().touch(name);
                Some(Bytes::from(bytes))
            }
            Err(error) => {
                if self.index().remove(name) {
                    self.remove(name);
                }
                // The file was removed or truncated.
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) {
                    self.disable(&error);
                }
                None
            }
        }
    }

    fn write(&self, name: String, stored: &[u8]) {
        let bytes = stored.len() as u64;
        self.reserve(bytes);
        let (path, new) = (self.folder.join(&name), self.folder.join(format!("{name}{NEW}")));
        let written = || {
            File::create(&new)?.write_all(stored)?;
            std::fs::rename(&new, &path)
        };
        let done = written();
        let mut index = self.index();
        index.reserved -= bytes;
        match done {
            Ok(()) => index.put(name, bytes),
            Err(error) => {
                drop(index);
                let _ = std::fs::remove_file(&new);
                self.disable(&error);
            }
        }
    }
}

/// Indexes the files of a folder, least recently used first.
fn load_index(folder: &Path) -> std::io::Result<Index> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.strip_suffix(NEW).is_some_and(is_cache_file) {
            // It was never completed.
            let _ = std::fs::remove_file(entry.path());
        } else if is_cache_file(&name) {
            let metadata = entry.metadata()?;
            all.push((metadata.modified()?, name, metadata.len()));
        }
    }
    all.sort();
    let mut index = Index::default();
    for (_, name, bytes) in all {
        index.put(name, bytes);
    }
    Ok(index)
}

#[cfg(test)]
mod tests;
