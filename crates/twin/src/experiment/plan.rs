//! Plans the jobs of the statements: every point of every run with every seed. Each distinct run is
//! one job, however many statements use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::{Table, Value};

use super::PaperSystem;
use super::base::{Base, Bases};
use super::error::ExperimentError;
use super::file::{Run, Sweep};
use super::runner::Job;
use super::suite::LoadedStatement;
use crate::scenario::{Scenario, change, label, number, parse};

/// One point of a run: the jobs of its seeds.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPoint {
    /// The value of the sweep, as written; empty for a run of one point.
    pub(crate) label: String,
    /// The value as a number; its position in the sweep if it is not a number.
    pub(crate) x: f64,
    /// Jobs, in the order of the seeds.
    pub(crate) jobs: Vec<usize>,
}

/// All jobs, and the points they belong to.
#[derive(Debug)]
pub(crate) struct Plan<C> {
    pub(crate) jobs: Vec<Job<C>>,
    /// The points by statement and run.
    points: BTreeMap<(String, String), Vec<PlannedPoint>>,
    known: BTreeMap<String, usize>,
}

impl<C: Scenario> Plan<C> {
    /// Plans every run of the statements.
    pub(crate) fn new<S: PaperSystem<Scenario = C>>(
        bases: &Bases,
        statements: &[LoadedStatement<S>],
        seeds_max: u32,
    ) -> Result<Self, ExperimentError> {
        let (points, known) = (BTreeMap::new(), BTreeMap::new());
        let mut plan = Self { jobs: Vec::new(), points, known };
        for loaded in statements {
            let place = loaded.place();
            let statement = &loaded.statement;
            for spanned in &statement.runs {
                let (run, offset) = (spanned.get_ref(), spanned.span().start);
                let wrong = |field: &str, problem: String| {
                    place.meaning(offset, &format!("run {}: {field}", run.name), problem)
                };
                let Some(base) = bases.0.get(&run.base) else {
                    return Err(wrong("base", format!("there is no base {}", run.base)));
                };
                let seeds = statement.seeds.min(seeds_max);
                let points = plan.run(base, run, seeds).map_err(|problem| wrong("set", problem))?;
                let key = (statement.id.clone(), run.name.clone());
                if plan.points.insert(key, points).is_some() {
                    return Err(wrong("name", "another run has this name".to_owned()));
                }
            }
        }
        Ok(plan)
    }

    /// Returns the points of a run.
    pub(crate) fn points(&self, statement: &str, run: &str) -> Option<&[PlannedPoint]> {
        self.points.get(&(statement.to_owned(), run.to_owned())).map(Vec::as_slice)
    }

    fn run(&mut self, base: &Base, run: &Run, seeds: u32) -> Result<Vec<PlannedPoint>, String> {
        let table = change::<C>(base.table.clone(), &run.set, &run.unset)?;
        let Some(sweep) = &run.sweep else {
            let jobs = self.seeds(&table, seeds)?;
            return Ok(vec![PlannedPoint { label: String::new(), x: 0.0, jobs }]);
        };
        let mut points = Vec::new();
        let mut x = 0.0;
        for value in &sweep.values {
            let label = label(value);
            let varied = vary::<C>(table.clone(), sweep, value)
                .map_err(|problem| format!("{} = {label}: {problem}", sweep.of))?;
            let jobs = self
                .seeds(&varied, seeds)
                .map_err(|problem| format!("{} = {label}: {problem}", sweep.of))?;
            points.push(PlannedPoint { label, x: number(value).unwrap_or(x), jobs });
            x += 1.0;
        }
        Ok(points)
    }

    fn seeds(&mut self, table: &Table, seeds: u32) -> Result<Vec<usize>, String> {
        let scenario = Arc::new(parse::<C>(table)?);
        let text = serde_json::to_string(&*scenario).map_err(|error| error.to_string())?;
        let mut jobs = Vec::new();
        for seed in 1..=u64::from(seeds) {
            let next = self.jobs.len();
            let index = *self.known.entry(format!("{seed} {text}")).or_insert(next);
            if index == next {
                self.jobs.push(Job { scenario: Arc::clone(&scenario), seed });
            }
            jobs.push(index);
        }
        Ok(jobs)
    }
}

/// Returns the scenario table at one point of a sweep.
fn vary<C: Scenario>(table: Table, sweep: &Sweep, value: &Value) -> Result<Table, String> {
    let mut set = Table::new();
    set.insert(sweep.of.clone(), value.clone());
    set.extend(sweep.also.iter().map(|path| (path.clone(), value.clone())));
    change::<C>(table, &set, &[])
}
