//! Errors of starting and running the gateway. Errors of single requests are responses to clients
//! and live in `adapter::errors`.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use fulgurite_units::ErrorKind;

/// The gateway could not be started or kept running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what the fields are")]
pub enum GatewayError {
    #[error(
        "cannot listen on {address}: stop what listens there, or pass another address (--listen)"
    )]
    Listen { address: SocketAddr, source: io::Error },
    #[error("{part} is not usable: {rule}")]
    Credentials { part: &'static str, rule: &'static str },
    #[error("domain \"{domain}\" is not a host name")]
    Domain { domain: String },
    #[error("cannot {action} \"{path}\"")]
    TlsFile { action: &'static str, path: PathBuf, source: io::Error },
    #[error("\"{path}\" holds no {what} in PEM form")]
    TlsContent { path: PathBuf, what: &'static str },
    #[error("cannot use the certificate and key of \"{path}\"")]
    TlsPair { path: PathBuf, source: rustls::Error },
    #[error("cannot read or write the nonces of admin calls in \"{path}\"")]
    Nonces { path: PathBuf, source: io::Error },
    #[error("cannot generate a self-signed certificate")]
    TlsGenerate { source: rcgen::Error },
}

/// The result of starting or running the gateway.
pub type Result<T, E = GatewayError> = std::result::Result<T, E>;

impl GatewayError {
    /// Returns what the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Listen { .. }
            | Self::Credentials { .. }
            | Self::Domain { .. }
            | Self::TlsFile { .. }
            | Self::TlsContent { .. }
            | Self::TlsPair { .. } => ErrorKind::Invalid,
            Self::Nonces { .. } | Self::TlsGenerate { .. } => ErrorKind::Internal,
        }
    }
}
