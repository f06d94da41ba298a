//! Numbers of tomes, groups, regions and what lies in them, so that none is mistaken for another.
//!
//! Not here: what a number stands for on a disk ([`crate::Layout`]).

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        pub struct $name($int);

        impl $name {
            /// The one with this number.
            #[must_use]
            pub const fn new(number: $int) -> Self {
                Self(number)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> $int {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

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
number!(
    /// A member of a group: the data regions first, then those with parity.
    Member,
    u8
);
number!(
    /// A region of one tome.
    RegionIndex,
    u32
);
number!(
    /// A block of one region, by its number in it. Groups compute with blocks of one offset.
    Offset,
    u32
);
number!(
    /// Where on a disk a block lies. A block that is written again lies in another spot.
    Spot,
    u32
);
number!(
    /// Counts what was written to a region; a block has that of its last write.
    Version,
    u32
);
number!(
    /// Counts how often something was given or changed; a later one makes earlier ones void.
    Epoch,
    u64
);

/// A region of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionId {
    /// Whose.
    pub tome: TomeId,
    /// Which of it.
    pub index: RegionIndex,
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.tome, self.index)
    }
}

impl Member {
    /// The number, to index with.
    #[must_use]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }

    /// The member at a position below [`crate::limits::GROUP_MEMBERS_MAX`].
    ///
    /// # Panics
    /// When it is above 255.
    #[must_use]
    pub fn at(position: usize) -> Self {
        Self(u8::try_from(position).expect("a group has at most 50 members"))
    }
}

impl Offset {
    /// The number, to index with.
    #[must_use]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }

    /// The offset at a position below [`crate::limits::REGION_BLOCKS_MAX`].
    ///
    /// # Panics
    /// When it does not fit.
    #[must_use]
    pub fn at(position: usize) -> Self {
        Self(u32::try_from(position).expect("a region has fewer than 2^32 blocks"))
    }
}

impl Version {
    /// Nothing was written.
    pub const NONE: Self = Self(0);

    /// The next one; none when they are used up.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(next) => Some(Self(next)),
            None => None,
        }
    }
}

impl Epoch {
    /// The next one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
