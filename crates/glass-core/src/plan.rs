//! Planning: assigns staged bodies to platters, platters to slots, and racks to sets. Pure
//! functions from the current state to the desired one: nothing here does I/O or reads a clock.
//!
//! ```text
//! bodies in order --SetPlanner--> SetPlan: shards of bodies on each information platter
//! platters of a set, zones of a library --choose_zones--> a zone for each platter
//! platters of a set, zones of libraries --choose_fleet--> a library and a zone for each platter
//! redundancy platters, remote libraries --choose_far--> a remote library for each that leaves
//! FailureRules --shapes--> BlastModel --minimum_storage_racks--> RackCount, with its proof
//! ```
//!
//! [`audit_fleet`] and [`verify_rack_count`] check plans and proofs, and share no code with the
//! planners.

mod audit;
mod balance;
mod blast;
mod columns;
mod error;
mod failures;
mod far;
mod fleet;
mod index;
mod limits;
mod pack;
mod place;
mod racks;
mod reach;
mod search;
mod shape;

pub use fulgurite_units::ErrorKind;

pub use audit::{Assurance, RackFault, Violation, audit_fleet, share_zone, verify_rack_count};
pub use blast::{BlastModel, Cell, Grid};
pub use error::LayoutError;
pub use failures::{Collision, FailureRules};
pub use far::choose_far;
pub use fleet::{FleetSlot, LibraryState, choose_fleet};
pub use index::LibraryIndex;
pub use pack::{PlatterPlan, Push, SetPlan, SetPlanner, Shard, StagedBody, split_bytes};
pub use place::{ZoneState, choose_zones};
pub use racks::{RackCount, Refutation, SetShape, minimum_storage_racks, platters_max};
pub use shape::ZoneShape;

#[cfg(test)]
mod tests;
