//! Numbers of tomes, groups, regions and what is in them, as types so that they are not mixed up.
//!
//! Not here: what a number means on a disk ([`crate::Layout`]).

use std::fmt;

use fulgurite_units::{index, number};
use serde::{Deserialize, Serialize};

number!(
    /// A tome of a set.
    TomeId,
    u32
);
number!(
    /// A redundancy group of a set.
    GroupId,
    u32
);
index!(
    /// A member of a group: the data regions first, then those with parity.
    Member,
    u8
);
number!(
    /// A region of one tome.
    RegionIndex,
    u32
);
index!(
    /// A block of one region, by its number in it. Groups compute with blocks of one offset.
    Offset,
    u32
);
number!(
    /// A physical block of a disk. A block that is rewritten moves to another physical block.
    PhysicalBlock,
    u32
);
number!(
    /// Counts the writes to a region; a block has the version of its last write.
    Version,
    u32
);
number!(
    /// Counts grants or changes; a later epoch supersedes earlier ones.
    Epoch,
    u64
);

/// A region of a tome in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionId {
    /// Its tome.
    pub tome: TomeId,
    /// Its number in the tome.
    pub index: RegionIndex,
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.tome, self.index)
    }
}

impl Member {
    /// Returns the member at a position below [`crate::limits::GROUP_MEMBERS_MAX`].
    ///
    /// # Panics
    /// When it is above 255.
    #[must_use]
    pub fn at(position: usize) -> Self {
        Self(u8::try_from(position).expect("a group has at most 50 members"))
    }
}

impl Offset {
    /// Returns the offset at a position below [`crate::limits::REGION_BLOCKS_MAX`].
    ///
    /// # Panics
    /// When it does not fit.
    #[must_use]
    pub fn at(position: usize) -> Self {
        Self(u32::try_from(position).expect("a region has fewer than 2^32 blocks"))
    }
}

impl Version {
    /// Never written.
    pub const NONE: Self = Self(0);

    /// Returns the next version; `None` when they are used up.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }
}

impl Epoch {
    /// Returns the next epoch.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
