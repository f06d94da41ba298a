//! A table: small rows that are read as they are now, and written only if they are still what the
//! writer thinks.
//!
//! It is all that a site has to offer for metadata, and most stores have it: a bucket with
//! conditional writes, a database, a directory. What a row means is the caller's affair.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::limits::ROW_BYTES_MAX;
use crate::{Beside, Expect, Key, Row, TableError, Tag};

/// What a table can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct TableCaps {
    /// Bytes of its longest row.
    pub max_row: usize,
    /// It removes a row only if its tag is still the one that is named.
    pub cond_delete: bool,
    /// A conflict says what is there, which saves a read.
    pub reply_on_conflict: bool,
    /// A row that is written back to earlier bytes may get its earlier tag: rows need a nonce.
    pub tag_reuse: bool,
    /// Its scans come in the order of keys.
    pub scan_order: bool,
}

impl TableCaps {
    /// All that there is to be able to.
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
/// Nothing here is tried a second time behind the caller's back: a write that is sent twice may
/// answer a conflict with itself.
#[async_trait]
pub trait Table: Send + Sync {
    /// What it can do.
    fn caps(&self) -> TableCaps;

    /// The row as it is now, for whoever asks and wherever. `None` is definite.
    ///
    /// # Errors
    /// [`TableError`], never a conflict.
    async fn read(&self, key: &Key) -> Result<Option<Row>, TableError>;

    /// Writes the row if what is there is what is expected; its new tag.
    ///
    /// # Errors
    /// [`TableError`]; after [`TableError::Unknown`] only a read says what became of it, and only
    /// once it says something else than before.
    async fn cas(&self, key: &Key, expect: Expect, new: Bytes) -> Result<Tag, TableError>;

    /// Removes the row if it is still this image of it.
    ///
    /// # Errors
    /// [`TableError::Unsupported`] unless [`TableCaps::cond_delete`]; otherwise as [`Self::cas`].
    async fn remove(&self, key: &Key, tag: &Tag) -> Result<(), TableError>;

    /// Removes the row whatever it is, or does nothing when there is none. Only for keys that
    /// nobody else writes: who checks a store cleans up with it.
    ///
    /// # Errors
    /// [`TableError`], never a conflict.
    async fn erase(&self, key: &Key) -> Result<(), TableError>;

    /// Rows below `prefix`, or all, whose keys are behind `after`, in the order of keys. A hint:
    /// rows may be older than a read of each would say, or not on stable storage yet.
    fn scan(
        &self,
        prefix: Option<&Key>,
        after: Option<Key>,
    ) -> BoxStream<'_, Result<(Key, Row), TableError>>;

    /// Who does whole transactions beside it, if somebody stands there.
    fn beside(&self) -> Option<&dyn Beside> {
        None
    }
}

/// Refuses a row that is longer than the table takes.
pub(crate) fn check_length(caps: TableCaps, new: &Bytes) -> Result<(), TableError> {
    if new.len() > caps.max_row { Err(TableError::TooLarge(new.len())) } else { Ok(()) }
}
