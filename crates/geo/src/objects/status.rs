//! Status of a namespace over sites.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use futures::stream::TryStreamExt as _;
use serde::{Deserialize, Serialize};

use crate::objects::Result;
use crate::objects::cache::FragmentCache;
use crate::objects::limits::UNDECIDED_NAMED_MAX;
use crate::objects::listing::all;
use crate::objects::map::SiteEntry;
use crate::objects::store::GeoStore;
use crate::objects::undecided_versions::UndecidedReport;

/// Snapshot of a namespace over sites, as this program sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// The epoch of its map.
    pub epoch: u32,
    /// Number of data fragments and of parity fragments.
    pub code: (u8, u8),
    /// Quorum sizes: of a promise, of a classic round, and of a fast round.
    pub quorums: (usize, usize, usize),
    /// Seconds since enough sites last confirmed the map.
    pub confirmed_seconds_ago: u64,
    /// Its sites.
    pub sites: Vec<SiteSnapshot>,
    /// Writes that took the fast path, and those that took the slow one.
    pub writes_fast: u64,
    /// See [`Self::writes_fast`].
    pub writes_slow: u64,
    /// Writes whose condition was not met.
    pub writes_refused: u64,
    /// Writes that failed and had no effect.
    pub writes_failed: u64,
    /// Writes with an unknown outcome.
    pub writes_indeterminate: u64,
    /// Rounds between sites for writes.
    pub write_rounds: u64,
    /// Reads.
    pub reads: u64,
    /// Rounds between sites for reads.
    pub read_rounds: u64,
    /// Reads for which too few sites answered.
    pub reads_unavailable: u64,
    /// Reads that met a lost version.
    pub reads_lost: u64,
    /// Reads of versions that are not known to be durable.
    pub reads_unsure: u64,
    /// Hints that this program wrote and has not processed.
    pub hints: u64,
    /// Objects with an undecided version that this program met and has not seen decided since.
    pub undecided: u64,
    /// Age of the oldest of those, in seconds.
    pub oldest_undecided_seconds: u64,
    /// Fragments that were rebuilt.
    pub fragments_rebuilt: u64,
    /// Versions that were garbage-collected.
    pub versions_collected: u64,
    /// Orphan fragments that were removed.
    pub fragments_swept: u64,
    /// Hits and misses in the cache of other sites' fragments.
    pub cache_hits: u64,
    /// See [`Self::cache_hits`].
    pub cache_misses: u64,
    /// Bytes of fragments in that cache.
    pub cache_bytes: u64,
}

/// Snapshot of a site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct SiteSnapshot {
    /// Its name.
    pub name: String,
    /// Whether it votes.
    pub votes: bool,
    /// Whether it holds fragments.
    pub holds: bool,
    /// Whether its content was lost and is being rebuilt.
    pub rebuilding: bool,
    /// Whether its stores could be opened, and have answered lately.
    pub up: bool,
    /// Typical latency of its rows, in milliseconds.
    pub row_ms: f64,
    /// Requests for rows, and the calls to its table that they took.
    pub row_requests: u64,
    /// See [`Self::row_requests`].
    pub row_calls: u64,
    /// Requests for rows that failed.
    pub row_failures: u64,
    /// Bytes of fragments that were written there.
    pub bytes_written: u64,
    /// Bytes of fragments that were read there.
    pub bytes_read: u64,
    /// Calls for fragments that failed.
    pub blob_failures: u64,
    /// Its last error, while it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether its table is an older copy, which is no longer used.
    #[serde(default)]
    pub table_is_older: bool,
    /// Whether its blobs are an older copy, which lacks what was written since.
    #[serde(default)]
    pub blobs_are_older: bool,
}

impl Snapshot {
    /// Whether all sites are up and complete, and no version is lost.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        let is_healthy = |site: &SiteSnapshot| site.up && !site.rebuilding && !site.blobs_are_older;
        self.sites.iter().all(is_healthy) && self.reads_lost == 0
    }

    /// Returns why it is not healthy: a line per reason, with the names of sites; empty if it is.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.sites.iter().filter_map(SiteSnapshot::reason).collect();
        if self.reads_lost > 0 {
            reasons.push(format!("{} reads found a lost version", self.reads_lost));
        }
        reasons
    }
}

impl SiteSnapshot {
    fn reason(&self) -> Option<String> {
        let name = &self.name;
        match &self.failure {
            Some(why) if !self.up => Some(format!("site {name} did not answer lately: {why}")),
            None if !self.up => Some(format!("site {name} could not be opened")),
            _ if self.rebuilding => Some(format!("site {name} is being rebuilt")),
            _ if self.table_is_older => Some(format!("site {name} has an older copy of its table")),
            _ if self.blobs_are_older => Some(format!("site {name} has older copies of fragments")),
            Some(_) | None => None,
        }
    }
}

impl GeoStore {
    /// Scans the rows of all objects for undecided versions, and leaves them undecided. It costs as
    /// much as a listing of all.
    ///
    /// # Errors
    /// If the objects cannot be listed.
    pub fn undecided_report(&self) -> BoxFuture<'_, Result<UndecidedReport>> {
        Box::pin(async move {
            let live = self.0.live().await?;
            let (mut all, mut report) =
                (std::pin::pin!(all(&live, None)?), UndecidedReport::default());
            while let Some(row) = all.try_next().await? {
                let last = row.known.last();
                self.0.ctx.undecided.record(&row.key, row.open, last);
                let Some(open) = row.open.filter(|open| open.version > last) else { continue };
                let now = self.0.clock.now();
                let seconds = now.since(open.since(now)).as_nanos() / 1_000_000_000;
                report.versions += 1;
                report.oldest_seconds = report.oldest_seconds.max(seconds);
                if report.objects.len() < UNDECIDED_NAMED_MAX {
                    report.objects.push(row.key);
                }
            }
            Ok(report)
        })
    }

    /// Returns a snapshot of the namespace.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let live = self.0.any_live();
        let confirmed = self.0.confirmed.lock();
        let confirmed = *confirmed.unwrap_or_else(std::sync::PoisonError::into_inner);
        let cache = self.0.cache.as_ref().map(FragmentCache::counts).unwrap_or_default();
        let (tally, sizes) = (&self.0.tally, live.quorums());
        let report = self.0.ctx.undecided.undecided_report(0);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            name: live.map.name.clone(),
            epoch: live.map.epoch,
            code: (live.map.data, live.map.parity),
            quorums: (sizes.promise(), sizes.classic(), sizes.fast()),
            confirmed_seconds_ago: confirmed.elapsed().as_secs(),
            sites: live.sites().iter().zip(&live.map.sites).map(site).collect(),
            writes_fast: get(&tally.fast),
            writes_slow: get(&tally.slow),
            writes_refused: get(&tally.refused),
            writes_failed: get(&tally.failed),
            writes_indeterminate: get(&tally.indeterminate),
            write_rounds: get(&tally.write_rounds),
            reads: get(&tally.reads),
            read_rounds: get(&tally.read_rounds),
            reads_unavailable: get(&tally.unavailable),
            reads_lost: get(&tally.lost),
            reads_unsure: get(&tally.unsure),
            hints: get(&self.0.hints),
            undecided: report.versions,
            oldest_undecided_seconds: report.oldest_seconds,
            fragments_rebuilt: get(&tally.rebuilt),
            versions_collected: get(&tally.collected),
            fragments_swept: get(&tally.swept),
            cache_hits: cache.hits,
            cache_misses: cache.misses,
            cache_bytes: cache.bytes,
        }
    }
}

fn site((site, entry): (&Arc<crate::objects::site::Site>, &SiteEntry)) -> SiteSnapshot {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (votes, holds) = (entry.table.is_some(), entry.blobs.is_some());
    let open = site.table.is_some() == votes && site.blobs.is_some() == holds;
    SiteSnapshot {
        name: site.name.clone(),
        votes,
        holds,
        rebuilding: site.state.rebuilding,
        up: open && !site.is_down(),
        row_ms: site.distance() * 1000.0,
        row_requests: get(&site.counts.rows),
        row_calls: get(&site.counts.row_calls),
        row_failures: get(&site.counts.row_failures),
        bytes_written: get(&site.counts.written),
        bytes_read: get(&site.counts.read),
        blob_failures: get(&site.counts.blob_failures),
        failure: site.last_error(),
        table_is_older: site.is_table_older(),
        blobs_are_older: site.are_blobs_older(),
    }
}
