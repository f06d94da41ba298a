//! Algebraic signatures: 64 bits that commute with every code of this crate.
//!
//! ```text
//! block b, 256 bytes:   64 of 1 | 64 of u | 64 of z | 64 of uz        (planes of field::gf32)
//! symbol p = 64 b + l:  bytes l, 64 + l, 128 + l, 192 + l of block b
//! signature:            sum of d_p alpha^p | sum of d_p alpha^-p
//! alpha = y^(2^26), so alpha^64 = y, where y is the root [231, 75, 3, 54] of y^2 + z y + 1
//! ```
//!
//! (Litwin and Schwarz 2004, over the tower of [`crate::field`].) The order of alpha is a third of
//! 2^32 - 1. Any change of one or two symbols is detected for certain as long as there are no more
//! symbols than that (5.7 GB): the two equations x alpha^p = y alpha^q and x alpha^-p = y alpha^-q
//! give alpha^(2p) = alpha^(2q), and the order is odd. Any other change is missed with a
//! probability of 2^-64.
//!
//! The usual second component is at alpha^2. It is the square of the first wherever all changed
//! symbols change by the same difference, such as one stuck bit, so 64 bits then detect no more
//! than 32 do. 1 / alpha does not have that weakness, and one recurrence gives both components (see
//! the kernels), which is why y is a root of this polynomial.
//!
//! What it is for: the signature of a parity is the same parity of the signatures, for products
//! with bytes ([`Signature::scale8`]) and with planar elements of GF(2^16)
//! ([`Signature::scale16`]). A signature can be updated after a change of its bytes
//! ([`Signature::update`]) or a concatenation ([`Signature::concatenate`]) without reading the
//! other bytes. What it is not: a MAC. It has no key, and anybody can construct bytes for any
//! signature. Trailing zeros do not change it, so the length is stored separately.

mod kernel;

use crate::field::{gf16, gf32};
use crate::simd::Level;
use crate::{CodeError, Isa};
use kernel::Lanes;

/// Bytes of a block of 64 symbols, the granularity of concatenation.
pub const SIGNATURE_BLOCK: usize = 256;

/// Bytes of a [`Signature`].
pub const SIGNATURE_BYTES: usize = 8;

/// The signature of some bytes: the component at alpha, then the one at 1 / alpha.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature(pub [u8; SIGNATURE_BYTES]);

/// Computes the signature of `bytes`, as if padded with zeros to a whole block.
#[must_use]
pub fn signature(bytes: &[u8]) -> Signature {
    let mut signer = RunningSignature::new();
    signer.update(bytes);
    signer.finish()
}

impl Signature {
    /// Signature of no bytes, and of zeros.
    pub const ZERO: Self = Self([0; SIGNATURE_BYTES]);

    /// Returns the signature of the bytes, each multiplied by `scale` in GF(2^8).
    #[must_use]
    pub fn scale8(self, scale: u8) -> Self {
        self.scale16([scale, 0])
    }

    /// Returns the signature of the bytes as planar elements of GF(2^16) (128-byte blocks of
    /// [`crate::field`]), each multiplied by `scale`.
    #[must_use]
    pub fn scale16(self, scale: gf16::Element) -> Self {
        let mut scaled = self;
        for pair in scaled.0.as_chunks_mut().0 {
            *pair = gf16::mul(scale, *pair);
        }
        scaled
    }

    /// Returns the signature of the concatenation of two byte strings. The first has the signature
    /// `self` and the length `first_bytes`.
    ///
    /// # Errors
    /// [`CodeError::SignatureBlock`] when `first_bytes` is not a multiple of [`SIGNATURE_BLOCK`].
    pub fn concatenate(self, second: Self, first_bytes: u64) -> Result<Self, CodeError> {
        let block = SIGNATURE_BLOCK as u64;
        if !first_bytes.is_multiple_of(block) {
            return Err(CodeError::SignatureBlock { bytes: first_bytes });
        }
        Ok(self ^ second.shift(first_bytes / block))
    }

    /// Returns the signature after the bytes at `offset` change from `old` to `new`.
    ///
    /// # Errors
    /// [`CodeError::UnequalShards`] when the two differ in length.
    pub fn update(self, offset: u64, old: &[u8], new: &[u8]) -> Result<Self, CodeError> {
        if old.len() != new.len() {
            let (bytes, expected) = (new.len(), old.len());
            return Err(CodeError::UnequalShards { index: 1, bytes, expected });
        }
        // The low byte is the offset within the block; both strings start at it, after zeros.
        let [within, ..] = offset.to_le_bytes();
        let at_offset = |bytes| {
            let mut signer = RunningSignature::new();
            signer.update(&[0; SIGNATURE_BLOCK][..usize::from(within)]);
            signer.update(bytes);
            signer.finish()
        };
        Ok(self ^ (at_offset(old) ^ at_offset(new)).shift(offset / SIGNATURE_BLOCK as u64))
    }

    /// Returns the signature of the same bytes after `blocks` blocks of zeros.
    fn shift(self, blocks: u64) -> Self {
        let [forward, backward] = self.components();
        Self::from_components([
            gf32::mul(forward, kernel::power(false, blocks)),
            gf32::mul(backward, kernel::power(true, blocks)),
        ])
    }

    fn components(self) -> [gf32::Element; 2] {
        let [a, b, c, d, e, f, g, h] = self.0;
        [[a, b, c, d], [e, f, g, h]]
    }

    fn from_components([[a, b, c, d], [e, f, g, h]]: [gf32::Element; 2]) -> Self {
        Self([a, b, c, d, e, f, g, h])
    }
}

impl std::ops::BitXor for Signature {
    type Output = Self;

    /// Returns the signature of the sum of two byte strings.
    fn bitxor(mut self, other: Self) -> Self {
        self ^= other;
        self
    }
}

impl std::ops::BitXorAssign for Signature {
    fn bitxor_assign(&mut self, other: Self) {
        for (byte, other) in self.0.iter_mut().zip(other.0) {
            *byte ^= other;
        }
    }
}

/// Computes a signature incrementally.
#[derive(Clone)]
pub struct RunningSignature {
    level: Level,
    lanes: Lanes,
    /// The beginning of an incomplete block, padded with zeros.
    partial: [u8; SIGNATURE_BLOCK],
    partial_bytes: usize,
}

impl RunningSignature {
    /// Starts an empty signature.
    #[must_use]
    pub fn new() -> Self {
        Self::with_isa(Isa::current())
    }

    /// Starts an empty signature with the kernels of one level, for tests and benchmarks.
    ///
    /// # Panics
    /// When this processor lacks the level.
    #[must_use]
    pub fn with_isa(isa: Isa) -> Self {
        let Some(level) = Level::new(isa) else {
            panic!("{} is not supported by this processor", isa.name());
        };
        Self { level, lanes: Lanes::ZERO, partial: [0; SIGNATURE_BLOCK], partial_bytes: 0 }
    }

    /// Adds the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        if self.partial_bytes > 0 {
            let taken = bytes.len().min(SIGNATURE_BLOCK - self.partial_bytes);
            let (head, rest) = bytes.split_at(taken);
            self.partial[self.partial_bytes..][..taken].copy_from_slice(head);
            self.partial_bytes += taken;
            bytes = rest;
            if self.partial_bytes < SIGNATURE_BLOCK {
                return;
            }
            self.lanes.absorb(self.level, &[self.partial]);
            self.partial = [0; SIGNATURE_BLOCK];
        }
        let (blocks, tail) = bytes.as_chunks();
        self.lanes.absorb(self.level, blocks);
        self.partial[..tail.len()].copy_from_slice(tail);
        self.partial_bytes = tail.len();
    }

    /// Returns the signature of all bytes so far.
    #[must_use]
    pub fn finish(&self) -> Signature {
        if self.partial_bytes == 0 {
            return Signature::from_components(self.lanes.finish(self.level));
        }
        let mut lanes = self.lanes.clone();
        lanes.absorb(self.level, &[self.partial]);
        Signature::from_components(lanes.finish(self.level))
    }
}

impl Default for RunningSignature {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for RunningSignature {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Signer({:?})", self.finish())
    }
}

#[cfg(test)]
mod tests;
