//! Secure deletion: removes deleted or replaced rows from the files of the store.
//!
//! A deleted row stays in its table until that is compacted, and in the journal until that is
//! replaced. Neither happens at a set time: a store that is rarely written keeps both for years.
//! Here the caller decides when.
//!
//! ```text
//!   compact(spaces)    memtables --> tables; all tables of a space --> one run on the last level,
//!                      without deleted rows; in parallel with reads and writes
//!   reopen             (by the committer) journal emptied, tables no longer listed unlinked
//! ```

use std::sync::Arc;

use fjall::AbstractTree as _;
use fulgurite_units::ByteCount;

use super::{Engine, FjallStore, errors};
use crate::{CatalogError, Space};

impl FjallStore {
    /// Rewrites the tables of `spaces` without the rows that were deleted or replaced before the
    /// last batch. Returns how many bytes of tables that were. The old files are removed when the
    /// store is reopened. Write a batch before calling this, because the engine releases what old
    /// snapshots saw only when it is written to.
    ///
    /// # Errors
    /// `InUse` when an earlier snapshot is still open: nothing was done.
    pub fn compact(&self, spaces: &[Space]) -> Result<ByteCount, CatalogError> {
        let engine: Arc<Engine> = self.engine()?;
        let newest = engine.snapshot().seqno();
        engine.flush()?;
        // Rows are kept for the oldest snapshot; whatever was replaced before it may be dropped.
        let oldest_visible = engine.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc() + 1;
        if oldest_visible < newest {
            return Err(CatalogError::InUse);
        }
        let mut bytes = 0;
        for &space in spaces {
            let keyspace = engine.keyspace(space)?;
            if keyspace.tree.table_count() == 0 {
                continue;
            }
            engine.check_usable()?;
            bytes += keyspace.disk_space();
            keyspace.major_compact().map_err(|error| errors::write("compact a space", error))?;
        }
        Ok(ByteCount::new(bytes))
    }
}
