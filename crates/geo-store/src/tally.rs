//! Counters of the results of operations.

use std::sync::atomic::{AtomicU64, Ordering};

use fulgurite_geo::{Got, Rounds, Wrote};

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
    pub(crate) fn wrote(&self, rounds: Rounds, end: &Wrote) {
        add(&self.write_rounds, rounds.total());
        let slow = rounds.prepare > 0;
        let counter = match end {
            Wrote::Done { .. } if slow => &self.slow,
            Wrote::Done { .. } => &self.fast,
            Wrote::Refused => &self.refused,
            Wrote::Indeterminate(_) | Wrote::Unwritten(Some(_)) => &self.indeterminate,
            Wrote::Unavailable | Wrote::Unwritten(None) => &self.failed,
        };
        add(counter, 1_u64);
    }

    pub(crate) fn read(&self, rounds: u32, end: &Got) {
        add(&self.reads, 1_u64);
        add(&self.read_rounds, rounds);
        match end {
            Got::Unavailable => add(&self.unavailable, 1_u64),
            Got::Lost(_) => add(&self.lost, 1_u64),
            Got::Found(..) | Got::Nothing => {}
        }
    }

    pub(crate) fn unsure(&self) {
        add(&self.unsure, 1_u64);
    }
}
