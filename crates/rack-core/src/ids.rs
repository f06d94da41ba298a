//! Ids of classes and operations, and sets of places of one group. The ids of places and groups are
//! in `disks`.

use fulgurite_units::{index, number};
use serde::{Deserialize, Serialize};

index!(
    /// A class: groups of which one at a time may spin.
    ClassId,
    u32
);
number!(
    /// An operation. Numbered by the driver; never reused.
    OpId,
    u64
);

/// A set of places of one group, as a bit for each position in the group.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Members(u64);

impl Members {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// The most places a group can have.
    pub const CAPACITY: usize = 64;

    /// Returns the first `count` places.
    ///
    /// # Panics
    /// If there are more than a group can have.
    #[must_use]
    pub const fn first(count: usize) -> Self {
        assert!(count <= Self::CAPACITY, "a group has at most 64 places");
        if count == Self::CAPACITY { Self(u64::MAX) } else { Self((1 << count) - 1) }
    }

    /// How many.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the one at this position is among them.
    #[must_use]
    pub const fn contains(self, position: usize) -> bool {
        position < Self::CAPACITY && self.0 >> position & 1 == 1
    }

    /// Returns the set with this position added.
    ///
    /// # Panics
    /// If no group has such a position.
    #[must_use]
    pub const fn with(self, position: usize) -> Self {
        assert!(position < Self::CAPACITY, "a group has at most 64 places");
        Self(self.0 | 1 << position)
    }

    /// Returns the set with this position removed.
    ///
    /// # Panics
    /// If no group has such a position.
    #[must_use]
    pub const fn without(self, position: usize) -> Self {
        assert!(position < Self::CAPACITY, "a group has at most 64 places");
        Self(self.0 & !(1 << position))
    }

    /// Returns the intersection.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the union.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns their positions, lowest first.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..Self::CAPACITY).filter(move |position| self.contains(*position))
    }
}

impl FromIterator<usize> for Members {
    fn from_iter<I: IntoIterator<Item = usize>>(positions: I) -> Self {
        positions.into_iter().fold(Self::NONE, Self::with)
    }
}
