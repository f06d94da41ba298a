//! The tome tier: a set of tomes on real bytes, in one process or in several (Pergamum, FAST 2008).
//!
//! ```text
//! identity          which tome a disk is         disk             its blocks, at fixed places
//! rows, load        rows of metadata             metadata_store   durable before any answer
//! driver            carries out its commands     watch            events for subscribers
//! unplugged         offline reads of a tome      network          messages between tomes
//! spin_gate         checks before a spin-up      token_manager    grants tokens
//! set_store         the set's own state          piece_store      locations of objects
//! start_counts      detects older copies         query            requests to standalone tomes
//! inventory         labels of a whole disk       rebuild_metadata rebuilds metadata from it
//! standalone        a tome without its set here  handshake        of such a tome with its set
//! set               the whole set, for requests
//! objects           the store of objects         remote           tomes in other processes
//! ```
//!
//! `fulgurite-tome-core` decides what a tome does; this crate has what it knows only through
//! events: the disk and its files, stable storage, time. Design note 0029; formats in
//! docs/formats/tome.md.

mod disk;
mod driver;
mod error;
mod fail_point;
mod faults;
mod handshake;
mod identity;
mod inventory;
pub mod limits;
mod load;
mod metadata_store;
mod network;
pub mod objects;
mod piece_store;
mod query;
mod rebuild_metadata;
pub mod remote;
mod rows;
mod set;
mod set_store;
mod spin_gate;
mod standalone;
mod start_counts;
mod token_manager;
mod unplugged;
mod watch;

pub use disk::{Disk, Label};
pub use driver::{
    Checked, Done, Holdings, ListedObject, MembershipStatus, ObjectPage, Reply, TomeRequest,
    TomeStatus,
};
pub use fail_point::FAIL_POINTS;
/// What options of all tiers take.
pub use fulgurite_tier::{Entropy, FailPoints};

pub use error::{Result, TomesError};
pub use faults::{FaultInjector, InjectedFault};
pub use handshake::{HandshakeReply, SetHandshake};
pub use identity::{
    TOME_FILE, TOME_FILE_COPY, TomeIdentity, make as make_identity, read as read_identity,
};
pub use metadata_store::MetadataStore;
pub use network::Network;
pub use piece_store::ObjectLocation;
pub use query::{Requester, TomeQuery, TomeReply};
pub use set::{
    DegradedReadCounts, GroupChecked, InventoryProgress, MoveStatus, Moves, RebuiltTome,
    RemoteHandle, SetLink, SetOptions, SetStatus, StandaloneOptions, TomeSet,
};
pub use standalone::{Session, StandaloneTome};
pub use unplugged::UnpluggedTome;

pub use fulgurite_tier::watch::{Missed, Watch};
/// Alarm of a tome for an operator.
pub use fulgurite_tome_core::Alarm;
pub use watch::{TimestampedEvent, TomeEvent};

#[cfg(test)]
mod tests;
