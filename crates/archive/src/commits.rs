//! How many batches of this run are durable in the catalog: the catalog counts them, and logs
//! record the count.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of batches of this run that are durable in the catalog.
#[derive(Debug, Default)]
pub(crate) struct CommitCounter(AtomicU64);

impl CommitCounter {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Sets the number of durable batches.
    pub(crate) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Release);
    }

    /// Returns the count for the 32-bit field of a record; saturating is safe, because a lower
    /// count proves less.
    pub(crate) fn saturating_u32(&self) -> u32 {
        u32::try_from(self.count()).unwrap_or(u32::MAX)
    }
}
