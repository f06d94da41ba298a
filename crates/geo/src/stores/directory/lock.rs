//! Row locks: each row uses one of a fixed number of lock files, which are never removed.
//!
//! flock has no timeout, so it is polled with backoff. The tasks of one process queue up before it,
//! so that only one of them polls.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::stores::limits::{KEY_BYTES_MAX, LOCK_BACKOFF_MAX, LOCK_BACKOFF_MIN, STRIPES};
use crate::stores::{Cause, Key, TableError};

/// Whether the lock is shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockMode {
    Shared,
    Exclusive,
}

/// The lock files of a table.
#[derive(Debug)]
pub(super) struct Locks {
    folder: PathBuf,
    queues: [Arc<RwLock<()>>; STRIPES],
    /// Maximum number of tries for a lock.
    tries: u32,
}

/// Guard of a lock, which is held until this is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Guard {
    stripe: usize,
    file: File,
    _queue_guard: QueueGuard,
}

#[derive(Debug)]
#[expect(dead_code, reason = "a place in the queue is held, but never read")]
enum QueueGuard {
    Shared(OwnedRwLockReadGuard<()>),
    Exclusive(OwnedRwLockWriteGuard<()>),
}

impl Locks {
    pub(super) fn new(root: &Path, tries: u32) -> Self {
        let queues = std::array::from_fn(|_| Arc::default());
        Self { folder: root.join("locks"), queues, tries }
    }

    /// Acquires the lock of the row under `key`.
    pub(super) async fn lock(&self, key: &Key, mode: LockMode) -> Result<Guard, TableError> {
        let stripe = stripe(key);
        let queue = Arc::clone(&self.queues[stripe]);
        let (queue_guard, operation) = match mode {
            LockMode::Shared => {
                let queue_guard = QueueGuard::Shared(queue.read_owned().await);
                (queue_guard, FlockOperation::NonBlockingLockShared)
            }
            LockMode::Exclusive => {
                let queue_guard = QueueGuard::Exclusive(queue.write_owned().await);
                (queue_guard, FlockOperation::NonBlockingLockExclusive)
            }
        };
        // Do not create it: a table whose files are gone does not exist.
        let path = self.folder.join(stripe_name(stripe));
        let file =
            OpenOptions::new().read(true).write(true).open(path).map_err(|e| to_table_error(&e))?;
        let mut backoff = LOCK_BACKOFF_MIN;
        for _ in 0..self.tries {
            match flock(&file, operation) {
                Ok(()) => return Ok(Guard { stripe, file, _queue_guard: queue_guard }),
                Err(rustix::io::Errno::WOULDBLOCK) => tokio::time::sleep(backoff).await,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(to_table_error(&error.into())),
            }
            backoff = (backoff * 2).min(LOCK_BACKOFF_MAX);
        }
        let reason = format!("another process has held the lock of row \"{key}\" for too long");
        Err(TableError::Unavailable(Cause::new(reason)))
    }
}

impl Guard {
    /// Index of the lock file.
    pub(super) const fn stripe(&self) -> usize {
        self.stripe
    }

    /// Whether no change is open.
    pub(super) fn is_settled(&self) -> Result<bool, TableError> {
        Ok(self.file.metadata().map_err(|e| to_table_error(&e))?.len() == 0)
    }

    /// Returns the key whose change is open, as bytes that may not be a key.
    pub(super) fn open_change(&self) -> std::io::Result<Vec<u8>> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        let mut key = Vec::new();
        file.take(super::row_file::to_u64(KEY_BYTES_MAX)).read_to_end(&mut key)?;
        Ok(key)
    }

    /// Records that a change of this row is open.
    pub(super) fn begin(&self, key: &Key) -> std::io::Result<()> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(key.as_str().as_bytes())
    }

    /// Records that no change is open.
    pub(super) fn end(&self) -> std::io::Result<()> {
        self.file.set_len(0)
    }
}

/// Maps a system error that occurred before anything changed.
pub(super) fn to_table_error(error: &std::io::Error) -> TableError {
    if error.kind() == std::io::ErrorKind::PermissionDenied {
        return TableError::Denied(Cause::new(error.to_string()));
    }
    TableError::Unavailable(Cause::new(error.to_string()))
}

pub(super) fn stripe_name(stripe: usize) -> String {
    format!("{stripe:02x}")
}

/// Returns the index of a row's lock file.
fn stripe(key: &Key) -> usize {
    let crc = fulgurite_codes::crc32c(key.as_str().as_bytes());
    usize::try_from(crc).unwrap_or(0) % STRIPES
}
