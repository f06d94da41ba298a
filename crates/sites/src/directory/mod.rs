//! A table in a directory of one machine, for any number of processes at once.
//!
//! ```text
//! fulgurite-table     says that the directory is a table, and of which version
//! locks/00 .. 3f      a row's lock file: flock, never removed; has a key while a change of its row
//!                     is not yet on stable storage
//! rows/a/b!           the row of key a/b
//! new/00 .. 3f        the next image of a row, until it is whole
//! ```
//!
//! A change: the lock; the new image is written and synced; the key goes into the lock file; the
//! image is renamed over the row; the folders are synced; the lock file is emptied. A process that
//! dies leaves the old row or the new one. When it dies between the last steps, or a sync failed,
//! the row is visible and may not be there after a power cut: whoever finds a key in the lock file
//! writes that row again before anything is believed of it.
//!
//! Not for file systems over a network, whose flock and rename are not these.
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

use crate::limits::LOCK_TRIES_MAX;
use crate::scan::pages;
use crate::table::{TableCaps, check_length};
use crate::{Cause, Entropy, Expect, Key, OpenError, Row, Table, TableError, Tag};
use files::Files;
pub(crate) use files::sync_up;
pub use files::{DirectoryStep, Obstacle};
use lock::{Guard, Locks, Sharing};

/// A table in a directory.
#[derive(Clone, Debug)]
pub struct DirectoryTable {
    files: Arc<Files>,
    locks: Arc<Locks>,
    entropy: Entropy,
}

impl DirectoryTable {
    /// The table in `directory`, which is made when `may_create` and nothing is there.
    ///
    /// # Errors
    /// [`OpenError`] when there is none, there is something else, or the system refuses.
    pub fn open(
        directory: impl Into<PathBuf>,
        may_create: bool,
        entropy: Entropy,
    ) -> Result<Self, OpenError> {
        let files = Files::open(directory.into(), may_create)?;
        let locks = Locks::new(files.root(), LOCK_TRIES_MAX);
        Ok(Self { files: Arc::new(files), locks: Arc::new(locks), entropy })
    }

    /// The same with `obstacle` asked before each step of a change: a test has it fail, or has the
    /// process killed there.
    #[must_use]
    pub fn with_obstacle(self, obstacle: Obstacle) -> Self {
        let files = Files::clone(&self.files).with_obstacle(obstacle);
        Self { files: Arc::new(files), ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.files.root()
    }

    /// Does `work` on a thread for what blocks, with the row's lock.
    async fn locked<T: Send + 'static>(
        &self,
        key: &Key,
        work: impl FnOnce(&Files, &Guard) -> Result<T, TableError> + Send + 'static,
    ) -> Result<T, TableError> {
        let guard = self.locks.lock(key, Sharing::Alone).await?;
        let files = Arc::clone(&self.files);
        blocking(move || {
            files.settle(&guard)?;
            work(&files, &guard)
        })
        .await
    }
}

/// Does `work` on a thread for what blocks. What was begun is ended, whether or not anybody waits.
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
        let guard = self.locks.lock(key, Sharing::Shared).await?;
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
            let there = files.read(&wanted)?;
            let is_expected = expect.is_met(there.as_ref());
            if !is_expected {
                return Err(TableError::Conflict(there));
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
            there => Err(TableError::Conflict(there)),
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
