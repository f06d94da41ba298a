//! Planning: the cheapest racks of cold disks that hold the ingest and deliver first bytes in time.
//!
//! ```text
//!   ingest, reads, objective, bounds --> PlanRequest --those of least cost first--> trials
//!                                           ^                                         |
//!   CostTable, Space -----------------------'     runs of the twin, through a Runner <'
//!                                                               |
//!                                            Plan: least cost, runner-up, all trials
//! ```
//!
//! All racks are alike and have the paper's shape (Pelican, OSDI 2014): 1,152 disks, 72 trays of
//! power, 96 columns of cooling, two halves. The plan chooses the number of racks, the size of
//! their disks, power and cooling for 96 spinning disks or for all, one server or two, and the
//! network of each. Of several racks, one is simulated with its share of the reads.
//!
//! A plan must have room for everything at the given age, including redundancy and the space that
//! stays empty in a full rack. In every seed the 99th percentile to the first byte must be within
//! the objective, no read may be rejected, no rack may exceed the power limit, the mean spin-ups
//! per disk may not exceed the budget, and the network must have enough bandwidth left for the
//! ingest.
//!
//! The search assumes that more servers or network, fewer reads per rack or disks that always spin
//! never make a rack slower: it skips candidates with no more of anything than one that was too
//! slow. Not included: how writes delay reads (they wait for an idle rack), buildings, staff,
//! replaced disks.

mod candidate;
mod constraints;
mod costs;
mod request;
mod search;
mod trial;

use serde::Serialize;

pub use candidate::{Candidate, Provision};
pub use constraints::{Constraint, Constraints};
pub use costs::CostTable;
pub use request::{PlanRequest, Space};
pub use trial::Trial;

use crate::Error;
use crate::plan_picture::{Drawn, OF_SERVICE, Point};
use crate::runner::Runner;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The cheapest trial; `None` when nothing in the space meets the requirements.
    pub best: Option<Trial>,
    /// The second cheapest trial.
    pub runner_up: Option<Trial>,
    /// The objective, in seconds.
    pub objective_s: f64,
    /// User bytes that need room at the given age.
    pub user_bytes: f64,
    /// Raw bytes: with redundancy and the space that stays empty.
    pub raw_bytes: f64,
    /// Number of seeds of each candidate whose first seed did not miss.
    pub seeds: u32,
    /// Number of runs of the twin.
    pub runs: u32,
    /// Candidates in the space with enough room.
    pub candidates: usize,
    /// Whether the search ended at its limit of runs: then a cheaper plan may exist.
    pub is_cut_short: bool,
    /// Currency of the cost table.
    pub currency: String,
    /// Names of prices and powers with the assumed default.
    pub assumed: Vec<String>,
    /// All trials, in order.
    pub tried: Vec<Trial>,
}

/// Searches for the cheapest racks.
///
/// # Errors
/// When a parameter is out of range, or a run fails.
pub fn plan(request: &PlanRequest, runner: &dyn Runner) -> Result<Plan, Error> {
    plan_with_progress(request, runner, &mut |_| ())
}

/// Searches like [`plan`], and reports each trial as soon as it is finished.
///
/// # Errors
/// As [`plan`].
pub fn plan_with_progress(
    request: &PlanRequest,
    runner: &dyn Runner,
    on_trial: &mut dyn FnMut(&Trial),
) -> Result<Plan, Error> {
    request.validate()?;
    search::search(request, runner, on_trial)
}

/// Draws all trials as SVG: cost against the tail, the objective as a line.
///
/// # Errors
/// When nothing was tried, or the picture cannot be drawn.
pub fn picture(plan: &Plan) -> Result<String, Error> {
    let point = |trial: &Trial| Point {
        cost: trial.cost,
        tail_s: trial.tail_s,
        is_enough: trial.is_enough(),
        is_whole: true,
    };
    Drawn {
        points: plan.tried.iter().map(point).collect(),
        best: plan.best.as_ref().map(point),
        objective_s: plan.objective_s,
        currency: &plan.currency,
        cost: OF_SERVICE,
        tail: "99th percentile to the first byte",
        unit: ("s", 1.0),
    }
    .svg()
}

#[cfg(test)]
mod tests;
