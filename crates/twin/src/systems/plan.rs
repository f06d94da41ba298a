//! Planners by the name of their system.

use std::fmt::Debug;

use fulgurite_units::settings;
use toml::{Table, Value};

use super::ScenarioError;
use crate::plan::{PlanReport, Planner};
use crate::runner::Runner;
use crate::scenario::SystemName;
use crate::{Error, Trace, geo, glass, rack};

/// The request for a plan of some system, checked.
pub trait AnyPlanner: Debug {
    /// Replaces the reads by a trace; `None` if the system has none.
    fn with_trace(self: Box<Self>, trace: Trace) -> Option<Box<dyn AnyPlanner>>;

    /// Searches for the cheapest candidates, and describes each trial as soon as it is finished.
    ///
    /// # Errors
    /// When a parameter is out of range, or a run fails.
    fn plan(
        &self,
        runner: &dyn Runner,
        on_trial: &mut dyn FnMut(&str),
    ) -> Result<PlanReport, Error>;
}

impl<P: Planner> AnyPlanner for P {
    fn with_trace(self: Box<Self>, trace: Trace) -> Option<Box<dyn AnyPlanner>> {
        Some(Box::new((*self).with_trace(trace)?))
    }

    fn plan(
        &self,
        runner: &dyn Runner,
        on_trial: &mut dyn FnMut(&str),
    ) -> Result<PlanReport, Error> {
        let plan = self.search(runner, &mut |trial| {
            let verdict = if self.verdict(trial).is_enough { "enough" } else { "not enough" };
            on_trial(&format!("{}, {verdict}", P::summary(trial)));
        })?;
        PlanReport::new(self, &plan)
    }
}

/// Why there is no planner.
#[derive(Debug, thiserror::Error)]
pub enum PlannerError {
    /// The file is wrong.
    #[error(transparent)]
    File(#[from] ScenarioError),
    /// A field cannot be set, since the planner of the file's system has none of this name.
    #[error("{field}: {problem}")]
    Field {
        /// The field.
        field: String,
        /// The fields that there are.
        problem: String,
    },
    /// The system has no planner.
    #[error("there are plans of glass, rack and geo only")]
    NoPlanner,
}

/// Returns the planner of a file, of the system that it names, with fields set by dotted path.
///
/// # Errors
/// The problem of the file or of a field.
pub fn planner(text: &str, set: &Table) -> Result<Box<dyn AnyPlanner>, PlannerError> {
    match super::system_of(text).map_err(ScenarioError::Syntax)? {
        SystemName::Glass => load::<glass::plan::PlanRequest>(text, set),
        SystemName::Rack => load::<rack::plan::PlanRequest>(text, set),
        SystemName::Geo => load::<geo::plan::PlanRequest>(text, set),
        SystemName::Tome | SystemName::Queue => Err(PlannerError::NoPlanner),
    }
}

fn load<P: Planner>(text: &str, set: &Table) -> Result<Box<dyn AnyPlanner>, PlannerError> {
    let planner: P = if set.is_empty() {
        settings::from_toml(text).map_err(ScenarioError::Syntax)?
    } else {
        let mut table: Table = settings::from_toml(text).map_err(ScenarioError::Syntax)?;
        for (path, value) in set {
            insert(&mut table, path, value);
        }
        settings::from_table(&table).map_err(|error| {
            let problem = error.message().to_owned();
            let unknown = |word: &str| problem.starts_with(&format!("unknown field `{word}`"));
            match set.keys().find(|path| path.split('.').any(unknown)) {
                Some(field) => PlannerError::Field { field: field.clone(), problem },
                None => ScenarioError::Syntax(error).into(),
            }
        })?
    };
    planner.check().map_err(ScenarioError::Value)?;
    Ok(Box::new(planner))
}

/// Sets a field by its dotted path. A table that is missing, or a value in its place, becomes one.
fn insert(table: &mut Table, path: &str, value: &Value) {
    let Some((word, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value.clone());
        return;
    };
    let part = table.entry(word).or_insert_with(|| Value::Table(Table::new()));
    if !part.is_table() {
        *part = Value::Table(Table::new());
    }
    if let Some(part) = part.as_table_mut() {
        insert(part, rest, value);
    }
}
