//! Totals of the spin-ups of a disk or a group, in constant space.

use fulgurite_units::UnixTime;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::hours::Hours;
use crate::{Cause, CauseKind};

/// Spin-ups of one disk or one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Counts by kind of cause, in the order of [`CauseKind::ALL`].
    #[serde(deserialize_with = "by_kind")]
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

/// Reads a list of counts. An older ledger has fewer kinds; the missing counts are zero.
fn by_kind<'de, D>(source: D) -> Result<[u64; CauseKind::ALL.len()], D::Error>
where
    D: Deserializer<'de>,
{
    let counts = Vec::<u64>::deserialize(source)?;
    let mut by = [0; CauseKind::ALL.len()];
    let known = by.get_mut(..counts.len());
    let known =
        known.ok_or_else(|| D::Error::custom("more kinds of causes than this program knows"))?;
    known.copy_from_slice(&counts);
    Ok(by)
}
