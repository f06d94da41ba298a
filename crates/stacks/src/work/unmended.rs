//! Blobs that could not be made whole: how many, and those that nobody who watches was told of yet.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fulgurite_disks::GroupId;
use fulgurite_units::BlobId;

use crate::limits::UNMENDED_WAITING_MAX;

/// A blob that lacks stacks, or cannot be read, after a try to make it whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnmendedBlob {
    pub(crate) group: GroupId,
    pub(crate) blob: BlobId,
    /// What is wrong, in words.
    pub(crate) what: String,
}

/// What is known of such blobs.
#[derive(Debug, Default)]
pub struct Unmended {
    /// Those that reads found.
    count: AtomicU64,
    waiting: Mutex<Vec<UnmendedBlob>>,
}

impl Unmended {
    /// How many reads found that were not made whole since.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// So many are known by reads.
    pub(crate) fn set_count(&self, count: u64) {
        self.count.store(count, Ordering::Relaxed);
    }

    /// One was found. Of very many at once only the first are told one by one.
    pub(crate) fn found(&self, group: GroupId, blob: BlobId, what: String) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < UNMENDED_WAITING_MAX {
            waiting.push(UnmendedBlob { group, blob, what });
        }
    }

    /// Those that were found since this was asked last.
    pub(crate) fn take(&self) -> Vec<UnmendedBlob> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
