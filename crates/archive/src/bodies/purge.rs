//! Forgetting: names, user metadata and ETags of deleted objects leave every file of the data
//! directory within a stated time.
//!
//! ```text
//! delete, overwrite, abort --- same transaction --> mark in the catalog
//! within/2 after the first mark, or at the next start:
//!     compact the spaces that hold names --> reopen the catalog --> record the marks as done
//! ```
//!
//! The key of a body is destroyed immediately, and with it what logs and glass hold. This is about
//! the rows, whose keys are plaintext names because listings need their order. Half of the time is
//! left for retries after a long scan or a full disk. If nothing was deleted, nothing is done.

use std::sync::Arc;

use fulgurite_catalog::{CatalogError, Space, Transaction};
use fulgurite_units::Instant;

use crate::rows::{
    self, BUCKETS, CHECKSUMS, DAMAGED, EXPIRIES, FAILED, OBJECTS, PARTS, QUEUE, RESTORES,
    UNCONFIRMED, UPLOADS,
};
use crate::state::ArchiveState;
use crate::{ArchiveError, Result};

/// Every space whose rows hold names, metadata, ETags or checksums of content.
const NAMING: [Space; 11] = [
    BUCKETS,
    OBJECTS,
    QUEUE,
    DAMAGED,
    UPLOADS,
    PARTS,
    UNCONFIRMED,
    RESTORES,
    FAILED,
    EXPIRIES,
    CHECKSUMS,
];

/// The state of forgetting in one run of the archive.
#[derive(Debug, Default)]
pub(crate) struct NamePurge {
    /// When pending marks were first seen; `None` when there are none.
    since: Option<Instant>,
    has_polled: bool,
    /// Whether the time has come, in this run or possibly before it.
    is_due: bool,
    /// Marks whose rows are gone from all tables, but not yet from the journal.
    compacted: Option<u64>,
}

impl NamePurge {
    /// Forgets what is due, and calls `on_begin` before it starts. Blocks.
    pub(crate) fn run_due(
        &mut self,
        state: &Arc<ArchiveState>,
        on_begin: &mut dyn FnMut(),
    ) -> Result<()> {
        let row = rows::purge_state(&*state.kv)?;
        let is_first_poll = !std::mem::replace(&mut self.has_polled, true);
        if row.is_done() {
            self.since = None;
            return Ok(());
        }
        let now = state.clock().passed();
        let waited = now.since(*self.since.get_or_insert(now));
        let half_ns = state.config.space.forget_within.as_nanos() / 2;
        // Marks of an earlier run have waited for an unknown time.
        self.is_due |= is_first_poll || waited.as_nanos() >= half_ns;
        if !self.is_due {
            return Ok(());
        }
        on_begin();
        match self.run(state) {
            Ok(()) => {
                (self.since, self.is_due) = (None, false);
                Ok(())
            }
            // A long read is in progress; the next tick tries again.
            Err(ArchiveError::Catalog(CatalogError::InUse)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn run(&mut self, state: &Arc<ArchiveState>) -> Result<()> {
        // This write also makes the storage engine release what older snapshots could see.
        let marked = state.committer.commit_blocking(|tx: &mut Transaction<'_>| {
            rows::with_purge(tx, |row| {
                row.tries += 1;
                row.marked
            })
        })?;
        if self.compacted != Some(marked) {
            let begun = state.clock().passed();
            let bytes = state.kv.compact(&NAMING)?;
            self.compacted = Some(marked);
            let ms = state.clock().passed().since(begun).as_nanos() / 1_000_000;
            tracing::debug!(%bytes, ms, "tables were rewritten without deleted names");
        }
        state.runtime.fail.pass("forget-compacted");
        state.committer.reopen_blocking()?;
        self.compacted = None;
        state.committer.commit_blocking(move |tx: &mut Transaction<'_>| {
            rows::with_purge(tx, |row| row.forgotten = marked)
        })
    }
}

#[cfg(test)]
mod tests;
