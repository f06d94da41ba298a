//! Numbers of a run by name: the fields of [`RunResult`] by their dotted paths, and a few made of
//! them.

use serde_json::Value;

use crate::energy::{CRAB_ENERGY, METER_ENERGY, START_ENERGY};
use crate::result::RunResult;

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
