//! Measured speed of a class, the basis of its estimates (Pelican, section 2.2.3: the time of each
//! operation is estimated from the spin-ups and bytes before it).

use fulgurite_units::{ByteCount, Duration};

use crate::limits::{OP_TIME_MIN, RETRY_MIN};
use crate::shape::Pace;

/// Weight of a new value in the moving average: one part in this many.
const MEMORY: u64 = 8;

/// Moving averages of one class.
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

    /// Returns the time from the decision to bring a group up until it is up.
    pub(crate) const fn switch(&self) -> Duration {
        Duration::from_nanos(self.switch_ns)
    }

    /// Returns the time of an operation of this many bytes in a spinning group.
    pub(crate) fn op_time(&self, bytes: ByteCount) -> Duration {
        let ns = bytes.get().saturating_mul(self.ps_per_byte) / 1000;
        Duration::from_nanos(ns.max(OP_TIME_MIN.as_nanos()))
    }

    /// Records how long a group took from the decision to bring it up.
    pub(crate) fn switched(&mut self, took: Duration) {
        self.switch_ns = mean(self.switch_ns, took.as_nanos());
    }

    /// Records how long an operation of this many bytes took.
    pub(crate) fn served(&mut self, bytes: ByteCount, took: Duration) {
        // Below a megabyte the time does not depend on the bytes.
        if bytes >= ByteCount::mib(1) {
            let ps = took.as_nanos().saturating_mul(1000) / bytes.get();
            self.ps_per_byte = mean(self.ps_per_byte, ps).max(1);
        }
    }

    /// Returns the time until a tenth of the waiting bytes will be done, so that there is room
    /// again.
    pub(crate) fn retry_after(&self, waiting: ByteCount) -> Duration {
        let tenth = self.op_time(ByteCount::new(waiting.get() / 10));
        (tenth + Duration::from_nanos(self.switch_ns)).max(RETRY_MIN)
    }
}

const fn mean(known: u64, new: u64) -> u64 {
    known - known / MEMORY + new / MEMORY
}
