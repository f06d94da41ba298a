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
    #[error("object {key:?} does not exist")]
    NotFound { key: String },
    #[error("object {key:?} exists already")]
    Exists { key: String },
    #[error("object {key:?} is not the expected version")]
    Changed { key: String },
    #[error("too few sites answer for {key:?}; nothing was written")]
    Unavailable { key: String },
    #[error(
        "too few sites answer for {key:?}: the write may be, or become, version {version}; read \
         the object to find out, and write it again if it is not"
    )]
    Indeterminate { key: String, version: Version },
    #[error(
        "too few fragments of {key:?} could be written: it is not stored, and the fragments that \
         were written are removed later"
    )]
    Unwritten { key: String },
    #[error("version {version} of {key:?} was acknowledged, and too few of its fragments are left")]
    Lost { key: String, version: Version },
    #[error(
        "version {version} of {key:?} was replaced or removed while it was read, and its bytes \
         are gone; read it again"
    )]
    Replaced { key: String, version: Version },
    #[error("the bytes of {key:?} do not match its digest, though every fragment is valid")]
    Corrupt { key: String },
    #[error("the site map has changed, and this program could not switch to the new one: {reason}")]
    OldMap { reason: String },
    #[error(
        "the site map was not confirmed by enough sites for {seconds} s: a newer one may be \
         current, so this program does not read or write"
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
