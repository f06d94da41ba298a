//! A small matrix over GF(2^8), prepared for multiplication with wide rows.

use super::kernel::dense::{self, ROWS_MAX, Rows, SOURCES_MAX, TileSpan};
use crate::Isa;
use crate::field::gf8::NIBBLES;
use crate::simd::{Factors, Level};

/// Sources per pass when there are more than [`SOURCES_MAX`]: as many streams as a processor
/// prefetches well.
const PASS: usize = 20;
/// Bytes of each shard processed at a time.
const TILE: usize = 4 << 10;

/// A matrix, with its entries in the form for the kernel of a level.
#[derive(Clone, Debug)]
pub(super) struct Product {
    level: Level,
    rows: Vec<Vec<u8>>,
    passes: Vec<Pass>,
}

/// Up to [`ROWS_MAX`] rows, beginning with row `first`.
#[derive(Clone, Debug)]
struct Pass {
    first: usize,
    rows: Rows,
}

impl Product {
    /// Creates the matrix of these rows, which have one length.
    pub(super) fn new(rows: &[Vec<u8>], level: Level) -> Self {
        let passes = rows
            .chunks(ROWS_MAX)
            .enumerate()
            .map(|(number, pass)| {
                let columns = pass[0].len();
                let by_source = (0..columns).flat_map(|j| pass.iter().map(move |row| row[j]));
                Pass {
                    first: number * ROWS_MAX,
                    rows: Rows {
                        count: pass.len(),
                        is_xor: pass[0].iter().all(|&factor| factor == 1),
                        factors: Factors::new(level, by_source),
                    },
                }
            })
            .collect();
        Self { level, rows: rows.to_vec(), passes }
    }

    /// Number of rows, which is the number of outputs.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Multiplies into the outputs, or adds to them if `is_added`. All shards have `bytes` bytes.
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
        let vectorized_bytes = vectorized_bytes(self.level, bytes);
        let per_pass = if sources.len() <= SOURCES_MAX { SOURCES_MAX } else { PASS };
        for start in (0..vectorized_bytes).step_by(TILE) {
            let bytes = TILE.min(vectorized_bytes - start);
            for pass in &self.passes {
                for (number, some) in sources.chunks(per_pass).enumerate() {
                    let span = TileSpan { start, bytes, is_added: is_added || number > 0 };
                    let outputs = &mut outputs[pass.first..][..pass.rows.count];
                    let first = number * per_pass;
                    dense::multiply(self.level, &pass.rows, first, some, outputs, span);
                }
            }
        }
        self.run_scalar(sources, outputs, vectorized_bytes..bytes, is_added);
    }

    /// The scalar reference for the kernels. It also does the last bytes, which fill no register.
    fn run_scalar(
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
}

/// Returns how many bytes of a shard fill whole registers. None at the scalar level:
/// [`Product::run_scalar`] does all.
pub(super) const fn vectorized_bytes(level: Level, bytes: usize) -> usize {
    match level.isa() {
        Isa::Scalar => 0,
        Isa::Neon | Isa::Avx2 | Isa::Avx2Gfni | Isa::Avx512Gfni => {
            bytes / level.vector_bytes() * level.vector_bytes()
        }
    }
}
