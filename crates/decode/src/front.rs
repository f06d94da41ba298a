//! The front end of all decoders, with buffers that are reused from sector to sector.

use fulgurite_platter::channel::{Medium, SectorImages, SectorShape};
use fulgurite_platter::numeric::Plane;

use crate::decoder::check;
use crate::{DecodeError, Displacement, FlatImages, resample};

/// The flat images and the positions of voxels, of one sector after another.
#[derive(Clone, Debug, Default)]
pub struct FrontEnd {
    pub(crate) flat: FlatImages,
    registered: Vec<Plane>,
    #[cfg(feature = "learned")]
    pixels: resample::Pixels,
}

/// Registered images of a sector.
#[cfg(feature = "learned")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum RegisteredImages<'a> {
    /// One plane per image.
    Planes(&'a [Plane]),
    /// Interleaved bytes of this many images.
    Bytes { pixels: &'a resample::Pixels, states: usize, range: resample::Range },
}

impl FrontEnd {
    /// Creates a front end without a sector.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Flattens the images of a sector, and finds its voxels if `is_registered`.
    pub(crate) fn preprocess(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
        medium: Medium,
        per_pitch: usize,
        is_registered: bool,
    ) -> Result<Displacement, DecodeError> {
        check(images, shape, medium.images(), per_pitch)?;
        self.flat.set(images, per_pitch);
        let found = is_registered.then(|| Displacement::find(&self.flat, shape));
        Ok(found.unwrap_or_else(|| Displacement::zero(shape)))
    }

    /// Returns the flat images of a sector, registered and resampled: one plane per image, with
    /// each voxel in the center of its own square of `per_pitch` pixels.
    ///
    /// # Errors
    /// [`DecodeError::Images`] when the images do not have the sector's size or count.
    pub fn registered(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
        medium: Medium,
        per_pitch: usize,
    ) -> Result<&mut [Plane], DecodeError> {
        let displacement = self.preprocess(images, shape, medium, per_pitch, true)?;
        resample::planes(&self.flat, &displacement, shape, &mut self.registered);
        Ok(&mut self.registered)
    }

    /// Like `registered`, but quantized to bytes if there is a range.
    #[cfg(feature = "learned")]
    pub(crate) fn register_images(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
        medium: Medium,
        per_pitch: usize,
        range: Option<resample::Range>,
    ) -> Result<RegisteredImages<'_>, DecodeError> {
        let Some(range) = range else {
            return Ok(RegisteredImages::Planes(
                self.registered(images, shape, medium, per_pitch)?,
            ));
        };
        let displacement = self.preprocess(images, shape, medium, per_pitch, true)?;
        resample::bytes(&self.flat, &displacement, shape, range, &mut self.pixels);
        Ok(RegisteredImages::Bytes { pixels: &self.pixels, states: images.count, range })
    }
}

/// Returns the result of [`FrontEnd::registered`] for one sector.
///
/// # Errors
/// As that.
pub fn registered(
    images: &SectorImages,
    shape: SectorShape,
    medium: Medium,
    per_pitch: usize,
) -> Result<Vec<Plane>, DecodeError> {
    FrontEnd::new().registered(images, shape, medium, per_pitch).map(|planes| planes.to_vec())
}
