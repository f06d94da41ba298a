//! What is asked for and what is fetched now: the controller of restores, for every tier whose
//! objects have to be fetched before they can be read.
//!
//! ```text
//! RestoreObject --Asked--> waiting, by when it is due --Fetch--> a tier's drives
//!                             ^                                     |  Came, Failed
//!                             '--- later, after a failure <---------'
//! all pieces came --Commit--> the copy is made readable --Committed--> forgotten
//! ```
//!
//! A state machine without clock, thread or file ([`fulgurite_units::Controller`]): the archive and
//! the twin drive the same one. What it is not: a scheduler of drives. Which platter is fetched
//! next, of what was asked of a library, that library decides; this decides what it is asked for,
//! and so how much of the queue it sees. Design note 0020.

mod begin;
mod capacity;
mod controller;
mod event;
mod invariants;
pub mod limits;
pub mod log;
mod restore;
mod retrieval;

pub use capacity::Capacity;
pub use controller::Restores;
pub use event::{Command, Event, Piece, PieceId, Place, RestoreId, TierIndex};
pub use retrieval::Retrieval;

#[cfg(test)]
mod tests;
