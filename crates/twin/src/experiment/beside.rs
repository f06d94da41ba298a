//! What stands beside a tail: whether its runs held the constraints, and what was verified. A
//! comparison of tails in which one side dropped work says so in its title, whoever wrote that.

use serde::Serialize;
use toml::Spanned;

use super::curve::{Measured, median};
use super::file::{Check, Measure, PointRef};
use super::metric;
use super::outcome::Row;
use super::plan::PlannedPoint;
use crate::glass::constraints::{Constraints, Summary};
use crate::glass::result::RunResult;

/// Metrics of which a title says what they were bought with.
const TIMES: &str = "completion.";
/// One that verifies less than this share of what another does dropped work.
const VERIFIED_SHARE: f64 = 0.9;

/// One point of a run: its tail, and what may not be given up for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The run, with its point.
    pub run: String,
    /// Median over the seeds of the 99.9th percentile of reads, in seconds.
    pub tail_s: f64,
    /// Median of the bytes verified in the window.
    pub verified_bytes: f64,
    /// The oldest unverified platter of any seed, in seconds.
    pub unverified_age_s: f64,
    /// Median of the energy of an operation, in starts.
    pub energy_per_operation: f64,
    /// Which constraints are held.
    pub constraints: Summary,
}

impl Measured<'_> {
    /// What stands beside every point of every run; a run that failed has nothing.
    pub(crate) fn beside_all(&self) -> Vec<Beside> {
        let runs = self.statement.runs.iter().map(Spanned::get_ref);
        let points = |name: &str| self.plan.points(&self.statement.id, name).unwrap_or_default();
        let each = runs.flat_map(|run| points(&run.name).iter().map(move |point| (run, point)));
        each.filter_map(|(run, point)| self.beside(&run.name, point)).collect()
    }

    /// What stands beside the points that a check of times looks at.
    pub(crate) fn beside_check(&self, check: &Check) -> Vec<Beside> {
        let times = check.metric.as_ref().is_some_and(|metric| metric.starts_with(TIMES));
        let points: &[PointRef] = match &check.measure {
            Measure::Value(point) => std::slice::from_ref(point),
            Measure::Ratio(points) => points,
            Measure::Largest(_)
            | Measure::Smallest(_)
            | Measure::Falling(_)
            | Measure::Rising(_)
            | Measure::Order(_)
            | Measure::Slopes(_)
            | Measure::Linear(_)
            | Measure::Probe(_) => &[],
        };
        let found = points.iter().filter(|_| times).filter_map(|point| {
            let mut of = self.plan.points(&self.statement.id, &point.run)?.iter();
            let planned = of.find(|of| of.label == point.at.as_deref().unwrap_or_default())?;
            self.beside(&point.run, planned)
        });
        found.collect()
    }

    fn beside(&self, run: &str, point: &PlannedPoint) -> Option<Beside> {
        let results = point.jobs.iter().map(|&job| self.results[job].as_ref().ok());
        let results: Vec<&RunResult> = results.collect::<Option<_>>()?;
        let constraints = Constraints::of(&self.plan.jobs[*point.jobs.first()?].scenario);
        let all = |of: &dyn Fn(&RunResult) -> f64| -> Vec<f64> {
            results.iter().map(|result| of(result)).collect()
        };
        #[expect(clippy::cast_precision_loss, reason = "bytes of a run are below 2^53")]
        let verified = all(&|of| of.verified_bytes as f64);
        let energy = |of: &RunResult| metric::value(of, "energy_per_operation").unwrap_or(0.0);
        let at = if point.label.is_empty() { String::new() } else { format!("@{}", point.label) };
        Some(Beside {
            run: format!("{run}{at}"),
            tail_s: median(&all(&|of| of.completion.p999)),
            verified_bytes: median(&verified),
            unverified_age_s: all(&|of| of.unverified_age_max).into_iter().fold(0.0, f64::max),
            energy_per_operation: median(&all(&energy)),
            constraints: constraints.summary(results.iter().copied()),
        })
    }
}

/// What the two sides of a comparison dropped, in words.
pub(crate) fn dropped(sides: &[Beside]) -> Vec<String> {
    let [a, b] = sides else { return Vec::new() };
    let missed = |of: &Beside| of.constraints.missed().map(|what| format!("{}: {what}", of.run));
    let less = |of: &Beside, other: &Beside| {
        let share = of.verified_bytes / other.verified_bytes;
        let (run, other) = (&of.run, &other.run);
        (share < VERIFIED_SHARE)
            .then(|| format!("{run} verifies {:.0} % of what {other} does", share * 100.0))
    };
    [missed(a), missed(b), less(a, b), less(b, a)].into_iter().flatten().collect()
}

/// A title with what was dropped.
pub(crate) fn titled(title: &str, dropped: &[String]) -> String {
    if dropped.is_empty() {
        return title.to_owned();
    }
    format!("{title} - WITH WORK DROPPED ({})", dropped.join("; "))
}

/// The title of a figure: with the checks that say what runs that it draws dropped.
pub(crate) fn figure_title(title: &str, drawn: &[&str], rows: &[Row]) -> String {
    let is_drawn = |of: &Beside| drawn.contains(&of.run.split('@').next().unwrap_or_default());
    let named = rows.iter().filter(|row| {
        !row.details.dropped.is_empty() && row.details.constraints.iter().all(is_drawn)
    });
    let ids: Vec<&str> = named.map(|row| row.id.as_str()).collect();
    if ids.is_empty() {
        return title.to_owned();
    }
    format!("{title} - WITH WORK DROPPED (see {})", ids.join(", "))
}
