//! The rack tier: objects on disks of which only a few may spin at a time (Pelican, OSDI 2014,
//! section 3). A blob is erasure-coded into stacks, one per disk. Each stack describes itself, so
//! any stacks that are enough give the blob back, and all of them together the index.
//!
//! ```text
//! store    RackStore: a rack as an object store; created, opened, scrubbed, repaired
//! tier     what an operator sees and does of it
//! driver   the thread that drives the rack's controller and its disks
//! scrub    when each group is scrubbed
//! index    which objects exist, where their stacks are, what is to be garbage-collected
//! work     operations on the blobs of a group while its disks spin
//! blob     BlobWriter, BlobReader, rebuild: one blob over its stacks
//! stack    StackWriter, StackReader: one file on one disk
//! format   header, fragments with their checksums, trailer: docs/formats/stack.md
//! ```
//!
//! Not here: which disks a blob goes to and when they spin (`rack-core`), and what a disk is
//! (`disks`).

pub mod bench_support;
pub mod blob;
mod driver;
mod error;
mod fail_point;
mod fault;
pub mod format;
pub mod index;
pub mod limits;
mod scrub;
pub mod stack;
mod store;
mod tier;
pub mod work;

pub use driver::{DiskSnapshot, GroupRoom, GroupSnapshot, GroupState, Notification, Snapshot};
pub use fail_point::FAIL_POINTS;
/// What options and operations of all tiers take and return.
pub use fulgurite_tier::watch::{Missed, Watch};
pub use fulgurite_tier::{Entropy, FailPoints, Progress};

pub use error::{LostStack, RackError, Result};
pub use fault::Fault;
pub use fulgurite_disks::PlaceId;
pub use scrub::ScrubPolicy;
pub use store::{RackOptions, RackStore, Report};
pub use work::Found;

#[cfg(test)]
mod tests;
