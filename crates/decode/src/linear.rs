//! The linear equalizer: the least mean squares estimate of a voxel from the pixels around it.
//!
//! ```text
//! window   13 x 13 pixels of each flat image, around the middle of the voxel, and 1
//! estimate window . taps, which is to be exp(2 i azimuth)
//! ```
//!
//! The center of a voxel is rarely that of a pixel. Instead of the images, the taps are resampled,
//! which is equivalent because resampling is linear: once for each of 8 x 8 fractions of a pixel. A
//! voxel uses the taps for its fraction (`bank`). The window is then 16 x 16 pixels, which are 64
//! bytes a row, and taps are bytes too: sums are integers, the same on every processor (`kernel`).
//! Neighbors in a row mostly have the same fraction, so taps are loaded once for several of them.

mod bank;
mod kernel;

use fulgurite_codes::symbols;
use fulgurite_platter::channel::{Medium, SectorImages, SectorShape};
use serde::{Deserialize, Serialize};

use self::bank::Bank;
use self::kernel::{Kernel, Windows};
use crate::cubic::cubic;
use crate::decoder::demapper_error;
use crate::front::FrontEnd;
use crate::positions::{Run, VoxelPositions, Window};
use crate::{DecodeError, Decoder, Demapper, Displacement, FlatImages, SymbolProbabilities};

/// Pixels on each side of the center of a window.
pub(crate) const HALF_WINDOW: usize = 6;

/// Side of a window in pixels.
pub(crate) const WINDOW: usize = 2 * HALF_WINDOW + 1;

/// Side of a window that may lie between pixels.
const WIDE_WINDOW: usize = WINDOW + 3;

/// Fractions per pixel.
const FRACTIONS: usize = 8;

/// The stored form of a trained equalizer.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    medium: Medium,
    pixels_per_pitch: usize,
    is_registered: bool,
    /// For both components of the estimate: image by image, row by row, and the constant last.
    taps: [Vec<f32>; 2],
    demapper: Demapper,
}

/// A trained equalizer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Linear {
    medium: Medium,
    per_pitch: usize,
    is_registered: bool,
    taps: Taps,
    bank: Bank,
    front: FrontEnd,
    scratch: Scratch,
    /// Converts estimates to probabilities.
    pub demapper: Demapper,
}

/// Buffers that are reused from sector to sector.
#[derive(Clone, Debug, Default)]
struct Scratch {
    estimates: Vec<[f32; 2]>,
    blocks: Vec<f32>,
}

/// Weights of a window: image by image, row by row, for both components of the estimate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Taps {
    pub(crate) images: usize,
    /// One for each pixel of all windows, and the constant last.
    pub(crate) weights: [Vec<f32>; 2],
}

impl Linear {
    pub(crate) fn new(
        medium: Medium,
        per_pitch: usize,
        is_registered: bool,
        taps: Taps,
        demapper: Demapper,
    ) -> Self {
        let bank = Bank::new(&taps);
        let (front, scratch) = (FrontEnd::default(), Scratch::default());
        Self { medium, per_pitch, is_registered, taps, bank, front, scratch, demapper }
    }

    /// Returns a copy with other taps.
    pub(crate) fn with_taps(&self, taps: Taps) -> Self {
        Self::new(self.medium, self.per_pitch, self.is_registered, taps, self.demapper.clone())
    }

    pub(crate) const fn taps(&self) -> &Taps {
        &self.taps
    }

    pub(crate) const fn medium(&self) -> Medium {
        self.medium
    }

    /// Flattens the images of a sector into `front`, and finds its voxels.
    pub(crate) fn preprocess(
        &self,
        front: &mut FrontEnd,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<Displacement, DecodeError> {
        front.preprocess(images, shape, self.medium, self.per_pitch, self.is_registered)
    }

    /// Estimates each voxel.
    pub(crate) fn estimates(
        &self,
        flat: &FlatImages,
        displacement: &Displacement,
        shape: SectorShape,
    ) -> Vec<[f32; 2]> {
        let mut estimates = Vec::new();
        self.estimate(flat, displacement, shape, &mut estimates);
        estimates
    }

    /// Estimates each voxel, in an existing buffer.
    fn estimate(
        &self,
        flat: &FlatImages,
        displacement: &Displacement,
        shape: SectorShape,
        estimates: &mut Vec<[f32; 2]>,
    ) {
        estimates.resize(shape.voxels(), [0.0; 2]);
        let mut positions = VoxelPositions::<FRACTIONS>::default();
        let window =
            Window { anchor: flat.per_pitch / 2, before: HALF_WINDOW + 1, side: WIDE_WINDOW };
        let mut sums = vec![[0; 2]; shape.columns()];
        let kernel = Kernel::current();
        for (row, line) in estimates.chunks_exact_mut(shape.columns()).enumerate() {
            positions.set(displacement, row);
            let mut column = 0;
            while column < line.len() {
                let Run { count, first: [top, left], fraction } =
                    positions.run(flat, column, window);
                let windows = Windows {
                    pixels: &flat.values[top * flat.columns + left..],
                    row: flat.columns,
                    step: flat.per_pitch,
                };
                let fraction = fraction[0] * FRACTIONS + fraction[1];
                kernel.run(windows, self.bank.taps(fraction), &mut sums[..count]);
                let own = &mut line[column..column + count];
                self.bank.estimates(fraction, &sums[..count], own);
                column += count;
            }
        }
    }

    /// Passes the estimates of a sector to `make`, and returns its result.
    fn with_estimates<T>(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
        make: impl FnOnce(&Self, &[[f32; 2]], &mut Vec<f32>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let (mut front, mut scratch) =
            (std::mem::take(&mut self.front), std::mem::take(&mut self.scratch));
        let made = self.preprocess(&mut front, images, shape).and_then(|displacement| {
            let Scratch { estimates, blocks } = &mut scratch;
            self.estimate(&front.flat, &displacement, shape, estimates);
            make(self, estimates, blocks)
        });
        (self.front, self.scratch) = (front, scratch);
        made
    }
}

impl TryFrom<Stored> for Linear {
    type Error = DecodeError;

    fn try_from(stored: Stored) -> Result<Self, DecodeError> {
        let Stored { medium, pixels_per_pitch, is_registered, taps, demapper } = stored;
        let images = medium.images();
        let refuse = |reason: String| Err(DecodeError::Fit { reason });
        let count = images * WINDOW * WINDOW + 1;
        if taps.iter().any(|taps| taps.len() != count) {
            return refuse(format!("an equalizer of {images} images has {count} taps a part"));
        }
        if !taps.iter().flatten().all(|tap| tap.is_finite()) {
            return refuse("a tap is not finite".to_owned());
        }
        if !(3..=4).contains(&pixels_per_pitch) {
            return refuse(format!("{pixels_per_pitch} pixels a pitch; there are 3 or 4"));
        }
        if demapper.symbols() != usize::from(medium.symbols()) {
            let (found, symbols) = (demapper.symbols(), medium.symbols());
            return refuse(format!("clouds of {found} symbols; the medium has {symbols}"));
        }
        let taps = Taps { images, weights: taps };
        Ok(Self::new(medium, pixels_per_pitch, is_registered, taps, demapper))
    }
}

impl From<Linear> for Stored {
    fn from(linear: Linear) -> Self {
        Self {
            medium: linear.medium,
            pixels_per_pitch: linear.per_pitch,
            is_registered: linear.is_registered,
            taps: linear.taps.weights,
            demapper: linear.demapper,
        }
    }
}

impl Decoder for Linear {
    fn name(&self) -> &str {
        if self.is_registered { "linear" } else { "linear-unregistered" }
    }

    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        self.with_estimates(images, shape, |own, estimates, _| {
            Ok(own.demapper.probabilities(estimates))
        })
    }

    fn soft_bits(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
        demapper: &symbols::Demapper,
        soft: &mut Vec<i8>,
    ) -> Result<(), DecodeError> {
        self.with_estimates(images, shape, |own, estimates, blocks| {
            soft.resize(estimates.len() * usize::from(own.medium.bits()), 0);
            own.demapper.soft_bits(estimates, demapper, blocks, soft).map_err(demapper_error)
        })
    }
}

/// Returns the weights of four pixels for the value at a fraction after the second.
pub(crate) fn fraction_weights(fraction: usize) -> [f32; 4] {
    #[expect(clippy::cast_precision_loss, reason = "at most 7")]
    let t = fraction as f32 / FRACTIONS as f32;
    cubic(t)
}
