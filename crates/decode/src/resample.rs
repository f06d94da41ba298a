//! Flat images put on the grid of voxels: what a network sees.
//!
//! A network may learn to find voxels by itself; but what lay more than half a pitch from its
//! place it took for its neighbor, and much of it was spent on finding voxels at all.

use fulgurite_glass::channel::SectorShape;
use fulgurite_glass::numeric::{Plane, vectorized};

use crate::cubic::cubic;
use crate::flat::BORDER;
use crate::{Displacement, Flat};

/// Moves each voxel of flat images to its place; `out` becomes a plane an image.
pub(crate) fn resample(
    flat: &Flat,
    displacement: &Displacement,
    shape: SectorShape,
    out: &mut Vec<Plane>,
) {
    out.resize_with(flat.images, Plane::default);
    for plane in &mut *out {
        plane.resize(shape.rows() * flat.per_pitch, shape.columns() * flat.per_pitch);
    }
    match (flat.images, flat.per_pitch) {
        (4, 3) => rows::<4, 3, 6>(flat, displacement, shape, out),
        (4, 4) => rows::<4, 4, 7>(flat, displacement, shape, out),
        (1, 3) => rows::<1, 3, 6>(flat, displacement, shape, out),
        (1, 4) => rows::<1, 4, 7>(flat, displacement, shape, out),
        _ => unreachable!("a channel has 1 or 4 images of 3 or 4 pixels a voxel"),
    }
}

/// Moves the `PITCH` x `PITCH` pixels of each voxel by its displacement, bicubically, from the
/// `WIDE` x `WIDE` around them; `N` images at once. Images lie side by side until a row of voxels
/// is done: a step of one pixel then is one of `N` numbers, and a line of all is a few vectors.
fn rows<const N: usize, const PITCH: usize, const WIDE: usize>(
    from: &Flat,
    displacement: &Displacement,
    shape: SectorShape,
    out: &mut [Plane],
) {
    let width = shape.columns() * PITCH;
    let (pixels, _) = from.values.as_chunks::<N>();
    let mut strip = vec![[0.0f32; N]; PITCH * width];
    for row in 0..shape.rows() {
        let [by_down, by_right] = [0, 1].map(|part| displacement.by[part].row(row));
        vectorized(
            #[inline(always)]
            || {
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
            },
        );
    }
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
