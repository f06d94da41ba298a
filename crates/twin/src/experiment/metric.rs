//! Numbers of a run by name: the fields of [`RunResult`] by their dotted paths, and a few made of
//! them.

use serde_json::Value;

use super::file::Unit;
use crate::glass::energy::{CRAB_ENERGY, METER_ENERGY, START_ENERGY};
use crate::glass::result::RunResult;

type Made = fn(&RunResult) -> f64;

/// Metrics made of fields.
const MADE: [(&str, Made); 8] = [
    ("utilization", |run| run.drive_time.read + run.drive_time.verify),
    ("energy_per_operation", |run| per(energy(run), run.platter_operations)),
    ("starts_per_operation", |run| per(count(run.starts), run.platter_operations)),
    ("meters_per_operation", |run| per(run.meters, run.platter_operations)),
    ("crabs_per_operation", |run| per(count(run.crabs), run.platter_operations)),
    ("reads_per_fetch", |run| per(count(run.reads), run.fetches)),
    ("bytes_per_read", |run| per(count(run.bytes), run.reads)),
    ("steal_share", |run| per(count(run.steals), run.fetches)),
];

/// What a metric counts, and so in which units it can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Seconds.
    Time,
    /// A share, 1 for all.
    Share,
    /// Bytes.
    Bytes,
    /// Anything else.
    Number,
}

impl Dimension {
    /// What the metric of this name counts.
    pub(crate) fn of(metric: &str) -> Self {
        let (part, name) = metric.split_once('.').unwrap_or(("", metric));
        match part {
            "completion" | "travel" if name != "count" => Self::Time,
            "drive_time" => Self::Share,
            _ if name.ends_with("age_max") || name == "makespan" => Self::Time,
            _ if name.ends_with("bytes") || name == "bytes_per_read" => Self::Bytes,
            _ if name.ends_with("share") => Self::Share,
            _ if ["congestion", "utilization"].contains(&name) => Self::Share,
            _ => Self::Number,
        }
    }

    /// The unit that suits values of which this is the largest.
    pub(crate) fn unit(self, largest: f64) -> Unit {
        match self {
            Self::Time if largest < 1.0 => Unit::Milliseconds,
            Self::Time if largest < 120.0 => Unit::Seconds,
            Self::Time if largest < 7_200.0 => Unit::Minutes,
            Self::Time => Unit::Hours,
            Self::Share => Unit::Percent,
            Self::Bytes if largest < 1e9 => Unit::Megabytes,
            Self::Bytes if largest < 1e12 => Unit::Gigabytes,
            Self::Bytes => Unit::Terabytes,
            Self::Number => Unit::One,
        }
    }
}

/// A number of a run.
pub(crate) fn value(run: &RunResult, name: &str) -> Option<f64> {
    if let Some((_, made)) = MADE.iter().find(|(known, _)| *known == name) {
        return Some(made(run));
    }
    let tree = serde_json::to_value(run).ok()?;
    let mut place = &tree;
    for word in name.split('.') {
        place = place.get(word)?;
    }
    place.as_f64()
}

/// Every name a metric can have.
#[must_use]
pub fn metric_names() -> Vec<String> {
    let mut names: Vec<String> = MADE.iter().map(|(name, _)| (*name).to_owned()).collect();
    if let Ok(Value::Object(fields)) = serde_json::to_value(RunResult::default()) {
        for (name, value) in fields {
            match value {
                Value::Object(parts) => {
                    names.extend(parts.keys().map(|part| format!("{name}.{part}")));
                }
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_) => names.push(name),
            }
        }
    }
    names.sort();
    names
}

fn energy(run: &RunResult) -> f64 {
    START_ENERGY * count(run.starts) + METER_ENERGY * run.meters + CRAB_ENERGY * count(run.crabs)
}

fn per(amount: f64, of: u64) -> f64 {
    amount / count(of)
}

#[expect(clippy::cast_precision_loss, reason = "a count of a run is far below 2^53")]
fn count(count: u64) -> f64 {
    count as f64
}
