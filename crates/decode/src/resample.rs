//! Resamples flat images to the grid of voxels: the input of a network.
//!
//! A network may learn to find voxels by itself. But it took what lay more than half a pitch from
//! its position for a neighbor, and spent much of its capacity on finding voxels at all.
//!
//! Each voxel's pixels are shifted by its displacement, bicubically, to the nearest 1/32 of a
//! pixel: a tenth of the stages' residual error, and coarse enough that neighbors mostly have the
//! same weights and are shifted together, in rows of pixels with all states interleaved.

use fulgurite_platter::channel::SectorShape;
#[cfg(feature = "learned")]
use fulgurite_platter::numeric::to_u16;
use fulgurite_platter::numeric::{Plane, dispatch_simd};

use crate::cubic::cubic;
use crate::flat::{MEAN, STATES, STEPS};
use crate::positions::{Run, VoxelPositions, Window};
use crate::{Displacement, FlatImages};

/// Fractions per pixel.
const FRACTIONS: usize = 32;

/// Pixels that a resampled one is computed from, in each dimension.
const TAPS: usize = 4;

/// Quantization of real numbers to bytes: `(byte - zero) * scale`.
#[cfg(feature = "learned")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The value of a step.
    pub scale: f32,
    /// The zero point.
    pub zero: u8,
}

/// Registered images in bytes, with states interleaved as in flat images.
#[cfg(feature = "learned")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Pixels {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<[u8; STATES]>,
}

/// Shifts each voxel of flat images to its nominal position; `out` becomes one plane per image.
pub(crate) fn planes(
    flat: &FlatImages,
    displacement: &Displacement,
    shape: SectorShape,
    out: &mut Vec<Plane>,
) {
    out.resize_with(flat.images, Plane::default);
    for plane in &mut *out {
        plane.resize(shape.rows() * flat.per_pitch, shape.columns() * flat.per_pitch);
    }
    let (mean, step) = (f32::from(MEAN), 1.0 / STEPS);
    rows(flat, displacement, shape, |row, moved| {
        for (image, plane) in out.iter_mut().enumerate() {
            dispatch_simd(
                #[inline(always)]
                || {
                    for (value, pixel) in plane.row_mut(row).iter_mut().zip(moved) {
                        *value = step * (pixel[image] - mean);
                    }
                },
            );
        }
    });
}

/// Like `planes`, but quantized to bytes of a range.
#[cfg(feature = "learned")]
pub(crate) fn bytes(
    flat: &FlatImages,
    displacement: &Displacement,
    shape: SectorShape,
    range: Range,
    out: &mut Pixels,
) {
    out.rows = shape.rows() * flat.per_pitch;
    out.columns = shape.columns() * flat.per_pitch;
    out.values.resize(out.rows * out.columns, [0; STATES]);
    let scale = 1.0 / (STEPS * range.scale);
    let zero = f32::from(range.zero) - f32::from(MEAN) * scale;
    rows(flat, displacement, shape, |row, moved| {
        let line = &mut out.values[row * out.columns..][..out.columns];
        dispatch_simd(
            #[inline(always)]
            || {
                let bytes = line.as_flattened_mut().iter_mut();
                for (byte, value) in bytes.zip(moved.as_flattened()) {
                    *byte = nearest_byte(value * scale + zero);
                }
            },
        );
    });
}

/// Rounds to the nearest of 0 to 255, ties to even; 0 for NaN.
#[cfg(feature = "learned")]
#[inline(always)]
pub(crate) fn nearest_byte(value: f32) -> u8 {
    to_u16(value.clamp(0.0, 255.0)).to_le_bytes()[0]
}

/// Shifts voxels, and passes on the rows of pixels one by one, in steps of a byte.
fn rows(
    flat: &FlatImages,
    displacement: &Displacement,
    shape: SectorShape,
    mut put: impl FnMut(usize, &[[f32; STATES]]),
) {
    let pitch = flat.per_pitch;
    let window = Window { anchor: 0, before: 1, side: pitch + TAPS - 1 };
    let weights: Vec<[f32; TAPS]> = (0..FRACTIONS).map(fraction_weights).collect();
    let width = shape.columns() * pitch;
    let mut positions = VoxelPositions::<FRACTIONS>::default();
    let mut strip = vec![[0.0; STATES]; pitch * width];
    let mut line = vec![0.0; (width + TAPS - 1) * STATES];
    for row in 0..shape.rows() {
        positions.set(displacement, row);
        let mut column = 0;
        while column < shape.columns() {
            let Run { count, first: [top, left], fraction } = positions.run(flat, column, window);
            let [down, right] = fraction.map(|fraction| weights[fraction]);
            for y in 0..pitch {
                let from = (top + y) * flat.columns + left;
                let to = &mut strip[y * width + column * pitch..][..count * pitch];
                dispatch_simd(
                    #[inline(always)]
                    || pixel_row(&flat.values[from..], flat.columns, [down, right], &mut line, to),
                );
            }
            column += count;
        }
        for (y, moved) in strip.chunks_exact(width).enumerate() {
            put(row * pitch + y, moved);
        }
    }
}

/// Computes a row of pixels with the same shift: vertically first, then horizontally.
#[inline(always)]
fn pixel_row(
    pixels: &[[u8; STATES]],
    stride: usize,
    [down, right]: [[f32; TAPS]; 2],
    line: &mut [f32],
    out: &mut [[f32; STATES]],
) {
    let out = out.as_flattened_mut();
    let wide = out.len() + (TAPS - 1) * STATES;
    let source = |k: usize| &pixels[k * stride..].as_flattened()[..wide];
    let [a, b, c, d] = [source(0), source(1), source(2), source(3)];
    let line = &mut line[..wide];
    for at in 0..wide {
        let [a, b, c, d] = [a[at], b[at], c[at], d[at]].map(f32::from);
        line[at] = (down[0] * a + down[1] * b) + (down[2] * c + down[3] * d);
    }
    let moved = |k: usize| &line[k * STATES..][..out.len()];
    let [a, b, c, d] = [moved(0), moved(1), moved(2), moved(3)];
    for (at, out) in out.iter_mut().enumerate() {
        *out = (right[0] * a[at] + right[1] * b[at]) + (right[2] * c[at] + right[3] * d[at]);
    }
}

/// Returns the weights of four pixels for the value at a fraction after the second.
fn fraction_weights(fraction: usize) -> [f32; TAPS] {
    #[expect(clippy::cast_precision_loss, reason = "below 32")]
    let t = fraction as f32 / FRACTIONS as f32;
    cubic(t)
}
