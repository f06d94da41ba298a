//! Up to three levels of butterflies on shards held in registers.

use super::{BLOCK, Direction, Factor, PASS_SHARDS, Twiddles};
use crate::field::PLANE_BYTES;
use crate::simd::{self, Vector, VectorKernel};

/// Input and output of a pass: `2^levels` shards of `bytes`, out of place or in place.
pub(super) struct Pass<'a> {
    pub(super) direction: Direction,
    pub(super) twiddles: &'a Twiddles,
    pub(super) from: [*const u8; PASS_SHARDS],
    pub(super) to: [*mut u8; PASS_SHARDS],
    /// Addresses to prefetch for the next pass; any pointers, they are never dereferenced.
    pub(super) next: Option<[*const u8; PASS_SHARDS]>,
    /// Bytes of each shard, a multiple of the block size.
    pub(super) bytes: usize,
    /// Whether the results are added to the destination.
    pub(super) add: bool,
}

impl VectorKernel for Pass<'_> {
    /// The first `2^levels` pointers are valid for `bytes`, to read and to write. Sources and
    /// destinations overlap only where they are the same.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match (self.twiddles.levels, self.twiddles.full) {
                (1, 0) => dispatch_direction::<V, 2, 0>(self),
                (1, _) => dispatch_direction::<V, 2, 1>(self),
                (2, 0) => dispatch_direction::<V, 4, 0>(self),
                (2, 1) => dispatch_direction::<V, 4, 1>(self),
                (2, _) => dispatch_direction::<V, 4, 2>(self),
                (_, 0) => dispatch_direction::<V, 8, 0>(self),
                (_, 1) => dispatch_direction::<V, 8, 1>(self),
                (_, 2) => dispatch_direction::<V, 8, 2>(self),
                (_, _) => dispatch_direction::<V, 8, 3>(self),
            }
        }
    }
}

#[inline(always)]
unsafe fn dispatch_direction<V: Vector, const N: usize, const FULL: u32>(pass: &Pass<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (pass.direction, pass.add) {
            (Direction::Forward, false) => shards::<V, N, FULL, false, false>(pass),
            (Direction::Forward, true) => shards::<V, N, FULL, false, true>(pass),
            (Direction::Inverse, false) => shards::<V, N, FULL, true, false>(pass),
            (Direction::Inverse, true) => shards::<V, N, FULL, true, true>(pass),
        }
    }
}

/// A [`Factor`] in the form that the instructions take.
#[derive(Clone, Copy)]
struct Constants<V: Vector> {
    low: V::Constant<'static>,
    norm: V::Constant<'static>,
    sum: V::Constant<'static>,
}

impl<V: Vector> Constants<V> {
    #[inline(always)]
    unsafe fn new(factor: Factor) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            Self {
                low: V::constant(simd::Factor::for_constant(factor.low)),
                norm: V::constant(simd::Factor::for_constant(factor.norm)),
                sum: V::constant(simd::Factor::for_constant(factor.sum)),
            }
        }
    }
}

/// A register for each of the two planes.
pub(super) type Pair<V> = [V; 2];

#[inline(always)]
unsafe fn shards<
    V: Vector,
    const N: usize,
    const FULL: u32,
    const INVERSE: bool,
    const ADD: bool,
>(
    pass: &Pass<'_>,
) {
    // SAFETY: offsets are below `bytes`, a multiple of the block size, so each load and store lies
    // in its shard; a register is loaded from all shards before it is stored to any.
    unsafe {
        // A pass of fewer shards never uses the factors beyond its own.
        let twiddles: [Constants<V>; PASS_SHARDS - 1] =
            std::array::from_fn(|i| Constants::new(pass.twiddles.factors[i]));
        let mut block = 0;
        while block < pass.bytes {
            if let Some(next) = pass.next {
                for next in &next[..N] {
                    V::prefetch(next.wrapping_add(block));
                    V::prefetch(next.wrapping_add(block + PLANE_BYTES));
                }
            }
            let mut half = 0;
            while half < PLANE_BYTES {
                let at = block + half;
                let mut pairs: [Pair<V>; N] = std::array::from_fn(|i| {
                    let from = pass.from[i].add(at);
                    [V::load(from), V::load(from.add(PLANE_BYTES))]
                });
                levels::<V, N, FULL, INVERSE>(&mut pairs, &twiddles);
                for (pair, to) in pairs.iter().zip(pass.to) {
                    for (plane, value) in pair.iter().enumerate() {
                        let to = to.add(at + plane * PLANE_BYTES);
                        let value = if ADD { value.add(V::load(to)) } else { *value };
                        value.store(to);
                    }
                }
                half += V::BYTES;
            }
            block += BLOCK;
        }
    }
}

#[inline(always)]
unsafe fn levels<V: Vector, const N: usize, const FULL: u32, const INVERSE: bool>(
    pairs: &mut [Pair<V>; N],
    twiddles: &[Constants<V>; PASS_SHARDS - 1],
) {
    let count = N.trailing_zeros();
    let mut step = 0;
    while step < count {
        let level = if INVERSE { step } else { count - 1 - step };
        let distance = 1 << level;
        // The levels below have N/2, N/4, .. factors.
        let first = N - (N >> level);
        let mut index = 0;
        while index < N / 2 {
            let group = index / distance;
            let a = group * 2 * distance + index % distance;
            let b = a + distance;
            // SAFETY: guaranteed by the caller.
            unsafe {
                if INVERSE {
                    pairs[b] = sum(pairs[b], pairs[a]);
                }
                pairs[a] = add_product(pairs[a], pairs[b], twiddles[first + group], level < FULL);
                if !INVERSE {
                    pairs[b] = sum(pairs[b], pairs[a]);
                }
            }
            index += 1;
        }
        step += 1;
    }
}

#[inline(always)]
pub(super) unsafe fn sum<V: Vector>(a: Pair<V>, b: Pair<V>) -> Pair<V> {
    // SAFETY: guaranteed by the caller.
    unsafe { [a[0].add(b[0]), a[1].add(b[1])] }
}

/// Returns `a + t b`; t may be outside GF(2^8) if `full`.
#[inline(always)]
unsafe fn add_product<V: Vector>(a: Pair<V>, b: Pair<V>, t: Constants<V>, full: bool) -> Pair<V> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let p = b[0].times(t.low);
        if full {
            let q = b[1].times(t.norm);
            let r = b[0].add(b[1]).times(t.sum);
            [a[0].add3(p, q), a[1].add3(p, r)]
        } else {
            [a[0].add(p), a[1].add(b[1].times(t.low))]
        }
    }
}
