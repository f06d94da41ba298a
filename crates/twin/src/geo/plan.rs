//! Planning: the cheapest sites, fragments and quorums that meet requirements on durability and on
//! write and read latency.
//!
//! ```text
//!   sites with prices, rates, round trips;  --candidates--> fail in closed form: excluded
//!   demand, objective                            |
//!                              the others by least cost: runs of the twin --> trials
//!                                                                                |
//!                                        Plan: least cost, runner-up, all trials <'
//! ```
//!
//! The plan chooses the numbers of data and parity fragments, the sites that hold them, how many
//! sites vote and how many must agree. The voters are the sites nearest to the requesting sites.
//!
//! A plan must have no more losses a year than allowed. Its writes and reads must continue with the
//! given number of sites unavailable. In every seed the 99th percentile of writes and of reads must
//! be within the objective, and nothing may fail.
//!
//! Candidates are excluded without a run if they lose objects too often, survive too few
//! unavailable sites, or are too slow even if every time were its median and nothing else were
//! done. Costs are those of a month: stored bytes and rows, and requests and bytes between sites as
//! counted by a run. Not included: nodes, staff, healing, kept versions, and deletes.

mod costs;
mod request;
mod search;

use serde::Serialize;

pub use costs::Cost;
pub use request::{
    Candidate, Demand, Excluded, Objective, OrderedQuorumRule, PlanRequest, PricedSite, Space,
    Stores,
};
pub use search::Trial;

use crate::Error;
use crate::plan_picture::{Drawn, Point};
use crate::runner::Runner;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The cheapest trial; `None` when nothing meets the requirements.
    pub best: Option<Trial>,
    /// The second cheapest trial.
    pub runner_up: Option<Trial>,
    /// The objective of writes, in seconds.
    pub put_s: f64,
    /// The objective of reads, in seconds.
    pub get_s: f64,
    /// Names of the sites, by index.
    pub sites: Vec<String>,
    /// Number of seeds of each candidate whose first seed did not miss.
    pub seeds: u32,
    /// Number of runs of the twin.
    pub runs: u32,
    /// Candidates that were worth a run.
    pub candidates: usize,
    /// Candidates that were excluded.
    pub excluded: Excluded,
    /// Whether the search ended at its limit of runs: then a cheaper plan may exist.
    pub is_cut_short: bool,
    /// Currency of the prices.
    pub currency: String,
    /// All trials, in order.
    pub tried: Vec<Trial>,
}

/// Searches for the cheapest sites, and reports each trial.
///
/// # Errors
/// When a parameter is out of range, or a run fails.
pub fn plan_with_progress(
    request: &PlanRequest,
    runner: &dyn Runner,
    on_trial: &mut dyn FnMut(&Trial),
) -> Result<Plan, Error> {
    request.validate()?;
    search::search(request, runner, on_trial)
}

/// Draws all trials as SVG: cost against the share of the objective that is used, with a line at
/// all of it.
///
/// # Errors
/// When nothing was tried, or the picture cannot be drawn.
pub fn picture(plan: &Plan) -> Result<String, Error> {
    let point = |trial: &Trial| Point {
        cost: trial.cost,
        tail_s: (trial.put_s / plan.put_s).max(trial.get_s / plan.get_s),
        is_enough: trial.is_enough,
        is_whole: true,
    };
    Drawn {
        points: plan.tried.iter().map(point).collect(),
        best: plan.best.as_ref().map(point),
        objective_s: 1.0,
        currency: &plan.currency,
        cost: ("a month,", 1.0),
        tail: "99th percentile over objective",
        unit: ("times", 1.0),
    }
    .svg()
}

#[cfg(test)]
mod tests;
