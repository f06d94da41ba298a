//! Images with the illumination taken out, and the field that they show.
//!
//! ```text
//! flat  = image / its mean over 4 pitches around - 1
//! field = (flat 3 - flat 1, flat 0 - flat 2), less its mean over 3 pitches around
//! ```
//!
//! The difference of opposite states is proportional to the field of the glass; slow light, which
//! is other layers and the glass itself, is taken out with the mean.

use fulgurite_glass::channel::SectorImages;
use fulgurite_glass::numeric::{HALVING_VARIANCE, Magnifier, Plane, blur, halve, vectorized};

/// Radius of the mean that is the illumination, in pitches.
const ILLUMINATION_PITCHES: f32 = 4.0;

/// Radius of the mean that is slow light, in pitches.
const SLOW_PITCHES: f32 = 3.0;

/// Flat images of a sector.
#[derive(Clone, Debug)]
pub struct Flat {
    pub(crate) per_pitch: usize,
    /// One plane an image.
    pub(crate) images: Vec<Plane>,
}

impl Flat {
    /// Takes the illumination out.
    ///
    /// # Panics
    /// When the images are not of whole voxels.
    #[must_use]
    pub fn new(images: &SectorImages, per_pitch: usize) -> Self {
        let (rows, columns) = (images.rows, images.columns);
        assert!(rows % (2 * per_pitch) == 0 && columns % (2 * per_pitch) == 0, "whole voxels");
        let flat = |index: usize| {
            let pixels = images.image(index);
            let mut plane = Plane::new(rows, columns);
            vectorized(
                #[inline(always)]
                || {
                    for (value, pixel) in plane.values.iter_mut().zip(pixels) {
                        *value = f32::from(*pixel);
                    }
                },
            );
            let around = around(&plane, per_pitch, ILLUMINATION_PITCHES);
            change(&mut plane, per_pitch, &around, |value, mean| value / mean.max(1.0) - 1.0);
            plane
        };
        Self { per_pitch, images: (0..images.count).map(flat).collect() }
    }

    /// Real and imaginary part of the field; of one image, that and zeros.
    #[must_use]
    pub fn field(&self) -> [Plane; 2] {
        let parts = match &self.images[..] {
            [first, second, third, fourth] => [(fourth, Some(second)), (first, Some(third))],
            [only, ..] => [(only, None), (only, Some(only))],
            [] => return [Plane::default(), Plane::default()],
        };
        parts.map(|(plus, minus)| {
            let mut plane = plus.clone();
            if let Some(minus) = minus {
                plane.add(-1.0, minus);
            }
            let slow = around(&plane, self.per_pitch, SLOW_PITCHES);
            change(&mut plane, self.per_pitch, &slow, |value, mean| value - mean);
            plane
        })
    }
}

/// The mean over so many pitches around each two voxels.
fn around(plane: &Plane, per_pitch: usize, pitches: f32) -> Plane {
    let mut means = Plane::new(plane.rows / per_pitch, plane.columns / per_pitch);
    #[expect(clippy::cast_precision_loss, reason = "at most 16")]
    let share = 1.0 / (per_pitch * per_pitch) as f32;
    let mut line = vec![0.0; plane.columns];
    for row in 0..means.rows {
        vectorized(
            #[inline(always)]
            || {
                line.copy_from_slice(plane.row(row * per_pitch));
                for k in 1..per_pitch {
                    for (sum, value) in line.iter_mut().zip(plane.row(row * per_pitch + k)) {
                        *sum += value;
                    }
                }
            },
        );
        for (mean, pixels) in means.row_mut(row).iter_mut().zip(line.chunks_exact(per_pitch)) {
            *mean = share * pixels.iter().sum::<f32>();
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "1.5")]
    let rest = (pitches * pitches - HALVING_VARIANCE as f32).sqrt();
    blur(&halve(&means), 0.5 * rest)
}

/// Changes every pixel by the mean around it.
fn change(plane: &mut Plane, per_pitch: usize, around: &Plane, by: impl Fn(f32, f32) -> f32) {
    let mut magnifier = Magnifier::new(per_pitch, around.columns);
    let mut means = vec![0.0; plane.columns];
    for row in 0..plane.rows {
        let pixels = &mut plane.values[row * plane.columns..][..plane.columns];
        vectorized(
            #[inline(always)]
            || {
                magnifier.row(around, row, &mut means);
                for (value, mean) in pixels.iter_mut().zip(&means) {
                    *value = by(*value, *mean);
                }
            },
        );
    }
}
