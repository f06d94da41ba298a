//! Why a log cannot be read, replayed or written.

use std::io;

use thiserror::Error;

use crate::control::ErrorKind;

/// An error of a log, or of its source or sink.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The first line is not the header of a log of a known version.
    #[error("line 1: expected {expected}, found {found}")]
    Header {
        /// The expected text.
        expected: String,
        /// The text found.
        found: String,
    },
    /// A line cannot be parsed.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// The problem.
        problem: String,
    },
    /// A line is longer than any of a valid log.
    #[error("line {line}: longer than {limit} bytes")]
    LineTooLong {
        /// The line, from 1.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// An event that no driver could have sent at this point.
    #[error("line {line}: {problem}")]
    Impossible {
        /// The line, from 1.
        line: u64,
        /// The reason.
        problem: String,
    },
    /// The shape or the policy of the first line is invalid.
    #[error("line 1: no such library is possible")]
    Library {
        /// The cause.
        source: crate::control::Error,
    },
    /// The policy holds a number that does not survive a round trip through text.
    #[error("the policy cannot be written as text and read back the same")]
    Policy,
    /// The source failed.
    #[error("line {line}: cannot be read")]
    Read {
        /// The line, from 1.
        line: u64,
        /// The cause.
        source: io::Error,
    },
    /// The sink failed.
    #[error("the log cannot be written")]
    Write {
        /// The cause.
        source: io::Error,
    },
}

impl LogError {
    /// Returns what the caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Read { .. } | Self::Write { .. } => ErrorKind::Unavailable,
            Self::Header { .. }
            | Self::Line { .. }
            | Self::LineTooLong { .. }
            | Self::Impossible { .. }
            | Self::Library { .. }
            | Self::Policy => ErrorKind::Invalid,
        }
    }
}
