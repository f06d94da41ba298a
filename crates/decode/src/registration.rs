//! Registration: finds a shift for each block of 16 x 16 voxels, without knowing any symbol.
//!
//! Light is strongest at the center of voxels, so the energy of the field has a tone with the
//! period of the pitch, and the phase of that tone is the shift (Oerder and Meyr, IEEE Trans. Comm.
//! 36, 605, 1988, in two dimensions). It finds shifts up to half a pitch in each direction, without
//! any search.
//!
//! Three things were tried and cost sectors (docs/design/0007): searching for the most energy over
//! shifts, which is biased towards zero for small shifts; blurring the field first, which removes
//! the tone; and taking the phase of each block by itself, which at corners is off by a whole pitch
//! as soon as the sector is rotated or scaled by more than half of one.

use fulgurite_platter::channel::SectorShape;
use fulgurite_platter::numeric::{Plane, blur, sincos_turns};

use crate::FlatImages;
use crate::tones::BLOCK;

/// Coarse search step of slopes, in pixels from the center of a sector to its border.
const COARSE_PIXELS: f32 = 0.25;
const COARSE_STEPS: i8 = 8;

/// Fine search step around the best coarse one.
const FINE_PIXELS: f32 = 0.05;
const FINE_STEPS: i8 = 3;

/// Blur over neighboring blocks, in blocks.
const BLUR_BLOCKS: f32 = 1.5;

/// The displacement of each voxel's center from its nominal position, in pixels.
#[derive(Clone, Debug)]
pub struct Displacement {
    /// Vertical and horizontal.
    pub(crate) shift: [Plane; 2],
}

impl Displacement {
    /// Returns zero displacement.
    #[must_use]
    pub fn zero(shape: SectorShape) -> Self {
        Self { shift: [0, 1].map(|_| Plane::new(shape.rows(), shape.columns())) }
    }

    /// Finds the voxels of a sector.
    #[must_use]
    pub fn find(flat: &FlatImages, shape: SectorShape) -> Self {
        let shifts = flat.tones.by_axis().map(|tone| shift(tone, flat.per_pitch));
        Self { shift: shifts.map(|plane| interpolate_blocks(&plane, shape)) }
    }

    /// Returns the vertical and horizontal displacement of one voxel.
    #[must_use]
    pub fn voxel(&self, row: usize, column: usize) -> [f32; 2] {
        [self.shift[0].row(row)[column], self.shift[1].row(row)[column]]
    }
}

/// Converts the phase of a tone to a shift in pixels.
///
/// A phase determines a shift only modulo the pitch, and single blocks are unreliable out of focus.
/// So the offset and the slopes on which all blocks agree best are found first; the residual of
/// each block, smoothed over its neighbors, is far less than half a pitch.
fn shift(tone: [Plane; 2], per_pitch: usize) -> Plane {
    #[expect(clippy::cast_precision_loss, reason = "at most 4")]
    let pitch = per_pitch as f32;
    let trend = Trend::fit(&tone, pitch);
    let [mut real, mut imaginary] = tone;
    let mut shifts = Plane::new(real.rows, real.columns);
    for row in 0..shifts.rows {
        for column in 0..shifts.columns {
            let shift = trend.shift(&shifts, [row, column]);
            shifts.row_mut(row)[column] = shift;
            let (sin, cos) = sincos_turns(shift / pitch);
            let (re, im) = (&mut real.row_mut(row)[column], &mut imaginary.row_mut(row)[column]);
            (*re, *im) = (*re * cos - *im * sin, *re * sin + *im * cos);
        }
    }
    let [real, imaginary] = [real, imaginary].map(|plane| blur(&plane, BLUR_BLOCKS));
    for ((shift, re), im) in shifts.values.iter_mut().zip(&real.values).zip(&imaginary.values) {
        *shift -= im.atan2(*re) / std::f32::consts::TAU * pitch;
    }
    shifts
}

/// The shifts of a sector that is only moved, rotated and scaled.
#[derive(Clone, Copy, Debug, Default)]
struct Trend {
    /// In the center, in pixels.
    offset: f32,
    /// From the center to the border, vertical and horizontal.
    slopes: [f32; 2],
}

impl Trend {
    /// Finds the trend at which the tones of all blocks add up best.
    fn fit(tone: &[Plane; 2], pitch: f32) -> Self {
        let mut best = (0.0, Self::default());
        for (step, steps) in [(COARSE_PIXELS, COARSE_STEPS), (FINE_PIXELS, FINE_STEPS)] {
            let [down, right] = best.1.slopes;
            for across in -steps..=steps {
                let right = right + step * f32::from(across);
                let rows = row_phasor_sums(tone, right / pitch);
                for along in -steps..=steps {
                    let down = down + step * f32::from(along);
                    let [re, im] = phasor_sum(&rows, down / pitch);
                    let power = re * re + im * im;
                    if power > best.0 {
                        let offset = -im.atan2(re) / std::f32::consts::TAU * pitch;
                        best = (power, Self { offset, slopes: [down, right] });
                    }
                }
            }
        }
        best.1
    }

    fn shift(&self, blocks: &Plane, [row, column]: [usize; 2]) -> f32 {
        let [down, right] = self.slopes;
        self.offset + down * place(row, blocks.rows) + right * place(column, blocks.columns)
    }
}

/// Returns the position of a block between the borders at -1 and 1.
fn place(block: usize, blocks: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "hundreds of blocks")]
    let (block, blocks) = (block as f32, blocks as f32);
    (2.0 * block + 1.0) / blocks - 1.0
}

/// Sums each row of blocks, with each block's phase rotated in proportion to its position.
fn row_phasor_sums(tone: &[Plane; 2], turns: f32) -> Vec<[f32; 2]> {
    let [real, imaginary] = tone;
    let factors: Vec<(f32, f32)> =
        (0..real.columns).map(|column| sincos_turns(turns * place(column, real.columns))).collect();
    let sum = |row: usize| {
        let mut sum = [0.0; 2];
        let pairs = real.row(row).iter().zip(imaginary.row(row));
        for ((re, im), (sin, cos)) in pairs.zip(&factors) {
            sum[0] += re * cos - im * sin;
            sum[1] += re * sin + im * cos;
        }
        sum
    };
    (0..real.rows).map(sum).collect()
}

/// Sums rows of blocks, with each row's phase rotated in proportion to its position.
fn phasor_sum(rows: &[[f32; 2]], turns: f32) -> [f32; 2] {
    let mut sum = [0.0; 2];
    for (row, [re, im]) in rows.iter().enumerate() {
        let (sin, cos) = sincos_turns(turns * place(row, rows.len()));
        sum[0] += re * cos - im * sin;
        sum[1] += re * sin + im * cos;
    }
    sum
}

/// Interpolates linearly from blocks to voxels; constant beyond the centers of the outer blocks.
fn interpolate_blocks(blocks: &Plane, shape: SectorShape) -> Plane {
    let mut out = Plane::new(shape.rows(), shape.columns());
    let split = |voxel: usize, blocks: usize| {
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let at = ((voxel as f32 + 0.5) / BLOCK as f32 - 0.5).max(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let first = (at as usize).min(blocks - 1);
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        (first, (first + 1).min(blocks - 1), at - first as f32)
    };
    let weights: Vec<f32> =
        (0..shape.columns()).map(|column| split(column, blocks.columns).2).collect();
    let mut line = vec![0.0; blocks.columns];
    for row in 0..shape.rows() {
        let (above, below, weight) = split(row, blocks.rows);
        for ((value, a), b) in line.iter_mut().zip(blocks.row(above)).zip(blocks.row(below)) {
            *value = a + weight * (b - a);
        }
        let out = out.row_mut(row);
        // From the center of a block to that of the next; constant before the first one.
        let (start, rest) = out.split_at_mut((BLOCK / 2).min(out.len()));
        start.fill(line[0]);
        let weights = weights[start.len()..].chunks(BLOCK);
        let pairs = line.iter().zip(line[1..].iter().chain(line.last()));
        for ((values, weights), (left, right)) in rest.chunks_mut(BLOCK).zip(weights).zip(pairs) {
            for (value, weight) in values.iter_mut().zip(weights) {
                *value = left + weight * (right - left);
            }
        }
    }
    out
}
