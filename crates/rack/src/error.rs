//! Errors of blobs and stacks, with the ids a caller needs to act.

use std::path::Path;

use fulgurite_catalog::CatalogError;
use fulgurite_codes::CodeError;
use fulgurite_disks::DisksError;
use fulgurite_tier::{ObjectStoreError, ObjectStoreErrorKind};
use fulgurite_units::{BlobId, ErrorKind};

use crate::Fault;

/// A stack of a blob that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostStack {
    /// Which of the blob's stacks it is.
    pub index: u8,
    /// The disk that holds it, or should.
    pub disk: String,
    /// What is wrong with it.
    pub fault: Fault,
}

impl std::fmt::Display for LostStack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stack {} on {}: {}", self.index, self.disk, self.fault)
    }
}

/// An operation on blobs failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum RackError {
    #[error("{detail}")]
    Invalid { detail: String },
    /// The rack's creation was never completed; no disk belongs to it yet.
    #[error(
        "the index in {folder:?} belongs to no rack, because its creation was never completed: \
         `fulgurite tier init NAME` completes it; if a complete index was lost, \
         `fulgurite tier recover NAME` rebuilds it from the disks"
    )]
    Incomplete { folder: std::path::PathBuf },
    #[error("blob {blob} of {group} has {have} usable stacks, but needs {need}: {}", list(lost))]
    TooFewStacks { blob: BlobId, group: String, have: usize, need: usize, lost: Vec<LostStack> },
    #[error("blob {blob} of {group} is damaged: {detail}")]
    Corrupt { blob: BlobId, group: String, detail: String },
    #[error(transparent)]
    Code(#[from] CodeError),
    #[error("object {key:?} does not exist")]
    NotFound { key: String },
    #[error("object {key:?} already exists")]
    Exists { key: String },
    #[error("object {key:?} has changed in the meantime")]
    Changed { key: String },
    #[error("the rack's index is damaged: {detail}")]
    Index { detail: String },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Disks(#[from] DisksError),
    #[error("{detail}")]
    WrongDisk { detail: String },
    #[error(transparent)]
    Rack(#[from] fulgurite_rack_core::Error),
    #[error("rack is busy: {detail}")]
    Busy { detail: String },
    #[error("rack is stopping")]
    Stopping,
    #[error("internal error: {detail}")]
    Internal { detail: String },
    #[error("rack is full: {detail}")]
    Full { detail: String },
    #[error("cannot {action} \"{path}\"")]
    Io { action: &'static str, path: String, source: std::io::Error },
}

/// The result of an operation on blobs.
pub type Result<T, E = RackError> = std::result::Result<T, E>;

impl ObjectStoreError for RackError {
    const STORE: &'static str = "Rack";

    fn error_kind(&self) -> ObjectStoreErrorKind {
        match self {
            Self::NotFound { .. } => ObjectStoreErrorKind::NotFound,
            Self::Exists { .. } => ObjectStoreErrorKind::Exists,
            Self::Changed { .. } => ObjectStoreErrorKind::Changed,
            Self::Invalid { .. }
            | Self::Incomplete { .. }
            | Self::TooFewStacks { .. }
            | Self::Corrupt { .. }
            | Self::Code(_)
            | Self::Index { .. }
            | Self::Catalog(_)
            | Self::Disks(_)
            | Self::WrongDisk { .. }
            | Self::Rack(_)
            | Self::Busy { .. }
            | Self::Internal { .. }
            | Self::Full { .. }
            | Self::Io { .. }
            | Self::Stopping => ObjectStoreErrorKind::Other,
        }
    }

    fn invalid(detail: String) -> Self {
        Self::Invalid { detail }
    }

    fn exists(key: String) -> Self {
        Self::Exists { key }
    }

    fn changed(key: String) -> Self {
        Self::Changed { key }
    }
}

impl RackError {
    /// Returns what the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } | Self::Incomplete { .. } => ErrorKind::Invalid,
            // Some stacks may be on disks that come back.
            Self::TooFewStacks { lost, .. } if lost.iter().any(|lost| lost.fault.may_pass()) => {
                ErrorKind::Unavailable
            }
            Self::TooFewStacks { .. } | Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Exists { .. } | Self::Changed { .. } | Self::WrongDisk { .. } => {
                ErrorKind::Conflict
            }
            Self::Rack(_) => ErrorKind::Invalid,
            Self::Index { .. } => ErrorKind::Corrupt,
            Self::Catalog(error) => error.kind(),
            Self::Disks(error) => error.kind(),
            Self::Full { .. } | Self::Busy { .. } | Self::Stopping => ErrorKind::Unavailable,
            Self::Io { .. } if self.is_exhausted() => ErrorKind::Unavailable,
            Self::Code(_) | Self::Io { .. } | Self::Internal { .. } => ErrorKind::Internal,
        }
    }

    /// Whether stacks that were skipped because their disks are spun down may help.
    pub(crate) fn has_asleep(&self) -> bool {
        let Self::TooFewStacks { lost, .. } = self else { return false };
        lost.iter().any(|lost| lost.fault == Fault::Asleep)
    }

    /// Whether the process or the system is out of file handles or memory, which is no fault of a
    /// disk.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        match self {
            Self::TooFewStacks { lost, .. } => lost.iter().any(|lost| lost.fault.is_exhausted()),
            Self::Disks(error) => error.is_exhausted(),
            Self::Io { source, .. } => fulgurite_disks::is_exhausted(source),
            Self::Invalid { .. }
            | Self::Incomplete { .. }
            | Self::Corrupt { .. }
            | Self::Code(_)
            | Self::NotFound { .. }
            | Self::Exists { .. }
            | Self::Changed { .. }
            | Self::Index { .. }
            | Self::Catalog(_)
            | Self::WrongDisk { .. }
            | Self::Rack(_)
            | Self::Busy { .. }
            | Self::Stopping
            | Self::Internal { .. }
            | Self::Full { .. } => false,
        }
    }

    /// Maps an I/O error, adding the path; a full disk becomes `Full`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |source| {
            use std::io::ErrorKind::{QuotaExceeded, StorageFull};
            if matches!(source.kind(), StorageFull | QuotaExceeded) {
                return Self::Full { detail: format!("no space left to {action} \"{path}\"") };
            }
            Self::Io { action, path, source }
        }
    }
}

/// Formats lost stacks in one line.
pub(crate) fn list(lost: &[LostStack]) -> String {
    lost.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
