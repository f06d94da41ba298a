//! The glass tier: platters in files, the simulated medium, who decodes it, and the library that
//! moves platters.
//!
//! It knows bodies by their ids. What a body is of - object, bucket, class - and what opens it is
//! not known here, nor is anything of S3.

mod bodies;
pub mod config;
mod decode_service;
mod error;
mod fail_point;
mod fetch;
mod given;
mod injected;
pub mod library_driver;
pub mod limits;
mod medium;
#[doc(hidden)]
pub mod outside;
mod panics;
mod plan;
mod platter_files;
pub mod progress;
mod recover;
mod repairs;
pub mod rows;
mod seal;
mod shard;
pub mod status;
#[cfg(test)]
mod testing;
pub mod verification;
mod write_set;

pub use bodies::{Backlog, Bodies, Ingested, Kept, Placed, ReadAt, Released, Waiting, WriteAt};
pub use decode_service::{DecodeStatus, DecodeWorker, Stop, WorkerOptions, WorkerTotals};
pub use error::{PlattersError, Result};
pub use fail_point::{FAIL_POINTS, FailPoints};
pub use fetch::{Fetched, Fetcher, SetBrought, Visited, Wish};
pub use given::Given;
pub use medium::{MediumHandle, SimulatedMedium};
pub use panics::Panics;
pub use platter_files::{PlatterFileSink, PlatterFileSource, PlatterFiles};
pub use progress::Progress;
pub use recover::{Listed, ListsRead, Recovered, Told, find_archive};
pub use repairs::Repairs;
pub use seal::{Cause, Excluded, Sealer, Stored, Troubles, UnderWay};
pub use shard::{Shard, cipher_crc, joined_crc};
