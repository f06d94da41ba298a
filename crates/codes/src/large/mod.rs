//! Large groups: a systematic Reed-Solomon code of up to 65,535 shards.
//!
//! ```text
//!            information shards, in chunks of m             redundancy
//! points     m .. 2m-1 | 2m .. 3m-1 | ...                   0 .. R-1    (R .. m-1 are not kept)
//!                 |            |                                ^
//!              inverse   +  inverse   +  ...  = sum -- forward -'
//! ```
//!
//! For tens of thousands of sectors of a platter (Silica section 5): encoding costs log m
//! operations per byte, not R, and proceeds as shards arrive. The code is [`definition`]. It is
//! over this crate's own GF(2^16) and its planar layout, so that a redundancy shard is a linear
//! combination to which signatures apply. Symbols are 16 bits, 64 to a block of 128 bytes; the
//! length of a shard is a multiple of the block size. (A tail of 64 bytes would need a layout of
//! its own that signatures do not have: callers pad it with zeros.)
//!
//! Decoding is in [`decode`]. This module corrects erasures, not errors: a shard is either given,
//! and then trusted, or lost.

mod decode;
pub mod definition;
mod encode;
mod joint;
#[expect(unsafe_code, reason = "vectors are loaded and stored, and need their instructions")]
mod kernel;
mod locator;
mod points;
mod stripe;
mod transform;

#[cfg(test)]
mod tests;

pub use decode::{DecodeMethod, LargeDecoder};
pub use encode::{LargeEncoder, LargeStreamEncoder};
pub use joint::Relation;

use crate::{CodeError, Isa};

/// The shard size of a large group is a multiple of this many bytes.
pub const LARGE_SHARD_ALIGN: usize = kernel::BLOCK;

/// Number of field elements, which are the points of the code.
const POINTS: usize = 1 << 16;

/// A systematic Reed-Solomon code over GF(2^16) for many shards, defined in [`definition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeCode {
    information: usize,
    redundancy: usize,
}

impl LargeCode {
    /// Creates the code with these shard counts.
    ///
    /// # Errors
    /// [`CodeError::Counts`] when a count is zero, or when `information` and `redundancy` rounded
    /// up to a power of two are together more than the 65,536 elements of the field.
    pub fn new(information: usize, redundancy: usize) -> Result<Self, CodeError> {
        let fits = information > 0
            && redundancy > 0
            && redundancy < POINTS
            && information <= POINTS - redundancy.next_power_of_two();
        if fits {
            Ok(Self { information, redundancy })
        } else {
            Err(CodeError::Counts { information, redundancy })
        }
    }

    /// Number of information shards.
    #[must_use]
    pub const fn information(self) -> usize {
        self.information
    }

    /// Number of redundancy shards: the losses that the code tolerates.
    #[must_use]
    pub const fn redundancy(self) -> usize {
        self.redundancy
    }

    /// Creates an encoder for shards of `shard_bytes`. Reuse it: it keeps its buffers.
    ///
    /// # Errors
    /// [`CodeError::ShardBlocks`] unless the size is a positive multiple of 128.
    pub fn encoder(self, shard_bytes: usize) -> Result<LargeEncoder, CodeError> {
        LargeEncoder::new(self, shard_bytes, Isa::current())
    }

    /// Creates an encoder for shards of `shard_bytes` that arrive one after the other. It holds
    /// twice the redundancy (rounded up to a power of two shards), not the information.
    ///
    /// # Errors
    /// [`CodeError::ShardBlocks`] unless the size is a positive multiple of 128.
    pub fn stream_encoder(self, shard_bytes: usize) -> Result<LargeStreamEncoder, CodeError> {
        LargeStreamEncoder::new(self, shard_bytes, Isa::current())
    }

    /// Creates a decoder for shards of `shard_bytes`. Reuse it: it keeps its buffers.
    ///
    /// # Errors
    /// [`CodeError::ShardBlocks`] unless the size is a positive multiple of 128.
    pub fn decoder(self, shard_bytes: usize) -> Result<LargeDecoder, CodeError> {
        LargeDecoder::new(self, shard_bytes, Isa::current())
    }

    /// Returns the number of the point of a shard; redundancy shards follow the information shards.
    const fn number(self, index: usize) -> usize {
        if index < self.information { self.chunk() + index } else { index - self.information }
    }

    /// Returns the index of the shard at a point.
    const fn index(self, number: usize) -> usize {
        if number < self.chunk() { self.information + number } else { number - self.chunk() }
    }

    /// Number of shards per chunk: m.
    const fn chunk(self) -> usize {
        self.redundancy.next_power_of_two()
    }

    /// Logarithm to base 2 of [`Self::chunk`].
    const fn chunk_log(self) -> u32 {
        self.chunk().trailing_zeros()
    }
}

fn check_shard_bytes(bytes: usize) -> Result<(), CodeError> {
    if bytes > 0 && bytes.is_multiple_of(LARGE_SHARD_ALIGN) {
        Ok(())
    } else {
        Err(CodeError::ShardBlocks { bytes })
    }
}

fn check_length(index: usize, shard: Option<&[u8]>, expected: usize) -> Result<(), CodeError> {
    match shard {
        Some(shard) if shard.len() != expected => {
            Err(CodeError::UnequalShards { index, bytes: shard.len(), expected })
        }
        Some(_) | None => Ok(()),
    }
}
