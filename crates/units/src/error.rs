//! What errors of all crates have in common: what the caller should do, and one line of text.
//!
//! Not here: any error itself. Each crate has its own.

use std::error::Error;

/// What the caller should do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The thing named does not exist.
    NotFound,
    /// The state of the thing forbids it; look again, then decide.
    Conflict,
    /// Try later.
    Unavailable,
    /// Stored bytes are not what was written.
    Corrupt,
    /// The request itself is wrong.
    Invalid,
    /// A bug, or a failing disk.
    Internal,
}

/// An error with its sources, on one line.
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
