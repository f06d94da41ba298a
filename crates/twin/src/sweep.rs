//! Sweeps: one scenario at every combination of the values of one or two of its fields.
//!
//! ```text
//! scenario, set --.
//! over A, over B -+--> points (A slow, B fast) --> jobs, all seeds of a point together
//!                                                    |
//!                     SweepResult <-- results -------'   in the order of the jobs
//! ```
//!
//! All points are checked before anything runs, so that no corner turns out to be impossible after
//! hours. Not here: threads. The caller runs the jobs, in any order.

use serde::Serialize;
use toml::{Table, Value};

use crate::engine::{System, check};
use crate::experiment::{Job, Unit, median};
use crate::metrics::{self, Measured, check_metrics};
use crate::scenario::{Scenario as _, change, label, number, parse};

/// Maximum number of combinations in a sweep: nobody could read a larger table or picture.
pub const POINTS_MAX: usize = 400;
/// Maximum number of fields in a sweep: a table has rows and columns.
pub const FIELDS_MAX: usize = 2;

/// A field and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepAxis {
    /// The dotted path of a field, or a word of the system.
    pub field: String,
    /// Its values, in the order of display.
    pub values: Vec<Value>,
}

/// One combination.
#[derive(Clone, Debug)]
pub struct SweepPoint<C> {
    /// The value of each field, as written.
    pub labels: Vec<String>,
    /// Its scenario.
    pub scenario: std::sync::Arc<C>,
}

/// Why a sweep is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSweep {
    /// The combination that cannot be run, as `FIELD=VALUE`; empty if the problem is not in a
    /// combination.
    pub at: String,
    /// The problem, in one line; for a value out of range it begins with the field.
    pub problem: String,
}

/// All combinations; the last field changes fastest.
#[derive(Debug)]
pub struct Sweep<S: System> {
    over: Vec<SweepAxis>,
    points: Vec<SweepPoint<S::Scenario>>,
}

impl<S: System> Sweep<S> {
    /// Creates the combinations of the values of `over`, in a scenario with other fields changed by
    /// `set`.
    ///
    /// # Errors
    /// The field that is given twice, or the combination that cannot be run, and why.
    pub fn new(scenario: &Table, set: &Table, over: Vec<SweepAxis>) -> Result<Self, InvalidSweep> {
        Self::checked(&over).map_err(|problem| InvalidSweep { at: String::new(), problem })?;
        let count = over.iter().map(|over| over.values.len()).product();
        let scenario = S::Scenario::resolve(scenario.clone())
            .map_err(|problem| InvalidSweep { at: String::new(), problem })?;
        let mut points = Vec::with_capacity(count);
        for number in 0..count {
            points.push(point::<S>(&scenario, set, &over, number)?);
        }
        Ok(Self { over, points })
    }

    /// Checks that the fields and values form a sweep, whatever they mean.
    fn checked(over: &[SweepAxis]) -> Result<(), String> {
        if over.is_empty() || over.len() > FIELDS_MAX {
            return Err(format!("a sweep has 1 to {FIELDS_MAX} fields, not {}", over.len()));
        }
        for (index, SweepAxis { field, values }) in over.iter().enumerate() {
            if over[..index].iter().any(|other| other.field == *field) {
                return Err(format!("{field}: the field is given twice"));
            }
            let twice = |at: usize| values[..at].contains(&values[at]);
            if let Some(at) = (0..values.len()).find(|at| twice(*at)) {
                return Err(format!("{field}: the value {} is given twice", label(&values[at])));
            }
        }
        let count: usize = over.iter().map(|over| over.values.len()).product();
        if !(1..=POINTS_MAX).contains(&count) {
            return Err(format!("{count} combinations; the limit is 1 to {POINTS_MAX}"));
        }
        Ok(())
    }

    /// Returns the fields with their values.
    #[must_use]
    pub fn over(&self) -> &[SweepAxis] {
        &self.over
    }

    /// Returns the combinations; the last field changes fastest.
    #[must_use]
    pub fn points(&self) -> &[SweepPoint<S::Scenario>] {
        &self.points
    }

    /// Returns the runs: all seeds of the first point, then those of the next one.
    #[must_use]
    pub fn jobs(&self, seeds: &[u64]) -> Vec<Job<S::Scenario>> {
        let of = |point: &SweepPoint<S::Scenario>| {
            let scenario = std::sync::Arc::clone(&point.scenario);
            let job = move |&seed| Job { scenario: std::sync::Arc::clone(&scenario), seed };
            seeds.iter().map(job).collect::<Vec<_>>()
        };
        self.points.iter().flat_map(of).collect()
    }

    /// Extracts these metrics from the results of [`Sweep::jobs`], in their order.
    ///
    /// # Errors
    /// When a metric does not exist.
    ///
    /// # Panics
    /// When the number of results differs from that of jobs.
    pub fn result(
        &self,
        metrics: &[String],
        seeds: &[u64],
        results: &[S::Result],
    ) -> Result<SweepResult, String> {
        assert_eq!(results.len(), self.points.len() * seeds.len(), "one result for each job");
        check_metrics::<S::Result>(metrics)?;
        let field = |over: &SweepAxis| SweepField {
            field: over.field.clone(),
            values: over.values.iter().map(label).collect(),
            numbers: over.values.iter().map(number).collect(),
        };
        let metric = |name: &String| {
            let of = |runs: &[S::Result]| {
                let values: Option<Vec<f64>> =
                    runs.iter().map(|run| metrics::value(run, name)).collect();
                Cell::new(values.unwrap_or_default())
            };
            let cells: Vec<Cell> = results.chunks(seeds.len()).map(of).collect();
            let largest = cells.iter().map(|cell| cell.median).fold(0.0, f64::max);
            let unit = S::Result::dimension(name).unit(largest);
            SweepMetric { name: name.clone(), unit, cells }
        };
        Ok(SweepResult {
            fields: self.over.iter().map(field).collect(),
            seeds: seeds.to_vec(),
            metrics: metrics.iter().map(metric).collect(),
            hashes: results.iter().map(Measured::hash).collect(),
        })
    }
}

/// The result of a sweep: for each metric a cell per combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepResult {
    /// One field, or two: rows and columns.
    pub fields: Vec<SweepField>,
    /// The seeds of each combination.
    pub seeds: Vec<u64>,
    /// The requested metrics.
    pub metrics: Vec<SweepMetric>,
    /// [`Measured::hash`] of each run: all seeds of a combination together.
    pub hashes: Vec<u64>,
}

/// A field of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepField {
    /// Its dotted path.
    pub field: String,
    /// Its values, as written.
    pub values: Vec<String>,
    /// The values that are numbers, as numbers.
    pub numbers: Vec<Option<f64>>,
}

/// One metric at each combination; the last field changes fastest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepMetric {
    /// Its name.
    pub name: String,
    /// A suitable unit for its values; the cells are in seconds, bytes and shares.
    pub unit: Unit,
    /// Its values.
    pub cells: Vec<Cell>,
}

/// A metric over the seeds of one combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// The value of each seed.
    pub values: Vec<f64>,
}

impl Cell {
    fn new(values: Vec<f64>) -> Self {
        let reduce = |pick: fn(f64, f64) -> f64| values.iter().copied().fold(f64::NAN, pick);
        Self { median: median(&values), min: reduce(f64::min), max: reduce(f64::max), values }
    }
}

/// Returns the combination with this index.
fn point<S: System>(
    scenario: &Table,
    set: &Table,
    over: &[SweepAxis],
    number: usize,
) -> Result<SweepPoint<S::Scenario>, InvalidSweep> {
    let mut rest = number;
    let mut chosen = Vec::new();
    for over in over.iter().rev() {
        chosen.push((over.field.as_str(), &over.values[rest % over.values.len()]));
        rest /= over.values.len();
    }
    chosen.reverse();
    let made = varied::<S>(scenario, set, &chosen).map_err(|problem| {
        let says = chosen.iter().map(|(field, value)| format!("{field}={}", label(value)));
        InvalidSweep { at: says.collect::<Vec<_>>().join(" and "), problem }
    })?;
    let labels = chosen.iter().map(|(_, value)| label(value)).collect();
    Ok(SweepPoint { labels, scenario: std::sync::Arc::new(made) })
}

fn varied<S: System>(
    scenario: &Table,
    set: &Table,
    chosen: &[(&str, &Value)],
) -> Result<S::Scenario, String> {
    let mut set = set.clone();
    for (field, value) in chosen {
        set.insert((*field).to_owned(), (*value).clone());
    }
    let made = parse(&change::<S::Scenario>(scenario.clone(), &set, &[])?)?;
    check::<S>(&made).map_err(|error| error.to_string())?;
    Ok(made)
}

#[cfg(test)]
mod tests;
