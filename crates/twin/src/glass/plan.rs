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
mod planner;
mod request;
mod search;
mod trial;

pub use candidate::Candidate;
pub use costs::CostTable;
pub use request::{Demand, Glass, PlanRequest, Space};
pub use trial::{Miss, Trial};

#[cfg(test)]
mod tests;
