//! A set of tomes that make their own decisions: each is the state machine that also serves live,
//! and only its disk, its board, its network and its clients are simulated.
//!
//! ```text
//!   clients --> Event --> Tome --> commands --> machine: disk, board, wire (times)
//!      ^                    ^                      |
//!      '---- answers -------'---- Event, queue <---'
//!                     token manager, fencing
//! ```
//!
//! A block of the core is 256 bytes here, its minimum, and stands for one of the size in the
//! scenario. Signatures, parities and digests are those of the 256 bytes, computed and compared by
//! the core; times and bytes are those of the large block. Lost tomes do not come back; crashes,
//! and lost or duplicated messages, are in the tests of the core.

mod clients;
mod driver;
mod faults;
mod initial_state;
mod invariants;
mod machine;
mod reads;
mod settings;
mod stats;

pub(crate) use driver::Driven;
pub use settings::{DrivenSet, Jobs, ReadStrategy, Repair, SetModel, TomeSelection};
pub use stats::DrivenResult;

#[cfg(test)]
mod tests;
