//! The state of a shard, as a decoder sees it.

/// The state of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard<'a> {
    /// Read, and its checksum matched.
    Given(&'a [u8]),
    /// Never written: counts as zeros.
    Zero,
    /// Unreadable.
    Lost,
}
