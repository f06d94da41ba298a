//! What the errors of all crates share: what the caller should do, and formatting on one line.
//!
//! Not here: any error itself. Each crate has its own.

use std::error::Error;

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The named thing does not exist.
    NotFound,
    /// Its state forbids the request; read it again, then decide.
    Conflict,
    /// Retry later.
    Unavailable,
    /// Stored bytes differ from what was written.
    Corrupt,
    /// The request itself is wrong.
    Invalid,
    /// A bug, or a failing disk.
    Internal,
}

/// Formats an error with its sources on one line.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
