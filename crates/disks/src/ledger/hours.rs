//! Spin-ups of a disk in the last day, by hour.

use fulgurite_units::UnixTime;
use serde::{Deserialize, Serialize};

use crate::limits::BUDGET_HOURS;

const HOUR_MS: u64 = 3_600_000;

/// Spin-ups by hour of UTC, oldest first; hours without any are omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Hours(Vec<(u64, u32)>);

impl Hours {
    /// Counts a spin-up, and drops hours that are too old for a budget.
    pub(super) fn record(&mut self, at: UnixTime) {
        let hour = at.as_millis() / HOUR_MS;
        let latest = self.0.last().map_or(hour, |&(latest, _)| latest.max(hour));
        self.0.retain(|&(hour, _)| hour + BUDGET_HOURS > latest);
        match self.0.last_mut() {
            Some((last, count)) if *last == latest => *count = count.saturating_add(1),
            Some(_) | None => self.0.push((latest, 1)),
        }
    }

    /// Iterates over the end of each hour and its count.
    pub(super) fn ends(&self) -> impl Iterator<Item = (UnixTime, u32)> {
        self.0.iter().map(|&(hour, count)| (UnixTime::from_millis((hour + 1) * HOUR_MS), count))
    }

    /// Counts the spin-ups in the hours of a day's budget, as of `now`.
    pub(super) fn count(&self, now: UnixTime) -> u64 {
        let now = now.as_millis() / HOUR_MS;
        let known = self.0.iter().filter(|&&(hour, _)| hour + BUDGET_HOURS > now);
        known.map(|&(_, count)| u64::from(count)).sum()
    }
}
