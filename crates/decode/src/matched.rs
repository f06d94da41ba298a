//! The simplest decoder: samples the field at each voxel, and takes the nearest azimuth.
//!
//! A filter as wide as the spot would double the interference of neighbors (the pitch is 2.4 of its
//! sigma), so the field is only smoothed a little before it is sampled.

use fulgurite_platter::channel::{Medium, SectorImages, SectorShape};
use fulgurite_platter::numeric::{Plane, blur};

use crate::decoder::check;
use crate::{DecodeError, Decoder, Demapper, Displacement, FlatImages, SymbolProbabilities};

/// Blur before sampling, in pixels.
const SMOOTH_PIXELS: f32 = 0.45;

/// The decoder that samples the field.
#[derive(Clone, Debug)]
pub struct Matched {
    medium: Medium,
    per_pitch: usize,
    is_registered: bool,
    demapper: Demapper,
}

impl Matched {
    /// Fits the scatter of the field to sectors whose symbols are known.
    ///
    /// # Errors
    /// [`DecodeError`] when images do not fit the shape, or there are too few.
    pub fn fit<'a>(
        medium: Medium,
        per_pitch: usize,
        is_registered: bool,
        shape: SectorShape,
        known: impl IntoIterator<Item = (&'a SectorImages, &'a [u8])>,
    ) -> Result<Self, DecodeError> {
        let demapper = Demapper::isotropic(medium, 1.0)?;
        let mut decoder = Self { medium, per_pitch, is_registered, demapper };
        let (mut estimates, mut symbols) = (Vec::new(), Vec::new());
        for (images, own) in known {
            estimates.extend(decoder.estimates(images, shape)?);
            symbols.extend_from_slice(own);
        }
        decoder.demapper = Demapper::fit(medium, &estimates, &symbols)?;
        Ok(decoder)
    }

    fn estimates(
        &self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<Vec<[f32; 2]>, DecodeError> {
        check(images, shape, self.medium.images(), self.per_pitch)?;
        let flat = FlatImages::new(images, self.per_pitch);
        let displacement = if self.is_registered {
            Displacement::find(&flat, shape)
        } else {
            Displacement::zero(shape)
        };
        let smooth = flat.field().map(|plane| blur(&plane, SMOOTH_PIXELS));
        let mut estimates = Vec::with_capacity(shape.voxels());
        let middle = self.per_pitch / 2;
        for row in 0..shape.rows() {
            for column in 0..shape.columns() {
                let at = [row, column].map(|voxel| voxel * self.per_pitch + middle);
                let shift = displacement.voxel(row, column);
                estimates.push([0, 1].map(|part| bilinear(&smooth[part], at, shift)));
            }
        }
        // Normalize: the brightness differs from drive to drive.
        let square = |z: &[f32; 2]| z[0] * z[0] + z[1] * z[1];
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let power = estimates.iter().map(square).sum::<f32>() / estimates.len() as f32;
        let scale = 1.0 / power.sqrt().max(1e-9);
        for estimate in &mut estimates {
            *estimate = estimate.map(|part| part * scale);
        }
        Ok(estimates)
    }
}

impl Decoder for Matched {
    fn name(&self) -> &str {
        if self.is_registered { "matched" } else { "matched-unregistered" }
    }

    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        Ok(self.demapper.probabilities(&self.estimates(images, shape)?))
    }
}

/// Interpolates a plane at a pixel displaced by a fraction; borders repeat.
fn bilinear(plane: &Plane, [row, column]: [usize; 2], [down, right]: [f32; 2]) -> f32 {
    let split = |at: usize, shift: f32, len: usize| {
        let whole = shift.floor();
        #[expect(clippy::cast_possible_truncation, reason = "a few pixels")]
        let first = at.cast_signed() + whole as isize;
        let inside = |at: isize| at.clamp(0, len.cast_signed() - 1).cast_unsigned();
        (inside(first), inside(first + 1), shift - whole)
    };
    let (above, below, fy) = split(row, down, plane.rows);
    let (left, right, fx) = split(column, right, plane.columns);
    let line = |row: &[f32]| row[left] + fx * (row[right] - row[left]);
    let (above, below) = (line(plane.row(above)), line(plane.row(below)));
    above + fy * (below - above)
}
