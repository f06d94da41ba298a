//! Token buckets that limit how often each disk is spun up.
//!
//! A bucket holds an eighth of a day's spin-ups, and is refilled with the others over the day. So
//! no 24 hours exceed the budget, a rack that is rarely read never waits, and one that is read all
//! day has its spin-ups spread over it. A quarter of a bucket is reserved for operations due soon.
//! The state is one time per disk: when its bucket will be full again.
//!
//! Not here: which operations may exceed the budget ([`crate::due`]).

use fulgurite_units::{Duration, Instant};

use crate::order::Budget;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// One part in this many of a day's spin-ups may come as a burst.
const BURST: u32 = 8;
/// One part in this many of a burst is reserved for operations due soon.
const RESERVE: u32 = 4;

/// Parameters derived from a budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    /// Time between two tokens.
    token_interval_ns: u64,
    /// How far ahead of the even rate a disk may be.
    burst_ns: u64,
    /// The same without using the reserve.
    plain_ns: u64,
}

/// When a group may be spun up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// By any operation.
    pub(crate) plain: Instant,
    /// By operations due soon.
    pub(crate) soon: Instant,
    /// Whether it has lost so many disks that a rebuild does not wait for the budget.
    pub(crate) in_danger: bool,
}

impl TokenBucket {
    pub(crate) fn new(budget: Budget) -> Self {
        let per_day = budget.max_spinups_per_day.max(1);
        let burst = (per_day / BURST).max(1);
        let token_interval_ns = DAY.as_nanos().div_ceil(u64::from((per_day - burst).max(1)));
        let ahead = u64::from(burst - 1);
        let reserve = u64::from(burst / RESERVE);
        Self {
            token_interval_ns,
            burst_ns: ahead * token_interval_ns,
            plain_ns: ahead.saturating_sub(reserve) * token_interval_ns,
        }
    }

    /// Charges a spin-up; `full_at` is when the bucket of the disk is full again.
    pub(crate) fn charge(&self, full_at: &mut Instant, now: Instant) {
        *full_at = Instant::from_nanos(
            (*full_at).max(now).as_nanos().saturating_add(self.token_interval_ns),
        );
    }

    /// Returns when a disk may be spun up, or a group of which `full_at` is the latest of all
    /// disks.
    pub(crate) fn allowance(&self, full_at: Instant, in_danger: bool) -> Allowance {
        let from = |ahead| Instant::from_nanos(full_at.as_nanos().saturating_sub(ahead));
        Allowance { plain: from(self.plain_ns), soon: from(self.burst_ns), in_danger }
    }

    /// Returns when a bucket is full again after past spin-ups, given by age, oldest first.
    pub(crate) fn full_after(
        &self,
        now: Instant,
        spin_ups: impl IntoIterator<Item = (Duration, u32)>,
    ) -> Instant {
        let (mut debt, mut last) = (0u64, u64::MAX);
        for (age, count) in spin_ups {
            let age = age.as_nanos().min(last);
            debt = debt.saturating_sub(last - age);
            debt = debt.saturating_add(self.token_interval_ns.saturating_mul(u64::from(count)));
            last = age;
        }
        let debt = if last == u64::MAX { 0 } else { debt.saturating_sub(last) };
        Instant::from_nanos(now.as_nanos().saturating_add(debt))
    }
}
