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
//! operations a byte, not R, and goes along as shards arrive. The code is [`definition`]; it is
//! over this crate's own GF(2^16) and its planar layout, so that a redundancy shard is a linear
//! combination that signatures go through. Symbols are 16 bits, 64 to a block of 128 bytes; shards
//! are whole blocks. (A tail of 64 bytes would need a layout of its own that signatures do not
//! have: whoever has one pads it with zeros.)
//!
//! Decoding is in [`decode`]. This module finds no errors: a shard is given, and then trusted, or
//! lost.

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

pub use decode::{LargeDecoder, Method};
pub use encode::{LargeEncoder, LargeStreamEncoder};
pub use joint::Relation;

use crate::{CodeError, Isa};

/// Shards of a large group are a multiple of this many bytes.
pub const LARGE_SHARD_ALIGN: usize = kernel::BLOCK;

/// Elements of the field, which are the points of the code.
const POINTS: usize = 1 << 16;

/// A systematic Reed-Solomon code over GF(2^16) for many shards, defined in [`definition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeCode {
    information: usize,
    redundancy: usize,
}

impl LargeCode {
    /// The code with these shard counts.
    ///
    /// # Errors
    /// [`CodeError::Counts`] when a count is zero, or when the information and the redundancy
    /// rounded up to a power of two are together more than the 65,536 elements of the field.
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

    /// Information shards.
    #[must_use]
    pub const fn information(self) -> usize {
        self.information
    }

    /// Redundancy shards: how many losses the code survives.
    #[must_use]
    pub const fn redundancy(self) -> usize {
        self.redundancy
    }

    /// An encoder for shards of `shard_bytes`; keep it, its memory is used again.
    ///
    /// # Errors
    /// [`CodeError::ShardBlocks`] unless the size is a positive multiple of 128.
    pub fn encoder(self, shard_bytes: usize) -> Result<LargeEncoder, CodeError> {
        LargeEncoder::new(self, shard_bytes, Isa::current())
    }

    /// An encoder for shards of `shard_bytes` that come one after the other; it holds twice the
    /// redundancy (rounded up to a power of two shards), not the information.
    ///
    /// # Errors
    /// [`CodeError::ShardBlocks`] unless the size is a positive multiple of 128.
    pub fn stream_encoder(self, shard_bytes: usize) -> Result<LargeStreamEncoder, CodeError> {
        LargeStreamEncoder::new(self, shard_bytes, Isa::current())
    }

    /// A decoder for shards of `shard_bytes`; keep it, its memory is used again.
    ///
    /// # Errors
    /// [`CodeError::ShardBlocks`] unless the size is a positive multiple of 128.
    pub fn decoder(self, shard_bytes: usize) -> Result<LargeDecoder, CodeError> {
        LargeDecoder::new(self, shard_bytes, Isa::current())
    }

    /// The point of a shard; redundancy shards follow the information shards.
    const fn number(self, index: usize) -> usize {
        if index < self.information { self.chunk() + index } else { index - self.information }
    }

    /// The shard at a point.
    const fn index(self, number: usize) -> usize {
        if number < self.chunk() { self.information + number } else { number - self.chunk() }
    }

    /// Shards of a chunk: m.
    const fn chunk(self) -> usize {
        self.redundancy.next_power_of_two()
    }

    /// The logarithm of [`Self::chunk`].
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
