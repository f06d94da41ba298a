//! Live tomes: a set of them on real bytes, in one process or in several.
//!
//! ```text
//! identity     which tome a disk is          disk         its blocks, at fixed places
//! rows, load   rows of the metadata store    awake_store  durable before any answer
//! run          byte strings in serde
//! pulled       offline reads of a tome       driver       carries out commands of a core
//! network      messages between tomes        spin_gate    checks before a spin-up
//! keeper       token manager                 set_store    the set's own state
//! piece_store  locations of objects          starts       detects older copies of stores
//! survey       inventory of a disk           regain       rebuilds metadata from it
//! lone         a standalone tome             introduction  its handshake with a set
//! set          the whole set, for object requests
//! watch        events for subscribers
//! ```
//!
//! `fulgurite-tome` decides what a tome does; this crate has what it knows only through events: the
//! disk and its files, stable storage, time. Design note 0029; formats in docs/formats/tome.md.

mod awake_store;
mod disk;
mod driver;
mod error;
pub mod fail_point;
mod identity;
mod injected;
mod introduction;
mod keeper;
pub mod limits;
mod load;
mod lone;
mod network;
mod piece_store;
mod pulled;
mod question;
mod regain;
mod rows;
mod run;
mod set;
mod set_store;
mod spin_gate;
mod starts;
mod survey;
mod watch;

pub use awake_store::AwakeStore;
pub use disk::{Disk, Label};
pub use driver::{Ask, Checked, Done, Holdings, Listed, Look, Reply, Seated, TomeStatus};
pub use error::{Result, TomesError};
pub use identity::{
    TOME_FILE, TOME_FILE_COPY, TomeIdentity, make as make_identity, read as read_identity,
};
pub use injected::{Failing, Injected};
pub use introduction::{Greeting, Introduction};
pub use lone::{LoneTome, Session};
pub use network::Network;
pub use piece_store::Placed;
pub use pulled::Pulled;
pub use question::{Asker, Question, Said};
pub use set::{
    Charge, Entropy, GroupChecked, LoneOptions, MoveStatus, Moves, ReadAround, RegainedTome,
    RemoteSeat, SetOptions, SetStatus, Surveyed, TomeSet,
};

/// Alarm of a tome for an operator.
pub use fulgurite_tome::Alarm;
pub use watch::{Happened, Happening, Missed, Watching};

#[cfg(test)]
mod tests;
