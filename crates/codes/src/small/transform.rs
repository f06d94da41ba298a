//! Encoding by the additive FFT: the same bytes as the matrix, in fewer products.
//!
//! Redundancy shards are at the points of number 0 .. m, which lie in the subspace of M points, M
//! being m rounded up to a power of two; information shards fill cosets of it from the top. Let
//! `s(X)` be the polynomial that vanishes on the subspace. The polynomial through the values `d(j)
//! x(j) / s(x(j))` of one coset takes, at a point y of the subspace, the value
//!
//! ```text
//! sum over j of  d(j) x(j) / s(x(j)) * s(x(j)) / (y + x(j))  =  sum of a(i, j) d(j)
//! ```
//!
//! because s is constant on a coset and its derivative is one. So the contribution of a coset to
//! all redundancy is: scale, then the inverse transform of its M points. The contributions are
//! added up, and one forward transform completes the encoding. A shard costs 3 products for M = 16
//! and 2.5 for M = 8, where the matrix takes m.

use std::ops::Range;

use super::kernel::additive::{
    self, Cosets, POINTS_MAX, TILE_BYTES, forward_factors, inverse_factors,
};
use super::points::{element, information_point};
use super::product;
use super::{byte, row};
use crate::Isa;
use crate::field::gf8;
use crate::simd::{Factors, Level};

/// Transforms of a code.
#[derive(Clone, Debug)]
pub(super) struct Transform {
    level: Level,
    cosets: Cosets,
    /// The matrix, for the last bytes, which fill no register.
    rows: Vec<Vec<u8>>,
}

/// Evaluates at x the polynomial of degree 2^level that vanishes on the first 2^level points.
fn vanishing_polynomial(level: u32, x: u8) -> u8 {
    (0..level).fold(x, |value, _| gf8::mul(value, value) ^ value)
}

impl Transform {
    /// Creates the transforms if they are faster than the matrix and the points do not overlap.
    pub(super) fn new(information: usize, redundancy: usize, level: Level) -> Option<Self> {
        let points = redundancy.next_power_of_two();
        let fits = (5..=POINTS_MAX).contains(&redundancy) && information + points <= 256;
        if !fits || level.isa() == Isa::Scalar {
            return None;
        }
        let chunks = information.div_ceil(points);
        let mut inverse = Vec::with_capacity(chunks * inverse_factors(points));
        for chunk in 0..chunks {
            push_inverse(&mut inverse, points, 256 - points * (chunk + 1));
        }
        let levels = points.ilog2();
        let mut forward = Vec::with_capacity(forward_factors(points));
        for level in (0..levels).rev() {
            let blocks = (0..points).step_by(2 << level);
            forward.extend(blocks.map(|block| vanishing_polynomial(level, element(byte(block)))));
        }
        Some(Self {
            level,
            cosets: Cosets {
                points,
                count: chunks,
                inverse: Factors::new(level, inverse.into_iter()),
                forward: Factors::new(level, forward.into_iter()),
            },
            rows: (0..redundancy).map(|i| row(i, information)).collect(),
        })
    }

    /// Computes all redundancy. All shards have `bytes` bytes.
    pub(super) fn encode(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]], bytes: usize) {
        let all: Vec<Option<&[u8]>> = sources.iter().copied().map(Some).collect();
        let (vectorized_bytes, count) = (self.vectorized_bytes(bytes), outputs.len());
        for start in (0..vectorized_bytes).step_by(TILE_BYTES) {
            let range = start..vectorized_bytes.min(start + TILE_BYTES);
            let mut tiles: [&mut [u8]; POINTS_MAX] = Default::default();
            for (tile, shard) in tiles.iter_mut().zip(outputs.iter_mut()) {
                *tile = &mut shard[range.clone()];
            }
            self.tile(&all, &mut tiles[..count], range);
        }
        let tail = vectorized_bytes..bytes;
        for (row, output) in self.rows.iter().zip(outputs) {
            for at in tail.clone() {
                let terms = row.iter().zip(sources);
                output[at] = terms.fold(0, |sum, (&f, shard)| sum ^ gf8::mul(f, shard[at]));
            }
        }
    }

    /// Returns how many bytes of a shard fill whole registers.
    pub(super) const fn vectorized_bytes(&self, bytes: usize) -> usize {
        product::vectorized_bytes(self.level, bytes)
    }

    /// Computes the bytes `range` of all redundancy, at most [`TILE_BYTES`] and whole registers,
    /// into `outputs` of that length. A source that is `None` counts as zeros.
    pub(super) fn tile(
        &self,
        sources: &[Option<&[u8]>],
        outputs: &mut [&mut [u8]],
        range: Range<usize>,
    ) {
        additive::encode(self.level, &self.cosets, sources, outputs, range);
    }
}

/// Appends the factors of one chunk's inverse transform, whose points are numbered from `base`.
fn push_inverse(factors: &mut Vec<u8>, points: usize, base: usize) {
    let levels = points.ilog2();
    let scale = |number: usize| {
        let x = element(byte(number));
        debug_assert_eq!(x, information_point(byte(255 - number)), "numbers fall as indices rise");
        gf8::mul(x, gf8::inverse(vanishing_polynomial(levels, x)))
    };
    let twiddle = |level: u32, number: usize| vanishing_polynomial(level, element(byte(number)));
    for pair in (base..base + points).step_by(2) {
        factors.extend([scale(pair), scale(pair + 1), twiddle(0, pair)]);
    }
    for level in 1..levels {
        let blocks = (base..base + points).step_by(2 << level);
        factors.extend(blocks.map(|block| twiddle(level, block)));
    }
}
