//! Curves: a metric at every point of a run, for every seed.

use fulgurite_units::settings::Spanned;

use super::PaperSystem;
use super::base::Bases;
use super::file::{Derived, DerivedKind, Statement};
use super::plan::Plan;
use super::runner::JobResult;
use crate::metrics;

/// A metric at one point, for every seed.
#[derive(Clone, Debug)]
pub(crate) struct CurvePoint {
    pub(crate) label: String,
    pub(crate) x: f64,
    pub(crate) samples: Vec<f64>,
}

/// A metric at every point.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) points: Vec<CurvePoint>,
}

/// The results of all jobs, as one statement uses them.
#[derive(Debug)]
pub(crate) struct Measured<'a, S: PaperSystem> {
    pub(crate) plan: &'a Plan<S::Scenario>,
    pub(crate) results: &'a [JobResult<S::Result>],
    pub(crate) statement: &'a Statement<S>,
    pub(crate) bases: &'a Bases,
}

impl<S: PaperSystem> Measured<'_, S> {
    /// Returns the curve of a run, or the curve derived from two runs.
    pub(crate) fn curve(&self, name: &str, metric: &str) -> Result<Curve, String> {
        let derived = self.statement.derived.iter().map(Spanned::get_ref);
        match derived.clone().find(|derived| derived.name == name) {
            Some(derived) => self.derived(derived, metric),
            None => self.run(name, metric),
        }
    }

    fn run(&self, name: &str, metric: &str) -> Result<Curve, String> {
        let points = self.plan.points(&self.statement.id, name);
        let points = points.ok_or_else(|| format!("there is no run {name}"))?;
        let mut curve = Curve { points: Vec::new() };
        for point in points {
            let mut samples = Vec::new();
            for &job in &point.jobs {
                let run = self.results[job].as_ref().map_err(|problem| {
                    format!("{name}@{}, seed {}: {problem}", point.label, self.plan.jobs[job].seed)
                })?;
                let value = metrics::value(run, metric);
                let none = || format!("{name}@{} has no {metric}", point.label);
                samples.push(value.ok_or_else(none)?);
            }
            curve.points.push(CurvePoint { label: point.label.clone(), x: point.x, samples });
        }
        Ok(curve)
    }

    fn derived(&self, derived: &Derived, metric: &str) -> Result<Curve, String> {
        let (first, second) =
            (self.run(&derived.of[0], metric)?, self.run(&derived.of[1], metric)?);
        let many = if first.points.len() >= second.points.len() { &first } else { &second };
        let mut points = Vec::new();
        for place in &many.points {
            let (a, b) = (first.at(Some(&place.label))?, second.at(Some(&place.label))?);
            let pairs = a.samples.iter().zip(&b.samples);
            let samples = pairs
                .map(|(a, b)| match derived.kind {
                    DerivedKind::Ratio => a / b,
                    DerivedKind::Saving => 1.0 - a / b,
                    DerivedKind::Excess => a - b,
                })
                .collect();
            points.push(CurvePoint { label: place.label.clone(), x: place.x, samples });
        }
        Ok(Curve { points })
    }
}

impl Curve {
    /// Returns a point by its label; a single unlabeled point matches any label.
    pub(crate) fn at(&self, label: Option<&str>) -> Result<&CurvePoint, String> {
        if let [only] = self.points.as_slice()
            && (label.is_none() || only.label.is_empty())
        {
            return Ok(only);
        }
        let found = self.points.iter().find(|point| Some(point.label.as_str()) == label);
        found.ok_or_else(|| format!("there is no point {}", label.unwrap_or("without @value")))
    }
}

/// Returns the median; for an even count, the mean of the two middle values.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (count, middle) if count.is_multiple_of(2) => (sorted[middle - 1] + sorted[middle]) / 2.0,
        (_, middle) => sorted[middle],
    }
}
