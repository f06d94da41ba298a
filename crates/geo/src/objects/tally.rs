//! Counters of the results of operations.

use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_geo_core::{ReadResult, Rounds, WriteResult};

/// Results of operations since the program started, counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) fast: AtomicU64,
    pub(crate) slow: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) indeterminate: AtomicU64,
    pub(crate) write_rounds: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) read_rounds: AtomicU64,
    pub(crate) unavailable: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) unsure: AtomicU64,
    pub(crate) rebuilt: AtomicU64,
    pub(crate) collected: AtomicU64,
    pub(crate) swept: AtomicU64,
}

fn add(counter: &AtomicU64, count: impl Into<u64>) {
    counter.fetch_add(count.into(), Ordering::Relaxed);
}

impl Tally {
    pub(crate) fn count_write(&self, rounds: Rounds, end: &WriteResult) {
        add(&self.write_rounds, rounds.total());
        let slow = rounds.prepare > 0;
        let counter = match end {
            WriteResult::Done { .. } if slow => &self.slow,
            WriteResult::Done { .. } => &self.fast,
            WriteResult::Refused => &self.refused,
            WriteResult::Indeterminate(_) | WriteResult::Unwritten(Some(_)) => &self.indeterminate,
            WriteResult::Unavailable | WriteResult::Unwritten(None) => &self.failed,
        };
        add(counter, 1_u64);
    }

    pub(crate) fn read(&self, rounds: u32, end: &ReadResult) {
        add(&self.reads, 1_u64);
        add(&self.read_rounds, rounds);
        match end {
            ReadResult::Unavailable => add(&self.unavailable, 1_u64),
            ReadResult::Lost(_) => add(&self.lost, 1_u64),
            ReadResult::Found(..) | ReadResult::Nothing => {}
        }
    }

    pub(crate) fn unsure(&self) {
        add(&self.unsure, 1_u64);
    }
}
