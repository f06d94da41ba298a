//! Errors between tomes, with what a caller needs to act.

use std::path::PathBuf;

use fulgurite_rpc::RpcError;
use fulgurite_units::ErrorKind;

use crate::TomesError;

/// A failed operation on the network of tomes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum NetError {
    #[error("\"{path}\": {what}")]
    File { path: PathBuf, what: String },
    #[error("cannot read \"{path}\"")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("\"{path}\" has no {what}")]
    Pem { path: PathBuf, what: &'static str },
    #[error("certificates and key cannot be used: {what}")]
    Tls { what: String },
    #[error("the certificate names {what}")]
    PeerName { what: String },
    #[error("cannot listen at {address}")]
    Listen { address: String, source: std::io::Error },
    #[error("cannot connect to {address}: {what}")]
    Connect { address: String, what: String },
    #[error("{what} cannot be decoded")]
    Undecoded { what: &'static str },
    #[error("the peer uses version {version}, and {known} is the latest known here")]
    Newer { version: u8, known: u8 },
    #[error("rejected: {what}")]
    Refused { what: String },
    #[error("the connection ended: {what}")]
    Ended { what: String },
    #[error(transparent)]
    Tomes(#[from] TomesError),
}

/// The result of an operation on the network of tomes.
pub type Result<T, E = NetError> = std::result::Result<T, E>;

impl NetError {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::File { .. } | Self::Pem { .. } | Self::Tls { .. } | Self::PeerName { .. } => {
                ErrorKind::Invalid
            }
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                ErrorKind::NotFound
            }
            Self::Read { .. } => ErrorKind::Internal,
            Self::Listen { .. } | Self::Refused { .. } => ErrorKind::Conflict,
            Self::Connect { .. } | Self::Ended { .. } => ErrorKind::Unavailable,
            Self::Undecoded { .. } | Self::Newer { .. } => ErrorKind::Invalid,
            Self::Tomes(error) => error.kind(),
        }
    }
}

impl From<RpcError> for NetError {
    fn from(error: RpcError) -> Self {
        match error {
            RpcError::File { path, what } => Self::File { path, what },
            RpcError::Read { path, source } => Self::Read { path, source },
            RpcError::Pem { path, what } => Self::Pem { path, what },
            RpcError::Tls { what } => Self::Tls { what },
        }
    }
}
