//! Read repair: blobs that reads found damaged. Each is repaired once. If that fails it is retried
//! with exponential backoff, without end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use fulgurite_units::{BlobId, Duration, Instant};

use crate::limits::{READ_REPAIR_BACKOFF, READ_REPAIR_BACKOFF_MAX, READ_REPAIRS_MAX};

/// When the repair of each blob may be retried.
#[derive(Debug, Default)]
pub(super) struct ReadRepairs(Mutex<BTreeMap<BlobId, RepairState>>);

#[derive(Clone, Copy, Debug)]
struct RepairState {
    /// Number of failed attempts.
    times: u32,
    /// None while it is running.
    until: Option<Instant>,
}

impl ReadRepairs {
    /// Whether a blob is to be repaired now. If so, it is marked as running.
    pub(super) fn begin(&self, blob: BlobId, now: Instant) -> bool {
        let mut repairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_backing_off = |repair: &RepairState| repair.until.is_none_or(|until| now < until);
        let times = match repairs.get(&blob) {
            Some(known) if is_backing_off(known) => return false,
            Some(known) => known.times,
            None => 0,
        };
        if repairs.len() >= READ_REPAIRS_MAX {
            repairs.retain(|_, known| is_backing_off(known));
            if repairs.len() >= READ_REPAIRS_MAX {
                // With so many failures, a verification has to find them all.
                return false;
            }
        }
        repairs.insert(blob, RepairState { times, until: None });
        true
    }

    /// Returns the number of blobs whose repair failed and has not succeeded since.
    pub(super) fn failed_count(&self) -> u64 {
        let repairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        crate::format::bytes(repairs.values().filter(|known| known.times > 0).count())
    }

    /// Records the end of a repair: the blob is done, or backs off.
    pub(super) fn end(&self, blob: BlobId, is_well: bool, now: Instant) {
        let mut repairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_well {
            repairs.remove(&blob);
            return;
        }
        let Some(known) = repairs.get_mut(&blob) else { return };
        let backoff =
            READ_REPAIR_BACKOFF.as_nanos().checked_shl(known.times.min(16)).unwrap_or(u64::MAX);
        known.until = Some(now + Duration::from_nanos(backoff).min(READ_REPAIR_BACKOFF_MAX));
        known.times += 1;
    }
}

#[cfg(test)]
mod tests;
