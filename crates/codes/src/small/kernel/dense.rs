//! Multiplies a small matrix by wide rows.
//!
//! ```text
//! out[r] (+)= sum over j of factor[j][r] * source[j]        r < R, a column tile at a time
//! ```
//!
//! R sums of V registers stay in registers while all sources of a group stream by, so each source
//! byte is read once for R outputs and each output is written once per group.

use crate::simd::{Factor, Factors, Level, SUMS_MAX, Vector, VectorKernel};

/// Maximum number of rows that one pass over the sources computes.
pub(in crate::small) const ROWS_MAX: usize = SUMS_MAX;
/// Maximum number of sources per pass.
pub(in crate::small) const SOURCES_MAX: usize = 32;

/// Number of outputs from which on sources are prefetched: with fewer, the loop is as fast as
/// memory, and prefetching costs more than it gains.
const PREFETCH_ROWS_MIN: usize = 4;
/// Prefetch distance in bytes. Prefetching beyond the end of a shard is harmless at any address.
const PREFETCH_DISTANCE: usize = 512;

/// Up to [`ROWS_MAX`] rows of a matrix.
#[derive(Clone, Debug)]
pub(in crate::small) struct Rows {
    /// Number of rows.
    pub(in crate::small) count: usize,
    /// Whether the first row is all ones.
    pub(in crate::small) is_xor: bool,
    /// Factors, by source and then by row.
    pub(in crate::small) factors: Factors,
}

/// Position of a tile: the same bytes of every source and every output.
#[derive(Clone, Copy, Debug)]
pub(in crate::small) struct TileSpan {
    /// Offset of its first byte.
    pub(in crate::small) start: usize,
    /// Its bytes, a multiple of the register size.
    pub(in crate::small) bytes: usize,
    /// Whether the results are added to the outputs.
    pub(in crate::small) is_added: bool,
}

/// Multiplies one tile of `sources` into `outputs`, one for each row. The first source has the
/// number `first` in the rows.
#[inline]
pub(in crate::small) fn multiply(
    level: Level,
    rows: &Rows,
    first: usize,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    span: TileSpan,
) {
    assert!(outputs.len() == rows.count, "a row for each output");
    assert!(sources.len() <= SOURCES_MAX && rows.count <= ROWS_MAX, "few enough for a pass");
    assert!(span.bytes.is_multiple_of(level.vector_bytes()), "a tile is whole registers");
    let mut from = [std::ptr::null(); SOURCES_MAX];
    for (pointer, shard) in from.iter_mut().zip(sources) {
        *pointer = shard[span.start..][..span.bytes].as_ptr();
    }
    let mut to = [std::ptr::null_mut(); ROWS_MAX];
    for (pointer, shard) in to.iter_mut().zip(outputs.iter_mut()) {
        *pointer = shard[span.start..][..span.bytes].as_mut_ptr();
    }
    let (from, to) = (&from[..sources.len()], &to[..rows.count]);
    let TileSpan { bytes, is_added, .. } = span;
    let pass = Pass { rows, first, sources: from, outputs: to, bytes, is_added };
    // SAFETY: the pointers are of slices of the tile's length, as many as the rows have.
    unsafe { level.run(&pass) }
}

/// A tile of some sources and all outputs of a pass.
struct Pass<'a> {
    rows: &'a Rows,
    first: usize,
    /// Start of the tile in each source.
    sources: &'a [*const u8],
    /// Start of the tile in each output.
    outputs: &'a [*mut u8],
    bytes: usize,
    is_added: bool,
}

impl VectorKernel for Pass<'_> {
    /// Every source is readable and every output writable for the bytes of the tile.
    #[inline(always)]
    unsafe fn run<V: Vector>(&self) {
        let (count, from) = (self.rows.count, self.first * self.rows.count);
        let factors = &V::Factor::slice(&self.rows.factors)[from..][..self.sources.len() * count];
        let tile = &Tile::<V> { pass: self, factors };
        // SAFETY: guaranteed by the caller; the number of factors was just checked.
        unsafe {
            match (count, self.rows.is_xor) {
                (1, true) => run_columns::<V, 1, true>(tile),
                (1, false) => run_columns::<V, 1, false>(tile),
                (2, true) => run_columns::<V, 2, true>(tile),
                (2, false) => run_columns::<V, 2, false>(tile),
                (3, true) => run_columns::<V, 3, true>(tile),
                (3, false) => run_columns::<V, 3, false>(tile),
                (4, true) => run_columns::<V, 4, true>(tile),
                (4, false) => run_columns::<V, 4, false>(tile),
                (5, _) => run_columns::<V, 5, false>(tile),
                (6, _) => run_columns::<V, 6, false>(tile),
                (7, _) => run_columns::<V, 7, false>(tile),
                (8, _) => run_columns::<V, 8, false>(tile),
                (rows, _) => unreachable!("a pass has one to eight rows, not {rows}"),
            }
        }
    }
}

/// A [`Pass`] with its factors in the form of a vector.
struct Tile<'a, V: Vector> {
    pass: &'a Pass<'a>,
    factors: &'a [V::Factor],
}

/// Computes a tile of `R` outputs, with as many registers of each at a time as the vector allows.
///
/// # Safety
/// The processor supports the level of `L`; every source is readable and every output writable for
/// the bytes of the tile; `outputs` has `R` entries and `factors` `R` for each source.
#[inline(always)]
unsafe fn run_columns<L: Vector, const R: usize, const XOR: bool>(tile: &Tile<'_, L>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match const { L::COLUMNS[R - 1] } {
            1 => run_tile::<L, R, 1, XOR>(tile),
            2 => run_tile::<L, R, 2, XOR>(tile),
            3 => run_tile::<L, R, 3, XOR>(tile),
            _ => run_tile::<L, R, 4, XOR>(tile),
        }
    }
}

/// Computes a tile, `V` registers of each output at a time.
///
/// # Safety
/// As [`run_columns`].
#[inline(always)]
unsafe fn run_tile<L: Vector, const R: usize, const V: usize, const XOR: bool>(tile: &Tile<'_, L>) {
    let bytes = tile.pass.bytes;
    let mut at = 0;
    while at + V * L::BYTES <= bytes {
        // SAFETY: `at + V * BYTES` is within the tile.
        unsafe { columns::<L, R, V, XOR>(tile, at) };
        at += V * L::BYTES;
    }
    while at < bytes {
        // SAFETY: the tile is a multiple of the register size.
        unsafe { columns::<L, R, 1, XOR>(tile, at) };
        at += L::BYTES;
    }
}

/// Computes `V` registers of each output, from byte `at` of the tile. With `XOR` the first factor
/// of each source is one.
///
/// # Safety
/// As [`run_columns`]; `V` registers are left from `at`.
#[inline(always)]
unsafe fn columns<L: Vector, const R: usize, const V: usize, const XOR: bool>(
    tile: &Tile<'_, L>,
    at: usize,
) {
    // SAFETY: see above.
    unsafe {
        let mut sums = [[L::zero(); V]; R];
        if tile.pass.is_added {
            for (sums, output) in sums.iter_mut().zip(tile.pass.outputs) {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = L::load(output.add(at + v * L::BYTES));
                }
            }
        }
        let pairs = tile.pass.sources.len() / 2;
        for pair in 0..pairs {
            let [a, b] = [tile.pass.sources[2 * pair], tile.pass.sources[2 * pair + 1]];
            let factors = tile.factors.as_ptr().add(2 * pair * R);
            for v in 0..V {
                if R >= PREFETCH_ROWS_MIN {
                    L::prefetch(a.wrapping_add(at + v * L::BYTES + PREFETCH_DISTANCE));
                    L::prefetch(b.wrapping_add(at + v * L::BYTES + PREFETCH_DISTANCE));
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
        if tile.pass.sources.len() % 2 == 1 {
            let last = tile.pass.sources[2 * pairs];
            let factors = tile.factors.as_ptr().add(2 * pairs * R);
            for v in 0..V {
                let a = L::load(last.add(at + v * L::BYTES));
                for (r, sums) in sums.iter_mut().enumerate() {
                    let term = if XOR && r == 0 { a } else { a.multiply(&*factors.add(r)) };
                    sums[v] = sums[v].add(term);
                }
            }
        }
        for (sums, output) in sums.iter().zip(tile.pass.outputs) {
            for (v, sum) in sums.iter().enumerate() {
                sum.store(output.add(at + v * L::BYTES));
            }
        }
    }
}
