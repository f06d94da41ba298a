//! Deadlines of reads, converted from the archive's wall clock to the library's time axis.
//!
//! The library's time begins when its driver starts; a deadline of an earlier request keeps its
//! distance from now. A deadline before the library's start becomes time zero.

use fulgurite_units::{Duration, Instant, UnixTime};

/// The deadline of a read that nothing waits for, and the maximum for any read: the objective of
/// Silica, section 7.2.
const OBJECTIVE: Duration = Duration::from_secs(15 * 3600);

/// The deadline of a read, relative to the moment of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadDeadline {
    left: Duration,
    late: Duration,
}

impl ReadDeadline {
    /// The deadline of a read that nothing waits for.
    pub(crate) const OBJECTIVE: Self = Self { left: OBJECTIVE, late: Duration::ZERO };

    /// Creates a deadline at `at`, seen from `now`. A clock that was set back never gives more than
    /// the objective.
    #[must_use]
    pub(crate) fn new(at: UnixTime, now: UnixTime) -> Self {
        Self { left: at.since(now).min(OBJECTIVE), late: now.since(at) }
    }

    /// Converts the deadline to the library's axis, where it is `now`.
    pub(super) fn to_library_time(self, now: Instant) -> Instant {
        let due = now + self.left;
        Instant::from_nanos(due.as_nanos().saturating_sub(self.late.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(at_s: u64, now_s: u64, library_s: u64) -> u64 {
        let unix = |seconds| UnixTime::from_millis(1_700_000_000_000 + seconds * 1000);
        let axis = Instant::from_nanos(library_s * 1_000_000_000);
        ReadDeadline::new(unix(at_s), unix(now_s)).to_library_time(axis).as_nanos() / 1_000_000_000
    }

    #[test]
    fn earlier_deadlines_stay_earlier_for_the_library() {
        // The library began at second 1,000.
        assert_eq!(due(5000, 3000, 2000), 4000);
        assert_eq!(due(2500, 3000, 2000), 1500);
        assert_eq!(due(500, 3000, 2000), 0);
        assert_eq!(due(10_000_000, 3000, 2000), 2000 + 15 * 3600, "the clock was set back");
    }
}
