//! Planning: staged bodies to platters, platters to slots. Pure functions from what is there to
//! what shall be: nothing here reads, writes or knows the time.
//!
//! ```text
//! bodies in order --SetPlanner--> SetPlan: shards of bodies on each information platter
//! platters of a set, zones of a library --choose_zones--> a zone for each platter
//! ```

mod error;
mod pack;
mod place;

pub use error::{ErrorKind, LayoutError};
pub use pack::{PlatterPlan, Push, SetPlan, SetPlanner, Shard, StagedBody, split_bytes};
pub use place::{ZoneState, choose_zones};

#[cfg(test)]
mod tests;
