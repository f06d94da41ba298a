//! Plans: the cheapest systems that meet a demand, for every system that has a planner.
//!
//! ```text
//!   file --> Planner --candidates of least cost first--> trials --> Plan --> PlanReport
//!                            ^                              |            a table, JSON, a picture
//!                            '-- runs of the twin, by a Runner
//! ```
//!
//! A planner says what is demanded and held, what varies, and how a candidate is judged. A file of
//! its system is read into it; [`crate::systems::planner`] chooses it by name.

pub(crate) mod costs;
mod picture;
mod report;
mod search;
pub(crate) mod sizes;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use report::PlanReport;
#[cfg(test)]
pub(crate) use search::examine;
pub(crate) use search::{SearchProblem, search};

use crate::runner::Runner;
use crate::{Error, Trace};

/// A request for a plan, as read from a file.
pub trait Planner: Debug + DeserializeOwned + Send + Sync + 'static {
    /// A candidate after its runs, with what was measured.
    type Trial: Clone + Debug + Serialize;
    /// How results are labeled.
    const LABELS: Labels;

    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    fn check(&self) -> Result<(), Error>;

    /// Replaces the reads by a trace; `None` if the system has none.
    #[must_use]
    fn with_trace(self, _: Trace) -> Option<Self> {
        None
    }

    /// Searches for the cheapest candidates, and reports each trial as soon as it is finished.
    ///
    /// # Errors
    /// When a parameter is out of range, or a run fails.
    fn search(
        &self,
        runner: &dyn Runner,
        on_trial: &mut dyn FnMut(&Self::Trial),
    ) -> Result<Plan<Self::Trial>, Error>;

    /// Compares a trial with the requirements.
    fn verdict(&self, trial: &Self::Trial) -> Verdict;

    /// Returns the objective, in the unit of [`Labels::tail_unit`].
    fn objective(&self) -> f64;

    /// Returns the number of seeds, all of which must meet the requirements.
    fn seeds(&self) -> u32;

    /// Returns the currency of the prices.
    fn currency(&self) -> &str;

    /// Returns the names of prices and powers with an assumed default.
    fn assumed(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the objectives, and the numbers that hold for every candidate.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn basis(&self) -> Result<Value, Error>;

    /// Describes a trial in one line.
    fn summary(trial: &Self::Trial) -> String;

    /// Returns the rows of a trial in the table, after its cost.
    fn rows(&self, trial: &Self::Trial) -> Vec<(&'static str, String)>;

    /// Returns the lines on a trial below the table.
    fn notes(&self, trial: &Self::Trial) -> Vec<String>;

    /// Returns what the table leaves out.
    ///
    /// # Errors
    /// When a parameter is out of range.
    fn remarks(&self, plan: &Plan<Self::Trial>) -> Result<Vec<String>, Error>;
}

/// How the results of a planner are labeled.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    /// The row of the cost, up to the currency.
    pub cost: &'static str,
    /// The axis of the cost, up to the currency.
    pub cost_axis: &'static str,
    /// The unit of money in row and axis.
    pub money: f64,
    /// The axis of the tail.
    pub tail_axis: &'static str,
    /// The unit of the tail.
    pub tail_unit: &'static str,
}

impl Labels {
    /// Machines and their energy over the years of service.
    pub(crate) const OF_SERVICE: Self = Self {
        cost: "cost, million",
        cost_axis: "over the years of service, million",
        money: 1e6,
        tail_axis: "tail",
        tail_unit: "s",
    };
}

/// How a trial compares with the requirements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Its cost.
    pub cost: f64,
    /// Whether it meets all requirements.
    pub is_enough: bool,
    /// Share of the objective that its tail uses.
    pub objective_share: f64,
    /// False for a trial that was stopped early: its tail is then a lower bound.
    pub is_whole: bool,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<T> {
    /// The cheapest trial; `None` when nothing in the space meets the requirements.
    pub best: Option<T>,
    /// The second cheapest trial.
    pub runner_up: Option<T>,
    /// Number of runs of the twin.
    pub runs: u32,
    /// Candidates that are worth a run.
    pub candidates: u64,
    /// Whether the search ended at its limit of runs: then a cheaper plan may exist.
    pub is_cut_short: bool,
    /// All trials, in order.
    pub tried: Vec<T>,
}
