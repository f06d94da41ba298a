//! The seam between the catalog and the engine that stores it: ordered spaces of byte keys.
//!
//! What every backend promises, and `tests::conformance` checks:
//! - keys are ordered bytewise, each space on its own;
//! - a batch is atomic over all spaces: every reader sees the whole of it or nothing;
//! - when `apply` returns success the batch is on stable storage; after an error its fate is
//!   unknown until the store was opened anew, and no later batch succeeds before that;
//! - `reopen` returns success when every batch that succeeded is there, one whose fate was unknown
//!   is there whole and durable or not at all, and batches succeed again;
//! - a snapshot never changes.
//!
//! It has no conditional writes and no write conflicts: there is one writer, the
//! [`Committer`](crate::Committer).

use std::ops::ControlFlow;

use crate::{Batch, CatalogError, KeyRange, Space};

/// The direction of a walk over keys.
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

/// Something rows can be read from: a store, a snapshot of it or a running transaction.
///
/// Each call alone is consistent; to relate several calls to each other use a snapshot or a
/// transaction.
pub trait ReadView: Send + Sync {
    /// The value under `key`.
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, CatalogError>;

    /// Calls `visit` with each row of `range` in `direction` until it breaks.
    fn scan(
        &self,
        space: Space,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<(), CatalogError>;

    /// Whoever cannot read a row that this view gave says so here, for the store to keep.
    fn note_damage(&self, _error: &CatalogError) {}

    /// At most `limit` rows of `range`, the first ones in `direction`.
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
        assert!(page.len() <= limit, "a page within its limit");
        Ok(page)
    }
}

/// An ordered key-value store. See the module text for its promises.
pub trait KeyValue: ReadView {
    /// The spaces the store was opened with.
    fn spaces(&self) -> &[Space];

    /// The present content, frozen.
    fn snapshot(&self) -> Box<dyn ReadView>;

    /// Writes `batch` atomically and returns once it is durable.
    fn apply(&self, batch: Batch) -> Result<(), CatalogError>;

    /// An error if batches would fail, because something behind them did.
    fn check(&self) -> Result<(), CatalogError>;

    /// Opens the store anew in place. Only its writer may ask for it, between two batches. After
    /// `InUse` nothing has changed; after any other error batches fail until a later call succeeds.
    fn reopen(&self) -> Result<(), CatalogError>;
}
