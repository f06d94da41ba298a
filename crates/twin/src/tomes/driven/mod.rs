//! A set of tomes that is decided by the tomes themselves: each is the state machine that also
//! serves live, and here are only its disk, its board, its network and its clients.
//!
//! ```text
//!   clients --> Event --> Tome --> commands --> machine: disk, board, wire (times)
//!      ^                    ^                      |
//!      '---- answers -------'---- Event, agenda <--'
//!                     keeper of tokens, fence
//! ```
//!
//! A block of the core is 256 bytes here, its smallest, and stands for one of the size that the
//! scenario says: signatures, parities and digests are those of the 256 bytes and are computed and
//! compared by the core, times and bytes are those of the large one. Tomes are lost and do not come
//! back; crashes, lost messages and doubled ones are in the tests of the core.

mod accounts;
mod check;
mod clients;
mod drive;
mod faults;
mod fill;
mod machine;
mod reads;
mod settings;

pub use accounts::DrivenResult;
pub(crate) use drive::Driven;
pub use settings::{Choosing, Decides, DrivenSet, Jobs, Reading, Repair};

#[cfg(test)]
mod tests;
