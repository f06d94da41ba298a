//! Algebraic signatures: 64 bits that go through every code of this crate as if they were data.
//!
//! ```text
//! block b, 256 bytes:   64 of 1 | 64 of u | 64 of z | 64 of uz        (planes of field::gf32)
//! symbol p = 64 b + l:  bytes l, 64 + l, 128 + l, 192 + l of block b
//! signature:            sum of d_p alpha^p | sum of d_p alpha^-p
//! alpha = y^(2^26), so alpha^64 = y, where y is the root [231, 75, 3, 54] of y^2 + z y + 1
//! ```
//!
//! (Litwin and Schwarz 2004, over the tower of [`crate::field`].) The order of alpha is a third of
//! 2^32 - 1. Any change of one or two symbols shows for certain as long as there are not more
//! symbols than that (5.7 GB): the two equations x alpha^p = y alpha^q and x alpha^-p = y alpha^-q
//! give alpha^(2p) = alpha^(2q), and the order is odd. Any other change shows but for a chance of
//! 2^-64.
//!
//! The usual second component is at alpha^2. It is one squaring away from the first wherever all
//! changed symbols change by the same difference, such as one stuck bit, so 64 bits then detect as
//! 32 do. 1 / alpha has not that fault; and one recurrence gives both components (see the
//! kernels), which is why y is a root of this polynomial.
//!
//! What it is for: the signature of a parity is the same parity of the signatures, for products
//! with bytes ([`Signature::scale8`]) and with planar elements of GF(2^16)
//! ([`Signature::scale16`]); a signature follows a change of its bytes ([`Signature::update`]) and
//! a concatenation ([`Signature::concatenate`]) without the rest of the bytes. What it is not: it
//! is no cipher and no secret, and anybody can make bytes for any signature. Trailing zeros do not
//! show in it, so the length is stored apart.

mod kernel;

use crate::field::{gf16, gf32};
use crate::simd::Level;
use crate::{CodeError, Isa};
use kernel::Lanes;

/// Bytes of a block of 64 symbols, the grain of concatenation.
pub const SIGNATURE_BLOCK: usize = 256;

/// Bytes of a [`Signature`].
pub const SIGNATURE_BYTES: usize = 8;

/// The signature of some bytes: the component at alpha, then the one at 1 / alpha.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature(pub [u8; SIGNATURE_BYTES]);

/// The signature of `bytes`, as if followed by zeros up to a whole block.
#[must_use]
pub fn signature(bytes: &[u8]) -> Signature {
    let mut signer = Signer::new();
    signer.update(bytes);
    signer.finish()
}

impl Signature {
    /// The signature of nothing, and of zeros.
    pub const ZERO: Self = Self([0; SIGNATURE_BYTES]);

    /// The signature of the bytes, each multiplied by `scale` in GF(2^8).
    #[must_use]
    pub fn scale8(self, scale: u8) -> Self {
        self.scale16([scale, 0])
    }

    /// The signature of the bytes, taken as planar elements of GF(2^16) (128-byte blocks of
    /// [`crate::field`]), each multiplied by `scale`.
    #[must_use]
    pub fn scale16(self, scale: gf16::Element) -> Self {
        let mut scaled = self;
        for pair in scaled.0.as_chunks_mut().0 {
            *pair = gf16::mul(scale, *pair);
        }
        scaled
    }

    /// The signature of two runs of bytes one after the other, of which the first, of
    /// `first_bytes`, has the signature `self`.
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

    /// The signature after the bytes at `offset` change from `old` to `new`.
    ///
    /// # Errors
    /// [`CodeError::UnequalShards`] when the two differ in length.
    pub fn update(self, offset: u64, old: &[u8], new: &[u8]) -> Result<Self, CodeError> {
        if old.len() != new.len() {
            let (bytes, expected) = (new.len(), old.len());
            return Err(CodeError::UnequalShards { index: 1, bytes, expected });
        }
        // The low byte is the offset within the block; both runs start at it, after zeros.
        let [within, ..] = offset.to_le_bytes();
        let at_offset = |bytes| {
            let mut signer = Signer::new();
            signer.update(&[0; SIGNATURE_BLOCK][..usize::from(within)]);
            signer.update(bytes);
            signer.finish()
        };
        Ok(self ^ (at_offset(old) ^ at_offset(new)).shift(offset / SIGNATURE_BLOCK as u64))
    }

    /// The signature of the same bytes after that many blocks of zeros.
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

    /// The signature of the sum of two runs of bytes.
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

/// The signature of bytes that arrive in pieces.
#[derive(Clone)]
pub struct Signer {
    level: Level,
    lanes: Lanes,
    /// The beginning of a block that is not whole yet, and zeros.
    partial: [u8; SIGNATURE_BLOCK],
    partial_bytes: usize,
}

impl Signer {
    /// A signature of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_isa(Isa::current())
    }

    /// The same with kernels of one level, for tests and measurements.
    ///
    /// # Panics
    /// When this processor lacks the level.
    #[must_use]
    pub fn with_isa(isa: Isa) -> Self {
        let Some(level) = Level::new(isa) else {
            panic!("{} is not of this processor", isa.name());
        };
        Self { level, lanes: Lanes::ZERO, partial: [0; SIGNATURE_BLOCK], partial_bytes: 0 }
    }

    /// Adds the next piece.
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

    /// The signature of all pieces so far.
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

impl Default for Signer {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Signer({:?})", self.finish())
    }
}

#[cfg(test)]
mod tests;
