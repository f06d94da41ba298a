//! Measurements of a run of several sites.

use serde::{Deserialize, Serialize};

use super::site::SiteUsage;
use crate::engine::histogram::{Histogram, Quantiles};
use crate::metrics::{DerivedMetric, Dimension, Measured};

/// Measurements of a run. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// Latency of writes.
    pub put: Quantiles,
    /// Latency of reads.
    pub get: Quantiles,
    /// Time until the version of a write was decided.
    pub metadata: Quantiles,
    /// Part of it: reading the nearest row.
    pub query: Quantiles,
    /// Part of it: round trips to the deciding sites.
    pub transfer: Quantiles,
    /// Part of it: row operations at those sites.
    pub table: Quantiles,
    /// Time to heal an object.
    pub heal: Quantiles,
    /// Writes that were acknowledged.
    pub puts: u64,
    /// Reads that got their bytes.
    pub gets: u64,
    /// Writes and reads that failed.
    pub failed: u64,
    /// Share of writes decided in one fast round.
    pub fast: f64,
    /// Mean rounds between sites per write.
    pub put_rounds: f64,
    /// Maximum rounds between sites of a write.
    pub put_rounds_max: u64,
    /// Mean rounds between sites per read.
    pub get_rounds: f64,
    /// Fragment bytes sent between sites for each byte written.
    pub put_crossed: f64,
    /// Fragment bytes sent between sites for each byte read.
    pub get_crossed: f64,
    /// Fragment bytes fetched for each byte read.
    pub get_fetched: f64,
    /// Bytes sent between sites for each byte of a rebuilt fragment.
    pub rebuild_crossed: f64,
    /// Rebuilt fragments.
    pub rebuilt: u64,
    /// Row bytes sent between sites, per write.
    pub row_crossed: f64,
    /// Bytes stored for each user byte, including the sites' own redundancy, without rows.
    pub stored: f64,
    /// Bytes of rows, per write and voting site.
    pub row_bytes: f64,
    /// Fragments written, per write.
    pub fragment_writes: f64,
    /// Fragments read, per read.
    pub fragment_reads: f64,
    /// Rows changed, per write.
    pub row_updates: f64,
    /// Rows read by a write and its reads, per write.
    pub row_reads: f64,
    /// Simulated time.
    pub makespan: f64,
    /// Number of events.
    pub events: u64,
    /// Hash of the run: it differs as soon as any event, its order or its time differs.
    pub hash: u64,
    /// Usage of each site.
    #[serde(skip)]
    pub sites: Vec<SiteUsage>,
}

impl Measured for RunResult {
    const DERIVED_METRICS: &'static [DerivedMetric<Self>] = &[
        ("table_over_transfer", |run| (run.table.p50 + run.query.p50) / run.transfer.p50),
        ("transfer_share", |run| run.transfer.p50 / run.metadata.p50),
        // Two full copies at sites that store 1.3 bytes for each byte (section 2.3).
        ("saved_of_two_copies", |run| 1.0 - run.stored / 2.6),
        ("puts_per_s", |run| over(run.puts, run.makespan)),
        ("requests", |run| run.fragment_writes + run.row_updates + run.row_reads),
        ("put_spread", |run| if run.put.p50 > 0.0 { run.put.p99 / run.put.p50 } else { 0.0 }),
    ];

    fn seed(&self) -> u64 {
        self.seed
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn dimension(metric: &str) -> Dimension {
        const TIMES: [&str; 7] =
            ["put.", "get.", "metadata.", "query.", "transfer.", "table.", "heal."];
        match metric {
            "makespan" => Dimension::Time,
            "fast" => Dimension::Share,
            "row_bytes" | "row_crossed" => Dimension::Bytes,
            _ if metric.ends_with(".count") => Dimension::Number,
            _ if TIMES.iter().any(|of| metric.starts_with(of)) => Dimension::Time,
            _ => Dimension::Number,
        }
    }
}

/// Counters of a run.
#[derive(Debug, Default)]
pub(super) struct Stats {
    pub(super) put: Histogram,
    pub(super) get: Histogram,
    pub(super) metadata: Histogram,
    pub(super) query: Histogram,
    pub(super) transfer: Histogram,
    pub(super) table: Histogram,
    pub(super) heal: Histogram,
    pub(super) puts: u64,
    pub(super) gets: u64,
    pub(super) failed: u64,
    pub(super) fast: u64,
    pub(super) decided: u64,
    pub(super) put_rounds: u64,
    pub(super) put_rounds_max: u64,
    pub(super) get_rounds: u64,
    pub(super) put_crossed: u64,
    pub(super) get_crossed: u64,
    pub(super) fetched: u64,
    pub(super) rebuild_crossed: u64,
    pub(super) rebuilt_bytes: u64,
    pub(super) rebuilt: u64,
    pub(super) row_crossed: u64,
    /// Fragment reads by reads, without those by healing.
    pub(super) fragment_reads: u64,
}

impl Stats {
    /// Computes the result, for objects of this size at sites that store `stored_for_each` bytes
    /// per byte.
    pub(super) fn result(
        self,
        sites: Vec<SiteUsage>,
        size: u64,
        stored_for_each: f64,
    ) -> RunResult {
        let all = |of: fn(&SiteUsage) -> u64| sites.iter().map(of).sum::<u64>();
        let written = to_f64(self.puts * size);
        let voting = sites.iter().filter(|site| site.row_bytes > 0).count() as u64;
        RunResult {
            put: self.put.quantiles(),
            get: self.get.quantiles(),
            metadata: self.metadata.quantiles(),
            query: self.query.quantiles(),
            transfer: self.transfer.quantiles(),
            table: self.table.quantiles(),
            heal: self.heal.quantiles(),
            puts: self.puts,
            gets: self.gets,
            failed: self.failed,
            fast: over(self.fast, to_f64(self.decided)),
            put_rounds: over(self.put_rounds, to_f64(self.decided)),
            put_rounds_max: self.put_rounds_max,
            get_rounds: over(self.get_rounds, to_f64(self.gets)),
            put_crossed: over(self.put_crossed, written),
            get_crossed: over(self.get_crossed, to_f64(self.gets * size)),
            get_fetched: over(self.fetched, to_f64(self.gets * size)),
            rebuild_crossed: over(self.rebuild_crossed, to_f64(self.rebuilt_bytes)),
            rebuilt: self.rebuilt,
            row_crossed: over(self.row_crossed, to_f64(self.puts)),
            stored: over(all(|site| site.fragment_bytes), written) * stored_for_each,
            row_bytes: over(all(|site| site.row_bytes), to_f64(self.puts * voting)),
            fragment_writes: over(all(|site| site.fragment_writes), to_f64(self.puts)),
            fragment_reads: over(self.fragment_reads, to_f64(self.gets)),
            row_updates: over(all(|site| site.row_updates), to_f64(self.puts)),
            row_reads: over(all(|site| site.row_reads), to_f64(self.puts)),
            sites,
            ..RunResult::default()
        }
    }
}

/// Divides a count; zero if the divisor is zero.
fn over(count: u64, divisor: f64) -> f64 {
    if divisor > 0.0 { to_f64(count) / divisor } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 of anything are counted")]
pub(super) const fn to_f64(count: u64) -> f64 {
    count as f64
}
