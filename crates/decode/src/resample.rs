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
/// `WIDE` x `WIDE` around them; `N` images at once. Images lie side by side until a row of voxels
/// is done: a step of one pixel then is one of `N` numbers, and a line of all is a few vectors.
fn resample<const N: usize, const PITCH: usize, const WIDE: usize>(
    from: &Interleaved,
    displacement: &Displacement,
    shape: SectorShape,
) -> Vec<Plane> {
    let width = shape.columns() * PITCH;
    let mut out: Vec<Plane> = (0..N).map(|_| Plane::new(shape.rows() * PITCH, width)).collect();
    let (pixels, _) = from.values.as_chunks::<N>();
    let mut strip = vec![[0.0f32; N]; PITCH * width];
    vectorized(
        #[inline(always)]
        || {
            for row in 0..shape.rows() {
                let [by_down, by_right] = [0, 1].map(|part| displacement.by[part].row(row));
                for (column, by) in by_down.iter().zip(by_right).enumerate() {
                    let (top, down) = split(row * PITCH, *by.0, from.rows - WIDE);
                    let (left, right) = split(column * PITCH, *by.1, from.columns - WIDE);
                    for y in 0..PITCH {
                        let first = (top + y) * from.columns + left;
                        let sums = pixel_row::<N, PITCH, WIDE>(
                            &pixels[first..],
                            from.columns,
                            &down,
                            &right,
                        );
                        let at = y * width + column * PITCH;
                        strip[at..at + PITCH].copy_from_slice(&sums);
                    }
                }
                for (image, plane) in out.iter_mut().enumerate() {
                    let rows = &mut plane.values[row * PITCH * width..][..PITCH * width];
                    for (value, pixel) in rows.iter_mut().zip(&strip) {
                        *value = pixel[image];
                    }
                }
            }
        },
    );
    out
}

/// One row of the pixels of a voxel: down first, then to the right.
#[inline(always)]
fn pixel_row<const N: usize, const PITCH: usize, const WIDE: usize>(
    pixels: &[[f32; N]],
    columns: usize,
    down: &[f32; 4],
    right: &[f32; 4],
) -> [[f32; N]; PITCH] {
    let mut line = [[0.0f32; N]; WIDE];
    for (k, weight) in down.iter().enumerate() {
        let source = &pixels[k * columns..][..WIDE];
        for (sum, pixel) in line.as_flattened_mut().iter_mut().zip(source.as_flattened()) {
            *sum += weight * pixel;
        }
    }
    let mut sums = [[0.0f32; N]; PITCH];
    for (k, weight) in right.iter().enumerate() {
        let moved = &line[k..k + PITCH];
        for (sum, pixel) in sums.as_flattened_mut().iter_mut().zip(moved.as_flattened()) {
            *sum += weight * pixel;
        }
    }
    sums
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
