//! Errors of the codes: an unsupported size, or too few shards left.

/// A code could not be created, or could not reconstruct its shards.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The field has too few elements, or a count is zero.
    #[error("there is no code of {information} information and {redundancy} redundancy shards")]
    Counts {
        /// Information shards requested.
        information: usize,
        /// Redundancy shards requested.
        redundancy: usize,
    },
    /// The shard size of a large group is not a positive multiple of 128 bytes.
    #[error("shards of {bytes} bytes are not a positive multiple of 128 bytes")]
    ShardBlocks {
        /// Requested size.
        bytes: usize,
    },
    /// Shards of one call differ in length.
    #[error("shard {index} has {bytes} bytes, but the first has {expected}")]
    UnequalShards {
        /// Index of the first shard that differs, in the order of the arguments.
        index: usize,
        /// Its length.
        bytes: usize,
        /// The length of the first shard.
        expected: usize,
    },
    /// A call names a shard twice, or one that is out of range.
    #[error("shard {index} is named twice, or is not one of the code's {shards}")]
    Index {
        /// The index.
        index: usize,
        /// Information and redundancy shards of the code.
        shards: usize,
    },
    /// A call has more or fewer shards than the code.
    #[error("{have} shards were passed, but the code has {need}")]
    ShardCount {
        /// Shards given.
        have: usize,
        /// Shards needed.
        need: usize,
    },
    /// The environment forces an instruction set that is unknown, or that this processor lacks.
    #[error(
        "FULGURITE_ISA names \"{name}\", which this processor or this program does not support"
    )]
    Isa {
        /// The level named.
        name: String,
    },
    /// The environment forces a size that no L2 cache has.
    #[error("FULGURITE_SECOND_CACHE_KIB is \"{kib}\"; use 128 to 65536 KiB")]
    L2Cache {
        /// Value of the variable.
        kib: String,
    },
    /// A signature can be appended only after whole blocks.
    #[error("a signature cannot follow {bytes} bytes, which are not whole blocks of 256")]
    SignatureBlock {
        /// Number of bytes before it.
        bytes: u64,
    },
    /// A parity-check matrix cannot be parsed, or is not of the supported form.
    #[error("base matrix: {reason}")]
    BaseMatrix {
        /// Description of the problem.
        reason: &'static str,
    },
    /// The length of a word is not that of the LDPC code.
    #[error("a word has {have} bits or bytes, but the code has {need}")]
    WordLength {
        /// Length of the word, in bytes of packed bits or in soft bits.
        have: usize,
        /// Length of the code, in the same unit.
        need: usize,
    },
    /// The bits per symbol are not 1 to 8, or an axis has none.
    #[error("a symbol cannot hold {bits} bits in this way")]
    SymbolBits {
        /// Bits requested, of all axes.
        bits: usize,
    },
    /// The scale of soft bits is not a positive number.
    #[error("the scale of soft bits is not a positive number")]
    SoftScale,
    /// There are enough shards and relations, but they are not linearly independent.
    #[error("the remaining shards determine only {found} of {lost} lost information shards")]
    LinearlyDependent {
        /// Information shards lost.
        lost: usize,
        /// Number of independent equations.
        found: usize,
    },
    /// A loss probability is not strictly between 0 and 1, or its variation is impossible.
    #[error("no loss probability has this mean and variation")]
    LossRate,
    /// A sector has no payload, no rows of voxels, or too many bytes.
    #[error(
        "there is no sector of {payload} payload and {header} header bytes in rows of {row} voxels"
    )]
    SectorShape {
        /// Payload bytes requested.
        payload: usize,
        /// Header bytes.
        header: usize,
        /// Voxels per row.
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

/// Error kind, by what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The medium lost more than the code can reconstruct.
    Corrupt,
    /// The request itself is invalid.
    Invalid,
}

impl CodeError {
    /// Returns the kind of this error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Counts { .. }
            | Self::ShardBlocks { .. }
            | Self::UnequalShards { .. }
            | Self::Index { .. }
            | Self::ShardCount { .. }
            | Self::BaseMatrix { .. }
            | Self::WordLength { .. }
            | Self::Isa { .. }
            | Self::L2Cache { .. }
            | Self::SignatureBlock { .. }
            | Self::SymbolBits { .. }
            | Self::SoftScale
            | Self::LossRate
            | Self::SectorShape { .. } => ErrorKind::Invalid,
            Self::TooFewShards { .. } | Self::LinearlyDependent { .. } => ErrorKind::Corrupt,
        }
    }
}
