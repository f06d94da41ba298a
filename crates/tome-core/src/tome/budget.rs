//! The daily budget of a disk's spin-ups, and what can wait when it is used up.
//!
//! Each spin-up costs a disk some of its life. Urgent work is never deferred: requests, rebuilds of
//! blocks and member slots, requested scrubs, and probes of a failed disk. The rest is deferred
//! until the last day has fewer spin-ups than the budget, but never beyond a limit: deltas to apply
//! or send for [`APPLY_DELAY_MAX`], the full scrub for [`SCRUB_DELAY_MAX`]. When the disk spins for
//! anything, deferred work is done with it.
//!
//! Not here: what is needed ([`super::power`]), and the ledger of spin-ups, which the driver keeps.

use std::collections::VecDeque;

use fulgurite_units::{Duration, Instant};

use super::Tome;
use crate::limits::{APPLY_DELAY_MAX, SCRUB_DELAY_MAX};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The budget of a disk's spin-ups.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    /// Spin-ups in 24 hours; `None` is unlimited.
    per_day: Option<u32>,
    /// The latest spin-ups, at most one day's budget.
    spin_ups: VecDeque<Instant>,
    /// Since when deltas are deferred.
    pending_applies: Option<Instant>,
    /// Since when the full scrub is deferred.
    scrub: Option<Instant>,
    /// Spin-ups beyond the budget.
    overdrawn: u64,
}

/// The state of a spin-up budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// Spin-ups allowed in a day.
    pub per_day: u32,
    /// Spin-ups left now.
    pub left: u32,
    /// How long the oldest deferred work has waited; `None` without any.
    pub deferred_for: Option<Duration>,
    /// Spin-ups beyond the budget since the start: for requests, or for work deferred to its limit.
    pub overdrawn: u64,
}

impl Budget {
    /// Counts spin-ups in the 24 hours before now, up to the budget.
    fn spent_today(&self, now: Instant) -> usize {
        self.spin_ups.iter().filter(|at| **at + DAY > now).count()
    }

    fn has_room(&self, now: Instant) -> bool {
        self.per_day.is_none_or(|per_day| self.spent_today(now) < per_day as usize)
    }

    /// Records a spin-up.
    pub(super) fn record_spin_up(&mut self, now: Instant) {
        let Some(per_day) = self.per_day else { return };
        self.overdrawn += u64::from(!self.has_room(now));
        self.spin_ups.push_back(now);
        while self.spin_ups.len() > per_day as usize {
            self.spin_ups.pop_front();
        }
        (self.pending_applies, self.scrub) = (None, None);
    }

    /// Returns since when work is deferred, and until when it may be.
    fn waits(&self) -> impl Iterator<Item = (Instant, Instant)> {
        let pending_applies = self.pending_applies.map(|since| (since, since + APPLY_DELAY_MAX));
        let scrub = self.scrub.map(|since| (since, since + SCRUB_DELAY_MAX));
        pending_applies.into_iter().chain(scrub)
    }

    /// Returns when deferred work may spin the disk up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let until = self.waits().map(|(_, until)| until).min()?;
        let room = self.spin_ups.front().map(|oldest| *oldest + DAY);
        Some(room.map_or(until, |room| room.min(until)))
    }
}

impl Tome {
    /// Limits deferrable spin-ups to this many in any 24 hours. `before` are those of the last day,
    /// oldest first.
    ///
    /// # Panics
    /// When `per_day` is zero.
    pub fn limit_spin_ups(&mut self, per_day: u32, before: impl IntoIterator<Item = Instant>) {
        assert!(per_day > 0, "a budget allows at least one spin-up");
        self.budget.per_day = Some(per_day);
        for at in before {
            self.budget.spin_ups.push_back(at);
            if self.budget.spin_ups.len() > per_day as usize {
                self.budget.spin_ups.pop_front();
            }
        }
    }

    /// The state of its spin-up budget, if it has one.
    #[must_use]
    pub fn spending(&self) -> Option<Spending> {
        let per_day = self.budget.per_day?;
        let spent_today = u32::try_from(self.budget.spent_today(self.now)).unwrap_or(per_day);
        let oldest = self.budget.waits().map(|(since, _)| since).min();
        Some(Spending {
            per_day,
            left: per_day.saturating_sub(spent_today),
            deferred_for: oldest.map(|since| self.now.since(since)),
            overdrawn: self.budget.overdrawn,
        })
    }

    /// Returns whether pending work may spin the disk up now.
    pub(super) fn may_spin_up(&mut self) -> bool {
        let now = self.now;
        let is_rebuilding = self.repairs.pending() > 0
            || self.has_buffered_segment()
            || self.metadata.regions().any(|(_, region)| region.frozen().is_some());
        let is_asked = !self.tasks.is_empty() || self.job.is_some() || self.to_scrub() > 0;
        let is_waited_for = is_asked || self.probe_requested;
        if is_rebuilding || is_waited_for || self.budget.has_room(now) {
            return true;
        }
        let pending_applies = self.pending_applies() + self.deltas.unsent_count() > 0;
        let scrub = self.scrub.is_late(now, self.metadata.scrubbed(), self.blocks());
        let budget = &mut self.budget;
        budget.pending_applies = pending_applies.then(|| budget.pending_applies.unwrap_or(now));
        budget.scrub = scrub.then(|| budget.scrub.unwrap_or(now));
        budget.waits().any(|(_, until)| until <= now)
    }
}
