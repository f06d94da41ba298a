//! All files together: read, checked against each other, planned, run and judged.

use fulgurite_units::settings::{self, Spanned};

use super::PaperSystem;
use super::base::{Bases, read};
use super::companions::{PointCompanions, dropped, title_with_drops};
use super::curve::Measured;
use super::error::{ExperimentError, SourceLocation};
use super::evaluation::{is_in_band, relation_inputs, twin_value};
use super::figure;
use super::file::{Check, Measure, PointRef, Statement};
use super::outcome::{
    BaseReport, Details, Expected, RelationInputs, Report, Row, StatementReport, TwinValue, Verdict,
};
use super::plan::Plan;
use super::runner::{JobResult, JobRunner, Progress};
use crate::metrics::metric_names;

/// One file, already read by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name, for errors. A base scenario's begins with `base-`.
    pub name: String,
    /// Its contents.
    pub text: String,
}

impl SourceFile {
    fn place(&self) -> SourceLocation<'_> {
        SourceLocation { file: &self.name, text: &self.text }
    }
}

/// A statement and the file that contains it.
#[derive(Debug)]
pub(crate) struct LoadedStatement<S: PaperSystem> {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) statement: Statement<S>,
}

impl<S: PaperSystem> LoadedStatement<S> {
    pub(crate) fn place(&self) -> SourceLocation<'_> {
        SourceLocation { file: &self.file, text: &self.text }
    }
}

/// Statements and their base scenarios.
#[derive(Debug)]
pub struct Suite<S: PaperSystem> {
    bases: Bases,
    statements: Vec<LoadedStatement<S>>,
    plan: Plan<S::Scenario>,
    seeds_max: u32,
}

/// Reads, runs and judges everything.
///
/// # Errors
/// The first file that cannot be used. A failed run is a miss, not an error.
pub fn run_all<S: PaperSystem>(
    files: &[SourceFile],
    runner: &dyn JobRunner<S>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, ExperimentError> {
    Ok(Suite::<S>::read(files)?.run(runner, progress))
}

impl<S: PaperSystem> Suite<S> {
    /// Reads files; all of them are checked before anything runs.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn read(files: &[SourceFile]) -> Result<Self, ExperimentError> {
        let is_base = |file: &&SourceFile| {
            file.name.rsplit('/').next().is_some_and(|name| name.starts_with("base-"))
        };
        let places: Vec<SourceLocation<'_>> =
            files.iter().filter(is_base).map(SourceFile::place).collect();
        let bases = read::<S::Scenario>(&places)?;
        let mut statements = Vec::new();
        for file in files.iter().filter(|file| !is_base(file)) {
            let place = file.place();
            let statement: Statement<S> =
                settings::from_toml(&file.text).map_err(|error| place.syntax(&error))?;
            let (file, text) = (file.name.clone(), file.text.clone());
            statements.push(LoadedStatement { file, text, statement });
        }
        statements.sort_by_key(|loaded| order(&loaded.statement.id));
        Self::planned(bases, statements, u32::MAX)
    }

    fn planned(
        bases: Bases,
        statements: Vec<LoadedStatement<S>>,
        seeds_max: u32,
    ) -> Result<Self, ExperimentError> {
        let plan = Plan::new(&bases, &statements, seeds_max)?;
        let metrics = metric_names::<S::Result>();
        for loaded in &statements {
            verify(loaded, &plan, &metrics)?;
        }
        Ok(Self { bases, statements, plan, seeds_max })
    }

    /// Keeps only these statements, in the order of the suite.
    ///
    /// # Errors
    /// When one of them is in no file.
    pub fn only(self, ids: &[String]) -> Result<Self, ExperimentError> {
        let known = |id: &&String| self.statements.iter().any(|file| file.statement.id == **id);
        if let Some(id) = ids.iter().find(|id| !known(id)) {
            return Err(ExperimentError::NoStatement { id: id.clone() });
        }
        let Self { bases, mut statements, seeds_max, .. } = self;
        statements.retain(|file| ids.contains(&file.statement.id));
        Self::planned(bases, statements, seeds_max)
    }

    /// Limits the number of seeds per point, for a quick look.
    ///
    /// # Errors
    /// Only errors that reading the files would have returned.
    pub fn with_seeds(self, seeds_max: u32) -> Result<Self, ExperimentError> {
        Self::planned(self.bases, self.statements, seeds_max.max(1))
    }

    /// Returns the number of distinct runs.
    #[must_use]
    pub fn job_count(&self) -> usize {
        self.plan.jobs.len()
    }

    /// Returns the names of the statements.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().map(|loaded| loaded.statement.id.as_str())
    }

    /// Runs and judges everything.
    pub fn run(&self, runner: &dyn JobRunner<S>, progress: &mut dyn FnMut(Progress)) -> Report {
        let jobs = &self.plan.jobs;
        let mut results: Vec<JobResult<S::Result>> =
            jobs.iter().map(|_| Err("the run was not executed".to_owned())).collect();
        let mut done = 0;
        runner.run(jobs, &mut |index, result| {
            done += 1;
            if let Some(place) = results.get_mut(index) {
                *place = result;
            }
            progress(Progress { done, jobs: jobs.len() });
        });
        let statements =
            self.statements.iter().map(|loaded| self.judge(loaded, &results)).collect();
        let bases = self.bases.0.values().map(|base| BaseReport {
            name: base.name.clone(),
            summary: base.summary.clone(),
            unknowns: base.unknowns.clone(),
        });
        Report { statements, bases: bases.collect(), jobs: jobs.len() }
    }

    fn judge(
        &self,
        loaded: &LoadedStatement<S>,
        results: &[JobResult<S::Result>],
    ) -> StatementReport {
        let statement = &loaded.statement;
        let measured = Measured { plan: &self.plan, results, statement, bases: &self.bases };
        let rows = statement.checks.iter().map(Spanned::get_ref).map(|check| {
            let ours = twin_value(&measured, check, self.seeds_max);
            let beside = measured.companions_of_check(check);
            row(statement, check, ours, relation_inputs(&measured, check), &beside, self.seeds_max)
        });
        let rows: Vec<Row> = rows.collect();
        let figure = statement.figure.as_ref().map(Spanned::get_ref);
        let (figure, figure_problem) =
            match figure.map(|figure| figure::data(&measured, figure, &rows)).transpose() {
                Ok(data) => (data, None),
                Err(problem) => (None, Some(problem)),
            };
        StatementReport {
            id: statement.id.clone(),
            title: statement.title.clone(),
            setting: statement.setting.clone(),
            section: statement.section.clone(),
            paper: statement.paper.clone(),
            own: statement.own,
            fitted: statement.fitted.clone(),
            explanation: statement.explanation.clone(),
            contradiction: statement.contradiction.clone(),
            beside: if statement.own { measured.companions_of_all() } else { Vec::new() },
            rows,
            figure,
            figure_problem,
        }
    }
}

fn row<S: PaperSystem>(
    statement: &Statement<S>,
    check: &Check<S>,
    ours: Result<TwinValue, String>,
    working: Option<RelationInputs>,
    beside: &[PointCompanions],
    seeds_max: u32,
) -> Row {
    let dropped = dropped(beside);
    let hit = ours.as_ref().is_ok_and(|ours| is_in_band(ours.median, check.band));
    let finite = |value: f64| value.is_finite().then_some(value);
    let part = |of: fn(&TwinValue) -> f64| ours.as_ref().ok().and_then(|ours| finite(of(ours)));
    Row {
        id: check.id.clone(),
        expected: check
            .expected
            .map_or_else(|| Expected::Words(check.title.clone()), Expected::Value),
        ours: part(|ours| ours.median),
        band: check.band.map(finite),
        verdict: if hit { Verdict::Hit } else { Verdict::Miss },
        fitted: check.fitted,
        details: Details {
            statement: statement.id.clone(),
            title: title_with_drops(&check.title, &dropped),
            section: statement.section.clone(),
            own: statement.own,
            unit: check.unit,
            min: part(|ours| ours.min),
            max: part(|ours| ours.max),
            seeds: statement.seeds.min(seeds_max),
            working,
            constraints: beside.to_vec(),
            dropped,
            problem: ours.err(),
        },
    }
}

/// Returns the sort key of a statement: workload first, then mechanics, layout, the evaluation and
/// what goes beyond it; numbers sort as numbers.
fn order(id: &str) -> (usize, u32, String) {
    let section = "WMLEB".find(|prefix| id.starts_with(prefix)).unwrap_or(usize::MAX);
    let number = id.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX);
    (section, number, id.to_owned())
}

/// Checks that every name in a check or a figure exists.
fn verify<S: PaperSystem>(
    loaded: &LoadedStatement<S>,
    plan: &Plan<S::Scenario>,
    metrics: &[String],
) -> Result<(), ExperimentError> {
    let (place, statement) = (loaded.place(), &loaded.statement);
    for spanned in &statement.derived {
        let (derived, offset) = (spanned.get_ref(), spanned.span().start);
        for name in &derived.of {
            if plan.points(&statement.id, name).is_none() {
                let problem = format!("there is no run {name}");
                return Err(place.meaning(offset, &format!("derived {}", derived.name), problem));
            }
        }
    }
    for spanned in &statement.checks {
        let (check, offset) = (spanned.get_ref(), spanned.span().start);
        let wrong = |field: &str, problem: String| {
            place.meaning(offset, &format!("check {}: {field}", check.id), problem)
        };
        let probe = matches!(check.measure, Measure::Probe(_));
        match &check.metric {
            Some(metric) if !probe && !metrics.contains(metric) => {
                return Err(wrong("metric", format!("there is no metric {metric}")));
            }
            None if !probe => {
                return Err(wrong("metric", "a measure of a run needs a metric".to_owned()));
            }
            Some(_) | None => {}
        }
        if check.band[0].is_nan() || check.band[1].is_nan() || check.band[0] > check.band[1] {
            return Err(wrong("band", "the lower bound must come first".to_owned()));
        }
        for point in named(&check.measure) {
            find(statement, plan, &point).map_err(|problem| wrong("measure", problem))?;
        }
    }
    if let Some(figure) = &statement.figure {
        let names = figure::runs(figure.get_ref());
        for name in names {
            let point = PointRef { run: name.to_owned(), at: None };
            curve(statement, plan, &point.run)
                .map_err(|problem| place.meaning(figure.span().start, "figure: series", problem))?;
        }
        if let Some(label) = figure::unknown_label(figure.get_ref()) {
            let problem = format!("there is no series {label}");
            return Err(place.meaning(figure.span().start, "figure: paper", problem));
        }
        let unknown = figure::metrics(figure.get_ref()).find(|name| !metrics.contains(name));
        if let Some(name) = unknown {
            let problem = format!("there is no metric {name}");
            return Err(place.meaning(figure.span().start, "figure: metric", problem));
        }
    }
    Ok(())
}

/// Returns the points that a measure uses. Whole curves become the point `*` of their run.
fn named<S: PaperSystem>(measure: &Measure<S>) -> Vec<PointRef> {
    match measure {
        Measure::Value(point) => vec![point.clone()],
        Measure::Ratio(points) => points.to_vec(),
        Measure::Slopes(points) => points.to_vec(),
        Measure::Order(points) => points.clone(),
        Measure::Largest(run)
        | Measure::Smallest(run)
        | Measure::Falling(run)
        | Measure::Rising(run)
        | Measure::Linear(run) => vec![PointRef { run: run.clone(), at: Some("*".to_owned()) }],
        Measure::Probe(_) => Vec::new(),
    }
}

/// Returns the labels of the points of a run or derived curve.
fn curve<S: PaperSystem>(
    statement: &Statement<S>,
    plan: &Plan<S::Scenario>,
    name: &str,
) -> Result<Vec<String>, String> {
    let derived = statement.derived.iter().map(Spanned::get_ref);
    let runs = match derived.clone().find(|derived| derived.name == name) {
        Some(derived) => derived.of.to_vec(),
        None => vec![name.to_owned()],
    };
    let points = runs.iter().map(|run| {
        let points = plan.points(&statement.id, run);
        points.ok_or_else(|| format!("there is no run {run}"))
    });
    let points: Result<Vec<_>, _> = points.collect();
    let longest = points?.into_iter().max_by_key(|points| points.len()).unwrap_or_default();
    Ok(longest.iter().map(|point| point.label.clone()).collect())
}

fn find<S: PaperSystem>(
    statement: &Statement<S>,
    plan: &Plan<S::Scenario>,
    point: &PointRef,
) -> Result<(), String> {
    let labels = curve(statement, plan, &point.run)?;
    let found = match point.at.as_deref() {
        None => labels.len() == 1,
        Some("*") => true,
        Some(at) => labels.iter().any(|label| label == at),
    };
    if found { Ok(()) } else { Err(format!("there is no {point}; there are {labels:?}")) }
}
