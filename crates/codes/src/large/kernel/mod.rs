//! Kernels on bulk data: butterflies over up to eight shards at a time, and sums of products.
//!
//! ```text
//! forward  a' = a + t b   b' = a' + b          inverse  b' = a + b   a' = a + t b'
//! ```
//!
//! One body, generic over [`crate::simd::Vector`], is compiled once for each instruction-set level;
//! the vector of one byte is the scalar reference. A pass does up to three levels of a transform on
//! shards that it holds in registers, so a transform of 512 shards goes through memory three times.
//!
//! A product in GF(2^16) by `t = a + b u` takes three products in GF(2^8), not four (Karatsuba).
//! With the planes `l` and `h` of the other factor:
//!
//! ```text
//! p = a l     q = 0x22 b h     r = (a + b) (l + h)     product = (p + q) + (p + r) u
//! ```
//!
//! It takes two when t is in GF(2^8), as most factors of wide levels are.
//!
//! The functions of [`Kernel`] are safe: they check lengths and turn slices into pointers.

mod butterfly;
mod combine;
mod leaf;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use crate::Isa;
use crate::field::gf8;
use crate::field::gf16::{Element, NORM};
use crate::simd::Level;
use butterfly::Pass;
use combine::Combination;
use leaf::Leaf;

/// Bytes of a planar block; the length of a shard is a multiple of it.
pub(super) const BLOCK: usize = 2 * crate::field::PLANE_BYTES;

/// Maximum number of transform levels in one pass.
pub(super) const PASS_LEVELS: u32 = 3;

/// Maximum number of shards in a pass.
pub(super) const PASS_SHARDS: usize = 1 << PASS_LEVELS;

/// Maximum number of levels in a leaf.
pub(super) const LEAF_LEVELS: u32 = 6;

/// Maximum number of shards in a leaf.
pub(super) const LEAF_SHARDS: usize = 1 << LEAF_LEVELS;

/// Maximum number of bytes of each shard that a transform processes at a time.
pub(super) const WIDTH_MAX: usize = 8 << 10;

/// Input in place of absent shards.
static ZEROS: [u8; WIDTH_MAX] = [0; WIDTH_MAX];

/// Returns `bytes` zeros.
pub(super) fn zeros(bytes: usize) -> &'static [u8] {
    &ZEROS[..bytes]
}

/// Direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From coefficients to values, wide levels first.
    Forward,
    /// From values to coefficients, narrow levels first.
    Inverse,
}

/// A constant to multiply by: the bytes a, 0x22 b and a + b of `a + b u`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factor {
    low: u8,
    norm: u8,
    sum: u8,
}

impl Factor {
    pub(super) const ZERO: Self = Self::new([0, 0]);

    pub(super) const fn new([low, high]: Element) -> Self {
        Self { low, norm: gf8::mul(NORM, high), sum: low ^ high }
    }

    /// Returns the factor of the sum.
    pub(super) const fn add(self, Self { low, norm, sum }: Self) -> Self {
        Self { low: self.low ^ low, norm: self.norm ^ norm, sum: self.sum ^ sum }
    }
}

/// Input shards of a leaf, all of one length.
#[derive(Clone, Debug)]
pub(super) struct Sources<'a> {
    shards: [*const u8; LEAF_SHARDS],
    bytes: usize,
    /// A bit for each shard that may be nonzero.
    nonzero: u64,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> Sources<'a> {
    /// Creates inputs that are all zeros.
    pub(super) fn zeros(bytes: usize) -> Self {
        assert!(bytes <= WIDTH_MAX, "a stripe of a shard");
        Self { shards: [ZEROS.as_ptr(); LEAF_SHARDS], bytes, nonzero: 0, borrowed: PhantomData }
    }

    /// Sets the shard at a place.
    pub(super) fn put(&mut self, place: usize, shard: &'a [u8]) {
        assert_eq!(shard.len(), self.bytes, "shards of a leaf have one length");
        self.shards[place] = shard.as_ptr();
        self.nonzero |= 1 << place;
    }

    /// Bytes of each shard.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether any shard may be nonzero.
    pub(super) const fn has_any(&self) -> bool {
        self.nonzero != 0
    }
}

/// Factors of a leaf, those of its narrowest level first.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeafTwiddles {
    /// Number of levels of the leaf: four to six.
    pub(super) levels: u32,
    /// Number of levels, from the narrowest, that may have factors outside GF(2^8).
    pub(super) full: u32,
    pub(super) factors: [Factor; LEAF_SHARDS - 1],
}

/// Factors of a pass, those of its narrowest level first: four, two and one for three levels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Twiddles {
    /// Number of levels of the pass.
    pub(super) levels: u32,
    /// Number of levels, from the narrowest, that may have factors outside GF(2^8).
    pub(super) full: u32,
    pub(super) factors: [Factor; PASS_SHARDS - 1],
}

/// The kernels of one instruction-set level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel(Level);

impl Kernel {
    /// Returns the kernels of a level, which the processor must support.
    pub(super) fn new(isa: Isa) -> Self {
        Self(Level::new(isa).expect("a level of this processor"))
    }

    /// Returns the number of levels per pass that suits the registers.
    pub(super) fn pass_levels(self) -> u32 {
        match self.0.isa() {
            // 32 registers hold two planes of eight shards, and the factors.
            Isa::Avx512Gfni => PASS_LEVELS,
            Isa::Scalar | Isa::Neon | Isa::Avx2 | Isa::Avx2Gfni => 2,
        }
    }

    /// Returns the numbers of levels per leaf that suit the registers, or `None` if leaves do not
    /// pay.
    pub(super) fn leaf_levels(self) -> Option<std::ops::RangeInclusive<u32>> {
        (self.pass_levels() == PASS_LEVELS).then_some(PASS_LEVELS + 1..=LEAF_LEVELS)
    }

    /// Computes an inverse transform of `from` into contiguous shards, added to `to` if `add`.
    /// Prefetches `next`.
    pub(super) fn leaf(
        self,
        twiddles: &LeafTwiddles,
        from: &Sources<'_>,
        to: &mut [u8],
        add: bool,
        next: &Sources<'_>,
    ) {
        let LeafTwiddles { levels, full, ref factors } = *twiddles;
        assert!(PASS_LEVELS < levels && levels <= LEAF_LEVELS, "a leaf of {levels} levels");
        let bytes = from.bytes;
        assert!(bytes > 0 && bytes.is_multiple_of(BLOCK), "whole blocks");
        assert_eq!(to.len(), bytes << levels, "a place for each shard");
        let leaf = Leaf {
            levels,
            full,
            factors,
            from: &from.shards,
            nonzero: from.nonzero,
            to: to.as_mut_ptr(),
            next: &next.shards,
            bytes,
            add,
        };
        // SAFETY: all sources have `bytes`, and `to` is exclusive and has 2^levels times as many.
        unsafe { self.0.run(&leaf) }
    }

    /// Does a pass in place, over as many contiguous shards as the twiddles cover.
    pub(super) fn pass(self, direction: Direction, twiddles: &Twiddles, shards: &mut [u8]) {
        let bytes = part(shards.len(), twiddles.levels);
        let to = shards.as_mut_ptr();
        let pointers = std::array::from_fn(|i| to.wrapping_add(i * bytes));
        let from = pointers.map(<*mut u8>::cast_const);
        let add = false;
        let pass = Pass { direction, twiddles, from, to: pointers, next: None, bytes, add };
        // SAFETY: the slice has 2^levels parts of `bytes`, and each part is read before it is
        // written.
        unsafe { self.0.run(&pass) }
    }

    /// Does a pass from shards anywhere into contiguous shards, added to `to` if `add`. Prefetches
    /// `next`, the shards of a later pass.
    pub(super) fn pass_from(
        self,
        direction: Direction,
        twiddles: &Twiddles,
        from: [&[u8]; PASS_SHARDS],
        to: &mut [u8],
        add: bool,
        next: Option<[&[u8]; PASS_SHARDS]>,
    ) {
        let next = next.map(|next| next.map(<[u8]>::as_ptr));
        let bytes = part(to.len(), twiddles.levels);
        for from in &from[..1 << twiddles.levels] {
            assert_eq!(from.len(), bytes, "shards of a pass have one length");
        }
        let to = to.as_mut_ptr();
        let to = std::array::from_fn(|i| to.wrapping_add(i * bytes));
        let pass =
            Pass { direction, twiddles, from: from.map(<[u8]>::as_ptr), to, next, bytes, add };
        // SAFETY: 2^levels slices of `bytes` are read, and as many parts of `to` written.
        unsafe { self.0.run(&pass) }
    }

    /// Adds to each of the contiguous shards `to` the sum of `from`, each times its factor. Factors
    /// are in rows, one row for each shard of `to`.
    pub(super) fn combine(self, factors: &[Factor], from: &[&[u8]], to: &mut [u8], bytes: usize) {
        assert!(bytes > 0 && bytes.is_multiple_of(BLOCK), "whole blocks");
        assert!(from.iter().all(|from| from.len() == bytes), "shards of one length");
        assert_eq!(factors.len() * bytes, from.len() * to.len(), "a factor for each pair");
        if from.is_empty() {
            return;
        }
        let combination = Combination { factors, from, to: to.as_mut_ptr(), bytes };
        // SAFETY: each slice in `from` has `bytes`, and `to` has `bytes` for each row of factors.
        unsafe { self.0.run(&combination) }
    }

    /// Adds a shard to another, or copies it there.
    pub(super) fn add_or_copy(self, from: &[u8], to: &mut [u8], add: bool) {
        if !add {
            to.copy_from_slice(from);
            return;
        }
        assert_eq!(from.len(), to.len(), "shards of one length");
        for (to, from) in to.iter_mut().zip(from) {
            *to ^= from;
        }
    }
}

/// Returns the bytes of one of 2^levels equal parts.
fn part(bytes: usize, levels: u32) -> usize {
    assert!(0 < levels && levels <= PASS_LEVELS, "a pass of {levels} levels");
    let part = bytes >> levels;
    assert!(part > 0 && part << levels == bytes && part.is_multiple_of(BLOCK), "whole blocks");
    part
}
