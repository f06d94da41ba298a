//! The interface between the catalog and its storage engine: ordered spaces of byte keys.
//!
//! What every backend guarantees, and `tests::conformance` checks:
//! - keys are ordered bytewise, each space on its own;
//! - a batch is atomic over all spaces: every reader sees the whole of it or nothing;
//! - when `apply` returns success the batch is on stable storage; after an error its fate is
//!   unknown until the store is reopened, and no later batch succeeds before that;
//! - `reopen` returns success when every batch that succeeded is there, one whose fate was unknown
//!   is there whole and durable or not at all, and batches succeed again;
//! - a snapshot never changes.
//!
//! There are no conditional writes and no write conflicts: there is one writer, the
//! [`Committer`](crate::Committer).

use std::ops::ControlFlow;

use crate::{Batch, CatalogError, KeyRange, Space};

/// Direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Ascending,
    /// Largest key first.
    Descending,
}

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Called with each key and value of a scan, borrowed from the engine.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A source of rows: a store, a snapshot of it or a running transaction.
///
/// Each call alone is consistent. To relate several calls to each other, use a snapshot or a
/// transaction.
pub trait ReadView: Send + Sync {
    /// Returns the value under `key`.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError>;

    /// Calls `visit` with each row of `range` in `direction` until it breaks.
    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError>;

    /// Reports a row of this view that cannot be read, for the store to record.
    fn report_damage(&self, _error: &CatalogError) {}

    /// Returns at most `limit` rows of `range`, the first ones in `direction`.
    fn range(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Entry>, CatalogError> {
        let mut page = Vec::new();
        if limit == 0 {
            return Ok(page);
        }
        self.scan(space, range, direction, &mut |key, value| {
            page.push((key.to_vec(), value.to_vec()));
            if page.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        assert!(page.len() <= limit, "the page is within its limit");
        Ok(page)
    }
}

/// An ordered key-value store. See the module text for its guarantees.
pub trait KeyValue: ReadView {
    /// The spaces the store was opened with.
    fn spaces(&self) -> &[Space];

    /// Returns a snapshot of the present content.
    fn snapshot(&self) -> Box<dyn ReadView>;

    /// Writes `batch` atomically and returns once it is durable.
    fn apply(&self, batch: Batch) -> Result<(), CatalogError>;

    /// Returns an error if batches would fail because of a failed background write.
    fn check(&self) -> Result<(), CatalogError>;

    /// Reopens the store in place. Only its writer may call this, between two batches. After
    /// `InUse` nothing has changed; after any other error batches fail until a later call succeeds.
    fn reopen(&self) -> Result<(), CatalogError>;
}
