//! Errors of disks, with the places and devices a caller needs to act.

use std::io;
use std::path::{Path, PathBuf};

use fulgurite_units::ErrorKind;

use crate::{PlaceId, Power};

/// An operation on disks failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum DisksError {
    #[error("there is no place {place}")]
    UnknownPlace { place: PlaceId },
    #[error("the disk in place {place} is {power}: its files cannot be used until it is active")]
    Asleep { place: PlaceId, power: Power },
    #[error("the disk in place {place} became {power} while it was used")]
    Gone { place: PlaceId, power: Power },
    #[error("the disk in place {place} has {leases} leases, so it is not spun down")]
    InUse { place: PlaceId, leases: usize },
    #[error("the disk in place {place} is {from} and cannot become {to}")]
    InvalidTransition { place: PlaceId, from: Power, to: Power },
    #[error("\"{path}\" is not a path inside a disk")]
    OutsideDisk { path: PathBuf },
    #[error("the disk in place {place} does not spin up: {reason}")]
    SpinUp { place: PlaceId, reason: String },
    #[error("there is no disk at \"{device}\": {reason}")]
    NoDevice { device: PathBuf, reason: String },
    #[error("disk \"{device}\" did not carry out a command: {reason}")]
    Device { device: PathBuf, reason: String },
    #[error("ledger \"{path}\", line {line}: {problem}")]
    Ledger { path: PathBuf, line: u64, problem: String },
    #[error("no space left to {action} \"{path}\"")]
    Full { action: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot {action} \"{path}\"")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// Whether a system error means that the process or the system lacks resources to open a file, so
/// that neither the file nor its disk is at fault.
#[must_use]
pub fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN))
}

/// The result of an operation on disks.
pub type Result<T, E = DisksError> = std::result::Result<T, E>;

impl DisksError {
    /// Returns what the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownPlace { .. } | Self::NoDevice { .. } => ErrorKind::NotFound,
            Self::Asleep { .. } | Self::Gone { .. } | Self::SpinUp { .. } | Self::Full { .. } => {
                ErrorKind::Unavailable
            }
            Self::Io { .. } if self.is_exhausted() => ErrorKind::Unavailable,
            Self::InUse { .. } => ErrorKind::Conflict,
            Self::OutsideDisk { .. } => ErrorKind::Invalid,
            Self::Ledger { .. } => ErrorKind::Corrupt,
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                ErrorKind::NotFound
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                ErrorKind::Conflict
            }
            Self::InvalidTransition { .. } | Self::Device { .. } | Self::Io { .. } => {
                ErrorKind::Internal
            }
        }
    }

    /// Whether the process or the system is out of file handles or memory, which is no fault of the
    /// disk.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_exhausted(source))
    }

    /// Returns the error kind of the operating system, if it caused the error.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Full { source, .. } | Self::Io { source, .. } => Some(source.kind()),
            Self::UnknownPlace { .. }
            | Self::Asleep { .. }
            | Self::Gone { .. }
            | Self::InUse { .. }
            | Self::InvalidTransition { .. }
            | Self::OutsideDisk { .. }
            | Self::SpinUp { .. }
            | Self::NoDevice { .. }
            | Self::Device { .. }
            | Self::Ledger { .. } => None,
        }
    }

    /// Maps an I/O error, adding the path; a full disk becomes `Full`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| {
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                return Self::Full { action, path, source };
            }
            Self::Io { action, path, source }
        }
    }
}
