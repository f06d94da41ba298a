//! Planning: the cheapest racks of cold disks that hold what comes in and have their first bytes in
//! time.
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
//! power, 96 columns of cooling, two halves. What is chosen: how many, how large their disks,
//! whether their domains have power and air for 96 disks that turn or for all of them, one server
//! or two, and the network of each. A rack of several is simulated with its share of the reads.
//!
//! What a plan must have: room for everything at the stated age, redundancy and what stays empty of
//! a full rack included; and in every seed the 99th percentile to the first byte within the
//! objective, no read refused, no rack above the bound of power, no disk spun up more often than
//! its budget, and a network that has as much left as comes in.
//!
//! That more servers or network, fewer reads a rack or disks that never sleep make no rack slower
//! is assumed, to leave out what has no more of anything than what was too slow. What is left out:
//! how writes delay reads (they wait for an idle rack), buildings, people, disks that are replaced.

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

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The least cost; `None` when nothing in the space is enough.
    pub best: Option<Trial>,
    /// The least cost after that.
    pub runner_up: Option<Trial>,
    /// The objective, in seconds.
    pub objective_s: f64,
    /// User bytes that must have room at the stated age.
    pub user_bytes: f64,
    /// The same with redundancy and what stays empty.
    pub raw_bytes: f64,
    /// Seeds of each candidate whose first did not miss.
    pub seeds: u32,
    /// Runs of the twin.
    pub runs: u32,
    /// Candidates in the space that have room.
    pub candidates: usize,
    /// Whether the search ended at its limit of runs: then a cheaper plan may exist.
    pub is_cut_short: bool,
    /// Money of the cost table.
    pub currency: String,
    /// Prices and powers that are the assumed defaults, by name.
    pub assumed: Vec<String>,
    /// Everything that was tried, in that order.
    pub tried: Vec<Trial>,
}

/// Searches for the cheapest racks.
///
/// # Errors
/// When a parameter is out of range, or a run cannot be made.
pub fn plan(request: &PlanRequest, runner: &dyn Runner) -> Result<Plan, Error> {
    plan_watched(request, runner, &mut |_| ())
}

/// The same, telling of each trial as soon as it is over.
///
/// # Errors
/// As [`plan`].
pub fn plan_watched(
    request: &PlanRequest,
    runner: &dyn Runner,
    tell: &mut dyn FnMut(&Trial),
) -> Result<Plan, Error> {
    request.validate()?;
    search::search(request, runner, tell)
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
