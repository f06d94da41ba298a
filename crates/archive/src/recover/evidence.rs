//! Evidence about each body, before any decision: where its bytes lie on glass and in logs, and the
//! content of its sealed entry.

use std::collections::BTreeMap;

use fulgurite_units::{ObjectId, UnixTime};

use crate::bodies::entry::Entry;
use crate::bodies::key_table::UsedSlot;
use crate::bodies::log::{Extent, LogKind};
use crate::model::classes::TierName;
use crate::rows::{BodyRow, Shard};

/// All bodies whose keys exist, by id.
pub(crate) type Bodies = BTreeMap<ObjectId, BodyEvidence>;

/// What platters, logs and a damaged catalog contain about a body.
#[derive(Debug, Default)]
pub(crate) struct BodyEvidence {
    pub(crate) known: Option<KnownEntry>,
    /// An entry that a start found to be unconfirmed.
    pub(crate) unconfirmed: Option<KnownEntry>,
    /// Ciphertext bytes according to file lists.
    pub(crate) listed_bytes: u64,
    /// By offset in the body; for each offset, shards of later sets last.
    pub(crate) shards: BTreeMap<u64, Vec<Shard>>,
    /// Ciphertext in logs.
    pub(crate) ranges: Vec<LoggedRange>,
    /// Headers, entries and padding in logs.
    pub(crate) framing: Vec<(LogKind, Extent)>,
    /// The tiers that hold all of it; the one at which puts are acknowledged comes last.
    pub(crate) tiers: Vec<TierName>,
    /// Its row in the damaged catalog.
    pub(crate) row: Option<Box<BodyRow>>,
}

/// The entry of a body, with what shows how recent it is.
#[derive(Debug)]
pub(crate) struct KnownEntry {
    pub(crate) entry: Box<Entry>,
    pub(crate) slot: UsedSlot,
    pub(crate) written: Option<WriteStamp>,
}

/// When a record was written: the run, and the time within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WriteStamp {
    pub(crate) run: u64,
    pub(crate) at: UnixTime,
    /// Number of its segment.
    pub(crate) segment: u32,
}

/// A contiguous range of a body's ciphertext in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedRange {
    pub(crate) kind: LogKind,
    pub(crate) extent: Extent,
    pub(crate) body_offset: u64,
}

impl BodyEvidence {
    /// Stores an entry, unless a later one is known.
    pub(crate) fn record_entry(&mut self, known: KnownEntry) {
        let is_later = self.known.as_ref().is_none_or(|before| before.written < known.written);
        if is_later {
            self.known = Some(known);
        }
    }

    /// Returns the extents in one log that hold all `bytes` of the ciphertext, in order; `None` if
    /// any is missing. An empty body only has an entry in the log.
    pub(crate) fn log_extents(&self, bytes: u64) -> Option<(LogKind, Vec<Extent>)> {
        if let [only] = self.ranges[..] {
            let is_all = only.body_offset == 0 && only.extent.bytes == bytes;
            return is_all.then(|| (only.kind, vec![only.extent]));
        }
        let mut by_offset: BTreeMap<u64, LoggedRange> = BTreeMap::new();
        for &range in &self.ranges {
            // A body is written once. Of two ranges at one offset, the shorter one was interrupted.
            let longest = by_offset.entry(range.body_offset).or_insert(range);
            if longest.extent.bytes < range.extent.bytes {
                *longest = range;
            }
        }
        let entry = self.framing.first().filter(|_| bytes == 0).map(|&(kind, _)| kind);
        let kind = self.ranges.first().map(|range| range.kind).or(entry);
        let mut end = 0;
        let mut extents = Vec::with_capacity(by_offset.len());
        for (offset, range) in by_offset {
            if offset != end || Some(range.kind) != kind {
                return None;
            }
            end += range.extent.bytes;
            extents.push(range.extent);
        }
        (end == bytes).then_some((kind?, extents))
    }
}

impl BodyEvidence {
    /// Merges what another segment holds of the body.
    pub(crate) fn add(&mut self, mut more: Self) {
        if let Some(known) = more.known.take() {
            self.record_entry(known);
        }
        self.unconfirmed = more.unconfirmed.take().or_else(|| self.unconfirmed.take());
        self.ranges.append(&mut more.ranges);
        self.framing.append(&mut more.framing);
    }

    /// Returns the framing in the log `kind`.
    pub(crate) fn framing_in(&self, kind: LogKind) -> Vec<Extent> {
        self.framing.iter().filter(|(log, _)| *log == kind).map(|&(_, extent)| extent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ranges: &[(LogKind, u64, u64)]) -> BodyEvidence {
        let range = |&(kind, body_offset, bytes): &(LogKind, u64, u64)| {
            let extent = Extent { segment: 1, offset: 64 + body_offset, bytes };
            LoggedRange { kind, extent, body_offset }
        };
        BodyEvidence { ranges: ranges.iter().map(range).collect(), ..BodyEvidence::default() }
    }

    #[track_caller]
    fn check(ranges: &[(LogKind, u64, u64)], bytes: u64, expected: Option<usize>) {
        let log_extents = found(ranges).log_extents(bytes);
        assert_eq!(log_extents.map(|(_, extents)| extents.len()), expected);
    }

    #[test]
    fn body_is_complete_when_ranges_leave_no_gap() {
        use LogKind::{Online, Staging};
        check(&[(Staging, 0, 10)], 10, Some(1));
        check(&[(Staging, 10, 5), (Staging, 0, 10)], 15, Some(2));
        check(&[(Staging, 10, 5), (Staging, 0, 9)], 15, None);
        check(&[(Staging, 0, 10)], 11, None);
        check(&[(Staging, 0, 4), (Staging, 0, 10)], 10, Some(1));
        check(&[(Staging, 0, 10), (Online, 10, 5)], 15, None);
        check(&[(Online, 0, 0)], 0, Some(1));
        check(&[], 0, None);
    }

    #[test]
    fn empty_body_is_located_by_its_entry() {
        let entry = (LogKind::Online, Extent { segment: 1, offset: 64, bytes: 256 });
        let found = BodyEvidence { framing: vec![entry], ..BodyEvidence::default() };
        assert_eq!(found.log_extents(0), Some((LogKind::Online, Vec::new())));
        assert_eq!(found.log_extents(10), None);
    }
}
