//! Progress of a verification or a rebuild, for those that wait for it.

use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_units::ByteCount;

/// Bytes of blobs done, and their total.
#[derive(Debug, Default)]
pub struct RepairProgress {
    done: AtomicU64,
    total: AtomicU64,
}

impl RepairProgress {
    /// Returns the bytes done and the total; both are zero until the total is known.
    #[must_use]
    pub fn bytes(&self) -> (ByteCount, ByteCount) {
        let read = |count: &AtomicU64| ByteCount::new(count.load(Ordering::Relaxed));
        (read(&self.done), read(&self.total))
    }

    pub(super) fn expect(&self, bytes: ByteCount) {
        self.total.fetch_add(bytes.get(), Ordering::Relaxed);
    }

    pub(super) fn add(&self, bytes: ByteCount) {
        self.done.fetch_add(bytes.get(), Ordering::Relaxed);
    }
}
