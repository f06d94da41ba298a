//! The glass medium, which is simulated: geometry, sectors and the platter format, written once and
//! read many times.
//!
//! ```text
//! PlatterHeader --> WriteDrive::write(Blank) --> PlatterWriter --finish--> Written
//!                                                     |
//!                                                PlatterSink, later PlatterSource
//!                                                     |
//! user bytes <-- TrackBuffer <-- PlatterReader::read_track <-- open
//!                                    lost? within-track, large-group; then SetDecoder
//! ```
//!
//! This crate does no I/O of its own: sinks and sources are passed in. It does not encrypt: bytes
//! are stored as the caller supplies them. Payloads and redundancy are real, the medium is
//! simulated: a [`Medium`] decides what a read returns. The format is docs/formats/platter.md,
//! which each platter carries as [`FORMAT_TEXT`].

mod airgap;
mod audit;
pub mod channel;
mod error;
mod faults;
mod geometry;
mod group;
mod header;
mod information_track;
pub mod limits;
mod list;
mod medium;
pub mod numeric;
mod open;
mod reader;
mod seal;
mod sector;
mod set;
mod sink;
mod source;
mod track;
mod verify;
mod writer;

pub use fulgurite_units::ErrorKind;

pub use airgap::{Blank, WrittenPlatter};
pub use error::{CodeLevel, PlatterError, Unreadable};
pub use faults::{Faults, NoFaults, SeededFaults};
pub use geometry::{Address, Column, Geometry, TrackMap, TrackRole};
pub use header::{FORMAT_TEXT, PlatterHeader, PlatterRole, SetMember};
pub use information_track::InformationTrack;
pub use list::{ListEntry, ListReader, ListWriter, list_bytes, list_entry_bytes};
pub use medium::{Medium, SectorExtent, SectorReading};
pub use reader::{PlatterReader, TrackReport};
pub use seal::{SEAL_BYTES, SEAL_MAGIC, SEAL_RECORD_BYTES, Seal};
pub use sector::{
    Erasure, SECTOR_HEADER_BYTES, SECTOR_MAGIC, SECTOR_OVERHEAD, SectorHeader, SectorKind,
};
pub use set::{Member, SetDecoder, SetEncoder, SetReport};
pub use sink::PlatterSink;
pub use source::PlatterSource;
pub use track::TrackBuffer;
pub use verify::{SectorMap, SectorMargins, TrackScan, Verification, VerifyReport};
pub use writer::{PlatterWriter, WriteDrive};
