//! What is known of a disk's wakes, or of a group's, whatever their number.

use fulgurite_units::UnixTime;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::hours::Hours;
use crate::{Cause, CauseKind};

/// Spin-ups of one disk or one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// By kind of cause, in the order of [`CauseKind::ALL`].
    #[serde(deserialize_with = "by_kind")]
    by: [u64; CauseKind::ALL.len()],
    /// The last.
    last: UnixTime,
    why: Option<Cause>,
    hours: Hours,
}

impl Totals {
    pub(super) fn note(&mut self, at: UnixTime, cause: Cause) {
        self.by[cause.kind() as usize] += 1;
        (self.last, self.why) = (at, Some(cause));
        self.hours.note(at);
    }

    /// All of them.
    #[must_use]
    pub fn life(&self) -> u64 {
        self.by.iter().sum()
    }

    /// Those of one kind of cause.
    #[must_use]
    pub fn by(&self, kind: CauseKind) -> u64 {
        self.by[kind as usize]
    }

    /// When the last was, and why; none when there was none.
    #[must_use]
    pub fn last(&self) -> Option<(UnixTime, Cause)> {
        self.why.map(|why| (self.last, why))
    }

    /// Those of the last day, as budgets count: by hours, so it looks back an hour more.
    #[must_use]
    pub fn day(&self, now: UnixTime) -> u64 {
        self.hours.count(now)
    }

    /// Those of the last day by hours, the oldest first, each with the end of its hour: whoever
    /// keeps a budget goes on with them after a restart.
    pub fn hours(&self) -> impl Iterator<Item = (UnixTime, u32)> {
        self.hours.ends()
    }
}

/// A ledger of before knows fewer kinds: there was none of the others.
fn by_kind<'de, D>(source: D) -> Result<[u64; CauseKind::ALL.len()], D::Error>
where
    D: Deserializer<'de>,
{
    let told = Vec::<u64>::deserialize(source)?;
    let mut by = [0; CauseKind::ALL.len()];
    let known = by.get_mut(..told.len());
    let known = known.ok_or_else(|| D::Error::custom("more kinds of causes than there are"))?;
    known.copy_from_slice(&told);
    Ok(by)
}
