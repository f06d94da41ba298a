//! Which disk: by the place that it is in, since a disk may be changed and its place is not; and
//! which disks are woken together.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The one with this number, counted from zero.
            #[must_use]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// Its number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Its number, to index a slice with.
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

id!(
    /// Where a disk is put in: one bay of a rack or of a shelf.
    PlaceId
);
id!(
    /// Disks that are turned up and down together (Pelican, OSDI 2014, section 2.2).
    GroupId
);
