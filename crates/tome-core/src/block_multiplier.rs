//! Adds a block times a byte to another block, as fast as the codes do it.
//!
//! Any factor occurs somewhere in the matrix of a small code, and updating parity for a change is
//! that product. Not here: which factors a rebuild uses.

use fulgurite_codes::small::{SmallCode, points};

use crate::Result;

/// Adds blocks scaled by one factor.
#[derive(Clone, Debug)]
pub struct BlockMultiplier(Option<MatrixCell>);

/// Where the factor is in the matrix.
#[derive(Clone, Debug)]
struct MatrixCell {
    code: SmallCode,
    row: u8,
    column: u8,
}

impl BlockMultiplier {
    /// Returns the operation for a factor.
    ///
    /// # Errors
    /// None; errors of the code are passed on.
    ///
    /// # Panics
    /// When a nonzero factor is nowhere in the matrix: columns 0 and 1 contain all of them.
    pub fn new(factor: u8) -> Result<Self> {
        if factor == 0 {
            return Ok(Self(None));
        }
        // A code of `column + 1` data and `row + 1` parity has at most 255 members in all.
        let places = (0..2u8).flat_map(|column| (0..254 - column).map(move |row| (row, column)));
        let place =
            places.into_iter().find(|(row, column)| points::coefficient(*row, *column) == factor);
        let (row, column) = place.expect("two columns of the matrix have every factor");
        let code = SmallCode::new(usize::from(column) + 1, usize::from(row) + 1)?;
        Ok(Self(Some(MatrixCell { code, row, column })))
    }

    /// Computes `sum += factor * block`.
    ///
    /// # Errors
    /// [`crate::TomeError::Code`] when the lengths differ.
    pub fn add(&self, block: &[u8], sum: &mut [u8]) -> Result<()> {
        if let Some(MatrixCell { code, row, column }) = &self.0 {
            code.update(usize::from(*column), block, &mut [(usize::from(*row), sum)])?;
        }
        Ok(())
    }
}
