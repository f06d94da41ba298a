//! The byte budget shared by all logs of an archive.

use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_units::ByteCount;

use crate::{ArchiveError, Result};

/// Maximum bytes in all logs of an archive together.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicU64,
    max: u64,
}

impl Budget {
    pub(crate) fn new(max: ByteCount) -> Self {
        Self { used: AtomicU64::new(0), max: max.get() }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) const fn max(&self) -> u64 {
        self.max
    }

    /// Checks that `bytes` more would fit now.
    pub(super) fn admit(&self, bytes: u64) -> Result<()> {
        let used = self.used();
        match used.checked_add(bytes).filter(|&sum| sum <= self.max) {
            Some(_) => Ok(()),
            None => Err(self.full(used)),
        }
    }

    pub(super) fn take(&self, bytes: u64) -> Result<()> {
        let take = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.max);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(used) => Err(self.full(used)),
        }
    }

    /// Counts what existed when the archive was opened, even if it exceeds the budget.
    pub(super) fn count(&self, bytes: u64) {
        let add = |used: u64| Some(used.saturating_add(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns bytes that were taken or counted. Returning more is a bug here, but no reason to
    /// stop accepting data.
    pub(super) fn release(&self, bytes: u64) {
        let release = |used: u64| Some(used.saturating_sub(bytes));
        let before = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, release);
        debug_assert!(before.is_ok_and(|used| used >= bytes), "released more than reserved");
    }

    fn full(&self, used: u64) -> ArchiveError {
        ArchiveError::Full {
            what: format!(
                "staged, online and restored bytes would exceed the log capacity of {} ({} used)",
                ByteCount::new(self.max),
                ByteCount::new(used),
            ),
        }
    }
}
