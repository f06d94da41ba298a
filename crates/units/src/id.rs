//! Ids: 128-bit values, each kind a type of its own, so that none is mistaken for another.
//!
//! An id is made from random bytes that the caller supplies: this crate has no entropy source.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(Uuid);

        impl $name {
            /// Creates an id from 16 random bytes (version and variant bits are set here).
            #[must_use]
            pub fn from_random(bytes: [u8; 16]) -> Self {
                Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
            }

            /// Returns the id as stored: 16 bytes.
            #[must_use]
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }

            /// Reads an id from its 16 stored bytes.
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

id!(
    /// One archive: everything under one data directory and one master key.
    ArchiveId
);
id!(
    /// One stored object body (one upload); an overwrite makes a new one.
    ObjectId
);
id!(
    /// One platter of glass.
    PlatterId
);
id!(
    /// One platter-set.
    SetId
);
id!(
    /// One multipart upload.
    UploadId
);
id!(
    /// One rack of disks: everything under one index.
    RackId
);
id!(
    /// One blob of a rack: what one write stored.
    BlobId
);
id!(
    /// One set of tomes: created together, with the disks it names.
    TomeSetId
);
