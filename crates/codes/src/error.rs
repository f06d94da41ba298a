//! What can go wrong with a code: a size it does not support, or too few shards left.

/// A code could not be made, or could not bring its shards back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// A shard of a large group must be a positive multiple of 128 bytes.
    #[error("shards of {bytes} bytes are not a positive multiple of 128 bytes")]
    ShardBlocks {
        /// The size asked for.
        bytes: usize,
    },
    /// Shards of one call differ in length.
    #[error("shard {index} has {bytes} bytes where the first has {expected}")]
    UnequalShards {
        /// The first shard that differs, in the order of the arguments.
        index: usize,
        /// Its length.
        bytes: usize,
        /// The length of the first shard.
        expected: usize,
    },
    /// A call names a shard twice, or one that the code does not have.
    #[error("shard {index} is named twice, or is not one of the code's {shards}")]
    Index {
        /// The index.
        index: usize,
        /// Information and redundancy shards of the code.
        shards: usize,
    },
    /// A call has more or fewer shards than the code.
    #[error("{have} shards are given where the code has {need}")]
    ShardCount {
        /// Shards given.
        have: usize,
        /// Shards needed.
        need: usize,
    },
    /// The environment forces instructions that do not exist, or that this processor lacks.
    #[error("FULGURITE_ISA names \"{name}\", which this processor or this program does not know")]
    Isa {
        /// The level named.
        name: String,
    },
    /// The environment forces a size that no second-level cache has.
    #[error("FULGURITE_SECOND_CACHE_KIB is \"{kib}\"; a size is 128 to 65536 KiB")]
    SecondCache {
        /// What it is.
        kib: String,
    },
    /// A signature can follow only bytes that are whole blocks.
    #[error("a signature cannot follow {bytes} bytes, which are not whole blocks of 256")]
    SignatureBlock {
        /// The bytes before it.
        bytes: u64,
    },
    /// A parity-check matrix cannot be read, or has not the shape that is encoded and decoded.
    #[error("base matrix: {reason}")]
    BaseMatrix {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A word of an LDPC code has not the code's length.
    #[error("a word has {have} bits or bytes where the code has {need}")]
    WordLength {
        /// Length given, in bytes of packed bits or in soft bits.
        have: usize,
        /// Length of the code, in the same unit.
        need: usize,
    },
    /// A symbol holds 1 to 8 bits, and each axis of it at least one.
    #[error("no symbol holds {bits} bits in this way")]
    SymbolBits {
        /// The bits asked for, of all axes.
        bits: usize,
    },
    /// The scale of soft bits must be a positive number.
    #[error("the scale of soft bits is not a positive number")]
    SoftScale,
    /// Enough shards and relations are left, but some of them follow from others.
    #[error("what is left determines only {found} of {lost} lost information shards")]
    Dependent {
        /// Information shards lost.
        lost: usize,
        /// How many of them independent equations are left for.
        found: usize,
    },
    /// A chance of loss is between 0 and 1, and its variation one that a chance can have.
    #[error("no chance of loss has this mean and variation")]
    LossRate,
    /// A sector needs a payload and rows of voxels, and not too many bytes.
    #[error("no sector has {payload} bytes of payload, {header} of header and rows of {row}")]
    SectorShape {
        /// Bytes of payload asked for.
        payload: usize,
        /// Bytes of header.
        header: usize,
        /// Voxels of a row.
        row: usize,
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
            Self::Counts { .. }
            | Self::ShardBytes { .. }
            | Self::ShardBlocks { .. }
            | Self::UnequalShards { .. }
            | Self::Index { .. }
            | Self::ShardCount { .. }
            | Self::BaseMatrix { .. }
            | Self::WordLength { .. }
            | Self::Isa { .. }
            | Self::SecondCache { .. }
            | Self::SignatureBlock { .. }
            | Self::SymbolBits { .. }
            | Self::SoftScale
            | Self::LossRate
            | Self::SectorShape { .. } => ErrorKind::Invalid,
            Self::TooFewShards { .. } | Self::Dependent { .. } => ErrorKind::Corrupt,
        }
    }
}
