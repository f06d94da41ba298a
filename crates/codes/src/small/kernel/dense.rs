//! A small matrix times wide rows.
//!
//! ```text
//! out[r] (+)= sum over j of factor[j][r] * source[j]        r < R, a column tile at a time
//! ```
//!
//! R sums of V registers stay in registers while all sources of a group go by, so each source byte
//! is read once for R outputs and each output is written once a group.

use super::Vector;

/// Outputs from which on sources are asked for ahead of time: with fewer the loop is as fast as
/// memory, and asking costs more than it brings.
const PREFETCHED: usize = 4;
/// How far ahead, in bytes. Beyond the end of a shard nothing is read: asking for any address is
/// harmless.
const AHEAD: usize = 512;

/// One tile: the same `bytes` of every source and every output.
pub(in crate::small) struct Tile<'a, F> {
    /// Where the tile begins in each source.
    pub(in crate::small) sources: &'a [*const u8],
    /// Where it begins in each output.
    pub(in crate::small) outputs: &'a [*mut u8],
    /// `R` factors for each source.
    pub(in crate::small) factors: &'a [F],
    /// Whether the outputs are added to.
    pub(in crate::small) is_added: bool,
    /// Bytes of the tile, a multiple of the register.
    pub(in crate::small) bytes: usize,
}

/// Computes a tile of `R` outputs, `V` registers of each at a time.
///
/// # Safety
/// The processor has the level of `L`; every source is readable and every output writable for
/// `bytes` bytes; `outputs` has `R` entries and `factors` `R` for each source.
#[expect(unsafe_code, reason = "pointers whose lengths the caller checked")]
#[inline(always)]
pub(in crate::small) unsafe fn tile<L: Vector, const R: usize, const V: usize, const XOR: bool>(
    tile: &Tile<'_, L::Factor>,
) {
    let mut at = 0;
    while at + V * L::BYTES <= tile.bytes {
        // SAFETY: `at + V * BYTES` is within the tile.
        unsafe { columns::<L, R, V, XOR>(tile, at) };
        at += V * L::BYTES;
    }
    while at < tile.bytes {
        // SAFETY: the tile is a multiple of the register.
        unsafe { columns::<L, R, 1, XOR>(tile, at) };
        at += L::BYTES;
    }
}

/// `V` registers of each output, from byte `at` of the tile. With `XOR` the first factor of each
/// source is one.
#[expect(unsafe_code, reason = "pointers whose lengths the caller checked")]
#[inline(always)]
unsafe fn columns<L: Vector, const R: usize, const V: usize, const XOR: bool>(
    tile: &Tile<'_, L::Factor>,
    at: usize,
) {
    // SAFETY: see [`tile`].
    unsafe {
        let mut sums = [[L::zero(); V]; R];
        if tile.is_added {
            for (sums, output) in sums.iter_mut().zip(tile.outputs) {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = L::load(output.add(at + v * L::BYTES));
                }
            }
        }
        let pairs = tile.sources.len() / 2;
        for pair in 0..pairs {
            let [a, b] = [tile.sources[2 * pair], tile.sources[2 * pair + 1]];
            let factors = tile.factors.as_ptr().add(2 * pair * R);
            for v in 0..V {
                if R >= PREFETCHED {
                    L::prefetch(a.wrapping_add(at + v * L::BYTES + AHEAD));
                    L::prefetch(b.wrapping_add(at + v * L::BYTES + AHEAD));
                }
                let (a, b) = (L::load(a.add(at + v * L::BYTES)), L::load(b.add(at + v * L::BYTES)));
                for (r, sums) in sums.iter_mut().enumerate() {
                    sums[v] = if XOR && r == 0 {
                        sums[v].add3(a, b)
                    } else {
                        sums[v].add3(a.multiply(&*factors.add(r)), b.multiply(&*factors.add(R + r)))
                    };
                }
            }
        }
        if tile.sources.len() % 2 == 1 {
            let last = tile.sources[2 * pairs];
            let factors = tile.factors.as_ptr().add(2 * pairs * R);
            for v in 0..V {
                let a = L::load(last.add(at + v * L::BYTES));
                for (r, sums) in sums.iter_mut().enumerate() {
                    let term = if XOR && r == 0 { a } else { a.multiply(&*factors.add(r)) };
                    sums[v] = sums[v].add(term);
                }
            }
        }
        for (sums, output) in sums.iter().zip(tile.outputs) {
            for (v, sum) in sums.iter().enumerate() {
                sum.store(output.add(at + v * L::BYTES));
            }
        }
    }
}
