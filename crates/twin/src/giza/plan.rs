//! Planning: the cheapest sites, fragments and quorums for objects that must last, be written and
//! be read in time.
//!
//! ```text
//!   sites with prices, rates, round trips;  --candidates--> not enough by arithmetic: left out
//!   demand, objective                            |
//!                              those of least cost first: runs of the twin --> trials
//!                                                                                |
//!                                        Plan: least cost, runner-up, all trials <'
//! ```
//!
//! What is chosen: how many fragments are data and parity, which sites have them, how many sites
//! vote and how many must agree. The sites that vote are those nearest to where is asked.
//!
//! What a plan must have: no more losses a year than are allowed; writes and reads that go on with
//! so many sites away; and in every seed the 99th percentile of writes and of reads within the
//! objective, and nothing that failed.
//!
//! By arithmetic is left out what is lost too often, stands too few sites away, or is too late
//! though every time were its median and nothing else were done. Costs are those of a month: bytes
//! and rows that lie there, and requests and bytes between sites as a run counted them. What is
//! left out: nodes, people, healing, versions that are kept, and what is deleted.

mod costs;
mod request;
mod search;

use serde::Serialize;

pub use costs::Cost;
pub use request::{
    Candidate, Demand, Excluded, Objective, PlanRequest, PricedSite, Quorum, Space, Stores,
};
pub use search::Trial;

use crate::Error;
use crate::plan_picture::{Drawn, Point};
use crate::runner::Runner;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The least cost; `None` when nothing is enough.
    pub best: Option<Trial>,
    /// The least cost after that.
    pub runner_up: Option<Trial>,
    /// The objective of writes, in seconds.
    pub put_s: f64,
    /// The objective of reads, in seconds.
    pub get_s: f64,
    /// Names of the sites, by their places.
    pub sites: Vec<String>,
    /// Seeds of each candidate whose first did not miss.
    pub seeds: u32,
    /// Runs of the twin.
    pub runs: u32,
    /// Candidates that were worth a run.
    pub candidates: usize,
    /// Those that were not.
    pub excluded: Excluded,
    /// Whether the search ended at its limit of runs: then a cheaper plan may exist.
    pub is_cut_short: bool,
    /// Money of the prices.
    pub currency: String,
    /// Everything that was tried, in that order.
    pub tried: Vec<Trial>,
}

/// Searches for the cheapest sites.
///
/// # Errors
/// When a parameter is out of range, or a run cannot be made.
pub fn plan_watched(
    request: &PlanRequest,
    runner: &dyn Runner,
    tell: &mut dyn FnMut(&Trial),
) -> Result<Plan, Error> {
    request.validate()?;
    search::search(request, runner, tell)
}

/// Draws all trials as SVG: cost against how much of the objective is taken, all of it as a line.
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
