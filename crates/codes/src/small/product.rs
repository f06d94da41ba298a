//! A small matrix over GF(2^8) ready to be multiplied with wide rows.

use super::kernel::dense::{self, Tile};
use crate::Isa;
use crate::field::gf8::{AFFINE, NIBBLES};

/// Outputs that one pass over the sources computes.
const ROWS_MAX: usize = 8;
/// Sources of one pass when there are more than [`ONE_PASS`]: as many streams as a processor
/// follows well.
const PASS: usize = 20;
/// Sources that still go in one pass.
const ONE_PASS: usize = 32;
/// Bytes of each shard that are worked on at a time.
const TILE: usize = 4 << 10;

/// A matrix, with its entries in the form that the kernel of a level takes.
#[derive(Clone, Debug)]
pub(super) struct Product {
    isa: Isa,
    rows: Vec<Vec<u8>>,
    passes: Vec<Pass>,
}

/// Up to [`ROWS_MAX`] rows: their factors by source, then by row.
#[derive(Clone, Debug)]
struct Pass {
    first: usize,
    count: usize,
    /// Whether the first row is all ones.
    is_xor: bool,
    factors: Factors,
}

/// Constant factors as a level takes them.
#[derive(Clone, Debug)]
pub(super) enum Factors {
    /// The scalar twin takes them from the matrix.
    None,
    /// Tables of the products of 4 bits.
    Nibbles(Vec<[[u8; 16]; 2]>),
    /// Matrices of the affine instruction.
    Affine(Vec<u64>),
}

impl Factors {
    pub(super) fn new(isa: Isa, factors: impl Iterator<Item = u8>) -> Self {
        let place = usize::from;
        match isa {
            Isa::Scalar => Self::None,
            Isa::Neon | Isa::Avx2 => Self::Nibbles(factors.map(|f| NIBBLES[place(f)]).collect()),
            Isa::Avx2Gfni | Isa::Avx512Gfni => {
                Self::Affine(factors.map(|f| AFFINE[place(f)]).collect())
            }
        }
    }
}

impl Product {
    /// The matrix of these rows, which are of one length.
    pub(super) fn new(rows: &[Vec<u8>], isa: Isa) -> Self {
        let passes = rows
            .chunks(ROWS_MAX)
            .enumerate()
            .map(|(number, pass)| {
                let columns = pass[0].len();
                let by_source = (0..columns).flat_map(|j| pass.iter().map(move |row| row[j]));
                Pass {
                    first: number * ROWS_MAX,
                    count: pass.len(),
                    is_xor: pass[0].iter().all(|&factor| factor == 1),
                    factors: Factors::new(isa, by_source),
                }
            })
            .collect();
        Self { isa, rows: rows.to_vec(), passes }
    }

    /// Rows: outputs of a run.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Multiplies, into the outputs or onto what they hold. All shards have `bytes` bytes.
    pub(super) fn run(
        &self,
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
        bytes: usize,
        is_added: bool,
    ) {
        assert_eq!(outputs.len(), self.rows.len(), "a row for each output");
        assert!(sources.iter().all(|shard| shard.len() == bytes), "sources are of one length");
        assert!(outputs.iter().all(|shard| shard.len() == bytes), "outputs are of one length");
        assert!(self.rows.iter().all(|row| row.len() == sources.len()), "a factor for each source");
        if sources.is_empty() {
            return;
        }
        let width = vector_bytes(self.isa);
        let whole = bytes / width * width;
        let per_pass = if sources.len() <= ONE_PASS { ONE_PASS } else { PASS };
        for start in (0..whole).step_by(TILE) {
            let bytes = TILE.min(whole - start);
            for pass in &self.passes {
                for (number, some) in sources.chunks(per_pass).enumerate() {
                    let place = Place { start, bytes, is_added: is_added || number > 0 };
                    self.tile(pass, number * per_pass, some, outputs, place);
                }
            }
        }
        self.twin(sources, outputs, whole..bytes, is_added);
    }

    /// The scalar twin of everything else, and what does the last bytes that fill no register.
    fn twin(
        &self,
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
        range: std::ops::Range<usize>,
        is_added: bool,
    ) {
        for (row, output) in self.rows.iter().zip(outputs) {
            let output = &mut output[range.clone()];
            if !is_added {
                output.fill(0);
            }
            for (&factor, source) in row.iter().zip(sources) {
                let [low, high] = &NIBBLES[usize::from(factor)];
                for (sum, &byte) in output.iter_mut().zip(&source[range.clone()]) {
                    *sum ^= low[usize::from(byte & 15)] ^ high[usize::from(byte >> 4)];
                }
            }
        }
    }

    fn tile(
        &self,
        pass: &Pass,
        first_source: usize,
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
        place: Place,
    ) {
        let mut from = [std::ptr::null(); ONE_PASS];
        for (pointer, shard) in from.iter_mut().zip(sources) {
            *pointer = shard[place.start..][..place.bytes].as_ptr();
        }
        let mut to = [std::ptr::null_mut(); ROWS_MAX];
        for (pointer, shard) in to.iter_mut().zip(&mut outputs[pass.first..][..pass.count]) {
            *pointer = shard[place.start..][..place.bytes].as_mut_ptr();
        }
        let range = first_source * pass.count..(first_source + sources.len()) * pass.count;
        let (from, to) = (&from[..sources.len()], &to[..pass.count]);
        match &pass.factors {
            Factors::None => unreachable!("the scalar twin has no registers"),
            Factors::Nibbles(factors) => {
                let tile = place.tile(from, to, &factors[range]);
                nibbles(pass, &tile);
            }
            Factors::Affine(factors) => {
                let tile = place.tile(from, to, &factors[range]);
                affine(self.isa, pass, &tile);
            }
        }
    }
}

/// Where a tile is.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    bytes: usize,
    is_added: bool,
}

impl Place {
    const fn tile<'a, F>(
        self,
        sources: &'a [*const u8],
        outputs: &'a [*mut u8],
        factors: &'a [F],
    ) -> Tile<'a, F> {
        Tile { sources, outputs, factors, is_added: self.is_added, bytes: self.bytes }
    }
}

/// Bytes of a level's register; the scalar level has none, so that all is left to the twin.
pub(super) const fn vector_bytes(isa: Isa) -> usize {
    match isa {
        Isa::Scalar => usize::MAX,
        Isa::Neon => 16,
        Isa::Avx2 | Isa::Avx2Gfni => 32,
        Isa::Avx512Gfni => 64,
    }
}

/// Calls [`dense::tile`] for the number of rows: `V` registers a row, so that all sums and what is
/// added to them fit in the registers.
macro_rules! by_rows {
    ($vector:ty, $pass:expr, $tile:expr, $v1:literal $v2:literal $v3:literal $v4:literal
     $v5:literal $v6:literal $v7:literal $v8:literal) => {
        match ($pass.count, $pass.is_xor) {
            (1, true) => dense::tile::<$vector, 1, $v1, true>($tile),
            (1, false) => dense::tile::<$vector, 1, $v1, false>($tile),
            (2, true) => dense::tile::<$vector, 2, $v2, true>($tile),
            (2, false) => dense::tile::<$vector, 2, $v2, false>($tile),
            (3, true) => dense::tile::<$vector, 3, $v3, true>($tile),
            (3, false) => dense::tile::<$vector, 3, $v3, false>($tile),
            (4, true) => dense::tile::<$vector, 4, $v4, true>($tile),
            (4, false) => dense::tile::<$vector, 4, $v4, false>($tile),
            (5, _) => dense::tile::<$vector, 5, $v5, false>($tile),
            (6, _) => dense::tile::<$vector, 6, $v6, false>($tile),
            (7, _) => dense::tile::<$vector, 7, $v7, false>($tile),
            (8, _) => dense::tile::<$vector, 8, $v8, false>($tile),
            (rows, _) => unreachable!("a pass has at most 8 rows, not {rows}"),
        }
    };
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "kernels behind a level that was asked for")]
fn affine(isa: Isa, pass: &Pass, tile: &Tile<'_, u64>) {
    use super::kernel::gfni::{Bytes32, Bytes64};

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
    unsafe fn wide(pass: &Pass, tile: &Tile<'_, u64>) {
        // SAFETY: the promise of the caller of this function.
        unsafe { by_rows!(Bytes64, pass, tile, 4 4 4 4 4 4 3 2) }
    }
    #[target_feature(enable = "avx2,gfni")]
    unsafe fn narrow(pass: &Pass, tile: &Tile<'_, u64>) {
        // SAFETY: the promise of the caller of this function.
        unsafe { by_rows!(Bytes32, pass, tile, 4 4 3 2 2 1 1 1) }
    }
    // SAFETY: a product of a level is only made where the processor has it; `Product::tile` made
    // the pointers out of slices of the tile's length, and the factors for their count.
    unsafe { if isa == Isa::Avx512Gfni { wide(pass, tile) } else { narrow(pass, tile) } }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "kernels behind a level that was asked for")]
fn nibbles(pass: &Pass, tile: &Tile<'_, [[u8; 16]; 2]>) {
    use super::kernel::avx2::Bytes32;

    #[target_feature(enable = "avx2")]
    unsafe fn shuffled(pass: &Pass, tile: &Tile<'_, [[u8; 16]; 2]>) {
        // SAFETY: the promise of the caller of this function.
        unsafe { by_rows!(Bytes32, pass, tile, 4 4 2 2 1 1 1 1) }
    }
    // SAFETY: as in [`affine`].
    unsafe { shuffled(pass, tile) }
}

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "kernels behind a level that was asked for")]
fn nibbles(pass: &Pass, tile: &Tile<'_, [[u8; 16]; 2]>) {
    use super::kernel::neon::Bytes16;

    // SAFETY: NEON is part of AArch64; `Product::tile` made the pointers out of slices of the
    // tile's length, and the factors for their count.
    unsafe { by_rows!(Bytes16, pass, tile, 4 4 4 4 4 2 2 2) }
}

#[cfg(not(target_arch = "x86_64"))]
fn affine(_: Isa, _: &Pass, _: &Tile<'_, u64>) {
    unreachable!("no level with affine products is supported here")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn nibbles(_: &Pass, _: &Tile<'_, [[u8; 16]; 2]>) {
    unreachable!("no level with look-ups is supported here")
}
