//! Totals of the spin-ups of a disk or a group, in constant space.

use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};

use super::hours::Hours;
use crate::{Cause, CauseKind};

/// Spin-ups of one disk or one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Counts by kind of cause, in the order of [`CauseKind::ALL`].
    by: [u64; CauseKind::ALL.len()],
    /// Time of the last.
    last: UnixTime,
    why: Option<Cause>,
    hours: Hours,
}

impl Totals {
    pub(super) fn record(&mut self, at: UnixTime, cause: Cause) {
        self.by[cause.kind() as usize] += 1;
        (self.last, self.why) = (at, Some(cause));
        self.hours.record(at);
    }

    /// Returns the count over its life.
    #[must_use]
    pub fn lifetime_count(&self) -> u64 {
        self.by.iter().sum()
    }

    /// Returns the count of one kind of cause.
    #[must_use]
    pub fn count(&self, kind: CauseKind) -> u64 {
        self.by[kind as usize]
    }

    /// Returns when the last was, and why; none if there was none.
    #[must_use]
    pub fn last(&self) -> Option<(UnixTime, Cause)> {
        self.why.map(|why| (self.last, why))
    }

    /// Returns the count of the last day as budgets count: by hours, so it looks back up to an hour
    /// more.
    #[must_use]
    pub fn day(&self, now: UnixTime) -> u64 {
        self.hours.count(now)
    }

    /// Returns the counts of the last day by hour, oldest first, each with the end of its hour. A
    /// budget continues from these after a restart.
    pub fn hours(&self) -> impl Iterator<Item = (UnixTime, u32)> {
        self.hours.ends()
    }
}
