//! Types that every other crate uses: instants, durations, byte counts, typed ids and indices,
//! probabilities, seeds with child random streams, affinity groups, the controller trait, the
//! clock, line-based logs, the deserializer of settings, and error kinds.
//!
//! Nothing here reads a clock, opens a file or draws entropy: values are always passed in.

mod affinity;
mod bytes;
mod clock;
mod controller;
mod error;
mod id;
mod index;
pub mod lines;
mod ratio;
mod seed;
pub mod settings;
mod time;

pub use affinity::AffinityGroup;
pub use bytes::{ByteCount, ParseByteCountError};
pub use clock::{Clock, ManualClock};
pub use controller::{Controller, Outbox};
pub use error::{ErrorKind, error_chain};
pub use id::{ArchiveId, BlobId, ObjectId, PlatterId, RackId, SetId, TomeSetId, UploadId};
pub use index::{DriveIndex, LayerIndex, ShuttleIndex, SlotIndex, TrackIndex};
pub use ratio::{Ratio, RatioError};
pub use seed::{RandomStream, Seed};
pub use time::{Deadline, Duration, Instant, ParseDurationError, ReadBack, UnixTime};

#[cfg(test)]
mod tests;
