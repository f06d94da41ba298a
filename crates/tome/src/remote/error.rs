//! Errors between tomes, with what a caller needs to act.

use fulgurite_rpc::RpcError;
use fulgurite_units::ErrorKind;

use crate::TomesError;

/// A failed operation on the network of tomes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum NetError {
    #[error(transparent)]
    Rpc(#[from] RpcError),
    #[error("the certificate names {what}")]
    PeerName { what: String },
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
            Self::Rpc(error) => error.kind(),
            Self::PeerName { .. } => ErrorKind::Invalid,
            Self::Refused { .. } => ErrorKind::Conflict,
            Self::Connect { .. } | Self::Ended { .. } => ErrorKind::Unavailable,
            Self::Undecoded { .. } | Self::Newer { .. } => ErrorKind::Invalid,
            Self::Tomes(error) => error.kind(),
        }
    }
}
