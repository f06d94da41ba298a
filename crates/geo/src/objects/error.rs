//! Errors of operations on objects over sites.

use fulgurite_geo_core::Version;
use fulgurite_tier::{ObjectStoreError, ObjectStoreErrorKind};
use fulgurite_units::ErrorKind;

use crate::stores::{AddressError, OpenError};

/// An operation on objects failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum GeoError {
    #[error("{reason}")]
    Invalid { reason: String },
    #[error("there is nothing under {key:?}")]
    NotFound { key: String },
    #[error("there is something under {key:?} already")]
    Exists { key: String },
    #[error("what is under {key:?} is not what was expected")]
    Changed { key: String },
    #[error("too few sites answer for {key:?}; nothing was written")]
    Unavailable { key: String },
    #[error(
        "too few sites answer for {key:?}: it may be, or become, version {version}; read it to \
         know, and put it again if it is not"
    )]
    Indeterminate { key: String, version: Version },
    #[error(
        "too few fragments of {key:?} could be written; it is not there, and what was written is \
         removed later"
    )]
    Unwritten { key: String },
    #[error("version {version} of {key:?} was acknowledged, and too few of its fragments are left")]
    Lost { key: String, version: Version },
    #[error(
        "version {version} of {key:?} was replaced or removed while it was read, and its bytes \
         are gone; read it again"
    )]
    Replaced { key: String, version: Version },
    #[error("what was read of {key:?} is not what was put, though each fragment is")]
    Corrupt { key: String },
    #[error(
        "the map of sites has changed, and this program could not take in the new one: {reason}"
    )]
    OldMap { reason: String },
    #[error(
        "the map of sites was not confirmed by enough sites for {seconds} s: another one may hold, \
         and nothing is written or read by this one"
    )]
    Unconfirmed { seconds: u64 },
    #[error(transparent)]
    Map(#[from] fulgurite_geo_core::Error),
    #[error("{place}")]
    Address {
        place: String,
        #[source]
        source: AddressError,
    },
    #[error("{site}")]
    Open {
        site: String,
        #[source]
        source: OpenError,
    },
    #[error("cannot {action} {path}")]
    File {
        action: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// The result of an operation on objects.
pub type Result<T, E = GeoError> = std::result::Result<T, E>;

impl GeoError {
    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } | Self::Address { .. } => ErrorKind::Invalid,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Exists { .. } | Self::Changed { .. } => ErrorKind::Conflict,
            Self::Unavailable { .. }
            | Self::Indeterminate { .. }
            | Self::Unwritten { .. }
            | Self::Replaced { .. }
            | Self::OldMap { .. }
            | Self::Unconfirmed { .. }
            | Self::Open { .. } => ErrorKind::Unavailable,
            Self::Lost { .. } | Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Map(error) => error.kind(),
            Self::File { .. } => ErrorKind::Internal,
        }
    }
}

impl ObjectStoreError for GeoError {
    const STORE: &'static str = "Geo";

    fn error_kind(&self) -> ObjectStoreErrorKind {
        match self {
            Self::NotFound { .. } => ObjectStoreErrorKind::NotFound,
            Self::Exists { .. } => ObjectStoreErrorKind::Exists,
            Self::Changed { .. } => ObjectStoreErrorKind::Changed,
            Self::Invalid { .. }
            | Self::Unavailable { .. }
            | Self::Indeterminate { .. }
            | Self::Unwritten { .. }
            | Self::Lost { .. }
            | Self::Replaced { .. }
            | Self::Corrupt { .. }
            | Self::OldMap { .. }
            | Self::Unconfirmed { .. }
            | Self::Map(_)
            | Self::Address { .. }
            | Self::Open { .. }
            | Self::File { .. } => ObjectStoreErrorKind::Other,
        }
    }

    fn invalid(reason: String) -> Self {
        Self::Invalid { reason }
    }

    fn exists(key: String) -> Self {
        Self::Exists { key }
    }

    fn changed(key: String) -> Self {
        Self::Changed { key }
    }
}
