//! The store of objects over a set of tomes.
//!
//! ```text
//! put --> begun: its id --> pieces, each an object of the set --> in every parity --> its key
//!                                                         refers to it --> acknowledged
//! get --> its key's row --> the tomes that have the pieces, one after the other
//! ```
//!
//! Requests about names alone (head, list, delete) are served by the index, which is on always-on
//! storage, without a spin-up. An object's last piece describes the object, so that a lost index
//! can be rebuilt from the tomes. Formats in docs/formats/tome-index.md.
//!
//! ```text
//! index      which objects there are, and their pieces   pieces    where bytes of an object are
//! header     contents of the last piece of an object     store     puts, removals, a loss
//! upload     an object in parts                          as_object_store  the trait over these
//! snapshot   its state for reports                       operator  operator requests
//! inventory  of a disk that lost its metadata            watch     events for a subscriber
//! recovery   rebuilds the index
//! ```
//!
//! Not here: which tome has a piece, disks, groups ([`crate`]).

mod as_object_store;
#[doc(hidden)]
pub mod bench_support;
mod error;
mod header;
mod index;
mod inventory;
pub mod limits;
mod object_stream;
mod operator;
mod pieces;
mod pins;
mod recovery;
mod snapshot;
mod store;
mod tier;
mod upload;
mod watch;

pub use error::{Result, StoreError};
/// How far a long operation is.
pub use fulgurite_tier::Progress;
pub use fulgurite_tome_core::TomeId;
pub use inventory::InventoryResult;
pub use operator::{Compared, Rebuilt, Scrubbed};
pub use recovery::Found;
pub use snapshot::{BudgetSnapshot, MoveSnapshot, ScrubSnapshot, Snapshot, TomeSnapshot};
pub use store::{PutGuarantee, StoreOptions, TomeStore, Totals};
pub use watch::{SnapshotDiff, TomesWatch, WatchItem};
