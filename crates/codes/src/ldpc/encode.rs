//! Encoding: computes parity bits from information bits, by sums of rotated words.
//!
//! ```text
//! s(i)   = sum of the information columns in row i, each rotated by its shift
//! p(0)   = s(0) + .. + s(m-1)               the staircase cancels, two of the closing shifts too
//! p(1)   = s(0) + p(0) rotated              row 0
//! p(i+1) = s(i) + p(i)  [+ p(0) in the closing column's middle row]
//! ```

use super::bits::{self, Rotation};
use super::code::Code;
use crate::{CodeError, Isa};

/// Encodes words of one code.
#[derive(Clone, Debug)]
pub struct Encoder {
    plan: Plan,
    doubled: Vec<u64>,
    sums: Vec<u64>,
    isa: Isa,
}

/// Precomputed properties of the code.
#[derive(Clone, Debug)]
struct Plan {
    words: usize,
    information_bytes: usize,
    /// Rotations of the information columns, by row.
    rows: Vec<Vec<Rotation>>,
    closing: Rotation,
    closing_row: usize,
}

impl Encoder {
    /// Creates an encoder of `code` for the instruction set in use.
    #[must_use]
    pub fn new(code: &Code) -> Self {
        Self::with_isa(code, Isa::current())
    }

    /// Creates an encoder of `code` for an instruction set, or the scalar one if this processor
    /// lacks it.
    #[must_use]
    pub fn with_isa(code: &Code, isa: Isa) -> Self {
        let words = code.matrix().circulant() / 64;
        let information = code.information_bits() / code.matrix().circulant();
        let rotations = |row: Vec<(usize, usize)>| {
            let row = row.into_iter().filter(|&(column, _)| column < information);
            row.map(|(column, shift)| Rotation::new(column, shift, words)).collect()
        };
        let rows = code.matrix().row_entries().into_iter().map(rotations).collect();
        let (closing_shift, closing_row) = code.closing();
        let information_bytes = code.information_bits() / 8;
        let closing = Rotation::new(0, closing_shift, words);
        let plan = Plan { words, information_bytes, rows, closing, closing_row };
        let doubled = vec![0; 2 * words * information];
        let sums = vec![0; code.parity_bits() / 64];
        Self { plan, doubled, sums, isa: if isa.is_supported() { isa } else { Isa::Scalar } }
    }

    /// Writes the parity bits of `information`.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when `information` or `parity` does not have the code's length.
    pub fn encode(&mut self, information: &[u8], parity: &mut [u8]) -> Result<(), CodeError> {
        let parity_bytes = self.plan.rows.len() * self.plan.words * 8;
        for (have, need) in
            [(information.len(), self.plan.information_bytes), (parity.len(), parity_bytes)]
        {
            if have != need {
                return Err(CodeError::WordLength { have, need });
            }
        }
        let Self { plan, doubled, sums, isa } = self;
        let buffers = (information, &mut doubled[..], &mut sums[..]);
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Gfni => x86::encode_avx512(plan, buffers, parity),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx2Gfni => x86::encode_avx2(plan, buffers, parity),
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx512Gfni | Isa::Avx2 | Isa::Avx2Gfni => {
                encode_any(plan, buffers, parity);
            }
            Isa::Scalar | Isa::Neon => encode_any(plan, buffers, parity),
        }
        Ok(())
    }
}

/// The information, its doubled words and the sums of the rows.
type Buffers<'a> = (&'a [u8], &'a mut [u64], &'a mut [u64]);

/// Encodes with the body for the number of words of the circulant.
#[inline(always)]
fn encode_any(plan: &Plan, buffers: Buffers<'_>, parity: &mut [u8]) {
    match plan.words {
        1 => encode_words::<1>(plan, buffers, parity),
        2 => encode_words::<2>(plan, buffers, parity),
        4 => encode_words::<4>(plan, buffers, parity),
        8 => encode_words::<8>(plan, buffers, parity),
        16 => encode_words::<16>(plan, buffers, parity),
        words => unreachable!("no matrix has circulants of {words} words"),
    }
}

#[inline(always)]
fn encode_words<const W: usize>(
    plan: &Plan,
    (information, doubled, sums): Buffers<'_>,
    parity: &mut [u8],
) {
    bits::double::<W>(information, doubled);
    let sums = sums.as_chunks_mut::<W>().0;
    let mut closing = [0; W];
    for (sum, row) in sums.iter_mut().zip(&plan.rows) {
        *sum = bits::row_sum(doubled, row);
        (0..W).for_each(|i| closing[i] ^= sum[i]);
    }
    let (columns, _) = parity.as_chunks_mut::<8>();
    let mut columns = columns.chunks_exact_mut(W);
    let mut write = |words: &[u64; W]| {
        let column = columns.next().unwrap_or_default();
        column.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    };
    write(&closing);
    let mut step = [0; W];
    bits::add_rotated(&mut step, [closing; 2].as_flattened(), plan.closing);
    for (row, sum) in sums[..plan.rows.len() - 1].iter().enumerate() {
        for i in 0..W {
            let middle = if row == plan.closing_row { closing[i] } else { 0 };
            step[i] ^= sum[i] ^ middle;
        }
        write(&step);
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "functions for processors that have the instructions")]
mod x86 {
    //! The same body, compiled for wider vectors.

    use super::{Buffers, Plan, encode_any};

    pub(super) fn encode_avx512(plan: &Plan, buffers: Buffers<'_>, parity: &mut [u8]) {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        fn body(plan: &Plan, buffers: Buffers<'_>, parity: &mut [u8]) {
            encode_any(plan, buffers, parity);
        }
        // SAFETY: the encoder has checked that this processor supports the level.
        unsafe { body(plan, buffers, parity) }
    }

    pub(super) fn encode_avx2(plan: &Plan, buffers: Buffers<'_>, parity: &mut [u8]) {
        #[target_feature(enable = "avx2")]
        fn body(plan: &Plan, buffers: Buffers<'_>, parity: &mut [u8]) {
            encode_any(plan, buffers, parity);
        }
        // SAFETY: the encoder has checked that this processor supports the level.
        unsafe { body(plan, buffers, parity) }
    }
}
