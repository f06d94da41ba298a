//! What can go wrong with platters, with the ids a caller needs to act.

use fulgurite_units::{ErrorKind, PlatterId};

/// An operation on platters failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum PlattersError {
    #[error("{what}")]
    InvalidArgument { what: String },
    #[error("archive is full: {what}")]
    Full { what: String },
    #[error("too many requests are waiting: {what}")]
    Busy { what: String },
    #[error("platter {platter} cannot be read: {reason}")]
    PlatterUnreadable { platter: PlatterId, reason: String },
    #[error("platter {platter} is out of reach: {reason}")]
    PlatterOutOfReach { platter: PlatterId, reason: String },
    #[error("data directory \"{path}\" cannot be opened: {reason}")]
    Unusable { path: String, reason: String },
    #[error("archive is stopping")]
    Stopping,
    #[error("cannot {action} \"{path}\"")]
    Io { action: &'static str, path: String, source: std::io::Error },
    #[error("internal error: {what}")]
    Internal { what: String },
}

/// The result of an operation on platters.
pub type Result<T, E = PlattersError> = std::result::Result<T, E>;

impl PlattersError {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Full { .. }
            | Self::Busy { .. }
            | Self::PlatterOutOfReach { .. }
            | Self::Stopping => ErrorKind::Unavailable,
            Self::PlatterUnreadable { .. } => ErrorKind::Corrupt,
            Self::InvalidArgument { .. } | Self::Unusable { .. } => ErrorKind::Invalid,
            Self::Io { .. } | Self::Internal { .. } => ErrorKind::Internal,
        }
    }
}
