//! Why a plan is not possible.

use fulgurite_units::{ErrorKind, ObjectId};

use crate::LibraryIndex;

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
    /// A blast model is outside what the search takes.
    #[error("{field}: {value} is not in {min} to {max}")]
    ModelRange {
        /// What is out of range.
        field: &'static str,
        /// Its value.
        value: u16,
        /// The least it may be.
        min: u16,
        /// The most it may be.
        max: u16,
    },
    /// A set has no overhead that is a share.
    #[error("a set of {information}+{redundancy} platters has no overhead between 0 and 1")]
    SetRange {
        /// Information platters.
        information: u16,
        /// Redundancy platters.
        redundancy: u16,
    },
    /// No library of the largest size holds the set.
    #[error("{racks} storage racks do not hold {platters} platters apart")]
    NoRackCount {
        /// Platters of the set.
        platters: usize,
        /// Racks of the largest library.
        racks: u16,
    },
    /// A library's state names a zone that it does not have, or one twice.
    #[error("library {library} has no zone {zone}, or has it twice; its zones are 0 to {zones}")]
    BadZone {
        /// The library.
        library: LibraryIndex,
        /// The zone.
        zone: u32,
        /// One more than its last zone.
        zones: u32,
    },
    /// The libraries have too few places left that share no blast zone.
    #[error(
        "{platters} platters need a place each, no two in one blast zone; {libraries} libraries \
         with room have {places} such places, {missing} too few"
    )]
    TooFewPlaces {
        /// Platters to be placed.
        platters: usize,
        /// Places that there are at most.
        places: usize,
        /// Libraries with at least one place.
        libraries: usize,
        /// Places that are missing at least.
        missing: usize,
    },
}

impl LayoutError {
    /// What a caller can do about this error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::EntryTooLong { .. }
            | Self::BeyondBody { .. }
            | Self::ModelRange { .. }
            | Self::SetRange { .. }
            | Self::NoRackCount { .. }
            | Self::BadZone { .. } => ErrorKind::Invalid,
            Self::TooFewZones { .. } | Self::TooFewPlaces { .. } => ErrorKind::Unavailable,
        }
    }
}
