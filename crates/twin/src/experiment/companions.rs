//! Companion figures, shown next to a tail: whether its runs met the constraints, and what was
//! verified. If one side of a comparison of tails dropped work, its title shows that.

use fulgurite_units::settings::Spanned;
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::PaperSystem;
use super::curve::Measured;
use super::file::{Check, Measure, PointRef, Unit};
use super::outcome::Row;
use super::plan::PlannedPoint;
use crate::constraints::Summary;

/// A side that does less than this share of the other side's work counts as having dropped some.
const WORK_SHARE: f64 = 0.9;

/// Companion figures of the runs at one point, whatever the metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompanionFigures {
    /// Numbers, each aggregated over all seeds.
    pub numbers: Vec<CompanionFigure>,
    /// Work that neither side of a comparison may drop: its amount and its verb, like "verifies".
    pub work: Option<(f64, &'static str)>,
    /// Which constraints are met.
    pub constraints: Summary,
}

/// A companion number.
#[derive(Clone, Debug, PartialEq)]
pub struct CompanionFigure {
    /// Its name in JSON.
    pub name: &'static str,
    /// Its name on a page.
    pub title: &'static str,
    /// The number.
    pub value: f64,
    /// The unit it is shown in.
    pub unit: Unit,
    /// Its text in a line of text, if it appears there.
    pub words: Option<String>,
}

/// One point of a run, with its companion figures.
#[derive(Clone, Debug, PartialEq)]
pub struct PointCompanions {
    /// The run, with its point.
    pub run: String,
    /// The companion figures.
    pub companions: CompanionFigures,
}

/// Serializes as one object: the run, each number by its name, and the constraints.
impl Serialize for PointCompanions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("run", &self.run)?;
        for number in &self.companions.numbers {
            map.serialize_entry(number.name, &number.value)?;
        }
        map.serialize_entry("constraints", &self.companions.constraints)?;
        map.end()
    }
}

impl<S: PaperSystem> Measured<'_, S> {
    /// Returns the companion figures of every point of every run; a run that failed has none.
    pub(crate) fn companions_of_all(&self) -> Vec<PointCompanions> {
        let runs = self.statement.runs.iter().map(Spanned::get_ref);
        let points = |name: &str| self.plan.points(&self.statement.id, name).unwrap_or_default();
        let each = runs.flat_map(|run| points(&run.name).iter().map(move |point| (run, point)));
        each.filter_map(|(run, point)| self.point_companions(&run.name, point)).collect()
    }

    /// Returns the companion figures of the points that a check of times compares.
    pub(crate) fn companions_of_check(&self, check: &Check<S>) -> Vec<PointCompanions> {
        let times = check.metric.as_ref().is_some_and(|metric| metric.starts_with(S::TIMES));
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
            let mut points = self.plan.points(&self.statement.id, &point.run)?.iter();
            let planned =
                points.find(|points| points.label == point.at.as_deref().unwrap_or_default())?;
            self.point_companions(&point.run, planned)
        });
        found.collect()
    }

    fn point_companions(&self, run: &str, point: &PlannedPoint) -> Option<PointCompanions> {
        let results = point.jobs.iter().map(|&job| self.results[job].as_ref().ok());
        let results: Vec<&S::Result> = results.collect::<Option<_>>()?;
        let scenario = &self.plan.jobs[*point.jobs.first()?].scenario;
        let at = if point.label.is_empty() { String::new() } else { format!("@{}", point.label) };
        Some(PointCompanions {
            run: format!("{run}{at}"),
            companions: S::companions(scenario, &results),
        })
    }
}

/// Describes what either side of a comparison dropped.
pub(crate) fn dropped(sides: &[PointCompanions]) -> Vec<String> {
    let [a, b] = sides else { return Vec::new() };
    let missed = |of: &PointCompanions| {
        of.companions.constraints.missed().map(|what| format!("{}: {what}", of.run))
    };
    let less = |of: &PointCompanions, other: &PointCompanions| {
        let ((does, verb), (other_does, _)) = (of.companions.work?, other.companions.work?);
        let share = does / other_does;
        let (run, other) = (&of.run, &other.run);
        (share < WORK_SHARE)
            .then(|| format!("{run} {verb} {:.0} % of what {other} does", share * 100.0))
    };
    [missed(a), missed(b), less(a, b), less(b, a)].into_iter().flatten().collect()
}

/// Adds the dropped work to a title.
pub(crate) fn title_with_drops(title: &str, dropped: &[String]) -> String {
    if dropped.is_empty() {
        return title.to_owned();
    }
    format!("{title} - WITH WORK DROPPED ({})", dropped.join("; "))
}

/// Returns the title of a figure. It names the checks that show that runs of the figure dropped
/// work.
pub(crate) fn figure_title(title: &str, drawn: &[&str], rows: &[Row]) -> String {
    let is_drawn =
        |of: &PointCompanions| drawn.contains(&of.run.split('@').next().unwrap_or_default());
    let named = rows.iter().filter(|row| {
        !row.details.dropped.is_empty() && row.details.constraints.iter().all(is_drawn)
    });
    let ids: Vec<&str> = named.map(|row| row.id.as_str()).collect();
    if ids.is_empty() {
        return title.to_owned();
    }
    format!("{title} - WITH WORK DROPPED (see {})", ids.join(", "))
}
