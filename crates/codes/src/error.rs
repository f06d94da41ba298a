//! What can go wrong with a code: a size it does not support, or too few shards left.

/// A code could not be made, or could not bring its shards back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The field has not enough elements, or a count is zero.
    #[error("no code has {information} information and {redundancy} redundancy shards")]
    Counts {
        /// Information shards asked for.
        information: usize,
        /// Redundancy shards asked for.
        redundancy: usize,
    },
    /// A shard must be a positive multiple of 64 bytes.
    #[error("shards of {bytes} bytes are not a positive multiple of 64 bytes")]
    ShardBytes {
        /// The size asked for.
        bytes: usize,
    },
    /// More shards are lost than the code has redundancy.
    #[error("only {have} shards are left of the {need} that decoding needs")]
    TooFewShards {
        /// Shards given.
        have: usize,
        /// Shards needed.
        need: usize,
    },
}

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The medium lost more than the code can bring back.
    Corrupt,
    /// The request itself is wrong.
    Invalid,
}

impl CodeError {
    /// What a caller can do about this error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Counts { .. } | Self::ShardBytes { .. } => ErrorKind::Invalid,
            Self::TooFewShards { .. } => ErrorKind::Corrupt,
        }
    }
}
