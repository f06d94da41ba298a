//! Flat images put on the grid of voxels: what a network sees.
//!
//! A network may learn to find voxels by itself; but what lay more than half a pitch from its
//! place it took for its neighbor, and much of it was spent on finding voxels at all.

use fulgurite_glass::channel::{Medium, SectorImages, SectorShape};
use fulgurite_glass::numeric::{Plane, vectorized};

use crate::decoder::check;
use crate::interleaved::{BORDER, Interleaved, cubic};
use crate::{DecodeError, Displacement, Flat};

/// Flat images of a sector, registered and resampled: a plane an image, with each voxel in the
/// middle of its own square of `per_pitch` pixels.
///
/// # Errors
/// [`DecodeError::Images`] when the images do not have the sector's size or count.
pub fn registered(
    images: &SectorImages,
    shape: SectorShape,
    medium: Medium,
    per_pitch: usize,
) -> Result<Vec<Plane>, DecodeError> {
    check(images, shape, medium.images(), per_pitch)?;
    let flat = Flat::new(images, per_pitch);
    let displacement = Displacement::find(&flat, shape);
    let interleaved = Interleaved::new(&flat);
    Ok(match (images.count, per_pitch) {
        (4, 3) => resample::<4, 3, 6>(&interleaved, &displacement, shape),
        (4, 4) => resample::<4, 4, 7>(&interleaved, &displacement, shape),
        (1, 3) => resample::<1, 3, 6>(&interleaved, &displacement, shape),
        (1, 4) => resample::<1, 4, 7>(&interleaved, &displacement, shape),
        _ => unreachable!("a channel has 1 or 4 images of 3 or 4 pixels a voxel"),
    })
}

/// Moves the `PITCH` x `PITCH` pixels of each voxel by its displacement, bicubically, from the
/// `WIDE` x `WIDE` around them; `N` images at once.
fn resample<const N: usize, const PITCH: usize, const WIDE: usize>(
    from: &Interleaved,
    displacement: &Displacement,
    shape: SectorShape,
) -> Vec<Plane> {
    let mut out: Vec<Plane> =
        (0..N).map(|_| Plane::new(shape.rows() * PITCH, shape.columns() * PITCH)).collect();
    let (pixels, _) = from.values.as_chunks::<N>();
    vectorized(
        #[inline(always)]
        || {
            for row in 0..shape.rows() {
                for column in 0..shape.columns() {
                    let by = displacement.at(row, column);
                    let (top, down) = split(row * PITCH, by[0], from.rows - WIDE);
                    let (left, right) = split(column * PITCH, by[1], from.columns - WIDE);
                    let mut lines = [[[0.0f32; N]; WIDE]; PITCH];
                    for (y, line) in lines.iter_mut().enumerate() {
                        for (k, weight) in down.iter().enumerate() {
                            let at = (top + y + k) * from.columns + left;
                            for (sum, pixel) in line.iter_mut().zip(&pixels[at..at + WIDE]) {
                                for image in 0..N {
                                    sum[image] += weight * pixel[image];
                                }
                            }
                        }
                    }
                    for (y, line) in lines.iter().enumerate() {
                        let at = (row * PITCH + y) * shape.columns() * PITCH + column * PITCH;
                        for x in 0..PITCH {
                            let mut sum = [0.0f32; N];
                            for (weight, pixel) in right.iter().zip(&line[x..]) {
                                for image in 0..N {
                                    sum[image] += weight * pixel[image];
                                }
                            }
                            for image in 0..N {
                                out[image].values[at + x] = sum[image];
                            }
                        }
                    }
                }
            }
        },
    );
    out
}

/// First pixel that the value at `at + by` is made of, and the weights of it and the next three.
#[inline(always)]
fn split(at: usize, by: f32, last: usize) -> (usize, [f32; 4]) {
    let whole = by.floor();
    #[expect(clippy::cast_possible_truncation, reason = "at most a pitch")]
    let first = (at + BORDER - 1).cast_signed() + whole as isize;
    let first = first.max(0).cast_unsigned().min(last);
    (first, cubic(by - whole))
}
