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
mod planner;
mod request;
mod trial;

pub use costs::Cost;
pub use request::{
    Candidate, Demand, Excluded, Objective, OrderedQuorumRule, PlanRequest, PricedSite, Space,
    Stores,
};
pub use trial::Trial;

#[cfg(test)]
mod tests;
