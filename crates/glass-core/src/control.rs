//! The controller of the glass library: which shuttle carries which platter to which drive, and
//! when.
//!
//! The library is a state machine without clock, thread, file or random source
//! ([`fulgurite_units::Controller`]): events in, outputs out, time passed in. A driver carries out
//! the outputs - the archive's live driver with real files and emulated mechanics, the twin with
//! scheduled completions - and answers each command with one event.
//!
//! ```text
//!   archive -- Read, Verify, Store, Cancel --> Library::step --> Output::Do(Command) --> driver
//!      ^                                          ^      |                                 |
//!      '------ Output::Finished, Rejected --------|------'                                 |
//!                                                 '---- Completed, Halted, Failed ---------'
//! ```
//!
//! How it decides is a value, [`Policy`]: the paper's (oldest first, one partition of the panel per
//! shuttle, verification in the second slot; Silica, sections 3.1, 4.1 and 6), its baselines, and
//! the product's own. Under every policy no two shuttles are ever in one place, all requests for a
//! mounted platter are served before it leaves, and every platter goes back to its own slot.
//!
//! # A driver
//!
//! A driver gives events one at a time with a clock that does not run backwards, carries out every
//! command and answers it once, in any order and at any later time. The one below has machines that
//! take no time; a live driver waits [`Mechanics::duration`], and reads real tracks for `Read` and
//! `VerifyPass`, before it answers.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use fulgurite_glass_core::control::{
//!     Event, Library, LibraryShape, Outcome, Output, RequestId, TrackSpan,
//! };
//! use fulgurite_units::{Controller, Instant, Outbox, PlatterId, SlotIndex, TrackIndex};
//!
//! let mut library = Library::new(&LibraryShape::small())?;
//! let mut events = VecDeque::from([Event::Read {
//!     request: RequestId::new(1),
//!     platter: PlatterId::from_random([7; 16]),
//!     slot: SlotIndex::new(4_321),
//!     tracks: TrackSpan::new(TrackIndex::new(5), 2),
//!     deadline: Instant::from_nanos(15 * 3600 * 1_000_000_000),
//! }]);
//! let mut outcomes = Vec::new();
//! let mut out = Outbox::new();
//! while let Some(event) = events.pop_front() {
//!     library.step(Instant::ZERO, event, &mut out);
//!     for output in out.drain() {
//!         match output {
//!             Output::Do(command) => events.push_back(Event::Completed { command: command.id }),
//!             Output::Halt { .. } => {} // Nothing here runs long enough to be stopped.
//!             Output::Traveled(_) => {}
//!             Output::Finished { outcome, .. } => outcomes.push(outcome),
//!             Output::Rejected { reason, .. } => return Err(reason),
//!         }
//!     }
//! }
//! assert_eq!(outcomes, [Outcome::Read]);
//! # Ok::<(), fulgurite_glass_core::control::Error>(())
//! ```
//!
//! What it is not: it knows no bytes, objects or sets, and it does not choose slots. The durations
//! of the real prototype are in [`Mechanics`], which the drivers use and the controller never sees.
//!
//! Air gap: no command can carry a written platter to the write drive, because no value expresses
//! it. A shuttle picks from a [`Source`] and places at a [`Destination`]; only the source has an
//! eject bay, and neither has a write drive.

mod action;
mod arrivals;
mod balance;
mod charging;
mod controller;
mod counters;
mod dirty;
mod drive;
mod drive_dispatch;
mod errands;
mod error;
mod event;
mod faults;
mod fleet;
mod floor;
mod ids;
mod invariants;
pub mod limits;
mod load;
pub mod log;
mod mechanics;
mod no_shuttles;
mod pace;
mod partition;
mod platter_table;
mod policy;
mod queue;
mod requests;
mod resume;
mod right_of_way;
mod scratch;
mod sequence;
mod shape;
mod shuttle_dispatch;
mod sidesteps;
mod snapshot;
mod state;
mod tracks;
mod traffic;
mod travel;
mod verification;
mod waitlist;
mod zones;

#[cfg(test)]
mod tests;

pub use fulgurite_units::ErrorKind;

pub use action::{Action, Command, Destination, DriveSlot, Source};
pub use controller::Library;
pub use counters::Counters;
pub use error::Error;
pub use event::{Event, Fault, Outcome, Output, Travel};
pub use ids::{
    CommandId, Machine, PanelIndex, RackIndex, RailPosition, RequestId, ShelfIndex, ZoneIndex,
};
pub use mechanics::{Mechanics, MechanicsParameters, Throughput};
pub use policy::{Movement, POLICY_NAMES, Policy, RightOfWay};
pub use resume::{Inventory, LoosePlatter, ParkedShuttle};
pub use shape::{LibraryShape, SlotAddress};
pub use snapshot::{DriveSlotState, DriveState, PlatterState, ShuttleState, Snapshot};
pub use state::Place;
pub use tracks::TrackSpan;
