//! What can go wrong with tables, blobs and addresses, and above all: whether it happened or not.
//!
//! Of every failure one of three things is known ([`Certainty`]): the store said no; the store
//! never did it; or nobody knows. Whoever merges the last two loses acknowledged writes or repeats
//! them.

use std::fmt;
use std::time::Duration;

use fulgurite_units::ErrorKind;

use crate::address::AddressError;
use crate::key::Key;
use crate::limits::CAUSE_BYTES_MAX;
use crate::row::Row;

/// What is known of a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The store looked and refused: nothing changed, and the same call is refused again.
    Refused,
    /// The store was not reached, or did not begin: nothing changed, and the call may be made
    /// again.
    NotDone,
    /// It may have happened, or may still happen.
    Unknown,
}

/// Why, in the store's words. Never a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause(String);

impl Cause {
    /// These words, cut to a length that fits a log.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        let mut what = what.into();
        if what.len() > CAUSE_BYTES_MAX {
            let end = (0..=CAUSE_BYTES_MAX).rev().find(|&at| what.is_char_boundary(at));
            what.truncate(end.unwrap_or(0));
            what.push_str("...");
        }
        Self(what)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A call of a table failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The row is not the one that was expected; with it, if the store says what is there. Without,
    /// it may be gone as well.
    #[error("the row is not the one that was expected")]
    Conflict(Option<Row>),
    /// Nobody knows whether it happened: it was sent, and no answer came that says so.
    #[error("nobody knows what became of the call: {0}")]
    Unknown(Cause),
    /// It did not happen: it was not sent, or refused before anything changed.
    #[error("the table cannot be asked now: {0}")]
    Unavailable(Cause),
    /// It did not happen: the store has too much to do, and may say until when.
    #[error("the table has too much to do")]
    Throttled(Option<Duration>),
    /// A row of so many bytes is too long for the table.
    #[error("a row of {0} bytes is too long for the table")]
    TooLarge(usize),
    /// The store does not allow it to whoever we are to it.
    #[error("the table refuses access: {0}")]
    Denied(Cause),
    /// The table cannot do that.
    #[error("the table cannot {0}")]
    Unsupported(&'static str),
    /// What is stored is not what was written.
    #[error("the table is damaged: {0}")]
    Corrupt(String),
}

impl TableError {
    /// What is known of the call.
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

    /// The same of something that changes nothing: when nobody knows about it, it was not done.
    #[must_use]
    pub(crate) fn of_read(self) -> Self {
        if let Self::Unknown(cause) = self { Self::Unavailable(cause) } else { self }
    }

    /// What the caller should do.
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

/// A transaction did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactError {
    /// A write was sent, and nobody knows whether it landed or still will.
    #[error("nobody knows what became of a write of row \"{key}\": {cause}")]
    Unknown {
        /// The row's key.
        key: Key,
        /// Why.
        cause: Cause,
    },
    /// Nothing of ours was written; the table does not answer.
    #[error("row \"{key}\" was not written, the table cannot be asked now: {cause}")]
    Unavailable {
        /// The row's key.
        key: Key,
        /// Why.
        cause: Cause,
    },
    /// Nothing of ours was written; others were faster each time.
    #[error("row \"{key}\" was not written: others were faster {tries} times")]
    Contended {
        /// The row's key.
        key: Key,
        /// How often.
        tries: u32,
    },
    /// Nothing of ours was written; the table refused it for good.
    #[error("row \"{key}\" was not written")]
    Refused {
        /// The row's key.
        key: Key,
        /// Why.
        #[source]
        source: TableError,
    },
}

impl TransactError {
    /// What the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } | Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Contended { .. } => ErrorKind::Conflict,
            Self::Refused { source, .. } => source.kind(),
        }
    }
}

/// A call of a store of blobs failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The store said that there is no such blob.
    #[error("there is no such blob")]
    NotFound,
    /// There is a blob of that key already, with other bytes.
    #[error("there is another blob of that key")]
    Exists,
    /// It did not happen.
    #[error("the store cannot be asked now: {0}")]
    Unavailable(Cause),
    /// Nobody knows whether it happened.
    #[error("nobody knows what became of the call: {0}")]
    Unknown(Cause),
    /// The store gave other bytes than were asked for.
    #[error("the blob is damaged: {0}")]
    Corrupt(String),
    /// It did not happen: the store has too much to do.
    #[error("the store has too much to do")]
    Throttled(Option<Duration>),
    /// The store does not allow it to whoever we are to it.
    #[error("the store refuses access: {0}")]
    Denied(Cause),
    /// A blob of so many bytes is too long.
    #[error("a blob of {0} bytes is too long")]
    TooLarge(usize),
}

impl BlobError {
    /// What is known of the call.
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

    /// The same of something that changes nothing: when nobody knows about it, it was not done.
    #[must_use]
    pub(crate) fn of_read(self) -> Self {
        if let Self::Unknown(cause) = self { Self::Unavailable(cause) } else { self }
    }

    /// What the caller should do.
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
    /// The address is none, or names what there is not.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// There is nothing of ours there, and nothing was to be made.
    #[error("there is no {what} at {place}; it is made when that is asked for")]
    Missing {
        /// A table or blobs.
        what: &'static str,
        /// Where.
        place: String,
    },
    /// A node serves the one of a table and blobs, and not the other.
    #[error("the node at {place} serves no {what}")]
    NotServed {
        /// A table or blobs.
        what: &'static str,
        /// Where.
        place: String,
    },
    /// There is something, and it is not ours.
    #[error("{place}: {what}")]
    Stranger {
        /// Where.
        place: String,
        /// What there is.
        what: String,
    },
    /// The store does not answer, or refuses.
    #[error("the store at {place} cannot be opened")]
    Table {
        /// Where.
        place: String,
        /// Why.
        #[source]
        source: TableError,
    },
    /// The same of blobs.
    #[error("the store at {place} cannot be opened")]
    Blob {
        /// Where.
        place: String,
        /// Why.
        #[source]
        source: BlobError,
    },
}

impl OpenError {
    /// What the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Address(_) => ErrorKind::Invalid,
            Self::Missing { .. } | Self::NotServed { .. } => ErrorKind::NotFound,
            Self::Stranger { .. } => ErrorKind::Conflict,
            Self::Table { source, .. } => source.kind(),
            Self::Blob { source, .. } => source.kind(),
        }
    }
}
