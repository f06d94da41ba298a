//! A table in a directory of one machine, for any number of concurrent processes.
//!
//! ```text
//! fulgurite-table     marks the directory as a table, and states its version
//! locks/00 .. 3f      a row's lock file: flock, never removed; has a key while a change of its row
//!                     is not yet on stable storage
//! rows/a/b!           the row of key a/b
//! new/00 .. 3f        the next image of a row, until it is complete
//! ```
//!
//! A change takes the lock, writes and fsyncs the new image, writes the key to the lock file,
//! renames the image over the row, fsyncs the folders, and truncates the lock file. A process that
//! dies leaves the old row or the new one. If it dies between the last steps, or a sync fails, the
//! row is visible but may be lost in a power cut. So a process that finds a key in the lock file
//! writes that row again before it uses it.
//!
//! Not for network file systems, whose flock and rename do not guarantee this.
//! docs/formats/site-table.md.

mod files;
mod lock;
mod row_file;
mod walk;

pub(crate) use row_file::{decode, encode};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use files::Files;

use crate::stores::limits::LOCK_TRIES_MAX;
use crate::stores::scan::pages;
use crate::stores::table::{TableCaps, check_length};
use crate::stores::{Cause, Entropy, Expect, Key, OpenError, Row, Table, TableError, Tag};
pub(crate) use files::sync_ancestors;
pub use files::{DirectoryStep, FaultHook};
use lock::{Guard, LockMode, Locks};

/// A table in a directory.
#[derive(Clone, Debug)]
pub struct DirectoryTable {
    files: Arc<Files>,
    locks: Arc<Locks>,
    entropy: Entropy,
}

impl DirectoryTable {
    /// Opens the table in `directory`, and creates it if `may_create` and nothing is there.
    ///
    /// # Errors
    /// [`OpenError`] if there is none, there is something else, or the system refuses.
    pub fn open(
        directory: impl Into<PathBuf>,
        may_create: bool,
        entropy: Entropy,
    ) -> Result<Self, OpenError> {
        let files = Files::open(directory.into(), may_create)?;
        let locks = Locks::new(files.root(), LOCK_TRIES_MAX);
        Ok(Self { files: Arc::new(files), locks: Arc::new(locks), entropy })
    }

    /// The same with `fault_hook` run before each step of a change: a test makes the step fail, or
    /// kills the process there.
    #[must_use]
    pub fn with_fault_hook(self, fault_hook: FaultHook) -> Self {
        let files = Files::clone(&self.files).with_fault_hook(fault_hook);
        Self { files: Arc::new(files), ..self }
    }

    /// Its directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.files.root()
    }

    /// Runs `work` on a blocking thread, with the row's lock.
    async fn locked<T: Send + 'static>(
        &self,
        key: &Key,
        work: impl FnOnce(&Files, &Guard) -> Result<T, TableError> + Send + 'static,
    ) -> Result<T, TableError> {
        let guard = self.locks.lock(key, LockMode::Exclusive).await?;
        let files = Arc::clone(&self.files);
        blocking(move || {
            files.settle(&guard)?;
            work(&files, &guard)
        })
        .await
    }
}

/// Runs `work` on a blocking thread. Started work completes even if nobody waits for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TableError> + Send + 'static,
) -> Result<T, TableError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(TableError::Unknown(Cause::new(error.to_string()))),
    }
}

#[async_trait]
impl Table for DirectoryTable {
    fn caps(&self) -> TableCaps {
        TableCaps::FULL
    }

    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError> {
        let guard = self.locks.lock(key, LockMode::Shared).await?;
        let (files, wanted) = (Arc::clone(&self.files), key.clone());
        let found = blocking(move || {
            let is_settled = guard.is_settled()?;
            Ok(if is_settled { Some(files.read(&wanted)?) } else { None })
        });
        if let Some(row) = found.await? {
            return Ok(row);
        }
        let wanted = key.clone();
        self.locked(key, move |files, _| files.read(&wanted)).await
    }

    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError> {
        check_length(self.caps(), &new)?;
        let row = Row { bytes: new, tag: Tag::new(self.entropy.draw().to_vec()) };
        let wanted = key.clone();
        let work = move |files: &Files, guard: &Guard| {
            let current = files.read(&wanted)?;
            let is_expected = expect.is_met(current.as_ref());
            if !is_expected {
                return Err(TableError::Conflict(current));
            }
            files.replace(guard, &wanted, &row)?;
            Ok(row.tag)
        };
        self.locked(key, work).await
    }

    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError> {
        let (wanted, tag) = (key.clone(), tag.clone());
        let work = move |files: &Files, guard: &Guard| match files.read(&wanted)? {
            Some(row) if row.tag == tag => files.remove(guard, &wanted),
            current => Err(TableError::Conflict(current)),
        };
        self.locked(key, work).await
    }

    async fn erase(&self, key: &Key) -> Result<(), TableError> {
        let wanted = key.clone();
        self.locked(key, move |files, guard| files.remove(guard, &wanted)).await
    }

    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>> {
        let prefix = prefix.cloned();
        pages(after, move |after| {
            let (files, prefix) = (Arc::clone(&self.files), prefix.clone());
            blocking(move || walk::page(&files, prefix.as_ref(), after.as_ref()))
        })
    }
}

#[cfg(test)]
mod tests;
