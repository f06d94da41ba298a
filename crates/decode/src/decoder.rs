//! What every decoder can do.

use fulgurite_codes::CodeError;
use fulgurite_codes::symbols::Demapper;
use fulgurite_glass::channel::{SectorImages, SectorShape};

use crate::{DecodeError, SymbolProbabilities};

/// From the images of a sector to the probabilities of its symbols.
pub trait Decoder {
    /// Its name in tables and reports.
    fn name(&self) -> &str;

    /// The model it decodes with; only learned decoders have one.
    #[cfg(feature = "learned")]
    fn model_id(&self) -> Option<crate::ModelId> {
        None
    }

    /// Decodes a whole sector.
    ///
    /// # Errors
    /// [`DecodeError::Images`] when the images do not have the sector's size or count; learned
    /// decoders: [`DecodeError::ModelNumber`] and [`DecodeError::Engine`].
    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError>;

    /// Decodes a whole sector to the soft bits of its voxels, row by row, as the demapper makes
    /// them of logarithms. What needs no probabilities is faster without: they are eight numbers
    /// a voxel, written and read.
    ///
    /// # Errors
    /// As [`Self::decode`]; [`DecodeError::Demapper`] when the demapper is of another alphabet.
    fn soft_bits(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
        demapper: &Demapper,
        soft: &mut Vec<i8>,
    ) -> Result<(), DecodeError> {
        let found = self.decode(images, shape)?;
        soft.resize(shape.voxels() * bits_of(found.symbols()), 0);
        demapper.logarithms(found.logarithms(), soft).map_err(refused)
    }
}

/// Bits that so many symbols stand for.
pub(crate) const fn bits_of(symbols: usize) -> usize {
    symbols.ilog2() as usize
}

/// Soft bits that do not go with the demapper.
pub(crate) fn refused(error: CodeError) -> DecodeError {
    DecodeError::Demapper { reason: error.to_string() }
}

/// Checks images against the sector they should be of.
pub(crate) fn check(
    images: &SectorImages,
    shape: SectorShape,
    count: usize,
    per_pitch: usize,
) -> Result<(), DecodeError> {
    let (rows, columns) = (shape.rows() * per_pitch, shape.columns() * per_pitch);
    let whole = images.pixels.len() == images.count * images.rows * images.columns;
    if (images.count, images.rows, images.columns) == (count, rows, columns) && whole {
        return Ok(());
    }
    Err(DecodeError::Images {
        found: format!(
            "{} of {} x {} pixels ({} in all)",
            images.count,
            images.rows,
            images.columns,
            images.pixels.len()
        ),
        expected: format!("{count} of {rows} x {columns}"),
        rows: shape.rows(),
        columns: shape.columns(),
    })
}
