//! How much of each retrieval class a tier may have in flight.

use fulgurite_units::ByteCount;
use serde::{Deserialize, Serialize};

use crate::limits::{IN_FLIGHT_BYTES, IN_FLIGHT_PIECES};

/// What keeps a tier busy. For each retrieval class, a fetch may start while fewer than two per
/// drive are in flight, or while fewer than this many bytes and pieces are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Number of drives.
    pub drives: usize,
    /// Bytes in flight.
    pub bytes: ByteCount,
    /// Pieces in flight.
    pub pieces: usize,
}

impl Capacity {
    /// Returns the capacity of a tier with this many drives.
    #[must_use]
    pub const fn for_drives(drives: usize) -> Self {
        Self { drives, bytes: IN_FLIGHT_BYTES, pieces: IN_FLIGHT_PIECES }
    }

    /// Returns the capacity of a tier that orders its own queue and takes this many pieces of any
    /// size.
    #[must_use]
    pub const fn for_queue(pieces: usize) -> Self {
        Self { drives: 0, bytes: ByteCount::new(u64::MAX), pieces }
    }

    /// Whether anything can ever be fetched from it.
    pub(crate) const fn is_possible(&self) -> bool {
        self.drives > 0 || (self.bytes.get() > 0 && self.pieces > 0)
    }
}
