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
mod planner;
mod request;
mod trial;

pub use candidate::{Candidate, Provision};
pub use constraints::{Constraint, Constraints};
pub use costs::CostTable;
pub use request::{PlanRequest, Space};
pub use trial::Trial;

#[cfg(test)]
mod tests;
