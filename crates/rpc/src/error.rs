//! Errors of certificates, keys and listening sockets, with what an operator needs to act.

use std::path::{Path, PathBuf};

use fulgurite_units::ErrorKind;

/// Certificates, a key or an address cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum RpcError {
    #[error("\"{path}\": {what}")]
    File { path: PathBuf, what: String },
    #[error("cannot read \"{path}\"")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("\"{path}\" has no {what}")]
    Pem { path: PathBuf, what: &'static str },
    #[error("certificates and key cannot be used: {what}")]
    Tls { what: String },
    #[error("cannot listen at {address}")]
    Listen { address: String, source: std::io::Error },
}

/// The result of reading them.
pub type Result<T, E = RpcError> = std::result::Result<T, E>;

impl RpcError {
    /// Returns what the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File { .. } | Self::Pem { .. } | Self::Tls { .. } => ErrorKind::Invalid,
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                ErrorKind::NotFound
            }
            Self::Read { .. } => ErrorKind::Internal,
            Self::Listen { .. } => ErrorKind::Conflict,
        }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn tls(error: &dyn std::fmt::Display) -> Self {
        Self::Tls { what: error.to_string() }
    }
}
