//! The linear equalizer: the least mean squares estimate of a voxel from the pixels around it.
//!
//! ```text
//! window   13 x 13 pixels of each flat image, around the middle of the voxel, and 1
//! estimate window . taps, which is to be exp(2 i azimuth)
//! ```
//!
//! The middle of a voxel is rarely that of a pixel. Images are not resampled for that: resampling
//! is linear, so the taps are, once for each of 8 x 8 fractions of a pixel, and a voxel takes the
//! taps of its fraction. The window then is 16 x 16 pixels, which are 64 numbers a row when the
//! images lie interleaved.

use fulgurite_glass::channel::{Medium, SectorImages, SectorShape};
use fulgurite_glass::numeric::vectorized;
use serde::{Deserialize, Serialize};

use crate::cubic::cubic;
use crate::flat::BORDER;
use crate::front::Front;
use crate::{DecodeError, Decoder, Demapper, Displacement, Flat, SymbolProbabilities};

/// Pixels on each side of the middle of a window.
pub(crate) const BESIDE: usize = 6;

/// Pixels of a window's side.
pub(crate) const WINDOW: usize = 2 * BESIDE + 1;

/// Pixels of a side when the window may lie between pixels.
const WIDE: usize = WINDOW + 3;

/// Fractions of a pixel.
const FRACTIONS: usize = 8;

/// A trained equalizer, as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    medium: Medium,
    pixels_per_pitch: usize,
    is_registered: bool,
    /// For both parts of the estimate: image by image, row by row, and the constant last.
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
    bank: Vec<f32>,
    front: Front,
    /// From estimates to probabilities.
    pub demapper: Demapper,
}

/// Weights of a window: image by image, row by row, for both parts of the estimate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Taps {
    pub(crate) images: usize,
    /// As many as pixels in all windows, and the constant last.
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
        let bank = bank(&taps);
        Self { medium, per_pitch, is_registered, taps, bank, front: Front::default(), demapper }
    }

    /// The same with other taps.
    pub(crate) fn with_taps(&self, taps: Taps) -> Self {
        Self::new(self.medium, self.per_pitch, self.is_registered, taps, self.demapper.clone())
    }

    pub(crate) const fn taps(&self) -> &Taps {
        &self.taps
    }

    pub(crate) const fn medium(&self) -> Medium {
        self.medium
    }

    /// Where the voxels of a sector are; its flat images are in `front`.
    pub(crate) fn look(
        &self,
        front: &mut Front,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<Displacement, DecodeError> {
        front.look(images, shape, self.medium, self.per_pitch, self.is_registered)
    }

    /// The estimate of each voxel.
    pub(crate) fn estimates(
        &self,
        flat: &Flat,
        displacement: &Displacement,
        shape: SectorShape,
    ) -> Vec<[f32; 2]> {
        let mut estimates = vec![[0.0; 2]; shape.voxels()];
        let constant = [0, 1].map(|part| self.taps.weights[part].last().copied().unwrap_or(0.0));
        vectorized(
            #[inline(always)]
            || {
                for row in 0..shape.rows() {
                    let line = &mut estimates[row * shape.columns()..][..shape.columns()];
                    for (column, estimate) in line.iter_mut().enumerate() {
                        let at = [row, column].map(|voxel| voxel * self.per_pitch);
                        let by = displacement.at(row, column);
                        let (from, fraction) =
                            flat.window(at.map(|at| at + self.per_pitch / 2), by);
                        let sums = if flat.images == 4 {
                            flat.sums::<4>(from, &self.bank, fraction)
                        } else {
                            flat.sums::<1>(from, &self.bank, fraction)
                        };
                        *estimate = [sums[0] + constant[0], sums[1] + constant[1]];
                    }
                }
            },
        );
        estimates
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
            return refuse("a tap is no number".to_owned());
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
        let mut front = std::mem::take(&mut self.front);
        let found = self.look(&mut front, images, shape).map(|displacement| {
            let estimates = self.estimates(&front.flat, &displacement, shape);
            self.demapper.probabilities(&estimates)
        });
        self.front = front;
        found
    }
}

impl Flat {
    /// First pixel of the wide window around a place, and the fraction in the bank.
    #[inline(always)]
    fn window(&self, at: [usize; 2], by: [f32; 2]) -> (usize, usize) {
        let split = |at: usize, by: f32, len: usize| {
            #[expect(clippy::cast_precision_loss, reason = "8")]
            let eighths = (by * FRACTIONS as f32).round();
            #[expect(clippy::cast_possible_truncation, reason = "a few pixels")]
            let eighths = (at * FRACTIONS).cast_signed() + eighths as isize;
            let first = eighths.div_euclid(FRACTIONS.cast_signed());
            // One pixel before the window for the fraction's sake.
            let first = first + (BORDER - BESIDE - 1).cast_signed();
            let first = first.clamp(0, (len - WIDE).cast_signed()).cast_unsigned();
            (first, eighths.rem_euclid(FRACTIONS.cast_signed()).cast_unsigned())
        };
        let (row, down) = split(at[0], by[0], self.rows);
        let (column, right) = split(at[1], by[1], self.columns);
        ((row * self.columns + column) * self.images, down * FRACTIONS + right)
    }

    /// Products of a wide window of `N` images with both sets of taps of a fraction.
    #[inline(always)]
    fn sums<const N: usize>(&self, from: usize, bank: &[f32], fraction: usize) -> [f32; 2] {
        let step = WIDE * N;
        let taps = &bank[fraction * 2 * WIDE * step..][..2 * WIDE * step];
        let stride = self.columns * N;
        // 16 pixels of up to four images: sums of up to 64 lanes.
        let (mut first, mut second) = ([0.0f32; WIDE * 4], [0.0f32; WIDE * 4]);
        for row in 0..WIDE {
            let pixels = &self.values[from + row * stride..][..step];
            let pair = &taps[2 * row * step..][..2 * step];
            let (a, b) = pair.split_at(step);
            for lane in 0..step {
                first[lane] += pixels[lane] * a[lane];
                second[lane] += pixels[lane] * b[lane];
            }
        }
        [first, second].map(|sums| {
            let mut eight = [0.0f32; 8];
            for chunk in sums.as_chunks::<8>().0 {
                for lane in 0..8 {
                    eight[lane] += chunk[lane];
                }
            }
            eight.iter().sum()
        })
    }
}

/// The taps of every fraction of a pixel, row by row: first part, second part.
fn bank(taps: &Taps) -> Vec<f32> {
    let images = taps.images;
    let row = WIDE * images;
    let mut bank = vec![0.0; FRACTIONS * FRACTIONS * WIDE * 2 * row];
    for down in 0..FRACTIONS {
        for right in 0..FRACTIONS {
            let (vertical, horizontal) = (fraction_weights(down), fraction_weights(right));
            let from = (down * FRACTIONS + right) * WIDE * 2 * row;
            let out = &mut bank[from..][..WIDE * 2 * row];
            for part in 0..2 {
                for (i, weight) in
                    taps.weights[part].iter().enumerate().take(images * WINDOW * WINDOW)
                {
                    let (image, y, x) = (i / (WINDOW * WINDOW), i / WINDOW % WINDOW, i % WINDOW);
                    for (dy, v) in vertical.iter().enumerate() {
                        for (dx, h) in horizontal.iter().enumerate() {
                            let at = ((y + dy) * 2 + part) * row + (x + dx) * images + image;
                            out[at] += weight * v * h;
                        }
                    }
                }
            }
        }
    }
    bank
}

/// Weights of four pixels for the value at a fraction behind the second.
pub(crate) fn fraction_weights(fraction: usize) -> [f32; 4] {
    #[expect(clippy::cast_precision_loss, reason = "at most 7")]
    let t = fraction as f32 / FRACTIONS as f32;
    cubic(t)
}
