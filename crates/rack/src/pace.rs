//! How fast a class is, as measured: what its estimates are made of (Pelican, section 2.2.3: the
//! time of each operation is estimated from the spin-ups and bytes before it).

use fulgurite_units::{ByteCount, Duration};

use crate::limits::{OP_TIME_MIN, RETRY_MIN};
use crate::shape::Pace;

/// How much of a new value goes into the running mean: one part in so many.
const MEMORY: u64 = 8;

/// Running means of one class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    switch_ns: u64,
    ps_per_byte: u64,
}

impl Measured {
    pub(crate) fn new(pace: Pace) -> Self {
        let per_second = pace.bytes_per_second.get().max(1);
        Self {
            switch_ns: pace.switch.as_nanos(),
            ps_per_byte: (1_000_000_000_000 / per_second).max(1),
        }
    }

    /// How long it takes from the decision to bring a group up until it is.
    pub(crate) const fn switch(&self) -> Duration {
        Duration::from_nanos(self.switch_ns)
    }

    /// How long an operation of so many bytes takes in a group that spins.
    pub(crate) fn time_of(&self, bytes: ByteCount) -> Duration {
        let ns = bytes.get().saturating_mul(self.ps_per_byte) / 1000;
        Duration::from_nanos(ns.max(OP_TIME_MIN.as_nanos()))
    }

    /// A group took so long from the decision to bring it up.
    pub(crate) fn switched(&mut self, took: Duration) {
        self.switch_ns = mean(self.switch_ns, took.as_nanos());
    }

    /// An operation of so many bytes took so long.
    pub(crate) fn served(&mut self, bytes: ByteCount, took: Duration) {
        // Below a megabyte it is not bytes that take the time.
        if bytes >= ByteCount::mib(1) {
            let ps = took.as_nanos().saturating_mul(1000) / bytes.get();
            self.ps_per_byte = mean(self.ps_per_byte, ps).max(1);
        }
    }

    /// When a tenth of what waits will be done, and another may come.
    pub(crate) fn retry_after(&self, waiting: ByteCount) -> Duration {
        let tenth = self.time_of(ByteCount::new(waiting.get() / 10));
        (tenth + Duration::from_nanos(self.switch_ns)).max(RETRY_MIN)
    }
}

const fn mean(known: u64, new: u64) -> u64 {
    known - known / MEMORY + new / MEMORY
}
