//! How much of each retrieval a tier has under way.

use fulgurite_units::ByteCount;
use serde::{Deserialize, Serialize};

use crate::limits::{UNDER_WAY_BYTES, UNDER_WAY_PIECES};

/// What keeps a tier busy: of each retrieval visits begin while there are fewer than two for each
/// drive, or while less than so many bytes and pieces are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Drives that it has.
    pub drives: usize,
    /// Bytes under way.
    pub bytes: ByteCount,
    /// Pieces under way.
    pub pieces: usize,
}

impl Capacity {
    /// That of a tier of so many drives.
    #[must_use]
    pub const fn of_drives(drives: usize) -> Self {
        Self { drives, bytes: UNDER_WAY_BYTES, pieces: UNDER_WAY_PIECES }
    }

    /// That of a tier which orders its own queue, and is asked for so many pieces of any size.
    #[must_use]
    pub const fn of_queue(pieces: usize) -> Self {
        Self { drives: 0, bytes: ByteCount::new(u64::MAX), pieces }
    }

    /// Whether anything is ever fetched from it.
    pub(crate) const fn is_possible(&self) -> bool {
        self.drives > 0 || (self.bytes.get() > 0 && self.pieces > 0)
    }
}
