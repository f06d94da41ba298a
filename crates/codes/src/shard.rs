//! What a decoder knows of a shard.

/// What is known of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard<'a> {
    /// Read, and its checksum was right.
    Given(&'a [u8]),
    /// Never written: counts as zeros.
    Zero,
    /// Unreadable.
    Lost,
}
