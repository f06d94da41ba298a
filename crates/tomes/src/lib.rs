//! Live tomes: a set of them on real bytes, in one process or in several.
//!
//! ```text
//! identity     which tome a disk is          disk         its blocks, at fixed places
//! rows, load   what is kept awake            awake_store  kept before anything is answered
//! run          bytes in a row, all at once
//! pulled       a tome read alone            driver       does what the core of a tome says
//! network      between tomes                spin_gate    what a spin-up has to pass
//! keeper       of tokens                    set_store    what a set knows of itself
//! piece_store  where objects lie           starts       what an older copy is known by
//! survey       a disk read whole            regain       what is made of it
//! lone         a tome by itself                introduction  what it is told of its set
//! set          the whole, to be asked for objects
//! watch        what happens, for whoever watches
//! ```
//!
//! What a tome does is decided in `fulgurite-tome`; here is what it knows only through events: the
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

/// What a tome tells somebody who should know.
pub use fulgurite_tome::Alarm;
pub use watch::{Happened, Happening, Missed, Watching};

#[cfg(test)]
mod tests;
