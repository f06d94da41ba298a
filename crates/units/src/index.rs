//! Indices: zero-based positions, each in its own type. An index is not a count and not a size.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        pub struct $name($int);

        impl $name {
            /// Creates the position `index`, counted from zero.
            #[must_use]
            pub const fn new(index: $int) -> Self {
                Self(index)
            }

            /// Returns the position as a plain integer.
            #[must_use]
            pub const fn get(self) -> $int {
                self.0
            }

            /// Returns the position, to index a slice with.
            #[must_use]
            pub const fn as_usize(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

index!(
    /// A track of a platter, in the order in which tracks are written.
    TrackIndex,
    u32
);
index!(
    /// A layer of a track: which sector of the stack, the deepest first.
    LayerIndex,
    u16
);
index!(
    /// A storage slot of a library.
    SlotIndex,
    u32
);
index!(
    /// A read drive of a library.
    DriveIndex,
    u16
);
index!(
    /// A shuttle of a library.
    ShuttleIndex,
    u16
);
