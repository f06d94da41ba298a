//! Ids of disks and groups. A disk is identified by its place, since a disk may be replaced but its
//! place stays.

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
            /// Creates an id from a number, counted from zero.
            #[must_use]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Returns the number as an index into a slice.
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
    /// The place of a disk: one bay of a rack or of a shelf.
    PlaceId
);
id!(
    /// A group of disks that spin up and down together (Pelican, OSDI 2014, section 2.2).
    GroupId
);
