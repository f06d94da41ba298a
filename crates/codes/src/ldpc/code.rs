//! A code: a base matrix of a form that allows one-pass encoding, and the ten standard codes.

use super::base::BaseMatrix;
use super::construct::COLUMN_WEIGHT_MAX;
use super::density::Thresholds;
use crate::CodeError;

/// Rate of a standard code: its share of information bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rate {
    /// 0.833: for careful profiles.
    R5of6,
    /// 0.875.
    R7of8,
    /// 0.90: the default.
    R9of10,
    /// 0.9375.
    R15of16,
    /// 0.95: for clean media.
    R19of20,
}

impl Rate {
    /// Every rate, in ascending order.
    pub const ALL: [Self; 5] =
        [Self::R5of6, Self::R7of8, Self::R9of10, Self::R15of16, Self::R19of20];

    /// Name of the rate, as a decimal fraction: "0.833" to "0.95".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::R5of6 => "0.833",
            Self::R7of8 => "0.875",
            Self::R9of10 => "0.90",
            Self::R15of16 => "0.9375",
            Self::R19of20 => "0.95",
        }
    }

    /// Returns the limits of the standard codes of this rate, for either length. They were computed
    /// by [`super::density`], which takes seconds.
    #[must_use]
    pub const fn thresholds(self) -> Thresholds {
        let (errors, erasures) = match self {
            Self::R5of6 => (0.0381, 0.1403),
            Self::R7of8 => (0.0274, 0.1043),
            Self::R9of10 => (0.0214, 0.0830),
            Self::R15of16 => (0.01296, 0.0515),
            Self::R19of20 => (0.01025, 0.0411),
        };
        Thresholds { errors, erasures }
    }
}

/// Length of a standard code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Block {
    /// About 16 thousand bits.
    Bits16k,
    /// About 64 thousand bits: the default.
    Bits64k,
}

impl Block {
    /// Both lengths.
    pub const ALL: [Self; 2] = [Self::Bits16k, Self::Bits64k];

    /// Name of the length: "16k" or "64k".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bits16k => "16k",
            Self::Bits64k => "64k",
        }
    }
}

/// A code that can encode and decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    matrix: BaseMatrix,
    /// Shift of the first and the last entry of the closing column.
    closing_shift: usize,
    /// Row of its middle entry.
    closing_row: usize,
}

impl Code {
    /// Returns the standard code of a rate and a length.
    #[must_use]
    pub fn standard(rate: Rate, block: Block) -> Self {
        let text = standard_text(rate, block);
        let matrix = BaseMatrix::parse(text).expect("the standard tables are tested");
        Self::new(matrix).expect("the standard tables are tested")
    }

    /// Creates the code of a matrix.
    ///
    /// # Errors
    /// [`CodeError::BaseMatrix`] when the parity part is not a staircase closed by a column of
    /// weight 3 (see [`super::construct`]), when a column is empty or has a weight above 4, for
    /// which the decoder has no headroom, or when a row has fewer than two entries.
    pub fn new(matrix: BaseMatrix) -> Result<Self, CodeError> {
        let bad = |reason| Err(CodeError::BaseMatrix { reason });
        let rows = matrix.rows();
        let (information, parity) = matrix.columns().split_at(matrix.columns().len() - rows);
        let [closing, staircase @ ..] = parity else { return bad("there are no parity columns") };
        let is_step = |step: usize, column: &[super::Entry]| {
            let places = column.iter().map(|entry| (entry.row, entry.shift));
            places.eq([(step, 0), (step + 1, 0)])
        };
        if !staircase.iter().enumerate().all(|(step, column)| is_step(step, column)) {
            return bad("the parity columns are not a staircase");
        }
        let &[first, middle, last] = &closing[..] else {
            return bad("the first parity column does not have weight 3");
        };
        if (first.row, middle.shift, last.row) != (0, 0, rows - 1) || first.shift != last.shift {
            return bad("the first parity column does not close the staircase");
        }
        let fits = |column: &Vec<_>| (1..=COLUMN_WEIGHT_MAX).contains(&column.len());
        if !information.iter().all(fits) {
            return bad("an information column is empty or heavier than 4");
        }
        Ok(Self { closing_shift: first.shift, closing_row: middle.row, matrix })
    }

    /// Parity-check matrix.
    #[must_use]
    pub fn matrix(&self) -> &BaseMatrix {
        &self.matrix
    }

    /// Bits of a codeword: a multiple of 64.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.matrix.bits()
    }

    /// Information bits of a codeword: a multiple of 64.
    #[must_use]
    pub fn information_bits(&self) -> usize {
        self.bits() - self.parity_bits()
    }

    /// Parity bits of a codeword: a multiple of 64.
    #[must_use]
    pub fn parity_bits(&self) -> usize {
        self.matrix.rows() * self.matrix.circulant()
    }

    /// Returns information bits divided by codeword bits.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.information_bits() as f64 / self.bits() as f64
    }

    /// Shift and middle row of the closing column.
    pub(crate) fn closing(&self) -> (usize, usize) {
        (self.closing_shift, self.closing_row)
    }
}

fn standard_text(rate: Rate, block: Block) -> &'static str {
    match (block, rate) {
        (Block::Bits16k, Rate::R5of6) => include_str!("standard/16k-0.833.txt"),
        (Block::Bits16k, Rate::R7of8) => include_str!("standard/16k-0.875.txt"),
        (Block::Bits16k, Rate::R9of10) => include_str!("standard/16k-0.90.txt"),
        (Block::Bits16k, Rate::R15of16) => include_str!("standard/16k-0.9375.txt"),
        (Block::Bits16k, Rate::R19of20) => include_str!("standard/16k-0.95.txt"),
        (Block::Bits64k, Rate::R5of6) => include_str!("standard/64k-0.833.txt"),
        (Block::Bits64k, Rate::R7of8) => include_str!("standard/64k-0.875.txt"),
        (Block::Bits64k, Rate::R9of10) => include_str!("standard/64k-0.90.txt"),
        (Block::Bits64k, Rate::R15of16) => include_str!("standard/64k-0.9375.txt"),
        (Block::Bits64k, Rate::R19of20) => include_str!("standard/64k-0.95.txt"),
    }
}
