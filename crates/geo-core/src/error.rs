//! Errors of this crate.

use fulgurite_units::ErrorKind;

use crate::{SiteIndex, limits};

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Unsupported number of voting sites.
    #[error("{sites} sites that vote; it takes 3 to {}", limits::VOTING_SITES_MAX)]
    Sites {
        /// Number of sites.
        sites: usize,
    },
    /// With these sizes two values could be chosen for one version.
    #[error(
        "quorums of {promise} (promise), {classic} (classic) and {fast} (fast) of {sites} sites do \
         not meet as they must: promise + classic > sites, promise + 2 fast > 2 sites, \
         classic <= fast <= sites"
    )]
    Quorums {
        /// Sites that vote.
        sites: usize,
        /// Sites that must promise.
        promise: usize,
        /// Sites that must accept in a classic round.
        classic: usize,
        /// Sites that must accept in a fast round.
        fast: usize,
    },
    /// The row is larger than stores accept.
    #[error(
        "a row of {bytes} bytes is larger than {}; remove versions of the object",
        limits::ROW_BYTES_MAX
    )]
    RowTooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// Bytes that are not a row, or a row of a later format.
    #[error("not a row of this format")]
    RowForeign,
    /// A damaged row.
    #[error("a damaged row")]
    RowDamaged,
    /// A remote query or answer in another version of the encoding.
    #[error(
        "a step of version {version}, and {known} is the one known here: run the same release of \
         the program at both ends"
    )]
    StepVersion {
        /// Its version.
        version: u8,
        /// The version of this program.
        known: u8,
    },
    /// Bytes that are not a remote query or answer.
    #[error("no question about a row, or no answer to one")]
    StepDamaged,
    /// An inconsistent site map.
    #[error("in the map of sites: {0}")]
    Map(String),
    /// A site that is not in the map.
    #[error("the map has no {0}")]
    NoSite(SiteIndex),
}

impl Error {
    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Sites { .. }
            | Self::Quorums { .. }
            | Self::StepVersion { .. }
            | Self::StepDamaged
            | Self::Map(_) => ErrorKind::Invalid,
            Self::RowTooLarge { .. } => ErrorKind::Conflict,
            Self::RowForeign | Self::RowDamaged => ErrorKind::Corrupt,
            Self::NoSite(_) => ErrorKind::NotFound,
        }
    }
}
