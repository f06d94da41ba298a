//! Systems by name: the interface of the twin for programs and bindings that do not use the types
//! of any system.
//!
//! ```text
//!   file --> AnyScenario --run--> Runs      a scenario with several seeds
//!        --> AnySweep    --run--> SweepResult
//!   files -> AnySuite    --run--> Report    the statements of a paper
//! ```
//!
//! Each function here is generic inside but not outside, so the code of all systems is compiled
//! once, in this crate, instead of once per program and command.

mod plan;

use std::fmt::Debug;
use std::io::Write;
use std::sync::{Mutex, PoisonError, mpsc};

use fulgurite_glass_core::control::Library;
use fulgurite_glass_core::control::log::LogError;
use fulgurite_units::settings;
use serde_json::{Value, json};
use toml::Table;

use crate::Error;
use crate::constraints::Summary;
use crate::engine::{self, Observer, System, run_observed};
use crate::experiment::{
    ExperimentError, Job, JobResult, JobRunner, PaperSystem, Report, SourceFile, Suite,
};
use crate::geo::Geo;
use crate::glass::{Glass, LibraryLog};
use crate::metrics::{Measured as _, check_metrics};
use crate::presentation::{NumberFormat, ReportedSystem};
use crate::queue::Queue;
use crate::rack::Rack;
use crate::report::{Facts, ResultRow, run_page};
use crate::runner::{Runner, collect};
use crate::scenario::{Head, Scenario, SystemName, with_overrides};
use crate::sweep::{InvalidSweep, Sweep, SweepAxis, SweepResult};
use crate::tome::TomeSet;

pub use plan::{AnyPlanner, PlannerError, planner};

/// Evaluates an expression in which `$system` is the type of the system called `$name`.
macro_rules! for_system {
    ($name:expr, $system:ident => $body:expr) => {
        match $name {
            SystemName::Glass => {
                type $system = Glass;
                $body
            }
            SystemName::Rack => {
                type $system = Rack;
                $body
            }
            SystemName::Tome => {
                type $system = TomeSet;
                $body
            }
            SystemName::Geo => {
                type $system = Geo;
                $body
            }
            SystemName::Queue => {
                type $system = Queue;
                $body
            }
        }
    };
}

/// Sink for the log of a simulated library.
pub type LogSink = Box<dyn Write + Send>;

/// Runs the jobs of a call, and reports each finished job.
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    /// Runs them.
    pub runner: &'a dyn Runner,
    /// Called after each job, on any thread.
    pub done: &'a (dyn Fn() + Sync),
}

impl Debug for Workers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workers")
    }
}

impl<S: System> JobRunner<S> for Workers<'_> {
    fn run(&self, jobs: &[Job<S::Scenario>], done: &mut dyn FnMut(usize, JobResult<S::Result>)) {
        let (results, received) = mpsc::channel();
        self.runner.for_each(jobs.len(), &|index| {
            let job = &jobs[index];
            let result = engine::run::<S>(&job.scenario, job.seed);
            // The receiver lives until all jobs have ended.
            let _ = results.send((index, result.map_err(|error| error.to_string())));
            (self.done)();
        });
        drop(results);
        received.into_iter().for_each(|(index, result)| done(index, result));
    }
}

/// Why a scenario cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It is not TOML, or a field is unknown, missing or of the wrong type.
    #[error(transparent)]
    Syntax(settings::Error),
    /// A value is out of range; the message begins with the field.
    #[error(transparent)]
    Value(Error),
}

/// Why runs failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] Error),
    /// The log cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// How to run a scenario.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The first seed; the others are consecutive.
    pub first_seed: u64,
    /// Number of seeds.
    pub seeds: usize,
    /// Whether to record the runs over time, for [`Runs::report`].
    pub is_recorded: bool,
    /// Runs the jobs.
    pub workers: Workers<'a>,
}

/// The scenario of some system, checked.
pub trait AnyScenario: Debug + Send + Sync {
    /// Returns the scenario as a file.
    ///
    /// # Errors
    /// When it cannot be written as TOML.
    fn to_toml(&self) -> Result<String, toml::ser::Error>;

    /// Whether runs of this system have a log, which only libraries do.
    fn has_log(&self) -> bool;

    /// Runs it. The log is that of the first seed; a system without one writes nothing.
    ///
    /// # Errors
    /// When a parameter is out of range, or the log cannot be written.
    fn run(&self, request: &RunRequest<'_>, log: Option<LogSink>) -> Result<Runs, RunError>;
}

/// The runs of a scenario, in the order of their seeds.
#[derive(Debug)]
pub struct Runs {
    /// The seeds.
    pub seeds: Vec<u64>,
    /// [`crate::metrics::Measured::hash`] of each.
    pub hashes: Vec<u64>,
    /// The measurements of each.
    pub results: Vec<Value>,
    /// The constraints that each meets.
    pub findings: Vec<Value>,
    /// The numbers to show.
    pub numbers: Vec<RunNumber>,
    /// The constraints.
    pub constraints: Value,
    /// The constraints over all seeds.
    pub summary: Summary,
    recorded: Option<Box<dyn RecordedRuns>>,
}

/// A number to show, of all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunNumber {
    /// Its name.
    pub name: &'static str,
    /// Its format.
    pub format: NumberFormat,
    /// The value of each run.
    pub values: Vec<f64>,
}

impl Runs {
    /// Returns the page of recorded runs, and its data as JSON; `None` if nothing was recorded.
    #[must_use]
    pub fn report(&self, rows: &[ResultRow], facts: &Facts) -> Option<(String, Value)> {
        let recorded = self.recorded.as_ref()?;
        let mut json = recorded.to_json();
        json["runs"] = Value::Array(self.results.clone());
        Some((recorded.page(rows, facts), json))
    }
}

/// The recordings of a scenario's runs.
trait RecordedRuns: Debug + Send {
    fn page(&self, rows: &[ResultRow], facts: &Facts) -> String;
    fn to_json(&self) -> Value;
}

#[derive(Debug)]
struct Recording<S: ReportedSystem> {
    scenario: S::Scenario,
    timelines: Vec<S::Timeline>,
}

impl<S: ReportedSystem> RecordedRuns for Recording<S> {
    fn page(&self, rows: &[ResultRow], facts: &Facts) -> String {
        run_page::<S>(&self.scenario, &self.timelines, rows, facts)
    }

    fn to_json(&self) -> Value {
        json!({ "scenario": self.scenario, "courses": self.timelines })
    }
}

/// A system that the twin knows by name.
trait NamedSystem: PaperSystem + ReportedSystem + 'static {
    /// Whether runs have a log.
    const HAS_LOG: bool = false;

    /// Creates an observer that writes the log of a run, where the system has one.
    ///
    /// # Errors
    /// When the log cannot be started.
    fn log(_: &Self::Scenario, _: LogSink) -> Result<Option<Box<dyn LogObserver<Self>>>, RunError> {
        Ok(None)
    }
}

/// Writes the log of a run.
trait LogObserver<S: System>: Observer<S> {
    /// Ends the log. Returns an error if not all of it was written.
    fn end(self: Box<Self>) -> Result<(), LogError>;
}

impl NamedSystem for Glass {
    const HAS_LOG: bool = true;

    fn log(
        scenario: &Self::Scenario,
        sink: LogSink,
    ) -> Result<Option<Box<dyn LogObserver<Self>>>, RunError> {
        let library = Library::with_policy(&scenario.library, scenario.policy.clone());
        let library = library.map_err(Error::Library)?;
        Ok(Some(Box::new(LibraryLog::new(sink, &library)?)))
    }
}

impl LogObserver<Glass> for LibraryLog<LogSink> {
    fn end(self: Box<Self>) -> Result<(), LogError> {
        (*self).end()
    }
}

impl NamedSystem for Queue {}
impl NamedSystem for Rack {}
impl NamedSystem for TomeSet {}
impl NamedSystem for Geo {}

/// Passes a run to its log and to its recorder, where they exist.
struct Observers<S: ReportedSystem> {
    log: Option<Box<dyn LogObserver<S>>>,
    recorder: Option<S::Recorder>,
}

impl<S: ReportedSystem> Observer<S> for Observers<S> {
    fn observe(&mut self, now: fulgurite_units::Instant, observation: S::Observation<'_>) {
        if let Some(log) = &mut self.log {
            log.observe(now, observation);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.observe(now, observation);
        }
    }

    fn is_satisfied(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_satisfied())
            || self.recorder.as_ref().is_some_and(Observer::is_satisfied)
    }
}

#[derive(Debug)]
struct LoadedScenario<S: System>(S::Scenario);

impl<S: NamedSystem> AnyScenario for LoadedScenario<S>
where
    S::Timeline: Sync,
{
    fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(&self.0)
    }

    fn has_log(&self) -> bool {
        S::HAS_LOG
    }

    fn run(&self, request: &RunRequest<'_>, log: Option<LogSink>) -> Result<Runs, RunError> {
        let log = Mutex::new(log);
        let runs = collect(request.workers.runner, request.seeds, |index| {
            let take = || log.lock().unwrap_or_else(PoisonError::into_inner).take();
            let seed = request.first_seed.saturating_add(index as u64);
            let sink = if index == 0 { take() } else { None };
            let run = run_one::<S>(&self.0, seed, sink, request.is_recorded);
            (request.workers.done)();
            run
        });
        let runs = runs.into_iter().collect::<Result<Vec<_>, RunError>>()?;
        let (results, timelines): (Vec<S::Result>, Vec<Option<S::Timeline>>) =
            runs.into_iter().unzip();
        let timelines: Vec<S::Timeline> = timelines.into_iter().flatten().collect();
        let numbers = S::rows(&self.0, &results).into_iter().map(|number| RunNumber {
            name: number.name,
            format: number.format,
            values: results.iter().map(number.value).collect(),
        });
        let recorded = (!timelines.is_empty()).then(|| -> Box<dyn RecordedRuns> {
            Box::new(Recording::<S> { scenario: self.0.clone(), timelines })
        });
        Ok(Runs {
            seeds: results.iter().map(|run| run.seed()).collect(),
            hashes: results.iter().map(|run| run.hash()).collect(),
            numbers: numbers.collect(),
            findings: results.iter().map(|run| S::findings(&self.0, run)).collect(),
            constraints: S::constraints(&self.0),
            summary: S::summary(&self.0, &results),
            results: results.iter().map(|run| json!(run)).collect(),
            recorded,
        })
    }
}

/// Runs one seed, writing its log and recording it over time if requested.
fn run_one<S: NamedSystem>(
    scenario: &S::Scenario,
    seed: u64,
    sink: Option<LogSink>,
    is_recorded: bool,
) -> Result<(S::Result, Option<S::Timeline>), RunError> {
    if sink.is_none() && !is_recorded {
        return Ok((engine::run::<S>(scenario, seed)?, None));
    }
    let log = sink.map(|sink| S::log(scenario, sink)).transpose()?.flatten();
    let recorder = is_recorded.then(|| S::recorder(scenario, seed));
    let mut observers = Observers::<S> { log, recorder };
    let result = run_observed::<S, _>(scenario, seed, &mut observers)?;
    observers.log.map(LogObserver::end).transpose()?;
    Ok((result, observers.recorder.map(S::timeline)))
}

/// Returns the system of a scenario file.
///
/// # Errors
/// When it is not TOML, or names no known system.
pub fn system_of(text: &str) -> Result<SystemName, settings::Error> {
    Ok(settings::from_toml::<Head>(text)?.system)
}

/// Returns the scenario of a file, of the system that it names.
///
/// # Errors
/// The problem of the file.
pub fn scenario(text: &str) -> Result<Box<dyn AnyScenario>, ScenarioError> {
    let system = system_of(text).map_err(ScenarioError::Syntax)?;
    for_system!(system, S => loaded::<S>(text))
}

fn loaded<S: NamedSystem>(text: &str) -> Result<Box<dyn AnyScenario>, ScenarioError>
where
    S::Timeline: Sync,
{
    let scenario: S::Scenario = settings::from_toml(text).map_err(ScenarioError::Syntax)?;
    scenario.check().map_err(ScenarioError::Value)?;
    Ok(Box::new(LoadedScenario::<S>(scenario)))
}

/// Returns a scenario of this system with fields set by dotted path; named parts may be given by
/// name.
///
/// # Errors
/// The problem, in one line: the invalid path, the unknown field, or the value out of range.
pub fn scenario_with(
    system: SystemName,
    table: Table,
    set: &Table,
) -> Result<Box<dyn AnyScenario>, String> {
    for_system!(system, S => {
        Ok(Box::new(LoadedScenario::<S>(with_overrides::<<S as System>::Scenario>(table, set)?)))
    })
}

/// A sweep of some system. Every combination can be run.
pub trait AnySweep: Debug {
    /// Returns the value of each field, as written, for each combination.
    fn labels(&self) -> Vec<&[String]>;

    /// Returns the scenario of the first combination as a file.
    ///
    /// # Errors
    /// When it cannot be written as TOML.
    fn first_to_toml(&self) -> Result<String, toml::ser::Error>;

    /// Runs all combinations with all seeds.
    ///
    /// # Errors
    /// The first run that fails, or the metric that does not exist.
    fn run(
        &self,
        metrics: &[String],
        seeds: &[u64],
        workers: Workers<'_>,
    ) -> Result<SweepResult, SweepError>;
}

/// Why a sweep failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A combination cannot be run.
    #[error(transparent)]
    Scenario(#[from] Error),
    /// A metric that the runs do not have.
    #[error("{0}")]
    Metric(String),
}

impl<S: NamedSystem> AnySweep for Sweep<S> {
    fn labels(&self) -> Vec<&[String]> {
        self.points().iter().map(|point| point.labels.as_slice()).collect()
    }

    fn first_to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(&*self.points()[0].scenario)
    }

    fn run(
        &self,
        metrics: &[String],
        seeds: &[u64],
        workers: Workers<'_>,
    ) -> Result<SweepResult, SweepError> {
        let jobs = self.jobs(seeds);
        let results = collect(workers.runner, jobs.len(), |index| {
            let job = &jobs[index];
            let result = engine::run::<S>(&job.scenario, job.seed);
            (workers.done)();
            result
        });
        let results = results.into_iter().collect::<Result<Vec<_>, Error>>()?;
        self.result(metrics, seeds, &results).map_err(SweepError::Metric)
    }
}

/// Creates all combinations of the values of `over`, in a scenario of this system with other fields
/// changed by `set`.
///
/// # Errors
/// The field that is given twice, or the combination that cannot be run, and why.
pub fn sweep(
    system: SystemName,
    table: &Table,
    set: &Table,
    over: Vec<SweepAxis>,
) -> Result<Box<dyn AnySweep>, InvalidSweep> {
    for_system!(system, S => Ok(Box::new(Sweep::<S>::new(table, set, over)?)))
}

/// Returns the metrics that a sweep of this system shows: the requested ones, or else the default
/// ones.
///
/// # Errors
/// Names the first that does not exist, and lists all metrics.
pub fn metrics(system: SystemName, requested: &[String]) -> Result<Vec<String>, String> {
    let (defaults, checked) = for_system!(system, S => {
        (<S as ReportedSystem>::DEFAULT_METRICS, check_metrics::<<S as System>::Result>(requested))
    });
    checked?;
    Ok(match requested {
        [] => defaults.iter().map(|name| (*name).to_owned()).collect(),
        requested => requested.to_vec(),
    })
}

/// The statements of a paper about some system.
pub trait AnySuite: Debug {
    /// Keeps only these statements, in the order of the suite.
    ///
    /// # Errors
    /// When one of them is in no file.
    fn only(self: Box<Self>, ids: &[String]) -> Result<Box<dyn AnySuite>, ExperimentError>;

    /// Limits the number of seeds per point.
    ///
    /// # Errors
    /// Only errors that reading the files would have returned.
    fn with_seeds(self: Box<Self>, seeds_max: u32) -> Result<Box<dyn AnySuite>, ExperimentError>;

    /// Returns the number of distinct runs.
    fn job_count(&self) -> usize;

    /// Runs and judges everything.
    fn run(&self, workers: Workers<'_>) -> Report;
}

impl<S: NamedSystem> AnySuite for Suite<S> {
    fn only(self: Box<Self>, ids: &[String]) -> Result<Box<dyn AnySuite>, ExperimentError> {
        Ok(Box::new((*self).only(ids)?))
    }

    fn with_seeds(self: Box<Self>, seeds_max: u32) -> Result<Box<dyn AnySuite>, ExperimentError> {
        Ok(Box::new((*self).with_seeds(seeds_max)?))
    }

    fn job_count(&self) -> usize {
        self.job_count()
    }

    fn run(&self, workers: Workers<'_>) -> Report {
        self.run(&workers, &mut |_| {})
    }
}

/// Reads the statements in files about this system; all of them are checked before anything runs.
///
/// # Errors
/// The first file that cannot be used.
pub fn suite(
    system: SystemName,
    files: &[SourceFile],
) -> Result<Box<dyn AnySuite>, ExperimentError> {
    for_system!(system, S => Ok(Box::new(Suite::<S>::read(files)?)))
}

#[cfg(test)]
mod tests;
