//! A block times a byte, added to another block, as fast as the codes do it.
//!
//! Whatever factor: it stands somewhere in the matrix of a small code, and having parity follow a
//! change is that product. Not here: which factors a rebuild takes.

use fulgurite_codes::small::{SmallCode, points};

use crate::Result;

/// Adds blocks times one factor.
#[derive(Clone, Debug)]
pub struct Scaled(Option<Place>);

/// Where the factor stands.
#[derive(Clone, Debug)]
struct Place {
    code: SmallCode,
    row: u8,
    column: u8,
}

impl Scaled {
    /// Of this factor.
    ///
    /// # Errors
    /// None; what the code says otherwise.
    ///
    /// # Panics
    /// When a factor but zero stands nowhere in the matrix: columns 0 and 1 have all of them.
    pub fn new(factor: u8) -> Result<Self> {
        if factor == 0 {
            return Ok(Self(None));
        }
        // A code of `column + 1` data and `row + 1` parity has at most 255 of both.
        let places = (0..2u8).flat_map(|column| (0..254 - column).map(move |row| (row, column)));
        let place =
            places.into_iter().find(|(row, column)| points::coefficient(*row, *column) == factor);
        let (row, column) = place.expect("two columns of the matrix have every factor");
        let code = SmallCode::new(usize::from(column) + 1, usize::from(row) + 1)?;
        Ok(Self(Some(Place { code, row, column })))
    }

    /// `sum += factor * block`.
    ///
    /// # Errors
    /// [`crate::TomeError::Code`] when the lengths differ.
    pub fn add(&self, block: &[u8], sum: &mut [u8]) -> Result<()> {
        if let Some(Place { code, row, column }) = &self.0 {
            code.update(usize::from(*column), block, &mut [(usize::from(*row), sum)])?;
        }
        Ok(())
    }
}
