//! What every decoder can do.

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
