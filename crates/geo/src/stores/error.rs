//! Errors of tables, blobs and addresses, and above all: whether the call took effect.
//!
//! Every failure is one of three kinds ([`Certainty`]): the store refused; the store never executed
//! it; or the outcome is unknown. Code that confuses the last two loses acknowledged writes or
//! repeats them.

use std::fmt;
use std::time::Duration;

use fulgurite_units::ErrorKind;

use crate::stores::address::AddressError;
use crate::stores::key::Key;
use crate::stores::limits::CAUSE_BYTES_MAX;
use crate::stores::row::Row;

/// What is known of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The store checked and refused: nothing changed, and a retry is refused again.
    Refused,
    /// The store was not reached, or did not start: nothing changed, and the call may be retried.
    NotDone,
    /// It may have taken effect, or may still.
    Unknown,
}

/// The reason, in the store's words. Never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause(String);

impl Cause {
    /// Creates a cause, truncated to a length that fits a log.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > CAUSE_BYTES_MAX {
            let end = (0..=CAUSE_BYTES_MAX).rev().find(|&index| text.is_char_boundary(index));
            text.truncate(end.unwrap_or(0));
            text.push_str("...");
        }
        Self(text)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Failure of a table call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The row is not the expected one. Contains the current row if the store returns it; if not,
    /// there may be none.
    #[error("the row is not the expected one")]
    Conflict(Option<Row>),
    /// The outcome is unknown: it was sent, and no answer states what happened.
    #[error("the outcome of the call is unknown: {0}")]
    Unknown(Cause),
    /// It was not executed: it was not sent, or refused before anything changed.
    #[error("the table is unavailable: {0}")]
    Unavailable(Cause),
    /// It was not executed: the store is overloaded, and may state when to retry.
    #[error("the table is overloaded")]
    Throttled(Option<Duration>),
    /// A row of this many bytes is too long for the table.
    #[error("a row of {0} bytes is too long for the table")]
    TooLarge(usize),
    /// The store does not permit it with our credentials.
    #[error("the table denies access: {0}")]
    Denied(Cause),
    /// The table does not support it.
    #[error("the table cannot {0}")]
    Unsupported(&'static str),
    /// The stored bytes are not what was written.
    #[error("the table is damaged: {0}")]
    Corrupt(String),
}

impl TableError {
    /// Returns what is known of the call.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        match self {
            Self::Conflict(_)
            | Self::TooLarge(_)
            | Self::Denied(_)
            | Self::Unsupported(_)
            | Self::Corrupt(_) => Certainty::Refused,
            Self::Unavailable(_) | Self::Throttled(_) => Certainty::NotDone,
            Self::Unknown(_) => Certainty::Unknown,
        }
    }

    /// The same for a call without effects: an unknown outcome becomes not done.
    #[must_use]
    pub(crate) fn into_read_error(self) -> Self {
        if let Self::Unknown(cause) = self { Self::Unavailable(cause) } else { self }
    }

    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict(_) => ErrorKind::Conflict,
            Self::Unknown(_) | Self::Unavailable(_) | Self::Throttled(_) => ErrorKind::Unavailable,
            Self::TooLarge(_) | Self::Denied(_) | Self::Unsupported(_) => ErrorKind::Invalid,
            Self::Corrupt(_) => ErrorKind::Corrupt,
        }
    }
}

/// Failure of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactError {
    /// A write was sent, and may have been applied or may still be.
    #[error("the outcome of a write of row \"{key}\" is unknown: {cause}")]
    Unknown {
        /// The row's key.
        key: Key,
        /// The reason.
        cause: Cause,
    },
    /// Nothing of ours was written; the table does not answer.
    #[error("row \"{key}\" was not written, the table is unavailable: {cause}")]
    Unavailable {
        /// The row's key.
        key: Key,
        /// The reason.
        cause: Cause,
    },
    /// Nothing of ours was written; other writers won each time.
    #[error("row \"{key}\" was not written: other writers won in all of {tries} tries")]
    Contended {
        /// The row's key.
        key: Key,
        /// Number of tries.
        tries: u32,
    },
    /// Nothing of ours was written; the table refused it permanently.
    #[error("row \"{key}\" was not written")]
    Refused {
        /// The row's key.
        key: Key,
        /// The reason.
        #[source]
        source: TableError,
    },
}

impl TransactError {
    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } | Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Contended { .. } => ErrorKind::Conflict,
            Self::Refused { source, .. } => source.kind(),
        }
    }
}

/// Failure of a blob store call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The store states that the blob does not exist.
    #[error("the blob does not exist")]
    NotFound,
    /// The blob already exists with other bytes.
    #[error("another blob exists under this key")]
    Exists,
    /// It was not executed.
    #[error("the store is unavailable: {0}")]
    Unavailable(Cause),
    /// The outcome is unknown.
    #[error("the outcome of the call is unknown: {0}")]
    Unknown(Cause),
    /// The store returned other bytes than requested.
    #[error("the blob is damaged: {0}")]
    Corrupt(String),
    /// It was not executed: the store is overloaded.
    #[error("the store is overloaded")]
    Throttled(Option<Duration>),
    /// The store does not permit it with our credentials.
    #[error("the store denies access: {0}")]
    Denied(Cause),
    /// A blob of this many bytes is too long.
    #[error("a blob of {0} bytes is too long")]
    TooLarge(usize),
}

impl BlobError {
    /// Returns what is known of the call.
    #[must_use]
    pub const fn certainty(&self) -> Certainty {
        match self {
            Self::NotFound
            | Self::Exists
            | Self::Corrupt(_)
            | Self::Denied(_)
            | Self::TooLarge(_) => Certainty::Refused,
            Self::Unavailable(_) | Self::Throttled(_) => Certainty::NotDone,
            Self::Unknown(_) => Certainty::Unknown,
        }
    }

    /// The same for a call without effects: an unknown outcome becomes not done.
    #[must_use]
    pub(crate) fn into_read_error(self) -> Self {
        if let Self::Unknown(cause) = self { Self::Unavailable(cause) } else { self }
    }

    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::Exists => ErrorKind::Conflict,
            Self::Unavailable(_) | Self::Unknown(_) | Self::Throttled(_) => ErrorKind::Unavailable,
            Self::Corrupt(_) => ErrorKind::Corrupt,
            Self::Denied(_) | Self::TooLarge(_) => ErrorKind::Invalid,
        }
    }
}

/// A store could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address is invalid, or names something that does not exist.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The store does not exist there, and was not to be created.
    #[error("there is no {what} at {place}; it is created only on request")]
    Missing {
        /// A table or blobs.
        what: &'static str,
        /// The place.
        place: String,
    },
    /// The node does not serve this kind of store.
    #[error("the node at {place} serves no {what}")]
    NotServed {
        /// A table or blobs.
        what: &'static str,
        /// The place.
        place: String,
    },
    /// The place holds something else.
    #[error("{place}: {what}")]
    Foreign {
        /// The place.
        place: String,
        /// What was found.
        what: String,
    },
    /// The store does not answer, or refuses.
    #[error("the store at {place} cannot be opened")]
    Table {
        /// The place.
        place: String,
        /// The reason.
        #[source]
        source: TableError,
    },
    /// The same for blobs.
    #[error("the store at {place} cannot be opened")]
    Blob {
        /// The place.
        place: String,
        /// The reason.
        #[source]
        source: BlobError,
    },
}

impl OpenError {
    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Address(_) => ErrorKind::Invalid,
            Self::Missing { .. } | Self::NotServed { .. } => ErrorKind::NotFound,
            Self::Foreign { .. } => ErrorKind::Conflict,
            Self::Table { source, .. } => source.kind(),
            Self::Blob { source, .. } => source.kind(),
        }
    }
}
