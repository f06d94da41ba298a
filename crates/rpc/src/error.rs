//! Errors of certificates and keys, with what an operator needs to act.

use std::path::{Path, PathBuf};

/// Certificates or a key cannot be used.
#[derive(Debug, thiserror::Error)]
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
}

/// The result of reading them.
pub type Result<T, E = RpcError> = std::result::Result<T, E>;

impl RpcError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn tls(error: &dyn std::fmt::Display) -> Self {
        Self::Tls { what: error.to_string() }
    }
}
