//! Errors of this crate.

use fulgurite_units::ErrorKind;

use crate::{SiteIndex, limits};

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Unsupported number of voting sites.
    #[error("{sites} voting sites are not supported; use 3 to {}", limits::VOTING_SITES_MAX)]
    Sites {
        /// Number of sites.
        sites: usize,
    },
    /// With these sizes two values could be chosen for one version.
    #[error(
        "quorums of {promise} (promise), {classic} (classic) and {fast} (fast) of {sites} sites do \
         not intersect; use promise + classic > sites, promise + 2 fast > 2 sites, \
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
    #[error("the row is damaged")]
    RowDamaged,
    /// A remote query or answer in another version of the encoding.
    #[error(
        "step encoding version {version} is not supported, only version {known}: run the same \
         release at both ends"
    )]
    StepVersion {
        /// Its version.
        version: u8,
        /// The version of this program.
        known: u8,
    },
    /// Bytes that are not a remote query or answer.
    #[error("not a valid step query or answer")]
    StepDamaged,
    /// An inconsistent site map.
    #[error("invalid site map: {0}")]
    Map(String),
    /// A site that is not in the map.
    #[error("the site map has no {0}")]
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
