//! A simulated site: rows that change through the same function that live sites use, fragments, and
//! usage counters.

use std::collections::BTreeMap;

use fulgurite_geo_core::{Epoch, Fragment, Request, Row, SiteState, Verdict, WriteId, step};
use fulgurite_units::{Duration, Instant};

/// The epoch of the map: sites are not replaced here.
pub(super) const EPOCH: Epoch = Epoch(1);

/// Usage of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteUsage {
    /// Bytes sent to other sites.
    pub sent: u64,
    /// Of these, bytes sent for writes.
    pub sent_by_puts: u64,
    /// Fragment bytes that it stores.
    pub fragment_bytes: u64,
    /// Row bytes that it stores.
    pub row_bytes: u64,
    /// Fragments written.
    pub fragment_writes: u64,
    /// Fragments read.
    pub fragment_reads: u64,
    /// Rows changed.
    pub row_updates: u64,
    /// Rows read.
    pub row_reads: u64,
}

#[derive(Debug)]
pub(super) struct Site {
    pub(super) up: bool,
    rows: BTreeMap<u64, Row>,
    /// Per row, the time until which its node is busy with it.
    busy: BTreeMap<u64, Instant>,
    fragments: BTreeMap<(WriteId, u8), u64>,
    pub(super) used: SiteUsage,
}

impl Site {
    pub(super) fn new(up: bool) -> Self {
        let (rows, busy, fragments) = Default::default();
        Self { up, rows, busy, fragments, used: SiteUsage::default() }
    }

    /// Returns when a request for a row that arrives now is finished: requests for a row are served
    /// in order of arrival.
    pub(super) fn serve(&mut self, key: u64, now: Instant, takes: Duration) -> Instant {
        let busy = self.busy.entry(key).or_insert(now);
        *busy = now.max(*busy) + takes;
        *busy
    }

    /// Applies a request to a row.
    pub(super) fn apply(&mut self, key: u64, request: &Request) -> (Verdict, Row) {
        let standing = SiteState { epoch: EPOCH, rebuilding: false };
        let stepped = step(self.rows.get(&key), request, standing);
        if stepped.changed {
            self.used.row_updates += 1;
            self.rows.insert(key, stepped.row.clone());
        } else {
            self.used.row_reads += 1;
        }
        (stepped.verdict, stepped.row)
    }

    pub(super) fn has(&self, fragment: Fragment) -> bool {
        self.fragments.contains_key(&(fragment.write, fragment.index))
    }

    pub(super) fn write(&mut self, fragment: Fragment, bytes: u64) {
        self.used.fragment_writes += 1;
        self.fragments.insert((fragment.write, fragment.index), bytes);
    }

    /// Loses all fragments.
    pub(super) fn lose(&mut self) {
        self.fragments.clear();
    }

    /// Returns the usage, with the bytes stored now.
    pub(super) fn usage(&self) -> SiteUsage {
        let size = |row: &Row| row.encode().map_or(0, |bytes| bytes.len() as u64);
        SiteUsage {
            fragment_bytes: self.fragments.values().sum(),
            row_bytes: self.rows.values().map(size).sum(),
            ..self.used
        }
    }
}
