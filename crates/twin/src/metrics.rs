//! Measurements of a run of any system: named numbers and their dimensions.

use std::fmt::Debug;

use serde::Serialize;
use serde_json::Value;

use crate::experiment::Unit;

/// A metric derived from several fields.
pub type DerivedMetric<R> = (&'static str, fn(&R) -> f64);

/// Measurements of one run. Its fields are metrics, by their dotted paths.
pub trait Measured: Clone + Debug + Default + Serialize + Send + Sync + 'static {
    /// Derived metrics.
    const DERIVED_METRICS: &'static [DerivedMetric<Self>];

    /// Returns the seed of the run.
    fn seed(&self) -> u64;

    /// Returns the hash of the run: it differs as soon as any event, its order or its time differs.
    fn hash(&self) -> u64;

    /// Returns the dimension of a metric.
    fn dimension(metric: &str) -> Dimension;
}

/// The dimension of a metric, which determines the units it can be shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
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
    /// Returns a suitable unit for values of which this is the largest.
    #[must_use]
    pub fn unit(self, largest: f64) -> Unit {
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

/// Returns a metric of a run.
pub(crate) fn value<R: Measured>(run: &R, name: &str) -> Option<f64> {
    if let Some((_, made)) = R::DERIVED_METRICS.iter().find(|(known, _)| *known == name) {
        return Some(made(run));
    }
    let tree = serde_json::to_value(run).ok()?;
    let mut place = &tree;
    for word in name.split('.') {
        place = place.get(word)?;
    }
    place.as_f64()
}

/// Returns the names of all metrics.
#[must_use]
pub fn metric_names<R: Measured>() -> Vec<String> {
    let mut names: Vec<String> =
        R::DERIVED_METRICS.iter().map(|(name, _)| (*name).to_owned()).collect();
    if let Ok(Value::Object(fields)) = serde_json::to_value(R::default()) {
        fields.into_iter().for_each(|(name, value)| add_names(name, value, &mut names));
    }
    names.sort();
    names
}

/// Adds the name of a number, or of all numbers in an object.
fn add_names(name: String, value: Value, names: &mut Vec<String>) {
    let Value::Object(parts) = value else {
        names.push(name);
        return;
    };
    for (part, value) in parts {
        add_names(format!("{name}.{part}"), value, names);
    }
}

/// Checks that all names are metrics of a run.
///
/// # Errors
/// Names the first that is not, and lists all metrics.
pub fn check_metrics<R: Measured>(names: &[String]) -> Result<(), String> {
    let known = metric_names::<R>();
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(format!("no metric {name}: it is one of {}", known.join(", "))),
        None => Ok(()),
    }
}
