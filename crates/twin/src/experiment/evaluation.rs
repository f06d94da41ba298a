//! Judges measurements. A measure of several points is computed from the medians over the seeds;
//! its range comes from the seeds one by one.

use fulgurite_units::settings::Spanned;

use super::curve::{CurvePoint, Measured, median};
use super::file::{Check, DerivedKind, Measure, PointRef};
use super::outcome::{Derivation, RelationInputs, TwinValue};
use super::{PaperSystem, Probe as _};
use crate::metrics::{Dimension, Measured as _};

/// Computes our value of a check, in its unit.
pub(crate) fn twin_value<S: PaperSystem>(
    measured: &Measured<'_, S>,
    check: &Check<S>,
    seeds_max: u32,
) -> Result<TwinValue, String> {
    let metric = check.metric.as_deref().unwrap_or_default();
    let curve = |name: &String| measured.curve(name, metric).map(|curve| curve.points);
    let at = |point: &PointRef| {
        let curve = measured.curve(&point.run, metric)?;
        curve.at(point.at.as_deref()).cloned()
    };
    let unit = check.unit;
    let ours = match &check.measure {
        Measure::Value(point) => over(&[at(point)?], |values| values[0]),
        Measure::Ratio([a, b]) => over(&[at(a)?, at(b)?], |values| values[0] / values[1]),
        Measure::Largest(name) => over(&curve(name)?, largest),
        Measure::Smallest(name) => over(&curve(name)?, smallest),
        Measure::Falling(name) => over(&curve(name)?, |values| largest_reversal(values, 1.0)),
        Measure::Rising(name) => over(&curve(name)?, |values| largest_reversal(values, -1.0)),
        Measure::Order(points) => {
            let points: Result<Vec<_>, _> = points.iter().map(at).collect();
            over(&points?, |values| smallest(&steps(values)))
        }
        Measure::Slopes([a, b, c]) => {
            let points = [at(a)?, at(b)?, at(c)?];
            let xs = [points[0].x, points[1].x, points[2].x];
            over(&points, |values| slope(&xs, values, 1) / slope(&xs, values, 0))
        }
        Measure::Linear(name) => {
            let points = curve(name)?;
            let xs: Vec<f64> = points.iter().map(|point| point.x).collect();
            over(&points, |values| r_squared(&xs, values))
        }
        Measure::Probe(probe) => {
            let seeds = measured.statement.seeds.min(seeds_max);
            let values: Result<Vec<f64>, String> =
                (1..=u64::from(seeds)).map(|seed| probe.measure(measured.bases, seed)).collect();
            let samples = values?;
            over(&[CurvePoint { label: String::new(), x: 0.0, samples }], |values| values[0])
        }
    };
    let [a, b, c] = [ours.median, ours.min, ours.max].map(|value| unit.convert(value));
    Ok(TwinValue { median: a, min: b, max: c })
}

/// Returns the numbers that our value of a check is computed from; `None` if it is a single number
/// or there is none.
pub(crate) fn relation_inputs<S: PaperSystem>(
    measured: &Measured<'_, S>,
    check: &Check<S>,
) -> Option<RelationInputs> {
    let metric = check.metric.as_deref()?;
    let curve = |name: &String| measured.curve(name, metric).ok().map(|curve| curve.points);
    let points = |points: &[PointRef]| -> Option<Vec<CurvePoint>> {
        let at = |point: &PointRef| {
            let curve = measured.curve(&point.run, metric).ok()?;
            curve.at(point.at.as_deref()).ok().cloned()
        };
        points.iter().map(at).collect()
    };
    let (made, of, runs): (Derivation, Vec<CurvePoint>, &str) = match &check.measure {
        Measure::Ratio(of) => (Derivation::Ratio, points(of)?, &of[0].run),
        Measure::Order(of) => (Derivation::Order, points(of)?, &of.first()?.run),
        Measure::Slopes(of) => (Derivation::Slopes, points(of)?, &of[0].run),
        Measure::Largest(name) => (Derivation::Largest, curve(name)?, name),
        Measure::Smallest(name) => (Derivation::Smallest, curve(name)?, name),
        Measure::Falling(name) => (Derivation::StepUp, curve(name)?, name),
        Measure::Rising(name) => (Derivation::StepDown, curve(name)?, name),
        Measure::Linear(name) => (Derivation::Line, curve(name)?, name),
        Measure::Value(_) | Measure::Probe(_) => return None,
    };
    let medians: Vec<f64> = of.iter().map(|point| median(&point.samples)).collect();
    // The ratio of two curves is a share, whatever the metric counts.
    let mut derived = measured.statement.derived.iter().map(Spanned::get_ref);
    let dimension = match derived.find(|derived| derived.name == runs).map(|made| made.kind) {
        Some(DerivedKind::Ratio | DerivedKind::Saving) => Dimension::Share,
        Some(DerivedKind::Excess) | None => S::Result::dimension(metric),
    };
    let unit = dimension.unit(largest(&medians));
    let inputs = medians.into_iter().map(|value| unit.convert(value)).collect();
    Some(RelationInputs { made, of: inputs, unit })
}

/// Returns whether a value lies in a band; NaN does not.
pub(crate) fn is_in_band(value: f64, band: [f64; 2]) -> bool {
    band[0] <= value && value <= band[1]
}

fn over(points: &[CurvePoint], of: impl Fn(&[f64]) -> f64) -> TwinValue {
    let medians: Vec<f64> = points.iter().map(|point| median(&point.samples)).collect();
    let middle = of(&medians);
    let seeds = points.iter().map(|point| point.samples.len()).min().unwrap_or(0);
    let mut ours = TwinValue { median: middle, min: middle, max: middle };
    for seed in 0..seeds {
        let values: Vec<f64> = points.iter().map(|point| point.samples[seed]).collect();
        let value = of(&values);
        ours.min = ours.min.min(value);
        ours.max = ours.max.max(value);
    }
    ours
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

fn smallest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::min)
}

/// Returns the ratio of each value to the one before it.
fn steps(values: &[f64]) -> Vec<f64> {
    values.windows(2).map(|pair| pair[1] / pair[0]).collect()
}

/// Returns the largest step up (`sign` 1) or down (-1) as a share; zero when there is none.
fn largest_reversal(values: &[f64], sign: f64) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    steps(values).iter().map(|step| sign * (step - 1.0)).fold(0.0, f64::max)
}

fn slope(xs: &[f64], ys: &[f64], from: usize) -> f64 {
    (ys[from + 1] - ys[from]) / (xs[from + 1] - xs[from])
}

/// Returns the share of the variance that a straight line explains.
fn r_squared(xs: &[f64], ys: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a curve has few points")]
    let count = xs.len() as f64;
    let (mean_x, mean_y) = (xs.iter().sum::<f64>() / count, ys.iter().sum::<f64>() / count);
    let mut sums = [0.0; 3];
    for (x, y) in xs.iter().zip(ys) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        sums[0] += dx * dx;
        sums[1] += dx * dy;
        sums[2] += dy * dy;
    }
    let [xx, xy, yy] = sums;
    xy * xy / (xx * yy)
}

#[cfg(test)]
mod tests {
    use super::{largest_reversal, r_squared};

    #[test]
    fn straight_line_fits_and_reversal_is_detected() {
        assert!(r_squared(&[1.0, 2.0, 4.0], &[3.0, 5.0, 9.0]) > 0.999_999);
        assert!(r_squared(&[1.0, 2.0, 3.0], &[1.0, 9.0, 1.0]) < 0.1);
        assert!(largest_reversal(&[4.0, 2.0, 1.0], 1.0) <= 0.0);
        assert!((largest_reversal(&[4.0, 2.0, 3.0], 1.0) - 0.5).abs() < 1e-12);
        assert!((largest_reversal(&[1.0, 2.0, 1.5], -1.0) - 0.25).abs() < 1e-12);
    }
}
