//! Sums of products: what a dense matrix does to shards.

use super::lanes::Lanes;
use super::{BLOCK, Factor};
use crate::field::PLANE_BYTES;

/// Rows of the matrix worked on together: four times two planes stay in registers.
const ROWS: usize = 4;

/// `to[row] += sum over column of factors[row][column] from[column]`.
pub(super) struct Combination<'a> {
    /// Rows of as many factors as `from` has shards.
    pub(super) factors: &'a [Factor],
    /// Shards of `bytes`.
    pub(super) from: &'a [&'a [u8]],
    /// As many shards of `bytes`, side by side, as there are rows.
    pub(super) to: *mut u8,
    /// Bytes of a shard, whole blocks.
    pub(super) bytes: usize,
}

/// Does all rows.
///
/// # Safety
/// The processor has the instructions of `V`; all of `from` have `bytes`, and `to` has them as
/// often as there are rows, apart from `from`.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes>(combination: &Combination<'_>) {
    let columns = combination.from.len();
    let mut to = combination.to;
    let mut quads = combination.factors.chunks_exact(ROWS * columns);
    // SAFETY: `to` moves on by one shard for each row done.
    unsafe {
        for factors in &mut quads {
            rows::<V, ROWS>(combination, factors, to);
            to = to.add(ROWS * combination.bytes);
        }
        for factors in quads.remainder().chunks_exact(columns) {
            rows::<V, 1>(combination, factors, to);
            to = to.add(combination.bytes);
        }
    }
}

#[inline(always)]
unsafe fn rows<V: Lanes, const N: usize>(
    combination: &Combination<'_>,
    factors: &[Factor],
    to: *mut u8,
) {
    let columns = combination.from.len();
    // SAFETY: offsets are below `bytes`, which are whole blocks, so each load and store lies in
    // its shard.
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
                        let p = low.times(V::constant(factor.low));
                        let q = high.times(V::constant(factor.norm));
                        let r = both.times(V::constant(factor.sum));
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
