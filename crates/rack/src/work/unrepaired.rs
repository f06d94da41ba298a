//! Blobs that could not be repaired: their number, and those not yet reported to subscribers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fulgurite_disks::GroupId;
use fulgurite_units::BlobId;

use crate::limits::UNREPAIRED_WAITING_MAX;

/// A blob that lacks stacks or cannot be read, after an attempt to repair it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnrepairedBlob {
    pub(crate) group: GroupId,
    pub(crate) blob: BlobId,
    /// Description of the damage.
    pub(crate) detail: String,
}

/// Unrepaired blobs.
#[derive(Debug, Default)]
pub struct UnrepairedBlobs {
    /// Number found by reads.
    count: AtomicU64,
    waiting: Mutex<Vec<UnrepairedBlob>>,
}

impl UnrepairedBlobs {
    /// Returns the number of blobs that reads found and that have not been repaired since.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Sets the number of blobs that reads found.
    pub(crate) fn set_count(&self, count: u64) {
        self.count.store(count, Ordering::Relaxed);
    }

    /// Queues a blob for subscribers. If very many are queued, the rest is dropped.
    pub(crate) fn record(&self, group: GroupId, blob: BlobId, detail: String) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < UNREPAIRED_WAITING_MAX {
            waiting.push(UnrepairedBlob { group, blob, detail });
        }
    }

    /// Returns the blobs queued since the last call.
    pub(crate) fn take(&self) -> Vec<UnrepairedBlob> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
