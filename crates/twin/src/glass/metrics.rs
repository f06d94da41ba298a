//! Metrics of a run of a glass library by name: its fields, and a few derived ones.

use crate::glass::energy::{CRAB_ENERGY, METER_ENERGY, START_ENERGY};
use crate::glass::result::RunResult;
use crate::metrics::{DerivedMetric, Dimension, Measured};

/// Derived metrics.
const DERIVED_METRICS: [DerivedMetric<RunResult>; 8] = [
    ("utilization", |run| run.drive_time.read + run.drive_time.verify),
    ("energy_per_operation", energy_per_operation),
    ("starts_per_operation", |run| per(count(run.starts), run.platter_operations)),
    ("meters_per_operation", |run| per(run.meters, run.platter_operations)),
    ("crabs_per_operation", |run| per(count(run.crabs), run.platter_operations)),
    ("reads_per_fetch", |run| per(count(run.reads), run.fetches)),
    ("bytes_per_read", |run| per(count(run.bytes), run.reads)),
    ("steal_share", |run| per(count(run.steals), run.fetches)),
];

impl Measured for RunResult {
    const DERIVED_METRICS: &'static [DerivedMetric<Self>] = &DERIVED_METRICS;

    fn seed(&self) -> u64 {
        self.seed
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn dimension(metric: &str) -> Dimension {
        let (part, name) = metric.split_once('.').unwrap_or(("", metric));
        match part {
            "completion" | "travel" if name != "count" => Dimension::Time,
            "drive_time" => Dimension::Share,
            "restores" if name == "busy" => Dimension::Share,
            "restores" if name != "visits" && !name.ends_with("count") => Dimension::Time,
            _ if name.ends_with("age_max") || name == "makespan" => Dimension::Time,
            _ if name.ends_with("bytes") || name == "bytes_per_read" => Dimension::Bytes,
            _ if name.ends_with("share") => Dimension::Share,
            _ if ["congestion", "utilization"].contains(&name) => Dimension::Share,
            _ => Dimension::Number,
        }
    }
}

/// Returns the energy per operation by the paper's weights, in starts.
pub(super) fn energy_per_operation(run: &RunResult) -> f64 {
    per(energy(run), run.platter_operations)
}

fn energy(run: &RunResult) -> f64 {
    START_ENERGY * count(run.starts) + METER_ENERGY * run.meters + CRAB_ENERGY * count(run.crabs)
}

fn per(amount: f64, divisor: u64) -> f64 {
    amount / count(divisor)
}

#[expect(clippy::cast_precision_loss, reason = "a count of a run is far below 2^53")]
fn count(count: u64) -> f64 {
    count as f64
}
