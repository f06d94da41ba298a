//! Planning: the cheapest libraries that hold what comes in and meet the objective of reads.
//!
//! ```text
//!   ingest, reads, objective, growth --> PlanRequest --groups by lower bound of cost--> trials
//!                                            ^                                            |
//!   CostTable, Space ------------------------'     runs of the twin, through a Runner <---'
//!                                                                |
//!                                             Plan: least cost, runner-up, all trials
//! ```
//!
//! What a plan must have: room for all platters at the stated age; the storage racks that a
//! platter-set needs (`fulgurite_layout`); at most two shuttles for each drive; the 99.9th
//! percentile of reads within the objective in every seed, with the stated share of platters
//! unavailable; and drives that verify as fast as platters are written, even in the measured
//! window.
//!
//! The search relies on more shuttles, drives or throughput never making a library slower. The
//! twin shows that within its noise, not exactly, so a plan is the least cost as far as that holds.
//! A run is given up only when a miss is certain, which relies on nothing.
//! What it leaves out: write drives (their throughput is not public), buildings, people, glass.

mod candidate;
mod costs;
mod groups;
mod known;
mod request;
mod search;
mod trial;

use serde::Serialize;

pub use candidate::Candidate;
pub use costs::CostTable;
pub use request::{Demand, Glass, PlanRequest, Space};
pub use trial::{Miss, Trial};

use crate::Error;
use crate::plan_picture::{Drawn, OF_SERVICE, Point};
use crate::runner::Runner;
use search::Search;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The least cost; `None` when nothing in the space is enough.
    pub best: Option<Trial>,
    /// The least cost with other drives, another throughput, number of libraries or policy.
    pub runner_up: Option<Trial>,
    /// The objective, in seconds.
    pub objective_s: f64,
    /// Platters that must have a slot at the stated age.
    pub platters: u64,
    /// Storage racks of a library that a platter-set needs.
    pub set_racks: u16,
    /// Bytes a day that have to be verified, redundancy included.
    pub verify_per_day: f64,
    /// Seeds of each candidate whose first did not miss.
    pub seeds: u32,
    /// Runs of the twin.
    pub runs: u32,
    /// Candidates in the space, each number of shuttles counted.
    pub candidates: u64,
    /// Whether the search ended at its limit of runs: then a cheaper plan may exist.
    pub is_cut_short: bool,
    /// Money of the cost table.
    pub currency: String,
    /// Prices and powers that are the assumed defaults, by name.
    pub assumed: Vec<String>,
    /// Everything that was tried, in that order; but for candidates that passed their first seed
    /// when that was all there was to know.
    pub tried: Vec<Trial>,
}

/// Searches for the cheapest libraries.
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
    Search::new(request, runner, tell)?.run()
}

/// Draws all trials as SVG: cost against the tail, the objective as a line. Of a trial that was
/// given up the tail is not known, and it stands where that is at least.
///
/// # Errors
/// When nothing was tried, or the picture cannot be drawn.
pub fn picture(plan: &Plan) -> Result<String, Error> {
    let point = |trial: &Trial| Point {
        cost: trial.cost,
        tail_s: trial.tail_s,
        is_enough: trial.is_enough(),
        is_whole: trial.given_up_s.is_none(),
    };
    Drawn {
        points: plan.tried.iter().map(point).collect(),
        best: plan.best.as_ref().map(point),
        objective_s: plan.objective_s,
        currency: &plan.currency,
        cost: OF_SERVICE,
        tail: "99.9th percentile of reads",
        unit: ("h", 3600.0),
    }
    .svg()
}

#[cfg(test)]
mod tests;
