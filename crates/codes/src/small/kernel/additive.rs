//! The additive FFT of 8 and 16 points, one column of registers at a time.
//!
//! ```text
//! butterfly of level i, twiddle w:   forward  a += w g, g += a      inverse  g += a, a += w g
//! ```
//!
//! (Lin, Chung and Han 2014, over a Cantor basis.) All points of a column stay in registers.

use std::ops::Range;

use crate::simd::{Factor, Factors, Level, Vector, VectorKernel};

/// Maximum number of bytes of a tile: the sums of 16 points then take 16 KiB.
pub(in crate::small) const TILE_BYTES: usize = 1 << 10;
/// Maximum number of points of a transform.
pub(in crate::small) const POINTS_MAX: usize = 16;

/// Maximum number of sources, including places of a coset without a shard.
const PLACES_MAX: usize = 256;
/// Input in place of absent shards.
static ZEROS: [u8; TILE_BYTES] = [0; TILE_BYTES];

/// Transforms of a code: one coset of points after the other.
#[derive(Clone, Debug)]
pub(in crate::small) struct Cosets {
    /// Number of points per coset, 8 or 16.
    pub(in crate::small) points: usize,
    /// Number of cosets.
    pub(in crate::small) count: usize,
    /// Factors of the inverse transforms, [`inverse_factors`] for each.
    pub(in crate::small) inverse: Factors,
    /// Factors of the forward transform, [`forward_factors`].
    pub(in crate::small) forward: Factors,
}

/// Number of factors of an inverse transform: two scales and a twiddle for each pair, then the
/// twiddles of the levels above.
pub(in crate::small) const fn inverse_factors(points: usize) -> usize {
    3 * points / 2 + points / 2 - 1
}

/// Number of factors of a forward transform: one twiddle for each block of each level.
pub(in crate::small) const fn forward_factors(points: usize) -> usize {
    points - 1
}

/// The sums of a tile, aligned to cache lines so that they conflict with little else in L1.
#[repr(C, align(64))]
struct Sums([[u8; TILE_BYTES]; POINTS_MAX]);

/// Computes the bytes `range` of all sums, at most [`TILE_BYTES`] and whole registers, into
/// `outputs` of that length. A source that is `None` counts as zeros.
pub(in crate::small) fn encode(
    level: Level,
    cosets: &Cosets,
    sources: &[Option<&[u8]>],
    outputs: &mut [&mut [u8]],
    range: Range<usize>,
) {
    let (bytes, points) = (range.len(), cosets.points);
    let places = cosets.count * points;
    assert!(sources.len() <= places && places <= PLACES_MAX, "a place for each source");
    assert!(outputs.len() <= points, "a point for each output");
    assert!(bytes <= TILE_BYTES, "a tile has its place");
    assert!(bytes.is_multiple_of(level.vector_bytes()), "a tile is whole registers");
    assert!(outputs.iter().all(|tile| tile.len() == bytes), "outputs are of one length");
    let mut from = [ZEROS.as_ptr(); PLACES_MAX];
    // Places in a chunk are in the order of their numbers, which fall as indices rise.
    for (index, shard) in sources.iter().enumerate() {
        let (chunk, place) = (index / points, index % points);
        if let Some(shard) = shard {
            from[chunk * points + points - 1 - place] = shard[range.clone()].as_ptr();
        }
    }
    let mut to = [std::ptr::null_mut(); POINTS_MAX];
    for (pointer, shard) in to.iter_mut().zip(outputs.iter_mut()) {
        *pointer = shard.as_mut_ptr();
    }
    let (from, to) = (&from[..places], &to[..outputs.len()]);
    // SAFETY: the pointers are of slices of the tile's length, or of zeros of the maximum tile
    // length.
    unsafe { level.run(&Tile { cosets, sources: from, outputs: to, bytes }) }
}

/// A tile of whole cosets to add up: the same `bytes` of every shard.
struct Tile<'a> {
    cosets: &'a Cosets,
    /// Start of the tile in each shard, coset by coset.
    sources: &'a [*const u8],
    /// Start of the tile in each output; at most as many as points.
    outputs: &'a [*mut u8],
    /// Bytes of the tile: a multiple of the register size, at most [`TILE_BYTES`].
    bytes: usize,
}

impl VectorKernel for Tile<'_> {
    /// Every source is readable and every output writable for `bytes` bytes.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.cosets.points {
                8 => tile::<V, 8>(self),
                16 => tile::<V, 16>(self),
                points => unreachable!("no transform of {points} points is made"),
            }
        }
    }
}

/// Computes a tile of all outputs.
///
/// # Safety
/// The processor supports the level of `L`; every source is readable and every output writable for
/// `bytes` bytes.
#[inline(always)]
unsafe fn tile<L: Vector, const M: usize>(tile: &Tile<'_>) {
    let inverse_slice = L::Factor::slice(&tile.cosets.inverse);
    let forward_slice = L::Factor::slice(&tile.cosets.forward);
    let count = tile.sources.len() / M;
    assert!(count > 0, "without a coset there are no sums");
    assert!(inverse_slice.len() == count * inverse_factors(M), "factors of each coset");
    assert!(forward_slice.len() == forward_factors(M), "factors of the sums");
    let mut sums = std::mem::MaybeUninit::<Sums>::uninit();
    let base = sums.as_mut_ptr().cast::<u8>();
    // SAFETY: all accesses are to rows of `TILE_BYTES` within `sums`; the first coset writes what
    // the later ones and the last pass read; the number of factors was checked; the caller
    // guarantees the rest.
    unsafe {
        for (number, shards) in tile.sources.chunks_exact(M).enumerate() {
            let factors = inverse_slice.as_ptr().add(number * inverse_factors(M));
            let mut at = 0;
            while at < tile.bytes {
                let mut points = [L::zero(); M];
                for (point, shard) in points.iter_mut().zip(shards) {
                    *point = L::load(shard.add(at));
                }
                inverse::<L, M>(&mut points, factors);
                for (place, point) in points.into_iter().enumerate() {
                    let sum = base.add(place * TILE_BYTES + at);
                    if number == 0 { point } else { point.add(L::load(sum)) }.store(sum);
                }
                at += L::BYTES;
            }
        }
        let mut at = 0;
        while at < tile.bytes {
            let mut points = [L::zero(); M];
            for (place, point) in points.iter_mut().enumerate() {
                *point = L::load(base.add(place * TILE_BYTES + at));
            }
            forward::<L, M>(&mut points, forward_slice.as_ptr());
            for (point, output) in points.into_iter().zip(tile.outputs) {
                point.store(output.add(at));
            }
            at += L::BYTES;
        }
    }
}

#[inline(always)]
unsafe fn inverse<L: Vector, const M: usize>(points: &mut [L; M], factors: *const L::Factor) {
    // SAFETY: `factors` has [`inverse_factors`] entries.
    unsafe {
        let mut next = factors;
        for pair in 0..M / 2 {
            let a = points[2 * pair].multiply(&*next);
            let g = points[2 * pair + 1].multiply(&*next.add(1)).add(a);
            points[2 * pair] = a.add(g.multiply(&*next.add(2)));
            points[2 * pair + 1] = g;
            next = next.add(3);
        }
        level::<L, M, 1, false>(points, next);
        next = next.add(M / 4);
        level::<L, M, 2, false>(points, next);
        next = next.add(M / 8);
        level::<L, M, 3, false>(points, next);
    }
}

#[inline(always)]
unsafe fn forward<L: Vector, const M: usize>(points: &mut [L; M], factors: *const L::Factor) {
    // SAFETY: `factors` has [`forward_factors`] entries.
    unsafe {
        let mut next = factors;
        level::<L, M, 3, true>(points, next);
        next = next.add(M / 16);
        level::<L, M, 2, true>(points, next);
        next = next.add(M / 8);
        level::<L, M, 1, true>(points, next);
        next = next.add(M / 4);
        level::<L, M, 0, true>(points, next);
    }
}

/// Applies the butterflies of level `I`; does nothing when `M` points have no such level.
#[inline(always)]
unsafe fn level<L: Vector, const M: usize, const I: usize, const FORWARD: bool>(
    points: &mut [L; M],
    factors: *const L::Factor,
) {
    for pair in 0..M / 2 {
        let block = pair >> I;
        let low = (block << (I + 1)) | (pair & ((1 << I) - 1));
        let high = low | 1 << I;
        if high >= M {
            return;
        }
        // SAFETY: there is one factor for each block.
        unsafe {
            let twiddle = &*factors.add(block);
            if FORWARD {
                points[low] = points[low].add(points[high].multiply(twiddle));
                points[high] = points[high].add(points[low]);
            } else {
                points[high] = points[high].add(points[low]);
                points[low] = points[low].add(points[high].multiply(twiddle));
            }
        }
    }
}
