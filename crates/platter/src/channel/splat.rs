//! From voxels to pixels: each voxel is a Gaussian spot at its own sub-pixel position.
//!
//! The spot's width follows the local focus error, and its height falls as its area grows, so light
//! is conserved. A spot is 13 rows of 16 pixels: 2.4 sigma at the worst focus of the presets.

use super::Channel;
use super::fingerprint::{Optics, nearest};
use super::write::WrittenSector;
use crate::numeric::Plane;
use crate::numeric::{LANE_INDICES, LANES, dispatch_simd, exp_negative};

/// Rows above and below the center of a spot.
const SPOT_HALF_ROWS: usize = 6;

/// Rows per spot.
const SPOT_ROWS: usize = 2 * SPOT_HALF_ROWS + 1;

/// Pixels left of the center of a spot; there is one more to the right.
const PIXELS_LEFT: usize = LANES / 2 - 1;

/// Pixels around an image into which spots at its edge extend.
pub(super) const BORDER: usize = 12;

/// Maximum distance of spot centers outside the image.
const OUTSIDE_MAX: isize = (BORDER - LANES / 2) as isize;

const _: () = assert!(BORDER > SPOT_HALF_ROWS + 4 && BORDER > LANES / 2);

/// Width and brightness of spots, by the distance from focus.
struct Focus {
    /// Variance of a spot in focus, in square pixels.
    sharp: f32,
    /// Variance added per square micrometer of defocus.
    cone: f32,
}

/// Adds the light of every voxel to the planes, which have a border of [`BORDER`] pixels.
pub(super) fn splat(
    channel: &Channel,
    optics: &Optics,
    defocus_um: f64,
    sector: &WrittenSector,
    planes: &mut [Plane; 2],
) {
    let pixels = f64::from(channel.optics.pixels_per_pitch);
    let sharp = (channel.blur_pitches(0.0) * pixels).powi(2);
    let cone = (0.5 * channel.cone() / channel.voxels.pitch_um * pixels).powi(2);
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let focus = Focus { sharp: sharp as f32, cone: cone as f32 };
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let defocus = defocus_um as f32;
    dispatch_simd(
        #[inline(always)]
        || {
            for row in 0..sector.shape.rows() {
                line(pixels, optics, defocus, &focus, sector, row, planes);
            }
        },
    );
}

#[inline(always)]
fn line(
    pixels: f64,
    optics: &Optics,
    defocus: f32,
    focus: &Focus,
    sector: &WrittenSector,
    row: usize,
    planes: &mut [Plane; 2],
) {
    #[expect(clippy::cast_possible_truncation, reason = "at most 4")]
    let pitch = pixels as f32;
    let (height, width) = (sector.shape.rows(), sector.shape.columns());
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let (half_height, half_width, at) = (height as f32 / 2.0, width as f32 / 2.0, row as f32);
    let u = (at - half_height) / half_height;
    let [real, imaginary] = [0, 1].map(|part| sector.field[part].row(row));
    let [along, across] = [0, 1].map(|part| sector.offsets[part].row(row));
    let (warp, [down, right]) = (&optics.warp, optics.shift);
    let [f0, f1, f2, f3] = optics.focus;
    for column in 0..width {
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let x = column as f32;
        let t = (x - half_width) / half_width;
        let r2 = u * u + t * t;
        let bend = warp[4] * (r2 - 0.7) * 0.7;
        let dy = down + warp[0] * u + warp[1] * t + bend * u + warp[6] * u * t * 0.5;
        let dx = right + warp[2] * u + warp[3] * t + bend * t + warp[7] * u * t * 0.5;
        let y = (at + 0.5 + across[column]) * pitch - 0.5 + dy;
        let x = (x + 0.5 + along[column]) * pitch - 0.5 + dx;
        let dz = defocus + f0 + 0.5 * (f1 * u + f2 * t + f3 * (r2 - 0.67));
        let variance = focus.sharp + focus.cone * dz * dz;
        let bright = focus.sharp / variance;
        let voxel = [real[column] * bright, imaginary[column] * bright];
        spot([y, x], 0.5 / variance, voxel, planes);
    }
}

#[inline(always)]
fn spot([y, x]: [f32; 2], rate: f32, [real, imaginary]: [f32; 2], planes: &mut [Plane; 2]) {
    let columns = planes[0].columns;
    let last_row = (planes[0].rows - 2 * BORDER).cast_signed() - 1;
    let last_column = (columns - 2 * BORDER).cast_signed() - 1;
    let (row, _) = nearest(y);
    let (column, _) = nearest(x);
    let row = row.clamp(-OUTSIDE_MAX, last_row + OUTSIDE_MAX);
    let column = column.clamp(-OUTSIDE_MAX, last_column + OUTSIDE_MAX);
    #[expect(clippy::cast_precision_loss, reason = "thousands of pixels")]
    let (fy, fx) = (y - row as f32, x - column as f32);
    #[expect(clippy::cast_precision_loss, reason = "at most 7")]
    let (above, left_of) = (SPOT_HALF_ROWS as f32 + fy, PIXELS_LEFT as f32 + fx);
    let mut down = [0.0f32; LANES];
    let mut right = [0.0f32; LANES];
    for lane in 0..LANES {
        let (a, b) = (LANE_INDICES[lane] - above, LANE_INDICES[lane] - left_of);
        down[lane] = exp_negative(rate * a * a);
        right[lane] = exp_negative(rate * b * b);
    }
    let top = (row + BORDER.cast_signed()).cast_unsigned() - SPOT_HALF_ROWS;
    let left = (column + BORDER.cast_signed()).cast_unsigned() - PIXELS_LEFT;
    let [first, second] = planes;
    for (k, weight) in down[..SPOT_ROWS].iter().enumerate() {
        let from = (top + k) * columns + left;
        for (plane, part) in [(&mut *first, real), (&mut *second, imaginary)] {
            let part = weight * part;
            if let Some(pixels) = plane.values[from..].first_chunk_mut::<LANES>() {
                for lane in 0..LANES {
                    pixels[lane] += part * right[lane];
                }
            }
        }
    }
}
