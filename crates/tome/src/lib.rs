//! Tomes: disks that each have a small computer of their own, and look after each other.
//!
//! ```text
//! layout       a disk in regions, segments, blocks; what that costs
//! segment      parity inside a disk: few bad blocks wake no other
//! word         whether signatures belong together, and whose is wrong
//! tree         signatures of a region's blocks up to one root
//! consistency  whether a group agrees, found out without waking a disk
//! group        which regions protect each other: how groups come to be, grow and move
//! pending      changes that not every parity has       applied   changes that a parity has
//! awake        what a tome keeps on fast storage         alone   what is read without a set
//! tome         the state machine of one, with its events, commands and messages
//! token        who may turn its disk: few, each for a time
//! rebuild      a region made anew, one source after the other    scaled   its arithmetic
//! placement    which tome takes a new object
//! standing     what a region may do while a seat of its group moves
//! stood        the same as it is kept
//! ```
//!
//! After Pergamum (FAST 2008). A tome keeps its index and the signatures of its blocks where they
//! are awake, and its disk sleeps nearly always. Everything here is without clock, thread, file or
//! network ([`fulgurite_units::Controller`]), so that real tomes and the twin are the same. Design
//! note 0028.

pub mod alone;
pub mod applied;
pub mod awake;
mod bits;
pub mod consistency;
mod error;
mod event;
pub mod group;
mod ids;
pub mod layout;
pub mod limits;
pub mod message;
pub mod pending;
pub mod placement;
pub mod rebuild;
pub mod scaled;
pub mod segment;
mod split;
pub mod standing;
pub mod stood;
pub mod token;
mod tome;
pub mod tree;
pub mod whole;
mod wire;
pub mod word;

pub use error::{Result, TomeError};
pub use event::{Alarm, Answer, Command, Event, RequestId};
pub use ids::{Epoch, GroupId, Member, Offset, RegionId, RegionIndex, Spot, TomeId, Version};
pub use layout::{InSegment, Layout, Parts};
pub use split::Split;
pub use tome::{Spending, Tome, Unprotected};

#[cfg(test)]
mod tests;
