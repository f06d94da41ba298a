//! Errors of objects on tomes.

use fulgurite_catalog::CatalogError;
use fulgurite_tier::{ObjectStoreError, ObjectStoreErrorKind};
use fulgurite_units::ErrorKind;

use crate::TomesError;

/// A failed operation on objects.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum StoreError {
    #[error("{what}")]
    Invalid { what: String },
    #[error("there is no object with the key {key:?}")]
    NotFound { key: String },
    #[error("there is already an object with the key {key:?}")]
    Exists { key: String },
    #[error("the object with the key {key:?} is not the expected version")]
    Changed { key: String },
    #[error("{what}")]
    Corrupt { what: String },
    #[error("{what}")]
    Unprotected { what: String },
    #[error(transparent)]
    Tomes(#[from] TomesError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// The result of an operation on objects.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl StoreError {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } => ErrorKind::Invalid,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Exists { .. } | Self::Changed { .. } => ErrorKind::Conflict,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Unprotected { .. } => ErrorKind::Unavailable,
            Self::Tomes(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
        }
    }
}

impl ObjectStoreError for StoreError {
    const STORE: &'static str = "Tomes";

    fn error_kind(&self) -> ObjectStoreErrorKind {
        match self {
            Self::NotFound { .. } => ObjectStoreErrorKind::NotFound,
            Self::Exists { .. } => ObjectStoreErrorKind::Exists,
            Self::Changed { .. } => ObjectStoreErrorKind::Changed,
            Self::Invalid { .. }
            | Self::Corrupt { .. }
            | Self::Unprotected { .. }
            | Self::Tomes(_)
            | Self::Catalog(_) => ObjectStoreErrorKind::Other,
        }
    }

    fn invalid(what: String) -> Self {
        Self::Invalid { what }
    }

    fn exists(key: String) -> Self {
        Self::Exists { key }
    }

    fn changed(key: String) -> Self {
        Self::Changed { key }
    }
}
