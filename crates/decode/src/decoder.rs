//! The trait of all decoders.

use fulgurite_codes::CodeError;
use fulgurite_codes::symbols::Demapper;
use fulgurite_platter::channel::{SectorImages, SectorShape};

use crate::{DecodeError, SymbolProbabilities};

/// Decodes the images of a sector to the probabilities of its symbols.
pub trait Decoder {
    /// Name in tables and reports.
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
    /// decoders: [`DecodeError::ModelNotFinite`] and [`DecodeError::Engine`].
    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError>;

    /// Decodes a whole sector to the soft bits of its voxels, row by row, as the demapper computes
    /// them from log-probabilities. Faster than [`Self::decode`] for callers that need no
    /// probabilities: those are eight numbers a voxel, written and read.
    ///
    /// # Errors
    /// As [`Self::decode`]; [`DecodeError::Demapper`] when the demapper is for another alphabet.
    fn soft_bits(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
        demapper: &Demapper,
        soft: &mut Vec<i8>,
    ) -> Result<(), DecodeError> {
        let found = self.decode(images, shape)?;
        soft.resize(shape.voxels() * bits_per_symbol(found.symbols()), 0);
        demapper.logarithms(found.logarithms(), soft).map_err(demapper_error)
    }
}

/// Returns the number of bits per symbol of an alphabet of `symbols`.
pub(crate) const fn bits_per_symbol(symbols: usize) -> usize {
    symbols.ilog2() as usize
}

/// Converts the error for soft bits that do not match the demapper.
pub(crate) fn demapper_error(error: CodeError) -> DecodeError {
    DecodeError::Demapper { reason: error.to_string() }
}

/// Checks that images have the size and count of a sector.
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
