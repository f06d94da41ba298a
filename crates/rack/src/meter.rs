//! How often disks were woken, against what they may be: a bucket of tokens for each.
//!
//! A bucket holds an eighth of a day's spin-ups; the others drip into it over the day. So no 24
//! hours have more than the budget, a rack that is hardly read waits for nothing, and one that is
//! read all day has its spin-ups spread over it. A quarter of a bucket is kept for what is due
//! soon. Kept as one time for each disk: when its bucket will be full again.
//!
//! Not here: who may wake a disk all the same ([`crate::due`]).

use fulgurite_units::{Duration, Instant};

use crate::order::Budget;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Which part of a day's spin-ups may come at once.
const BURST: u32 = 8;
/// Which part of those is kept for what is due soon.
const RESERVE: u32 = 4;

/// What a budget comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    /// Between two tokens.
    every_ns: u64,
    /// How far ahead of an even pace a disk may be.
    ahead_ns: u64,
    /// The same for those who leave the reserve alone.
    plain_ns: u64,
}

/// From when on a group may be woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// By anybody.
    pub(crate) plain: Instant,
    /// By what is due soon.
    pub(crate) soon: Instant,
    /// It has lost so many disks that a rebuild is waited for by nobody's budget.
    pub(crate) in_danger: bool,
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        let per_day = budget.max_spinups_per_day.max(1);
        let burst = (per_day / BURST).max(1);
        let every_ns = DAY.as_nanos().div_ceil(u64::from((per_day - burst).max(1)));
        let ahead = u64::from(burst - 1);
        let reserve = u64::from(burst / RESERVE);
        Self {
            every_ns,
            ahead_ns: ahead * every_ns,
            plain_ns: ahead.saturating_sub(reserve) * every_ns,
        }
    }

    /// A disk is woken; `full` is when its bucket is full again.
    pub(crate) fn charge(&self, full: &mut Instant, now: Instant) {
        *full = Instant::from_nanos((*full).max(now).as_nanos().saturating_add(self.every_ns));
    }

    /// From when on a disk, or a group of which this is the latest of all disks, may be woken.
    pub(crate) fn room(&self, full: Instant, in_danger: bool) -> Room {
        let from = |ahead| Instant::from_nanos(full.as_nanos().saturating_sub(ahead));
        Room { plain: from(self.plain_ns), soon: from(self.ahead_ns), in_danger }
    }

    /// When a bucket is full again after wakes so long ago, the oldest first.
    pub(crate) fn after(
        &self,
        now: Instant,
        wakes: impl IntoIterator<Item = (Duration, u32)>,
    ) -> Instant {
        let (mut debt, mut last) = (0u64, u64::MAX);
        for (ago, count) in wakes {
            let ago = ago.as_nanos().min(last);
            debt = debt.saturating_sub(last - ago);
            debt = debt.saturating_add(self.every_ns.saturating_mul(u64::from(count)));
            last = ago;
        }
        let debt = if last == u64::MAX { 0 } else { debt.saturating_sub(last) };
        Instant::from_nanos(now.as_nanos().saturating_add(debt))
    }
}
