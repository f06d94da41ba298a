//! Errors of starting a node, with what its operator needs to act.

use fulgurite_rpc::RpcError;
use fulgurite_units::ErrorKind;

/// A node cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum NodeError {
    #[error(transparent)]
    Rpc(#[from] RpcError),
    #[error("a node cannot serve these stores: {what}")]
    Stores { what: String },
}

/// The result of an operation on a node.
pub type Result<T, E = NodeError> = std::result::Result<T, E>;

impl NodeError {
    /// Returns what the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Rpc(RpcError::Read { .. }) | Self::Stores { .. } => ErrorKind::Invalid,
            Self::Rpc(error) => error.kind(),
        }
    }
}
