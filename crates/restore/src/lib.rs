//! Restore scheduling: takes requests and decides what to fetch now, for every tier whose objects
//! must be fetched before they can be read.
//!
//! ```text
//! RestoreObject --Asked--> waiting, by due time --Fetch--> a tier's drives
//!                             ^                               |  Came, Failed
//!                             '--- later, after a failure <---'
//! all pieces came --Commit--> the copy is made readable --Committed--> forgotten
//! ```
//!
//! A state machine without clock, thread or file ([`fulgurite_units::Controller`]): the archive and
//! the twin drive the same one. It does not schedule drives. A glass library decides itself which
//! of the requested platters to fetch next; this crate decides what to request from it, and so how
//! much of the queue the library sees. Design note 0020.

mod capacity;
mod controller;
mod dispatch;
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
