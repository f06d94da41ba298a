//! Schedules the verification (scrub) of each group. Its blobs are read from all of their stacks
//! and repaired, so that a latent fault of a spun-down disk is found within a bounded time.
//!
//! ```text
//! age since the last full verification:
//! 0 ------------ 1/2 ---------- 3/4 ------------------ 1   of the interval
//!     nothing        rides along     spun up for it        over by now
//! ```
//!
//! Nothing happens for the first half of the interval. Then a group is verified while it spins
//! anyway. A group that did not spin by three quarters is spun up, which leaves a quarter for the
//! verification itself. It goes piece by piece, one group of a class at a time, as groups of a
//! class spin. An interrupted one resumes at its cursor. A failed one is retried after an hour.
//!
//! A state machine: the time and the spinning groups are passed in, and the pieces to begin are
//! returned. It uses wall-clock time because the schedule must survive restarts; a clock that is
//! set back counts as no time passed.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_disks::GroupId;
use fulgurite_units::{BlobId, Duration, UnixTime};

use crate::index::ScrubRow;
use crate::limits::SCRUB_BACKOFF;

/// How often groups are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubPolicy {
    /// Each group is fully verified at least once in this time, if its disks can be used and are
    /// fast enough for what they hold; none for never.
    pub interval: Option<Duration>,
}

impl Default for ScrubPolicy {
    fn default() -> Self {
        Self { interval: Some(Duration::from_secs(30 * 86_400)) }
    }
}

/// How a piece of a verification ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The blobs up to this one are verified.
    UpTo(BlobId),
    /// The whole group is verified.
    Whole,
    /// It could not be done now.
    Failed,
}

/// The verification state of each group.
#[derive(Debug)]
pub(crate) struct Scrubs {
    interval_ms: Option<u64>,
    groups: BTreeMap<GroupId, GroupScrub>,
    /// Nothing is due before this time.
    check_at_ms: u64,
}

#[derive(Debug)]
struct GroupScrub {
    class: u32,
    /// When it was last fully verified, or an assumed time if it never was.
    from_ms: u64,
    row: ScrubRow,
    is_running: bool,
    backoff_until_ms: u64,
}

impl Scrubs {
    /// Creates the schedule of a rack's groups, each with its class and its row of the index.
    pub(crate) fn new(
        policy: ScrubPolicy,
        groups: impl IntoIterator<Item = (GroupId, u32, ScrubRow)>,
    ) -> Self {
        let interval_ms = policy.interval.map(|interval| (interval.as_nanos() / 1_000_000).max(1));
        let groups: Vec<_> = groups.into_iter().collect();
        let count = crate::format::bytes(groups.len()).max(1);
        let known = |(number, (group, class, row)): (u64, (GroupId, u32, ScrubRow))| {
            // New groups start at different ages, so that they are not all due at once.
            let head_start = interval_ms.unwrap_or(0) / 2 * number / count;
            let from_ms = row.whole_ms.unwrap_or_else(|| row.since_ms.saturating_sub(head_start));
            let known = GroupScrub { class, from_ms, row, is_running: false, backoff_until_ms: 0 };
            (group, known)
        };
        let groups = (0..).zip(groups).map(known).collect();
        Self { interval_ms, groups, check_at_ms: 0 }
    }

    /// Returns the groups of which a piece is to be verified now, each with the cursor of its
    /// previous piece. They count as running until [`Self::record_end`].
    pub(crate) fn begin(
        &mut self,
        now: UnixTime,
        spins: impl Fn(GroupId) -> bool,
    ) -> Vec<(GroupId, Option<BlobId>)> {
        let now = now.as_millis();
        let Some(interval) = self.interval_ms.filter(|_| now >= self.check_at_ms) else {
            return Vec::new();
        };
        let mut busy: BTreeSet<u32> = BTreeSet::new();
        for known in self.groups.values_mut() {
            // The clock was set back.
            known.from_ms = known.from_ms.min(now);
            if known.is_running {
                busy.insert(known.class);
            }
        }
        let mut wanted: Vec<(u64, GroupId)> = Vec::new();
        for (&group, known) in &self.groups {
            let is_due = known.row.is_asked || now >= known.from_ms + spin_up_age(interval);
            let may_ride = now >= known.from_ms + interval / 2 && spins(group);
            if !known.is_running && known.backoff_until_ms <= now && (is_due || may_ride) {
                wanted.push((known.from_ms, group));
            }
        }
        // The oldest of a class first.
        wanted.sort_unstable();
        let mut begun = Vec::new();
        for (_, group) in wanted {
            let Some(known) = self.groups.get_mut(&group) else { continue };
            if busy.insert(known.class) {
                known.is_running = true;
                begun.push((group, known.row.after));
            }
        }
        self.check_at_ms = self.next_check(now, interval);
        begun
    }

    /// Records how a piece of a group's verification ended.
    pub(crate) fn record_end(&mut self, group: GroupId, piece: &Piece, now: UnixTime) {
        self.check_at_ms = 0;
        let now = now.as_millis();
        let Some(known) = self.groups.get_mut(&group) else { return };
        known.is_running = false;
        match piece {
            Piece::UpTo(blob) => known.row.after = Some(*blob),
            Piece::Whole => self.verified(group, now),
            Piece::Failed => {
                known.backoff_until_ms = now + SCRUB_BACKOFF.as_nanos() / 1_000_000;
            }
        }
    }

    /// Records that a group was fully verified, by whatever request.
    pub(crate) fn verified(&mut self, group: GroupId, now_ms: u64) {
        self.check_at_ms = 0;
        let Some(known) = self.groups.get_mut(&group) else { return };
        known.from_ms = now_ms;
        known.row.whole_ms = Some(now_ms);
        (known.row.after, known.row.is_asked) = (None, false);
    }

    /// Requests a verification of a group from its beginning without delay.
    pub(crate) fn request(&mut self, group: GroupId) {
        self.check_at_ms = 0;
        if let Some(known) = self.groups.get_mut(&group) {
            (known.row.after, known.row.is_asked) = (None, true);
        }
    }

    /// Returns when something may be due. A group that begins to spin may be due earlier.
    pub(crate) fn deadline(&self) -> Option<UnixTime> {
        let interval = self.interval_ms?;
        let running = self.groups.values().filter(|known| known.is_running);
        let busy: BTreeSet<u32> = running.map(|known| known.class).collect();
        let waits = self.groups.values().filter(|known| !busy.contains(&known.class));
        let at = |known: &GroupScrub| {
            let due = if known.row.is_asked { 0 } else { known.from_ms + spin_up_age(interval) };
            due.max(known.backoff_until_ms)
        };
        waits.map(at).min().map(UnixTime::from_millis)
    }

    /// Returns when a group was last fully verified, and whether it is being verified.
    pub(crate) fn status(&self, group: GroupId) -> (Option<UnixTime>, bool) {
        let Some(known) = self.groups.get(&group) else { return (None, false) };
        let is_under_way = known.is_running || known.row.after.is_some();
        (known.row.whole_ms.map(UnixTime::from_millis), is_under_way)
    }

    /// Returns the earliest time at which a group may be due, spinning or not.
    fn next_check(&self, now: u64, interval: u64) -> u64 {
        let ages = self.groups.values().map(|known| known.from_ms + interval / 2);
        let has_request = self.groups.values().any(|known| known.row.is_asked);
        if has_request { now } else { ages.min().unwrap_or(u64::MAX) }
    }
}

/// Returns the age at which a group is spun up.
const fn spin_up_age(interval: u64) -> u64 {
    interval / 4 * 3
}

#[cfg(test)]
mod tests;
