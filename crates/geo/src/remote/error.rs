//! Errors of starting a node, with what its operator needs to act.

use std::path::PathBuf;

use fulgurite_rpc::RpcError;
use fulgurite_units::ErrorKind;

/// A node cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum NodeError {
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
    #[error("a node cannot serve these stores: {what}")]
    Stores { what: String },
}

/// The result of an operation on a node.
pub type Result<T, E = NodeError> = std::result::Result<T, E>;

impl NodeError {
    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::File { .. }
            | Self::Read { .. }
            | Self::Pem { .. }
            | Self::Tls { .. }
            | Self::Stores { .. } => ErrorKind::Invalid,
            Self::Listen { .. } => ErrorKind::Conflict,
        }
    }
}

impl From<RpcError> for NodeError {
    fn from(error: RpcError) -> Self {
        match error {
            RpcError::File { path, what } => Self::File { path, what },
            RpcError::Read { path, source } => Self::Read { path, source },
            RpcError::Pem { path, what } => Self::Pem { path, what },
            RpcError::Tls { what } => Self::Tls { what },
        }
    }
}
