//! The maximum spin-ups of a group's disks in a day: an independent count to check a spin-up budget
//! against.

use std::collections::{BTreeMap, VecDeque};

use fulgurite_units::{Duration, Instant};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Spin-ups of the last 24 hours, by group.
#[derive(Debug, Default)]
pub(crate) struct SpinUpCounter {
    last: BTreeMap<u32, VecDeque<Instant>>,
    most: usize,
}

impl SpinUpCounter {
    /// Counts a spin-up of a group's disks.
    pub(crate) fn record(&mut self, now: Instant, group: u32) {
        let last = self.last.entry(group).or_default();
        while last.front().is_some_and(|at| now.since(*at) >= DAY) {
            last.pop_front();
        }
        last.push_back(now);
        self.most = self.most.max(last.len());
    }

    /// Returns the maximum of any group in any 24 hours since the beginning of the run.
    pub(crate) fn most(&self) -> u64 {
        u64::try_from(self.most).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{Duration, Instant};

    use super::SpinUpCounter;

    #[test]
    fn day_is_any_24_hours() {
        let mut spins = SpinUpCounter::default();
        let at = |hours: u64| Instant::ZERO + Duration::from_secs(hours * 3600);
        for hours in [1, 20, 25, 26, 44] {
            spins.record(at(hours), 0);
        }
        spins.record(at(26), 1);
        // Those of hours 20, 25 and 26; at 44 the first of them is a whole day ago.
        assert_eq!(spins.most(), 3);
    }
}
