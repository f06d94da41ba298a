//! Sums of products: multiplies shards by a dense matrix.

use super::{BLOCK, Factor};
use crate::field::PLANE_BYTES;
use crate::simd::{self, Vector, VectorKernel};

/// Rows of the matrix processed together: four times two planes stay in registers.
const ROWS: usize = 4;

/// A job: `to[row] += sum over column of factors[row][column] from[column]`.
pub(super) struct Combination<'a> {
    /// Rows with one factor for each shard in `from`.
    pub(super) factors: &'a [Factor],
    /// Shards of `bytes`.
    pub(super) from: &'a [&'a [u8]],
    /// One shard of `bytes` per row, contiguous.
    pub(super) to: *mut u8,
    /// Bytes of a shard, a multiple of the block size.
    pub(super) bytes: usize,
}

impl VectorKernel for Combination<'_> {
    /// All of `from` have `bytes`; `to` has `bytes` for each row and does not overlap with `from`.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self) {
        let columns = self.from.len();
        let mut to = self.to;
        let mut quads = self.factors.chunks_exact(ROWS * columns);
        // SAFETY: `to` advances by one shard for each row done.
        unsafe {
            for factors in &mut quads {
                rows::<V, ROWS>(self, factors, to);
                to = to.add(ROWS * self.bytes);
            }
            for factors in quads.remainder().chunks_exact(columns) {
                rows::<V, 1>(self, factors, to);
                to = to.add(self.bytes);
            }
        }
    }
}

#[inline(always)]
unsafe fn rows<V: Vector, const N: usize>(
    combination: &Combination<'_>,
    factors: &[Factor],
    to: *mut u8,
) {
    let columns = combination.from.len();
    // SAFETY: offsets are below `bytes`, a multiple of the block size, so each load and store lies
    // in its shard.
    unsafe {
        let mut block = 0;
        while block < combination.bytes {
            let mut half = 0;
            while half < PLANE_BYTES {
                let at = block + half;
                let mut sums: [[V; 2]; N] = std::array::from_fn(|row| {
                    let to = to.add(row * combination.bytes + at);
                    [V::load(to), V::load(to.add(PLANE_BYTES))]
                });
                for (column, from) in combination.from.iter().enumerate() {
                    let from = from.as_ptr().add(at);
                    let (low, high) = (V::load(from), V::load(from.add(PLANE_BYTES)));
                    let both = low.add(high);
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let factor = factors[row * columns + column];
                        let p = low.multiply(simd::Factor::for_constant(factor.low));
                        let q = high.multiply(simd::Factor::for_constant(factor.norm));
                        let r = both.multiply(simd::Factor::for_constant(factor.sum));
                        *sums = [sums[0].add3(p, q), sums[1].add3(p, r)];
                    }
                }
                for (row, [low, high]) in sums.into_iter().enumerate() {
                    let to = to.add(row * combination.bytes + at);
                    low.store(to);
                    high.store(to.add(PLANE_BYTES));
                }
                half += V::BYTES;
            }
            block += BLOCK;
        }
    }
}
