//! The tome tier: a store of objects over a set of tomes.
//!
//! ```text
//! put --> begun: its id --> pieces, each an object of the set --> in every parity --> its key
//!                                                                names it --> the caller is told
//! get --> its key's row --> the tomes that have the pieces, one after the other
//! ```
//!
//! What is asked of names alone (head, list, delete) is the index's, which lies awake and wakes no
//! disk. An object's last piece says what the object is, so that an index that was lost is made
//! again out of the tomes. Formats in docs/formats/tome-index.md.
//!
//! ```text
//! index     which objects there are, and of which pieces     pieces   where bytes of an object are
//! header    what an object's last piece says of it           store    puts, removals, a loss
//! objects   `object_store`'s trait over these                upload   the same, in parts
//! snapshot  what it says of itself                       operated  what an operator has done
//! regained  a disk read whole whose awake store was lost
//! watch     what happens, as one who watches is told       recovery the index made again
//! ```
//!
//! Not here: which tome has a piece, disks, groups ([`fulgurite_tomes`]).

#[doc(hidden)]
pub mod bench_support;
mod error;
mod header;
mod index;
pub mod limits;
mod objects;
mod operated;
mod pieces;
mod pins;
mod reading;
mod recovery;
mod regained;
mod snapshot;
mod store;
mod upload;
mod watch;

pub use error::{Result, StoreError};
pub use fulgurite_tome::TomeId;
pub use operated::{Compared, Rebuilt, Scrubbed, Work};
pub use recovery::Found;
pub use regained::Surveyed;
pub use snapshot::{BudgetSnapshot, MoveSnapshot, ScrubSnapshot, Snapshot, TomeSnapshot};
pub use store::{Promise, StoreOptions, TomeStore, Totals};
pub use watch::{Look, Seen, TomesWatch};
