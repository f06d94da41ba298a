//! How many batches of this run are durable in the catalog: counted by it, written to the logs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Batches of this run that are durable in the catalog.
#[derive(Debug, Default)]
pub(crate) struct Commits(AtomicU64);

impl Commits {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// So many are durable now.
    pub(crate) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Release);
    }

    /// The count for the field of a record, which has 32 bits: less than it was proves less.
    pub(crate) fn for_record(&self) -> u32 {
        u32::try_from(self.count()).unwrap_or(u32::MAX)
    }
}
