//! Errors of planning.

use fulgurite_units::{ErrorKind, ObjectId};

use crate::plan::LibraryIndex;

/// A plan is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The body's entry in the file list does not fit an empty platter.
    #[error("the list entry of body {object} takes {entry_bytes} bytes, too many for a platter")]
    EntryTooLong {
        /// The body.
        object: ObjectId,
        /// Size of its entry.
        entry_bytes: u64,
    },
    /// More bytes of a body are placed already than it has.
    #[error("body {object} of {bytes} bytes cannot continue at byte {from}")]
    BeyondBody {
        /// The body.
        object: ObjectId,
        /// Size of the body.
        bytes: u64,
        /// Byte from which it was to continue.
        from: u64,
    },
    /// The library has too few blast zones with a free slot.
    #[error(
        "{platters} platters need {platters} blast zones with a free slot and {zones} have one"
    )]
    TooFewZones {
        /// Number of platters to place.
        platters: usize,
        /// Number of zones that could take one.
        zones: usize,
    },
    /// A blast model is outside the limits of the search.
    #[error("{field}: {value} is not in {min} to {max}")]
    ModelRange {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u16,
        /// Minimum value.
        min: u16,
        /// Maximum value.
        max: u16,
    },
    /// The overhead of a set is not a share from 0 to 1.
    #[error("a set of {information}+{redundancy} platters has no overhead between 0 and 1")]
    SetRange {
        /// Number of information platters.
        information: u16,
        /// Number of redundancy platters.
        redundancy: u16,
    },
    /// Even the largest library cannot hold the set.
    #[error("{racks} storage racks cannot keep {platters} platters apart")]
    NoRackCount {
        /// Number of platters of the set.
        platters: usize,
        /// Number of racks of the largest library.
        racks: u16,
    },
    /// A library's state names a zone that does not exist, or one twice.
    #[error(
        "library {library} has no zone {zone}, or has it twice; it has {zones}, numbered from 0"
    )]
    BadZone {
        /// The library.
        library: LibraryIndex,
        /// The zone.
        zone: u32,
        /// Number of zones: the last zone plus one.
        zones: u32,
    },
    /// The libraries have too few free places that share no blast zone.
    #[error(
        "{platters} platters need a place each, no two in one blast zone; {libraries} libraries \
         with room have {places} such places, {missing} too few"
    )]
    TooFewPlaces {
        /// Number of platters to place.
        platters: usize,
        /// Upper bound of the number of places.
        places: usize,
        /// Number of libraries with at least one place.
        libraries: usize,
        /// Lower bound of the number of missing places.
        missing: usize,
    },
}

impl LayoutError {
    /// Returns the kind of this error.
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
