//! The additive transforms of 8 and 16 points, a column of registers at a time.
//!
//! ```text
//! butterfly of level i, twiddle w:   forward  a += w g, g += a      inverse  g += a, a += w g
//! ```
//!
//! (Lin, Chung and Han 2014, over a Cantor basis.) All points of a column stay in registers.

use super::Vector;

/// A tile of chunks to be summed up: the same `bytes` of every shard.
pub(in crate::small) struct Chunks<'a, F> {
    /// Where the tile begins in each shard, a chunk after the other, `M` each.
    pub(in crate::small) sources: &'a [*const u8],
    /// Factors of each chunk, [`inverse_factors`] each.
    pub(in crate::small) inverse: &'a [F],
    /// Factors of the forward transform, [`forward_factors`].
    pub(in crate::small) forward: &'a [F],
    /// Where the tile begins in each output; at most `M`.
    pub(in crate::small) outputs: &'a [*mut u8],
    /// Bytes of the tile: a multiple of the register, at most [`TILE_BYTES`].
    pub(in crate::small) bytes: usize,
}

/// Most bytes of a tile: the sums of 16 points then take 16 KiB.
pub(in crate::small) const TILE_BYTES: usize = 1 << 10;
/// Most points.
pub(in crate::small) const POINTS_MAX: usize = 16;

/// Factors of an inverse transform: two scales and a twiddle for each pair, then the twiddles of
/// the levels above.
pub(in crate::small) const fn inverse_factors(points: usize) -> usize {
    3 * points / 2 + points / 2 - 1
}

/// Factors of a forward transform: a twiddle for each block of each level.
pub(in crate::small) const fn forward_factors(points: usize) -> usize {
    points - 1
}

/// The sums of a tile, out of the way of anything else in the first cache.
#[repr(C, align(64))]
struct Sums([[u8; TILE_BYTES]; POINTS_MAX]);

/// Computes a tile of all outputs.
///
/// # Safety
/// The processor has the level of `L`; there is at least one chunk; every source is readable and
/// every output writable for `bytes` bytes; the factors are as many as the chunks need.
#[expect(unsafe_code, reason = "pointers whose lengths the caller checked")]
#[inline(always)]
pub(in crate::small) unsafe fn encode<L: Vector, const M: usize>(chunks: &Chunks<'_, L::Factor>) {
    let mut sums = std::mem::MaybeUninit::<Sums>::uninit();
    let base = sums.as_mut_ptr().cast::<u8>();
    // SAFETY: rows of `TILE_BYTES` within `sums`, of which the first chunk writes what the later
    // ones and the last pass read; the rest is the caller's promise.
    unsafe {
        for (number, shards) in chunks.sources.chunks_exact(M).enumerate() {
            let factors = chunks.inverse.as_ptr().add(number * inverse_factors(M));
            let mut at = 0;
            while at < chunks.bytes {
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
        while at < chunks.bytes {
            let mut points = [L::zero(); M];
            for (place, point) in points.iter_mut().enumerate() {
                *point = L::load(base.add(place * TILE_BYTES + at));
            }
            forward::<L, M>(&mut points, chunks.forward.as_ptr());
            for (point, output) in points.into_iter().zip(chunks.outputs) {
                point.store(output.add(at));
            }
            at += L::BYTES;
        }
    }
}

#[expect(unsafe_code, reason = "called where the level is there")]
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

#[expect(unsafe_code, reason = "called where the level is there")]
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

/// The butterflies of level `I`; none when `M` points have no such level.
#[expect(unsafe_code, reason = "called where the level is there")]
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
        // SAFETY: one factor for each block.
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
