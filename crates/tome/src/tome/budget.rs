//! How often a disk is woken in a day, and what can wait when that is used up.
//!
//! Each spin-up costs a disk some of its life. What somebody waits for is never put off: a request,
//! blocks and seats that are rebuilt, a scrub that was asked for, a disk that failed and is
//! probed. What can wait is put off until fewer wakes lie in the last day than the budget has, and
//! never beyond a bound: deltas that are to be folded or sent for [`FOLD_WAIT_MAX`], the full scrub
//! for [`SCRUB_WAIT_MAX`]. When the disk turns for anything, what waited is done with it.
//!
//! Not here: what is needed ([`super::power`]), and the ledger of wakes, which is its driver's.

use std::collections::VecDeque;

use fulgurite_units::{Duration, Instant};

use super::Tome;
use crate::limits::{FOLD_WAIT_MAX, SCRUB_WAIT_MAX};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What a disk's wakes are held to.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    /// Wakes of 24 hours; none has no bound.
    per_day: Option<u32>,
    /// The last of them, no more than a day may have.
    wakes: VecDeque<Instant>,
    /// Since when deltas are put off.
    folds: Option<Instant>,
    /// Since when the full scrub is.
    scrub: Option<Instant>,
    /// Wakes beyond what a day may have.
    overdrawn: u64,
}

/// How a budget of spin-ups stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// Wakes that a day may have.
    pub per_day: u32,
    /// Of those, how many are left now.
    pub left: u32,
    /// How long the oldest of what is put off waits; none when nothing is.
    pub put_off: Option<Duration>,
    /// Wakes beyond it since the start: for requests, or for what was put off for long enough.
    pub overdrawn: u64,
}

impl Budget {
    /// Wakes in the 24 hours before now, as far as they count.
    fn day(&self, now: Instant) -> usize {
        self.wakes.iter().filter(|at| **at + DAY > now).count()
    }

    fn has_room(&self, now: Instant) -> bool {
        self.per_day.is_none_or(|per_day| self.day(now) < per_day as usize)
    }

    /// The disk is woken.
    pub(super) fn woken(&mut self, now: Instant) {
        let Some(per_day) = self.per_day else { return };
        self.overdrawn += u64::from(!self.has_room(now));
        self.wakes.push_back(now);
        while self.wakes.len() > per_day as usize {
            self.wakes.pop_front();
        }
        (self.folds, self.scrub) = (None, None);
    }

    /// Since when something is put off, and until when it may be.
    fn waits(&self) -> impl Iterator<Item = (Instant, Instant)> {
        let folds = self.folds.map(|since| (since, since + FOLD_WAIT_MAX));
        let scrub = self.scrub.map(|since| (since, since + SCRUB_WAIT_MAX));
        folds.into_iter().chain(scrub)
    }

    /// When what is put off may wake the disk.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let until = self.waits().map(|(_, until)| until).min()?;
        let room = self.wakes.front().map(|oldest| *oldest + DAY);
        Some(room.map_or(until, |room| room.min(until)))
    }
}

impl Tome {
    /// Holds the wakes of its disk to so many in any 24 hours, as far as they can wait. `before`
    /// are those of the last day, the oldest first.
    ///
    /// # Panics
    /// When a day may have none.
    pub fn keep_budget(&mut self, per_day: u32, before: impl IntoIterator<Item = Instant>) {
        assert!(per_day > 0, "a disk that may never turn is none");
        self.budget.per_day = Some(per_day);
        for at in before {
            self.budget.wakes.push_back(at);
            if self.budget.wakes.len() > per_day as usize {
                self.budget.wakes.pop_front();
            }
        }
    }

    /// How its budget of spin-ups stands, if it has one.
    #[must_use]
    pub fn spending(&self) -> Option<Spending> {
        let per_day = self.budget.per_day?;
        let day = u32::try_from(self.budget.day(self.now)).unwrap_or(per_day);
        let oldest = self.budget.waits().map(|(since, _)| since).min();
        Some(Spending {
            per_day,
            left: per_day.saturating_sub(day),
            put_off: oldest.map(|since| self.now.since(since)),
            overdrawn: self.budget.overdrawn,
        })
    }

    /// Whether what its disk is needed for wakes it now.
    pub(super) fn may_wake(&mut self) -> bool {
        let now = self.now;
        let is_made_anew = self.mends.pending() > 0
            || self.has_piece()
            || self.awake.regions().any(|(_, region)| region.frozen().is_some());
        let is_asked = !self.tasks.is_empty() || self.job.is_some() || self.to_scrub() > 0;
        let is_waited_for = is_asked || self.is_probed;
        if is_made_anew || is_waited_for || self.budget.has_room(now) {
            return true;
        }
        let folds = self.folds() + self.deltas.to_send() > 0;
        let scrub = self.scrub.is_late(now, self.awake.scrubbed(), self.blocks());
        let budget = &mut self.budget;
        budget.folds = folds.then(|| budget.folds.unwrap_or(now));
        budget.scrub = scrub.then(|| budget.scrub.unwrap_or(now));
        budget.waits().any(|(_, until)| until <= now)
    }
}
