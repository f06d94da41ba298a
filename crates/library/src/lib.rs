//! The glass library's controller: which shuttle carries which platter to which drive, and when.
//!
//! The library is a state machine without clock, thread, file or random source
//! ([`fulgurite_units::Controller`]): events in, outputs out, time handed over. A driver carries
//! the outputs out - the archive's live driver with real files and emulated mechanics, the twin
//! with scheduled completions - and answers each command with one event.
//!
//! ```text
//!   archive -- Read, Verify, Store, Cancel --> Library::step --> Output::Do(Command) --> driver
//!      ^                                          ^      |                                 |
//!      '------ Output::Finished, Rejected --------|------'                                 |
//!                                                 '---- Completed, Halted, Failed ---------'
//! ```
//!
//! Policy of this version: oldest first among the platters that can be reached, all requests of a
//! mounted platter served before it leaves, one rectangular partition of the panel per shuttle,
//! verification in the second slot of a drive whenever no customer needs the drive, and every
//! platter back to its own slot (Silica, sections 3.1, 4.1 and 6).
//!
//! What it is not: it knows no bytes, no objects and no sets, it does not choose slots, and it
//! models no traffic between shuttles yet. The durations of the real prototype are in
//! [`Mechanics`], which the drivers use and the controller never sees.
//!
//! Air gap: a written platter cannot be carried to the write drive, because no value says so. A
//! shuttle picks from a [`Source`] and places at a [`Destination`], and only the source has an
//! eject bay; nothing has a write drive.

mod action;
mod error;
mod event;
mod ids;
pub mod limits;
mod shape;

pub use action::{Action, Command, Destination, DriveSlot, Source};
pub use error::{Error, ErrorKind};
pub use event::{Event, Fault, Outcome, Output, TrackSpan};
pub use ids::{CommandId, PanelIndex, RackIndex, RailPosition, RequestId, ShelfIndex, ZoneIndex};
pub use shape::{LibraryShape, SlotAddress};
