//! Tomes: disks that each have a small computer of their own, and monitor each other.
//!
//! ```text
//! layout            a disk in regions, segments, blocks; the space overhead
//! segment           parity inside a disk: a few bad blocks spin up no other disk
//! syndrome          whether signatures form a codeword, and which one is wrong
//! tree              signatures of a region's blocks up to one root
//! consistency       whether a group agrees, checked without a spin-up
//! group             which regions protect each other: how groups are formed, grow and move
//! pending           changes that some parities lack
//! applied_changes   changes that a parity has
//! metadata          the metadata store of a tome
//! offline_read      offline and degraded reads
//! tome              the state machine of one, with its events, commands and messages
//! token             spin-up permits: few of them, each a lease
//! rebuild           a region rebuilt from one source after the other
//! block_multiplier  its arithmetic
//! placement         which tome takes a new object
//! membership_state  states of a region while a member slot of its group moves
//! membership        the same as it is persisted
//! ```
//!
//! After Pergamum (FAST 2008). A tome keeps its index and the signatures of its blocks in an
//! always-on metadata store, and its disk sleeps nearly always. Everything here is free of clocks,
//! threads, files and network ([`fulgurite_units::Controller`]), so that real tomes and the twin
//! run the same code. Design note 0028.

pub mod applied_changes;
mod bitmap;
pub mod block_multiplier;
mod code_params;
pub mod consistency;
mod error;
mod event;
pub mod group;
mod ids;
pub mod layout;
pub mod limits;
pub mod membership;
pub mod membership_state;
pub mod message;
pub mod metadata;
pub mod object_assembler;
pub mod offline_read;
pub mod pending;
pub mod placement;
pub mod rebuild;
pub mod segment;
pub mod syndrome;
pub mod token;
mod tome;
pub mod tree;
mod wire;

pub use code_params::CodeParams;
pub use error::{Result, TomeError};
pub use event::{Alarm, Answer, Command, Event, RequestId};
pub use ids::{
    Epoch, GroupId, Member, Offset, PhysicalBlock, RegionId, RegionIndex, TomeId, Version,
};
pub use layout::{InSegment, Layout, Parts};
pub use tome::{Spending, Tome, Unprotected};

#[cfg(test)]
mod tests;
