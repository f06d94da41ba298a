//! When each group is verified: its blobs read from all of their stacks and mended, so that a fault
//! of a disk that sleeps is found within a bounded time.
//!
//! ```text
//! age since it was whole verified:
//! 0 ------------ 1/2 ---------- 3/4 ------------------ 1   of the interval
//!     nothing        rides along     is woken for it       by now it is over
//! ```
//!
//! Half an interval is rest. Then a group is verified while it spins anyway; one that did not spin
//! is woken when three quarters are over, which leaves a quarter for the verification itself. It
//! goes piece by piece, of a class one group at a time, as groups of a class spin; where it was cut
//! off it goes on. What fails rests for an hour and is tried again.
//!
//! A state machine: what time it is and which groups spin is handed in, what is to be begun comes
//! out. By the time of day, since it has to outlast a start; a day that is set back counts as no
//! time.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_disks::GroupId;
use fulgurite_units::{BlobId, Duration, UnixTime};

use crate::index::ScrubRow;
use crate::limits::SCRUB_REST;

/// How often groups are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubPolicy {
    /// Each group is whole verified at least once in this time, if its disks can be used and are
    /// fast enough for what lies on them; none for never.
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
    /// All are.
    Whole,
    /// It could not be done now.
    Failed,
}

/// What is known of each group's verification.
#[derive(Debug)]
pub(crate) struct Scrubs {
    interval_ms: Option<u64>,
    groups: BTreeMap<GroupId, Known>,
    /// Before this time nothing is to be done.
    look_at_ms: u64,
}

#[derive(Debug)]
struct Known {
    class: u32,
    /// When it was whole verified, or is taken to have been for the first time.
    from_ms: u64,
    row: ScrubRow,
    is_running: bool,
    rest_until_ms: u64,
}

impl Scrubs {
    /// The groups of a rack, each with its class and with what the index has of it.
    pub(crate) fn new(
        policy: ScrubPolicy,
        groups: impl IntoIterator<Item = (GroupId, u32, ScrubRow)>,
    ) -> Self {
        let interval_ms = policy.interval.map(|interval| (interval.as_nanos() / 1_000_000).max(1));
        let groups: Vec<_> = groups.into_iter().collect();
        let count = crate::format::bytes(groups.len()).max(1);
        let known = |(number, (group, class, row)): (u64, (GroupId, u32, ScrubRow))| {
            // New groups begin at different ages, so that they do not all come at once.
            let head_start = interval_ms.unwrap_or(0) / 2 * number / count;
            let from_ms = row.whole_ms.unwrap_or_else(|| row.since_ms.saturating_sub(head_start));
            let known = Known { class, from_ms, row, is_running: false, rest_until_ms: 0 };
            (group, known)
        };
        let groups = (0..).zip(groups).map(known).collect();
        Self { interval_ms, groups, look_at_ms: 0 }
    }

    /// Groups of which a piece is to be verified now, each with the blob that the one before ended
    /// at. They are taken to run until [`Self::ended`].
    pub(crate) fn begin(
        &mut self,
        now: UnixTime,
        spins: impl Fn(GroupId) -> bool,
    ) -> Vec<(GroupId, Option<BlobId>)> {
        let now = now.as_millis();
        let Some(interval) = self.interval_ms.filter(|_| now >= self.look_at_ms) else {
            return Vec::new();
        };
        let mut busy: BTreeSet<u32> = BTreeSet::new();
        for known in self.groups.values_mut() {
            // Somebody set the clock back.
            known.from_ms = known.from_ms.min(now);
            if known.is_running {
                busy.insert(known.class);
            }
        }
        let mut wanted: Vec<(u64, GroupId)> = Vec::new();
        for (&group, known) in &self.groups {
            let is_due = known.row.is_asked || now >= known.from_ms + woken_from(interval);
            let may_ride = now >= known.from_ms + interval / 2 && spins(group);
            if !known.is_running && known.rest_until_ms <= now && (is_due || may_ride) {
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
        self.look_at_ms = self.next_look(now, interval);
        begun
    }

    /// A piece of a group's verification has ended.
    pub(crate) fn ended(&mut self, group: GroupId, piece: &Piece, now: UnixTime) {
        self.look_at_ms = 0;
        let now = now.as_millis();
        let Some(known) = self.groups.get_mut(&group) else { return };
        known.is_running = false;
        match piece {
            Piece::UpTo(blob) => known.row.after = Some(*blob),
            Piece::Whole => self.verified(group, now),
            Piece::Failed => {
                known.rest_until_ms = now + SCRUB_REST.as_nanos() / 1_000_000;
            }
        }
    }

    /// A group was whole verified, by whoever wanted it.
    pub(crate) fn verified(&mut self, group: GroupId, now_ms: u64) {
        self.look_at_ms = 0;
        let Some(known) = self.groups.get_mut(&group) else { return };
        known.from_ms = now_ms;
        known.row.whole_ms = Some(now_ms);
        (known.row.after, known.row.is_asked) = (None, false);
    }

    /// A group is to be verified from its beginning without delay.
    pub(crate) fn ask(&mut self, group: GroupId) {
        self.look_at_ms = 0;
        if let Some(known) = self.groups.get_mut(&group) {
            (known.row.after, known.row.is_asked) = (None, true);
        }
    }

    /// When there may be something to do; groups that come to spin are to be looked at before.
    pub(crate) fn deadline(&self) -> Option<UnixTime> {
        let interval = self.interval_ms?;
        let running = self.groups.values().filter(|known| known.is_running);
        let busy: BTreeSet<u32> = running.map(|known| known.class).collect();
        let waits = self.groups.values().filter(|known| !busy.contains(&known.class));
        let at = |known: &Known| {
            let due = if known.row.is_asked { 0 } else { known.from_ms + woken_from(interval) };
            due.max(known.rest_until_ms)
        };
        waits.map(at).min().map(UnixTime::from_millis)
    }

    /// When a group was last whole verified, and whether it is being verified.
    pub(crate) fn of(&self, group: GroupId) -> (Option<UnixTime>, bool) {
        let Some(known) = self.groups.get(&group) else { return (None, false) };
        let is_under_way = known.is_running || known.row.after.is_some();
        (known.row.whole_ms.map(UnixTime::from_millis), is_under_way)
    }

    /// The first time at which a group may want something, if none of them begins to spin later
    /// than it could ride.
    fn next_look(&self, now: u64, interval: u64) -> u64 {
        let ages = self.groups.values().map(|known| known.from_ms + interval / 2);
        let asked = self.groups.values().any(|known| known.row.is_asked);
        if asked { now } else { ages.min().unwrap_or(u64::MAX) }
    }
}

/// The age at which a group is woken.
const fn woken_from(interval: u64) -> u64 {
    interval / 4 * 3
}

#[cfg(test)]
mod tests;
