//! Sweeps: one scenario at every combination of the values of one or two of its fields.
//!
//! ```text
//! scenario, set --.
//! over A, over B -+--> points (A slow, B fast) --> jobs, all seeds of a point together
//!                                                    |
//!                     SweepResult <-- results -------'   in the order of the jobs
//! ```
//!
//! All points are checked before anything runs, so that no corner turns out impossible after hours.
//! Not here: threads. Whoever sweeps runs the jobs, in any order.

use serde::Serialize;
use toml::{Table, Value};

use crate::engine::{System, check};
use crate::experiment::{Job, Unit, median};
use crate::measured::{self, Measured, check_metrics};
use crate::scenario::{Scenario as _, change, label, number, parse};

/// Combinations of a sweep, at most: a table and a picture of more can be read by nobody.
pub const POINTS_MAX: usize = 400;
/// Fields of a sweep, at most: a table has rows and columns.
pub const FIELDS_MAX: usize = 2;

/// A field and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// The dotted path of a field, or a word of the system.
    pub field: String,
    /// Its values, in the order they are shown.
    pub values: Vec<Value>,
}

/// One combination.
#[derive(Clone, Debug)]
pub struct SweepPoint<C> {
    /// The value of each field, as written.
    pub labels: Vec<String>,
    /// What is simulated.
    pub scenario: std::sync::Arc<C>,
}

/// Why there is no sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The combination that cannot be run, as `FIELD=VALUE`; empty when it is none of them.
    pub at: String,
    /// What is wrong, in one line; of a value out of its limits it begins with the field.
    pub problem: String,
}

/// All combinations, the last field changing fastest.
#[derive(Debug)]
pub struct Sweep<S: System> {
    over: Vec<Over>,
    points: Vec<SweepPoint<S::Scenario>>,
}

impl<S: System> Sweep<S> {
    /// The combinations of the values of `over`, in a scenario of which `set` changes other fields.
    ///
    /// # Errors
    /// The field that is there twice, or the combination that cannot be run, and why.
    pub fn new(scenario: &Table, set: &Table, over: Vec<Over>) -> Result<Self, Refused> {
        Self::checked(&over).map_err(|problem| Refused { at: String::new(), problem })?;
        let count = over.iter().map(|over| over.values.len()).product();
        let scenario = S::Scenario::resolve(scenario.clone())
            .map_err(|problem| Refused { at: String::new(), problem })?;
        let mut points = Vec::with_capacity(count);
        for number in 0..count {
            points.push(point::<S>(&scenario, set, &over, number)?);
        }
        Ok(Self { over, points })
    }

    /// Whether the fields and values make a sweep, whatever they mean.
    fn checked(over: &[Over]) -> Result<(), String> {
        if over.is_empty() || over.len() > FIELDS_MAX {
            return Err(format!("a sweep is over 1 to {FIELDS_MAX} fields, not {}", over.len()));
        }
        for (index, Over { field, values }) in over.iter().enumerate() {
            if over[..index].iter().any(|other| other.field == *field) {
                return Err(format!("{field}: it is given twice"));
            }
            let twice = |at: usize| values[..at].contains(&values[at]);
            if let Some(at) = (0..values.len()).find(|at| twice(*at)) {
                return Err(format!("{field}: the value {} is given twice", label(&values[at])));
            }
        }
        let count: usize = over.iter().map(|over| over.values.len()).product();
        if !(1..=POINTS_MAX).contains(&count) {
            return Err(format!("{count} combinations, but there must be 1 to {POINTS_MAX}"));
        }
        Ok(())
    }

    /// The fields with their values.
    #[must_use]
    pub fn over(&self) -> &[Over] {
        &self.over
    }

    /// The combinations, the last field changing fastest.
    #[must_use]
    pub fn points(&self) -> &[SweepPoint<S::Scenario>] {
        &self.points
    }

    /// The runs: all seeds of the first point, then those of the next one.
    #[must_use]
    pub fn jobs(&self, seeds: &[u64]) -> Vec<Job<S::Scenario>> {
        let of = |point: &SweepPoint<S::Scenario>| {
            let scenario = std::sync::Arc::clone(&point.scenario);
            let job = move |&seed| Job { scenario: std::sync::Arc::clone(&scenario), seed };
            seeds.iter().map(job).collect::<Vec<_>>()
        };
        self.points.iter().flat_map(of).collect()
    }

    /// The numbers of these names, of the results of [`Sweep::jobs`] in their order.
    ///
    /// # Errors
    /// When no number has one of the names.
    ///
    /// # Panics
    /// When there are not as many results as jobs.
    pub fn result(
        &self,
        metrics: &[String],
        seeds: &[u64],
        results: &[S::Result],
    ) -> Result<SweepResult, String> {
        assert_eq!(results.len(), self.points.len() * seeds.len(), "one result for each job");
        check_metrics::<S::Result>(metrics)?;
        let field = |over: &Over| SweepField {
            field: over.field.clone(),
            values: over.values.iter().map(label).collect(),
            numbers: over.values.iter().map(number).collect(),
        };
        let metric = |name: &String| {
            let of = |runs: &[S::Result]| {
                let values: Option<Vec<f64>> =
                    runs.iter().map(|run| measured::value(run, name)).collect();
                Cell::of(values.unwrap_or_default())
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

/// What a sweep measured: for each metric a cell for each combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepResult {
    /// One field, or two: rows and columns.
    pub fields: Vec<SweepField>,
    /// The seeds of each combination.
    pub seeds: Vec<u64>,
    /// The numbers asked for.
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
    /// Those that are numbers.
    pub numbers: Vec<Option<f64>>,
}

/// One metric at each combination, the last field changing fastest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepMetric {
    /// Its name.
    pub name: String,
    /// The unit that suits its values; the cells are in seconds, bytes and shares.
    pub unit: Unit,
    /// Its values.
    pub cells: Vec<Cell>,
}

/// A number over the seeds of one combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The middle.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// That of each seed.
    pub values: Vec<f64>,
}

impl Cell {
    fn of(values: Vec<f64>) -> Self {
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().fold(f64::NAN, pick);
        Self { median: median(&values), min: fold(f64::min), max: fold(f64::max), values }
    }
}

/// The combination of this number.
fn point<S: System>(
    scenario: &Table,
    set: &Table,
    over: &[Over],
    number: usize,
) -> Result<SweepPoint<S::Scenario>, Refused> {
    let mut rest = number;
    let mut chosen = Vec::new();
    for over in over.iter().rev() {
        chosen.push((over.field.as_str(), &over.values[rest % over.values.len()]));
        rest /= over.values.len();
    }
    chosen.reverse();
    let made = varied::<S>(scenario, set, &chosen).map_err(|problem| {
        let says = chosen.iter().map(|(field, value)| format!("{field}={}", label(value)));
        Refused { at: says.collect::<Vec<_>>().join(" and "), problem }
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
