//! Errors of live tomes, with the ids a caller needs to act.

use std::path::{Path, PathBuf};

use fulgurite_catalog::CatalogError;
use fulgurite_disks::DisksError;
use fulgurite_tome_core::{TomeError, TomeId};
use fulgurite_units::ErrorKind;

/// A failed operation on a set of tomes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum TomesError {
    #[error("{what}")]
    Invalid { what: String },
    #[error("there is no set of tomes in {folder:?}, or its creation was interrupted")]
    NotCreated { folder: PathBuf },
    #[error("the disk of tome {tome} cannot be used: {what}")]
    WrongDisk { tome: TomeId, what: String },
    #[error("the metadata store \"{path}\" cannot be used: {what}")]
    WrongStore { path: PathBuf, what: String },
    #[error("the metadata store of tome {tome} is damaged: {what}")]
    TomeMetadata { tome: TomeId, what: String },
    #[error("a file of tome {tome} is damaged: {what}")]
    Damaged { tome: TomeId, what: String },
    #[error("\"{path}\" is in use by another process")]
    InUse { path: PathBuf },
    #[error("tome {tome} is given up: {why}")]
    GivenUp { tome: TomeId, why: String },
    #[error("the disk of tome {tome} still spins under token {token}")]
    StillSpinning { tome: TomeId, token: u32 },
    #[error("tome {tome} is busy: try again later")]
    Busy { tome: TomeId },
    /// The request was not sent.
    #[error("the request was not sent to tome {tome}: {why}")]
    Away { tome: TomeId, why: String },
    /// It may have carried out the request, or still do so.
    #[error("tome {tome} did not answer the request: {why}")]
    Unanswered { tome: TomeId, why: String },
    #[error("tome {tome}: {what}")]
    Remote { tome: TomeId, kind: ErrorKind, what: String },
    #[error("the set is stopped")]
    Stopped,
    #[error(transparent)]
    Tome(#[from] TomeError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Disks(#[from] DisksError),
    #[error("cannot {action} \"{path}\"")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// The result of an operation on a set of tomes.
pub type Result<T, E = TomesError> = std::result::Result<T, E>;

impl TomesError {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } | Self::NotCreated { .. } => ErrorKind::Invalid,
            Self::WrongDisk { .. } | Self::WrongStore { .. } | Self::InUse { .. } => {
                ErrorKind::Conflict
            }
            Self::TomeMetadata { .. } | Self::Damaged { .. } => ErrorKind::Corrupt,
            Self::GivenUp { .. }
            | Self::StillSpinning { .. }
            | Self::Busy { .. }
            | Self::Away { .. }
            | Self::Unanswered { .. }
            | Self::Stopped => ErrorKind::Unavailable,
            Self::Remote { kind, .. } => *kind,
            Self::Tome(error) => error.kind(),
            Self::Catalog(error) => error.kind(),
            Self::Disks(error) => error.kind(),
            Self::Io { .. } => ErrorKind::Internal,
        }
    }

    /// Whether a put was refused because its tome has too many deltas in flight: a retry will
    /// succeed.
    #[must_use]
    pub const fn is_backlog(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Tome(TomeError::Backlog { .. }))
    }

    /// Whether a put was refused because no region of its tome has room now: another tome may have.
    pub(crate) const fn is_region_full(&self) -> bool {
        let Self::Tome(TomeError::Full { what } | TomeError::Backlog { what }) = self else {
            return false;
        };
        matches!(what.as_bytes(), b"objects")
    }

    /// Returns an I/O error with its path.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
