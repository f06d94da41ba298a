//! Errors of the catalog, by what the caller can do about them.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use fulgurite_units::{ErrorKind, error_chain};

use crate::limits::{KEY_BYTES_MAX, TRANSACTION_BYTES_MAX, VALUE_BYTES_MAX};

/// The cause of an error, shared because one failed batch answers many callers.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Any failure of the catalog.
///
/// It is `Clone` because all callers of one group get the error of its batch.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The catalog directory is open in another process.
    #[error("catalog {path:?} is open in another process")]
    Locked {
        /// The catalog directory.
        path: PathBuf,
    },

    /// The catalog directory was written by another format version.
    #[error(
        "catalog {path:?} has {}, this program reads {expected}",
        found.map_or_else(
            || "no known format version".to_owned(),
            |found| format!("format version {found}")
        )
    )]
    Version {
        /// The catalog directory.
        path: PathBuf,
        /// The version found, if the marker names one.
        found: Option<u8>,
        /// The version this program reads and writes.
        expected: u8,
    },

    /// The catalog directory lacks a part or holds one that cannot be read. Nothing was repaired or
    /// removed.
    #[error("catalog {path:?} is damaged: {reason}")]
    Damaged {
        /// The catalog directory or the file inside it.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// The underlying error, if one was reported.
        #[source]
        source: Option<Cause>,
    },

    /// A stored row cannot be read.
    #[error("space {space} holds a row that cannot be read")]
    CorruptRow {
        /// The space of the row.
        space: &'static str,
        /// Error of the backend or the decoder.
        #[source]
        source: Cause,
    },

    /// The bytes do not decode to a row.
    #[error("a row of space \"{space}\" of the catalog: {reason}")]
    Undecoded {
        /// The space of the row.
        space: &'static str,
        /// What is wrong with them.
        reason: String,
    },

    /// A row was written by a newer program.
    #[error(
        "a row of space \"{space}\" of the catalog has version {version}, and this program knows \
         up to {known}"
    )]
    Newer {
        /// The space of the row.
        space: &'static str,
        /// Its version.
        version: u8,
        /// The newest version of this kind of row that the program knows.
        known: u8,
    },

    /// A row cannot be encoded.
    #[error("cannot encode a row: {reason}")]
    Unencoded {
        /// Error of the encoder.
        reason: String,
    },

    /// Reading or writing the catalog directory failed. Whether a batch that failed with this error
    /// is durable is unknown until the catalog is reopened.
    #[error("catalog cannot {action}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The underlying error.
        #[source]
        source: Cause,
    },

    /// An earlier write failed, so the store refuses writes until it is reopened. Nothing of this
    /// request was written.
    #[error("catalog accepts no writes until it is reopened: {reason}")]
    Poisoned {
        /// The write that failed.
        reason: String,
    },

    /// The store is being read, so it cannot be reopened at this moment.
    #[error("catalog has open readers and cannot be reopened now")]
    InUse,

    /// The store could not be reopened yet, and cannot be read either.
    #[error("catalog is closed until it can be reopened: {reason}")]
    Closed {
        /// Why it could not be opened.
        reason: String,
    },

    /// The committer was stopped before it ran the closure.
    #[error("catalog committer has stopped")]
    Stopped,

    /// The space was not named when the store was opened.
    #[error("space {space} is unknown")]
    UnknownSpace {
        /// The requested name.
        space: &'static str,
    },

    /// The key is empty or longer than the limit.
    #[error("key of {len} bytes in space {space}; a key has 1 to {KEY_BYTES_MAX}")]
    KeyLength {
        /// The space written to.
        space: &'static str,
        /// The length of the key.
        len: usize,
    },

    /// The value is longer than the limit.
    #[error("value of {len} bytes in space {space}; the limit is {VALUE_BYTES_MAX}")]
    ValueLength {
        /// The space written to.
        space: &'static str,
        /// The length of the value.
        len: usize,
    },

    /// One transaction writes more than the limit.
    #[error("transaction of {bytes} bytes; the limit is {TRANSACTION_BYTES_MAX}")]
    TransactionSize {
        /// Bytes that the transaction would have held.
        bytes: usize,
    },

    /// A composite key in the store does not decode.
    #[error("key does not decode at byte {offset}: {reason}")]
    KeyEncoding {
        /// Where decoding stopped.
        offset: usize,
        /// What is wrong there.
        reason: &'static str,
    },

    /// A closure given to the committer panicked; none of its writes were kept.
    #[error("transaction closure panicked: {message}")]
    Panicked {
        /// The panic message, if it was text.
        message: String,
    },

    /// The storage engine panicked; it takes no more work.
    #[error("storage engine panicked: {message}")]
    Engine {
        /// The panic message, if it was text.
        message: String,
    },
}

impl CatalogError {
    /// Returns what the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Locked { .. } => ErrorKind::Conflict,
            Self::Damaged { .. }
            | Self::CorruptRow { .. }
            | Self::Undecoded { .. }
            | Self::KeyEncoding { .. } => ErrorKind::Corrupt,
            Self::Io { .. }
            | Self::Poisoned { .. }
            | Self::InUse
            | Self::Closed { .. }
            | Self::Stopped => ErrorKind::Unavailable,
            Self::Version { .. }
            | Self::Newer { .. }
            | Self::UnknownSpace { .. }
            | Self::KeyLength { .. }
            | Self::ValueLength { .. }
            | Self::TransactionSize { .. } => ErrorKind::Invalid,
            Self::Unencoded { .. } | Self::Panicked { .. } | Self::Engine { .. } => {
                ErrorKind::Internal
            }
        }
    }
}

impl CatalogError {
    /// Returns the error for writes that are refused after `error`.
    pub(crate) fn poisoned(error: &Self) -> Self {
        if matches!(error, Self::Poisoned { .. }) {
            return error.clone();
        }
        Self::Poisoned { reason: error.chain() }
    }

    /// Returns the error for requests to a store that could not be opened because of `error`.
    pub(crate) fn closed(error: &Self) -> Self {
        Self::Closed { reason: error.chain() }
    }

    /// Whether writes that failed with this error may be durable all the same.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Engine { .. })
    }

    /// Whether the disk or the user's quota is full.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        self.has_io_kind(|kind| matches!(kind, StorageFull | QuotaExceeded))
    }

    /// Whether a file or a folder was not found.
    pub(crate) fn is_not_found(&self) -> bool {
        self.has_io_kind(|kind| kind == std::io::ErrorKind::NotFound)
    }

    /// Whether an underlying error is a system error of a wanted kind.
    fn has_io_kind(&self, is_wanted: impl Fn(std::io::ErrorKind) -> bool) -> bool {
        let mut source: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = source {
            // A shared cause is an error of its own and hides the one inside.
            let error = error.downcast_ref::<Cause>().map_or(error, |cause| &**cause);
            let io = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            if io.is_some_and(&is_wanted) {
                return true;
            }
            source = error.source();
        }
        false
    }

    /// Returns the message with those of the underlying errors.
    #[must_use]
    pub fn chain(&self) -> String {
        error_chain(self)
    }
}

/// Returns the text of a caught panic.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
