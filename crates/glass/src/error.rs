//! Errors of the glass tier, with the ids a caller needs to act.

use std::path::Path;

use fulgurite_catalog::CatalogError;
use fulgurite_platter::PlatterError;
use fulgurite_units::{ErrorKind, PlatterId};

/// An operation on platters failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum GlassError {
    #[error("{what}")]
    InvalidArgument { what: String },
    #[error("archive is full: {what}")]
    Full { what: String },
    #[error("too many requests are waiting: {what}")]
    Busy { what: String },
    #[error("platter {platter} cannot be read: {reason}")]
    PlatterUnreadable { platter: PlatterId, reason: String },
    #[error("platter {platter} cannot be decoded now: {reason}")]
    Undecoded { platter: PlatterId, reason: String },
    #[error("platter {platter} is out of reach: {reason}")]
    PlatterOutOfReach { platter: PlatterId, reason: String },
    #[error("far library \"{library}\" is unavailable: {what}")]
    FarUnavailable { library: String, what: String },
    #[error("platter {platter} and every other of its set are missing")]
    SetMissing { platter: PlatterId },
    #[error(transparent)]
    Glass(#[from] PlatterError),
    #[error("stored bytes are damaged: {what}")]
    Corrupt { what: String },
    #[error("written by a newer program: {what}")]
    Newer { what: String },
    #[error("data directory \"{path}\" cannot be opened: {reason}")]
    Unusable { path: String, reason: String },
    #[error("archive is stopping")]
    Stopping,
    #[error(transparent)]
    Catalog(CatalogError),
    #[error("cannot {action} \"{path}\"")]
    Io { action: &'static str, path: String, source: std::io::Error },
    #[error("internal error: {what}")]
    Internal { what: String },
}

/// The result of an operation on platters.
pub type Result<T, E = GlassError> = std::result::Result<T, E>;

impl GlassError {
    /// Returns what the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Full { .. }
            | Self::Busy { .. }
            | Self::PlatterOutOfReach { .. }
            | Self::SetMissing { .. }
            | Self::FarUnavailable { .. }
            | Self::Undecoded { .. }
            | Self::Glass(PlatterError::Medium { .. })
            | Self::Stopping => ErrorKind::Unavailable,
            Self::Glass(PlatterError::Io { .. }) => ErrorKind::Internal,
            Self::PlatterUnreadable { .. } | Self::Glass(_) | Self::Corrupt { .. } => {
                ErrorKind::Corrupt
            }
            Self::InvalidArgument { .. } | Self::Unusable { .. } | Self::Newer { .. } => {
                ErrorKind::Invalid
            }
            Self::Catalog(error) if error.kind() == ErrorKind::Unavailable => {
                ErrorKind::Unavailable
            }
            Self::Catalog(_) | Self::Io { .. } | Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    /// Wraps an I/O error with its path; a full disk becomes `Full`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |source| {
            use std::io::ErrorKind::{QuotaExceeded, StorageFull};
            if matches!(source.kind(), StorageFull | QuotaExceeded) {
                return Self::Full { what: format!("no space left to {action} \"{path}\"") };
            }
            Self::Io { action, path, source }
        }
    }
}

/// Damaged or unreadable rows have errors of their own; failures of the store stay catalog errors.
impl From<CatalogError> for GlassError {
    fn from(error: CatalogError) -> Self {
        let what = || error.to_string();
        if matches!(error, CatalogError::Undecoded { .. }) {
            return Self::Corrupt { what: what() };
        }
        if matches!(error, CatalogError::Newer { .. }) {
            return Self::Newer { what: what() };
        }
        if matches!(error, CatalogError::Unencoded { .. }) {
            return Self::Internal { what: what() };
        }
        Self::Catalog(error)
    }
}
