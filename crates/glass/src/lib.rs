//! The glass tier: platters in files, the simulated medium, the decoders, and the library that
//! moves platters.
//!
//! It knows bodies by their ids. It does not know what a body belongs to - object, bucket, class -
//! or what decrypts it, nor anything of S3. [`Platters`] is all of the tier while an archive is
//! open, and [`Recovered`] is what can be read from platters without one.

#[doc(hidden)]
pub mod bench_support;
mod bodies;
mod carry;
pub mod config;
mod context;
mod decode_service;
mod error;
mod fail_point;
mod far;
mod fetch;
#[doc(hidden)]
pub mod fuzz_api;
mod injected;
mod library_driver;
mod limits;
mod medium;
mod panics;
mod plan;
mod platter_files;
mod platters;
mod progress;
mod recover;
mod repairs;
mod rows;
mod seal;
mod shard;
mod status;
#[cfg(test)]
mod testing;
mod verification;
mod verify;
mod write_set;

pub use bodies::{
    Backlog, Bodies, IngestedBody, KeepReason, PlacedShard, ReadAt, Released, WaitingBody, WriteAt,
};
pub use carry::{Carrier, FarStatus};
pub use context::Shared;
pub use decode_service::{DecodeStatus, DecodeWorker, Stop, WorkerOptions, WorkerTotals};
pub use error::{GlassError, Result};
pub use fail_point::FAIL_POINTS;
pub use far::{FarLibrary, ReadPlatter};
pub use fetch::{Fetched, PlatterVisit, SetRecovery, ShardRequest};
pub use fulgurite_glass_core::control::Machine;
pub use library_driver::{LibrarySnapshot, LibraryStep, LibraryWatch, Seen, WatchEnd, begin_log};
pub use limits::SEALED_ENTRY_BYTES_MAX;
pub use panics::Panics;
pub use platters::Platters;
pub use recover::{ListedShard, ListsReport, Recovered, SalvagedRows, find_archive, platter_files};
pub use rows::SPACES;
pub use seal::{Excluded, SealReadiness, SealTrigger};
pub use shard::{Shard, cipher_crc, joined_crc};
pub use status::{GlassStatus, OnPlatter, SealFailure, SealReport, SetStatus, VerifiedPlatter};
pub use verification::{Verification, VerifiedSector, VerifiedTrack};
pub use verify::Stored;

use context::Context;
use medium::{MediumHandle, SimulatedMedium};
use platter_files::{PlatterFileSink, PlatterFileSource, PlatterFiles};
