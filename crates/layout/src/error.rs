//! Why a plan is not possible.

use fulgurite_units::ObjectId;

/// A plan could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A platter has no room for the body's entry in the file list, even when it is empty.
    #[error("the list entry of body {object} takes {entry_bytes} bytes, too many for a platter")]
    EntryTooLong {
        /// The body.
        object: ObjectId,
        /// Bytes of its entry.
        entry_bytes: u64,
    },
    /// More of a body is placed already than it has.
    #[error("body {object} of {bytes} bytes cannot go on at byte {from}")]
    BeyondBody {
        /// The body.
        object: ObjectId,
        /// Its length.
        bytes: u64,
        /// Where it was to go on.
        from: u64,
    },
    /// The library has too few blast zones with a free slot.
    #[error(
        "{platters} platters need {platters} blast zones with a free slot and {zones} have one"
    )]
    TooFewZones {
        /// Platters to be placed.
        platters: usize,
        /// Zones that could take one.
        zones: usize,
    },
}

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong.
    Invalid,
    /// There is no room now.
    Unavailable,
}

impl LayoutError {
    /// What a caller can do about this error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::EntryTooLong { .. } | Self::BeyondBody { .. } => ErrorKind::Invalid,
            Self::TooFewZones { .. } => ErrorKind::Unavailable,
        }
    }
}
