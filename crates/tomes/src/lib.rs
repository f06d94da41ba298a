//! Live tomes: a set of them on real bytes, in one process.
//!
//! ```text
//! identity     which tome a disk is          disk         its blocks, at fixed places
//! rows, load   what is kept awake            awake_store  kept before anything is answered
//! pulled       a tome read alone
//! ```
//!
//! What a tome does is decided in `fulgurite-tome`; here is what it knows only through events: the
//! disk and its files, stable storage, time. Design note 0029; formats in docs/formats/tome.md.

mod awake_store;
mod disk;
mod error;
pub mod fail_point;
mod identity;
pub mod limits;
mod load;
mod pulled;
mod rows;

pub use awake_store::AwakeStore;
pub use disk::{Disk, Label};
pub use error::{Result, TomesError};
pub use identity::{
    TOME_FILE, TOME_FILE_COPY, TomeIdentity, make as make_identity, read as read_identity,
};
pub use pulled::Pulled;

#[cfg(test)]
mod tests;
