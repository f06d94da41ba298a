//! The hash of a run: one number for all events, their order and their times.

use fulgurite_units::Instant;

/// A hash that grows event by event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunHash(u64);

impl RunHash {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) const fn note(&mut self, now: Instant, kind: u64) {
        let mixed = (self.0.rotate_left(23) ^ now.as_nanos() ^ (kind << 32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}
