//! Why a log cannot be read, played or written.

use std::io;

use thiserror::Error;

use crate::ErrorKind;

/// What is wrong with a log, or with where it is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The first line is not that of a log of a known version.
    #[error("line 1: expected {expected}, found {found}")]
    Header {
        /// What belongs there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A line cannot be understood.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A line is longer than any of a sound log.
    #[error("line {line}: longer than {limit} bytes")]
    LineTooLong {
        /// The line, from 1.
        line: u64,
        /// The limit.
        limit: usize,
    },
    /// An event that no driver could have given at this point.
    #[error("line {line}: {problem}")]
    Impossible {
        /// The line, from 1.
        line: u64,
        /// Why not.
        problem: String,
    },
    /// No library has the shape or the policy of the first line.
    #[error("line 1: no library is like this")]
    Library {
        /// Why not.
        source: crate::Error,
    },
    /// The policy holds a number that does not come back from its text.
    #[error("the policy cannot be written as text and read back the same")]
    Policy,
    /// The source failed.
    #[error("line {line}: cannot be read")]
    Read {
        /// The line, from 1.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// The sink failed.
    #[error("the log cannot be written")]
    Write {
        /// Why.
        source: io::Error,
    },
}

impl LogError {
    /// What the caller can do about it.
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
