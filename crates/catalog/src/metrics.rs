//! Counters of the committer.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::GROUP_SIZE_BUCKETS;

/// Counters of a committer, updated by its thread and readable by any.
#[derive(Debug, Default)]
pub struct CommitterMetrics {
    groups: AtomicU64,
    groups_synced: AtomicU64,
    groups_failed: AtomicU64,
    failures: AtomicU64,
    reopens: AtomicU64,
    closures: AtomicU64,
    closures_rejected: AtomicU64,
    closures_panicked: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    group_sizes: [AtomicU64; GROUP_SIZE_BUCKETS],
}

/// A snapshot of the counters. Those of a group that is being answered may be half updated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitterCounts {
    /// Groups answered.
    pub groups: u64,
    /// Groups that wrote something and were made durable.
    pub groups_synced: u64,
    /// Groups whose batch failed.
    pub groups_failed: u64,
    /// How often the store became unusable.
    pub failures: u64,
    /// How often it was reopened and became usable again.
    pub reopens: u64,
    /// Closures answered, with any result.
    pub closures: u64,
    /// Closures that returned an error and left no trace, panics included.
    pub closures_rejected: u64,
    /// Closures that panicked.
    pub closures_panicked: u64,
    /// Rows made durable, after writes of one key in a group were merged.
    pub rows: u64,
    /// Bytes of keys and values made durable, with a fixed overhead per row.
    pub bytes: u64,
    /// Groups by size: bucket `i` counts groups of `2^i` to `2^(i+1) - 1` closures.
    pub group_sizes: [u64; GROUP_SIZE_BUCKETS],
}

impl CommitterMetrics {
    /// Returns all counters.
    #[must_use]
    pub fn counts(&self) -> CommitterCounts {
        CommitterCounts {
            groups: load(&self.groups),
            groups_synced: load(&self.groups_synced),
            groups_failed: load(&self.groups_failed),
            failures: load(&self.failures),
            reopens: load(&self.reopens),
            closures: load(&self.closures),
            closures_rejected: load(&self.closures_rejected),
            closures_panicked: load(&self.closures_panicked),
            rows: load(&self.rows),
            bytes: load(&self.bytes),
            group_sizes: std::array::from_fn(|i| load(&self.group_sizes[i])),
        }
    }

    pub(crate) fn record_rejected_closure(&self) {
        add(&self.closures_rejected, 1);
    }

    pub(crate) fn record_panicked_closure(&self) {
        add(&self.closures_panicked, 1);
    }

    pub(crate) fn record_synced_batch(&self, rows: usize, bytes: usize) {
        add(&self.groups_synced, 1);
        add(&self.rows, rows);
        add(&self.bytes, bytes);
    }

    pub(crate) fn record_failed_batch(&self) {
        add(&self.groups_failed, 1);
    }

    pub(crate) fn record_failure(&self) {
        add(&self.failures, 1);
    }

    pub(crate) fn record_reopen(&self) {
        add(&self.reopens, 1);
    }

    pub(crate) fn record_group(&self, closures: usize) {
        add(&self.groups, 1);
        add(&self.closures, closures);
        add(&self.group_sizes[size_bucket(closures)], 1);
    }
}

/// Returns the histogram bucket of a group of `closures`, at least one.
fn size_bucket(closures: usize) -> usize {
    assert!(closures > 0, "a group has a closure");
    let bucket = usize::try_from(closures.ilog2()).unwrap_or(usize::MAX);
    bucket.min(GROUP_SIZE_BUCKETS - 1)
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}
