//! A table: small rows with linearizable reads and compare-and-swap writes.
//!
//! This is all the metadata service that a site must offer, and most stores have it: a bucket with
//! conditional writes, a database, a directory. What a row means is up to the caller.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::stores::limits::ROW_BYTES_MAX;
use crate::stores::{Expect, Key, RemoteExecutor, Row, TableError, Tag};

/// Capabilities of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct TableCaps {
    /// Maximum bytes of a row.
    pub max_row: usize,
    /// It can remove a row conditionally, only if its tag still matches.
    pub cond_delete: bool,
    /// A conflict returns the current row, which saves a read.
    pub reply_on_conflict: bool,
    /// A row that gets earlier bytes again may get its earlier tag (ABA): rows need a nonce.
    pub tag_reuse: bool,
    /// Its scans come in the order of keys.
    pub scan_order: bool,
}

impl TableCaps {
    /// All capabilities.
    pub const FULL: Self = Self {
        max_row: ROW_BYTES_MAX,
        cond_delete: true,
        reply_on_conflict: true,
        tag_reuse: false,
        scan_order: true,
    };
}

/// Rows under keys.
///
/// An implementation never retries a call by itself: a write that is sent twice may conflict with
/// itself.
#[async_trait]
pub trait Table: Send + Sync {
    /// Returns its capabilities.
    fn caps(&self) -> TableCaps;

    /// Reads the current row, the same for every client. `None` is definite.
    ///
    /// # Errors
    /// [`TableError`], never a conflict.
    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError>;

    /// Writes the row if the current one is the expected one. Returns the new tag.
    ///
    /// # Errors
    /// [`TableError`]; after [`TableError::Unknown`] only a read shows the outcome, and only once
    /// it returns something other than before.
    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError>;

    /// Removes the row if this is still its tag.
    ///
    /// # Errors
    /// [`TableError::Unsupported`] unless [`TableCaps::cond_delete`]; otherwise as [`Self::cas`].
    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError>;

    /// Removes the row unconditionally, or does nothing if it does not exist. Only for keys that
    /// nobody else writes, such as those of a store check.
    ///
    /// # Errors
    /// [`TableError`], never a conflict.
    async fn erase(&self, key: &Key) -> Result<(), TableError>;

    /// Scans rows below `prefix`, or all, with keys after `after`, in the order of keys. Only a
    /// hint: rows may be older than a read would return, or not yet on stable storage.
    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>>;

    /// Returns the executor of remote transactions next to the table, if there is one.
    fn remote_executor(&self) -> Option<&dyn RemoteExecutor> {
        None
    }
}

/// Rejects a row that is too long for the table.
pub(crate) fn check_length(caps: TableCaps, new: &Bytes) -> Result<(), TableError> {
    if new.len() > caps.max_row { Err(TableError::TooLarge(new.len())) } else { Ok(()) }
}
