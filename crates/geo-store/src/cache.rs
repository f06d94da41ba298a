//! Fragments of other sites, kept in a folder at this one: a get brings all but one of the
//! fragments it needs from elsewhere, and the next get of the same version need not.
//!
//! ```text
//! FOLDER/lock                  who has the folder: one program
//! FOLDER/WRITE.CHUNK.INDEX     the stored payload of a fragment, with the sums of its blocks
//! FOLDER/....new               one that is being written
//! ```
//!
//! Fragments never change and their names never come twice, so nothing in it can be old; each is
//! verified whenever it is used, and one that is damaged is dropped and fetched from its site.
//! Which version is the last one is asked of the sites all the same. Only versions that are known
//! to be durable are looked for here: what is not may be hidden by others, who do not know of it.
//!
//! Nothing depends on it: nothing is synced, and where the disk fails or is full it is left alone
//! for a while. Those unused for longest make room. Bytes of removed objects stay until then,
//! unless this program removes them itself.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use fulgurite_sites::Key;
use fulgurite_units::{ByteCount, Clock};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::limits::{CACHE_ENTRIES_MAX, CACHE_REST, CACHE_SHARE, CACHE_WRITES};
use crate::{GeoError, Result, names};

/// The file that one program has locked.
const LOCK: &str = "lock";
/// Behind the name of what is being written.
const NEW: &str = ".new";

/// Fragments of other sites. Clones are the same cache.
#[derive(Clone, Debug)]
pub struct FragmentCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    bytes_max: u64,
    clock: Clock,
    index: Mutex<Index>,
    writes: Arc<Semaphore>,
    /// When the disk failed last.
    failed: Mutex<Option<Instant>>,
    hits: AtomicU64,
    misses: AtomicU64,
    /// Locked as long as this is there.
    _lock: File,
}

/// What a cache has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheCounts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) bytes: u64,
}

/// Which fragments are there, and in which order they were used.
#[derive(Debug, Default)]
struct Index {
    entries: BTreeMap<String, Entry>,
    by_use: BTreeMap<u64, String>,
    bytes: u64,
    /// Bytes of those that are being written.
    reserved: u64,
    used: u64,
}

#[derive(Debug)]
struct Entry {
    bytes: u64,
    used: u64,
}

impl Index {
    /// Takes in a fragment, as the one that was used last.
    fn put(&mut self, name: String, bytes: u64) {
        self.remove(&name);
        self.used += 1;
        self.bytes += bytes;
        self.by_use.insert(self.used, name.clone());
        self.entries.insert(name, Entry { bytes, used: self.used });
    }

    fn remove(&mut self, name: &str) -> bool {
        let Some(entry) = self.entries.remove(name) else { return false };
        self.by_use.remove(&entry.used);
        self.bytes -= entry.bytes;
        true
    }

    fn touch(&mut self, name: &str) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        self.by_use.remove(&entry.used);
        self.used += 1;
        entry.used = self.used;
        self.by_use.insert(self.used, name.to_owned());
    }

    /// Reserves room for so many bytes, and takes out those unused for longest until there is some.
    fn reserve(&mut self, bytes: u64, bytes_max: u64) -> Vec<String> {
        let mut out = Vec::new();
        self.reserved += bytes;
        while self.bytes + self.reserved > bytes_max || self.entries.len() >= CACHE_ENTRIES_MAX {
            let Some(name) = self.by_use.first_key_value().map(|(_, name)| name.clone()) else {
                break;
            };
            self.remove(&name);
            out.push(name);
        }
        out
    }
}

/// The file of a fragment; none of what is no fragment.
fn file_name(blob: &Key) -> Option<String> {
    let (write, chunk, index) = names::of_blob(blob)?;
    Some(format!("{write}.{chunk:08x}.{index:02x}"))
}

/// Whether a file is one of ours: others in the folder are left alone.
fn is_ours(name: &str) -> bool {
    let mut parts = name.split('.').map(|part| {
        let hex = part.bytes().all(|b| b.is_ascii_hexdigit());
        (hex, part.len())
    });
    [32, 8, 2].into_iter().all(|length| parts.next() == Some((true, length)))
        && parts.next().is_none()
}

impl FragmentCache {
    /// Opens a cache in a folder, which is made if it is not there, of at most so many bytes.
    ///
    /// # Errors
    /// When the folder cannot be used, or another program has it.
    pub fn open(folder: &Path, bytes: ByteCount, clock: Clock) -> Result<Self> {
        let failed = |action: &'static str| {
            let path = folder.display().to_string();
            move |source| GeoError::File { action, path, source }
        };
        std::fs::create_dir_all(folder).map_err(failed("make the cache"))?;
        let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK));
        let lock = lock.map_err(failed("open the lock of the cache"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let folder = folder.display();
                let what = format!("another program has the cache {folder}: give each its own");
                return Err(GeoError::Invalid { what });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock the cache")(error)),
        }
        let index = found(folder).map_err(failed("list the cache"))?;
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

    /// Whether a fragment is there, as far as is known.
    pub(crate) fn has(&self, blob: &Key) -> bool {
        let name = file_name(blob);
        !self.0.is_off() && name.is_some_and(|name| self.0.index().entries.contains_key(&name))
    }

    /// A range of the stored payload of a fragment. It is not verified.
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

    /// Keeps the stored payload of a fragment, verified, if that is of no trouble.
    pub(crate) fn keep(&self, blob: &Key, stored: Bytes) {
        let is_too_large = stored.len() as u64 > self.0.bytes_max / CACHE_SHARE;
        let Some(name) = file_name(blob) else { return };
        if is_too_large || self.0.is_off() || self.has(blob) {
            return;
        }
        // Whoever reads does not wait for it: what cannot be written now is left out.
        let Ok(permit) = Arc::clone(&self.0.writes).try_acquire_owned() else { return };
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || {
            inner.write(name, &stored);
            // When all permits are back nobody writes, and nobody has the folder for that.
            drop(inner);
            drop(permit);
        });
    }

    /// Drops a fragment: it is damaged, or was removed from its site.
    pub(crate) async fn drop_one(&self, blob: &Key) {
        let Some(name) = file_name(blob) else { return };
        let inner = Arc::clone(&self.0);
        let dropped = tokio::task::spawn_blocking(move || {
            if inner.index().remove(&name) {
                inner.remove(&name);
            }
        });
        // It is of no use to whoever waits how that went.
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

    fn is_off(&self) -> bool {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|failed| failed.elapsed() < CACHE_REST)
    }

    /// Leaves the disk alone for a while.
    fn turn_off(&self, error: &std::io::Error) {
        let was_off = self.is_off();
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if !was_off {
            let folder = self.folder.display();
            let seconds = CACHE_REST.as_secs();
            tracing::warn!(%folder, %error, seconds, "the cache fails and is left alone");
        }
    }

    fn remove(&self, name: &str) {
        match std::fs::remove_file(self.folder.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => self.turn_off(&error),
            Ok(()) | Err(_) => {}
        }
    }

    /// Reserves room, and removes those unused for longest until there is some.
    fn reserve(&self, bytes: u64) {
        let out = self.index().reserve(bytes, self.bytes_max);
        for name in out {
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
            // It says in which order they were used when the cache is opened again.
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
                // Somebody removed it, or it was cut short.
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) {
                    self.turn_off(&error);
                }
                None
            }
        }
    }

    fn write(&self, name: String, stored: &[u8]) {
        let bytes = stored.len() as u64;
        self.reserve(bytes);
        let (at, new) = (self.folder.join(&name), self.folder.join(format!("{name}{NEW}")));
        let written = || {
            File::create(&new)?.write_all(stored)?;
            std::fs::rename(&new, &at)
        };
        let done = written();
        let mut index = self.index();
        index.reserved -= bytes;
        match done {
            Ok(()) => index.put(name, bytes),
            Err(error) => {
                drop(index);
                let _ = std::fs::remove_file(&new);
                self.turn_off(&error);
            }
        }
    }
}

/// What a folder has, the one first that was used least lately.
fn found(folder: &Path) -> std::io::Result<Index> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.strip_suffix(NEW).is_some_and(is_ours) {
            // It was never whole.
            let _ = std::fs::remove_file(entry.path());
        } else if is_ours(&name) {
            let known = entry.metadata()?;
            all.push((known.modified()?, name, known.len()));
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
