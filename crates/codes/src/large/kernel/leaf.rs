//! Inverse butterflies over up to 64 shards that come from memory, one column at a time.
//!
//! ```text
//! shards, a register of each plane --three levels--> scratch --the other levels--> output
//! ```
//!
//! The scratch space has one register per plane and shard, so it stays in the L1 cache, and each
//! shard is read once and each result written once. Meanwhile the input of the next leaf is
//! prefetched in memory order, which a processor follows twice as fast as sixty-four streams in
//! turn. Separate passes over whole shards would leave memory idle during the second pass.
//!
//! It pays where registers hold eight shards of two planes: see [`super::Kernel::leaf_levels`].

use std::cell::Cell;
use std::mem::MaybeUninit;

use super::butterfly::{Pair, sum};
use super::{BLOCK, Factor, LEAF_SHARDS};
use crate::field::PLANE_BYTES;
use crate::simd::{Factor as _, Vector, VectorKernel};

/// Levels of the first step.
const FIRST: u32 = 3;
/// Shards of a group in the first step; in the second step, shards that meet are this far apart.
const GROUP: usize = 1 << FIRST;

/// Input and output of a leaf: `2^levels` shards of `bytes`, out of place.
pub(super) struct Leaf<'a> {
    /// More than [`FIRST`].
    pub(super) levels: u32,
    /// Number of levels, from the narrowest, that may have factors outside GF(2^8).
    pub(super) full: u32,
    /// Factors of each level, narrowest first: 1/2, 1/4, .. of the number of shards.
    pub(super) factors: &'a [Factor; LEAF_SHARDS - 1],
    pub(super) from: &'a [*const u8; LEAF_SHARDS],
    /// A bit for each shard that may be nonzero.
    pub(super) nonzero: u64,
    /// Destination of the results, contiguous.
    pub(super) to: *mut u8,
    /// Addresses to prefetch for the next leaf; any pointers, they are never dereferenced.
    pub(super) next: &'a [*const u8; LEAF_SHARDS],
    /// Bytes of each shard, a multiple of the block size.
    pub(super) bytes: usize,
    /// Whether the results are added to the destination.
    pub(super) add: bool,
}

impl VectorKernel for Leaf<'_> {
    /// The first `2^levels` pointers are valid for `bytes` to read; `to` has `bytes` for each shard
    /// and does not overlap with them.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self) {
        let mut factors: Factors<V> = [const { MaybeUninit::uninit() }; LEAF_SHARDS - 1];
        for (to, factor) in factors.iter_mut().zip(&self.factors[..(1 << self.levels) - 1]) {
            to.write([
                V::Factor::element(factor.low),
                V::Factor::element(factor.norm),
                V::Factor::element(factor.sum),
            ]);
        }
        let mut scratch = MaybeUninit::<Scratch<V>>::uninit();
        let columns = Columns::<V> {
            leaf: self,
            factors: factors.as_ptr().cast(),
            scratch: scratch.as_mut_ptr().cast(),
            prefetched: Cell::new((0, 0)),
        };
        let mut block = 0;
        while block < self.bytes {
            let mut half = 0;
            while half < PLANE_BYTES {
                // SAFETY: guaranteed by the caller; a column is within the shards.
                unsafe { columns.column(block + half) };
                half += V::BYTES;
            }
            block += BLOCK;
        }
    }
}

/// A factor in the form that the instructions take.
type Elements<V> = [<<V as Vector>::Factor as crate::simd::Factor>::Element; 3];
type Factors<V> = [MaybeUninit<Elements<V>>; LEAF_SHARDS - 1];
/// Scratch space: a register of each plane of all shards.
type Scratch<V> = [Pair<V>; LEAF_SHARDS];

/// A leaf with its factors and scratch space for one vector type.
struct Columns<'a, V: Vector> {
    leaf: &'a Leaf<'a>,
    factors: *const Elements<V>,
    scratch: *mut Pair<V>,
    /// Shard and byte offset up to which the next input has been prefetched.
    prefetched: Cell<(usize, usize)>,
}

impl<V: Vector> Columns<'_, V> {
    /// Transforms one column: a register of each plane of all shards.
    #[inline(always)]
    unsafe fn column(&self, at: usize) {
        let Leaf { levels, full, .. } = *self.leaf;
        // SAFETY: guaranteed by the caller; the first step fills the scratch space for the second.
        unsafe {
            if full == 0 {
                self.first::<0>(at);
            } else {
                self.first::<FIRST>(at);
            }
            match (levels - FIRST, full > FIRST) {
                (1, false) => self.second::<2, 0>(at),
                (1, true) => self.second::<2, 1>(at),
                (2, false) => self.second::<4, 0>(at),
                (2, true) => self.second::<4, 2>(at),
                (_, false) => self.second::<8, 0>(at),
                (_, true) => self.second::<8, 3>(at),
            }
        }
    }

    /// Does the first three levels, within groups of adjacent shards.
    #[inline(always)]
    unsafe fn first<const FULL: u32>(&self, at: usize) {
        let count = 1usize << self.leaf.levels;
        // The levels have 1/2, 1/4 and 1/8 as many factors as there are shards.
        let mut factors =
            [0, count / 2, count / 2 + count / 4].map(|i| self.factors.wrapping_add(i));
        let mut first = 0;
        while first < count {
            // SAFETY: `at` is below the bytes of a shard, a multiple of the block size, so each
            // load lies in its shard; the scratch space has a place for each shard.
            unsafe {
                let scratch = self.scratch.add(first);
                if (self.leaf.nonzero >> first) & ((1 << GROUP) - 1) == 0 {
                    scratch.write_bytes(0, GROUP);
                } else {
                    if at.is_multiple_of(BLOCK) {
                        self.prefetch_blocks(GROUP);
                    }
                    let mut pairs = [[V::zero(); 2]; GROUP];
                    let from = self.leaf.from.as_ptr().add(first);
                    for (i, pair) in pairs.iter_mut().enumerate() {
                        let from = from.add(i).read().add(at);
                        *pair = [V::load(from), V::load(from.add(PLANE_BYTES))];
                    }
                    butterflies::<V, GROUP, FULL>(&mut pairs, factors);
                    for (i, pair) in pairs.into_iter().enumerate() {
                        scratch.add(i).write(pair);
                    }
                }
            }
            for (level, factors) in factors.iter_mut().enumerate() {
                *factors = factors.wrapping_add((GROUP / 2) >> level);
            }
            first += GROUP;
        }
    }

    /// Does the other levels, over shards a group apart.
    #[inline(always)]
    unsafe fn second<const N: usize, const FULL: u32>(&self, at: usize) {
        let Leaf { bytes, add, .. } = *self.leaf;
        let places = [GROUP * N - N, GROUP * N - N / 2, GROUP * N - N / 4];
        let factors = places.map(|i| self.factors.wrapping_add(i));
        let mut row = 0;
        while row < GROUP {
            // SAFETY: as above, for stores.
            unsafe {
                let mut pairs = [[V::zero(); 2]; N];
                let scratch = self.scratch.add(row);
                for (i, pair) in pairs.iter_mut().enumerate() {
                    *pair = scratch.add(i * GROUP).read();
                }
                butterflies::<V, N, FULL>(&mut pairs, factors);
                let to = self.leaf.to.add(row.wrapping_mul(bytes)).add(at);
                for (i, [mut low, mut high]) in pairs.into_iter().enumerate() {
                    let to = to.add((i * GROUP).wrapping_mul(bytes));
                    if add {
                        low = low.add(V::load(to));
                        high = high.add(V::load(to.add(PLANE_BYTES)));
                    }
                    low.store(to);
                    high.store(to.add(PLANE_BYTES));
                }
            }
            row += 1;
        }
    }

    /// Prefetches the next `blocks` blocks of the next input.
    #[inline(always)]
    unsafe fn prefetch_blocks(&self, blocks: usize) {
        let (mut shard, mut at) = self.prefetched.get();
        let mut block = 0;
        while block < blocks {
            let from = self.leaf.next[shard % LEAF_SHARDS].wrapping_add(at);
            // SAFETY: guaranteed by the caller.
            unsafe {
                V::prefetch_l2(from);
                V::prefetch_l2(from.wrapping_add(PLANE_BYTES));
            }
            at = at.wrapping_add(BLOCK);
            if at == self.leaf.bytes {
                (shard, at) = (shard.wrapping_add(1), 0);
            }
            block += 1;
        }
        self.prefetched.set((shard, at));
    }
}

/// Applies the inverse butterflies to `N` shards; the `FULL` narrowest levels may have factors
/// outside GF(2^8).
#[inline(always)]
unsafe fn butterflies<V: Vector, const N: usize, const FULL: u32>(
    pairs: &mut [Pair<V>; N],
    factors: [*const Elements<V>; 3],
) {
    let mut level = 0;
    while level < N.trailing_zeros() {
        let distance = 1usize << level;
        let mut index = 0;
        while index < N / 2 {
            let group = index / distance;
            let a = group * 2 * distance + index % distance;
            let b = a + distance;
            // SAFETY: there are as many factors as the level has; the caller guarantees the rest.
            unsafe {
                pairs[b] = sum(pairs[b], pairs[a]);
                let [low, norm, both] = &*factors[level as usize].add(group);
                let low = V::constant(V::Factor::from_element(low));
                let p = pairs[b][0].times(low);
                pairs[a] = if level < FULL {
                    let q = pairs[b][1].multiply(V::Factor::from_element(norm));
                    let r = pairs[b][0].add(pairs[b][1]).multiply(V::Factor::from_element(both));
                    [pairs[a][0].add3(p, q), pairs[a][1].add3(p, r)]
                } else {
                    [pairs[a][0].add(p), pairs[a][1].add(pairs[b][1].times(low))]
                };
            }
            index += 1;
        }
        level += 1;
    }
}
