//! Planning: the cheapest libraries that hold the ingest and meet the objective for reads.
//!
//! ```text
//!   ingest, reads, objective, growth --> PlanRequest --groups by lower bound of cost--> trials
//!                                            ^                                            |
//!   CostTable, Space ------------------------'     runs of the twin, through a Runner <---'
//!                                                                |
//!                                             Plan: least cost, runner-up, all trials
//! ```
//!
//! A plan must have room for all platters at the given age; the storage racks that a platter-set
//! needs (`fulgurite_glass_core::plan`); at most two shuttles per drive; the 99.9th percentile of
//! reads within the objective in every seed, with the given share of platters unavailable; and
//! drives that verify as fast as platters are written, even in the measured window.
//!
//! The search assumes that more shuttles, drives or throughput never make a library slower. The
//! twin confirms that within its noise, not exactly, so a plan has the least cost only as far as
//! that holds. A run is stopped early only when a miss is certain, which relies on no assumption.
//! Not included: write drives (their throughput is not public), buildings, staff, glass.

mod candidate;
mod costs;
mod groups;
mod knowledge;
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

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The cheapest trial; `None` when nothing in the space meets the requirements.
    pub best: Option<Trial>,
    /// The cheapest trial with other drives, another throughput, number of libraries or policy.
    pub runner_up: Option<Trial>,
    /// The objective, in seconds.
    pub objective_s: f64,
    /// Platters that need a slot at the given age.
    pub platters: u64,
    /// Storage racks per library that a platter-set needs.
    pub set_racks: u16,
    /// Bytes per day to verify, redundancy included.
    pub verify_per_day: f64,
    /// Number of seeds of each candidate whose first seed did not miss.
    pub seeds: u32,
    /// Number of runs of the twin.
    pub runs: u32,
    /// Candidates in the space, counting each number of shuttles.
    pub candidates: u64,
    /// Whether the search ended at its limit of runs: then a cheaper plan may exist.
    pub is_cut_short: bool,
    /// Currency of the cost table.
    pub currency: String,
    /// Names of prices and powers with the assumed default.
    pub assumed: Vec<String>,
    /// All trials in order, except of candidates that passed their first seed when no more needed
    /// to be known.
    pub tried: Vec<Trial>,
}

/// Searches for the cheapest libraries.
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
    Search::new(request, runner, on_trial)?.run()
}

/// Draws all trials as SVG: cost against the tail, with the objective as a line. The tail of a
/// trial that was stopped early is drawn at its lower bound.
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
