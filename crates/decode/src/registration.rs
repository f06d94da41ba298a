//! Where voxels really are: a shift for each block of 16 x 16, found without knowing any symbol.
//!
//! Light is strongest at the middle of voxels, so the energy of the field has a tone with the
//! period of the pitch, and the phase of that tone is the shift (Oerder and Meyr, IEEE Trans. Comm.
//! 36, 605, 1988, in two dimensions). It is found to half a pitch either way, at no search at all.
//! A block and its neighbors are heard together; shifts are interpolated between blocks. Searching
//! for the most energy over shifts, as the written experiment does, was tried first: interpolated
//! energy is highest at whole pixels, which drew small shifts to zero.

use fulgurite_glass::channel::SectorShape;
use fulgurite_glass::numeric::{LANES, Plane, blur, sincos_turns, vectorized};

use crate::Flat;

/// Voxels of a block's side.
const BLOCK: usize = 16;

/// Blur of the field before its energy is taken, in pitches.
const SMOOTH_PITCHES: f32 = 0.45;

/// How much a block outweighs what it is given by the blocks around it (a blur of one block).
const NEIGHBORS: f32 = 0.5;

/// Where the middle of each voxel is, in pixels from where it should be.
#[derive(Clone, Debug)]
pub struct Displacement {
    /// Down and to the right.
    pub(crate) by: [Plane; 2],
}

impl Displacement {
    /// Every voxel where it should be.
    #[must_use]
    pub fn none(shape: SectorShape) -> Self {
        Self { by: [0, 1].map(|_| Plane::new(shape.rows(), shape.columns())) }
    }

    /// Finds the voxels of a sector.
    #[must_use]
    pub fn find(flat: &Flat, shape: SectorShape) -> Self {
        Self::of_field(&flat.field(), flat.per_pitch, shape)
    }

    pub(crate) fn of_field(field: &[Plane; 2], per_pitch: usize, shape: SectorShape) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "at most 4")]
        let sigma = SMOOTH_PITCHES * per_pitch as f32;
        let [mut energy, other] = [0, 1].map(|part| blur(&field[part], sigma));
        vectorized(
            #[inline(always)]
            || {
                for (a, b) in energy.values.iter_mut().zip(&other.values) {
                    *a = *a * *a + b * b;
                }
            },
        );
        let blocks = [shape.rows().div_ceil(BLOCK), shape.columns().div_ceil(BLOCK)];
        let shifts = tones(&energy, per_pitch, blocks).map(|tone| shift(tone, per_pitch));
        Self { by: shifts.map(|plane| between_blocks(&plane, shape)) }
    }

    /// Down and to the right, for one voxel.
    #[must_use]
    pub fn at(&self, row: usize, column: usize) -> [f32; 2] {
        [self.by[0].row(row)[column], self.by[1].row(row)[column]]
    }
}

/// The tone of the pitch in each block, down and to the right: sums of the energy times
/// exp(-2 pi i distance / pitch), the distance from the nominal middles of voxels.
fn tones(
    energy: &Plane,
    per_pitch: usize,
    [block_rows, block_columns]: [usize; 2],
) -> [[Plane; 2]; 2] {
    let mut tones = [0, 1].map(|_| [0, 1].map(|_| Plane::new(block_rows, block_columns)));
    #[expect(clippy::cast_precision_loss, reason = "at most 4")]
    let turns: Vec<(f32, f32)> = (0..per_pitch)
        .map(|at| sincos_turns((at as f32 - (per_pitch / 2) as f32) / per_pitch as f32))
        .collect();
    let side = BLOCK * per_pitch;
    let mut profile = vec![0.0; energy.columns];
    for block_row in 0..block_rows {
        profile.fill(0.0);
        for row in (block_row * side..(block_row + 1) * side).take_while(|row| *row < energy.rows) {
            let (sin, cos) = turns[row % per_pitch];
            let pixels = energy.row(row);
            vectorized(
                #[inline(always)]
                || {
                    for (sum, pixel) in profile.iter_mut().zip(pixels) {
                        *sum += pixel;
                    }
                },
            );
            for (block, pixels) in pixels.chunks(side).enumerate() {
                let sum: f32 = vectorized(
                    #[inline(always)]
                    || sum(pixels),
                );
                tones[0][0].row_mut(block_row)[block] += cos * sum;
                tones[0][1].row_mut(block_row)[block] -= sin * sum;
            }
        }
        for (block, pixels) in profile.chunks(side).enumerate() {
            for (pixel, (sin, cos)) in pixels.iter().zip(turns.iter().cycle()) {
                tones[1][0].row_mut(block_row)[block] += cos * pixel;
                tones[1][1].row_mut(block_row)[block] -= sin * pixel;
            }
        }
    }
    tones
}

/// A sum in sixteen lanes.
#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    let (blocks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for block in blocks {
        for lane in 0..LANES {
            sums[lane] += block[lane];
        }
    }
    sums.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// The shift in pixels that the phase of a tone is, each block helped by its neighbors.
fn shift(tone: [Plane; 2], per_pitch: usize) -> Plane {
    let [mut real, mut imaginary] = tone.map(|plane| {
        let mut helped = blur(&plane, 1.0);
        helped.add(NEIGHBORS, &plane);
        helped
    });
    #[expect(clippy::cast_precision_loss, reason = "at most 4")]
    let pixels = per_pitch as f32 / std::f32::consts::TAU;
    for (re, im) in real.values.iter_mut().zip(&mut imaginary.values) {
        *re = -im.atan2(*re) * pixels;
    }
    real
}

/// From blocks to voxels, linearly; beyond the middles of the outer blocks it stays.
fn between_blocks(blocks: &Plane, shape: SectorShape) -> Plane {
    let mut out = Plane::new(shape.rows(), shape.columns());
    let split = |voxel: usize, blocks: usize| {
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let at = ((voxel as f32 + 0.5) / BLOCK as f32 - 0.5).max(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let first = (at as usize).min(blocks - 1);
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        (first, (first + 1).min(blocks - 1), at - first as f32)
    };
    let columns: Vec<_> =
        (0..shape.columns()).map(|column| split(column, blocks.columns)).collect();
    let mut line = vec![0.0; blocks.columns];
    for row in 0..shape.rows() {
        let (above, below, weight) = split(row, blocks.rows);
        for ((value, a), b) in line.iter_mut().zip(blocks.row(above)).zip(blocks.row(below)) {
            *value = a + weight * (b - a);
        }
        for (value, (left, right, weight)) in out.row_mut(row).iter_mut().zip(&columns) {
            *value = line[*left] + weight * (line[*right] - line[*left]);
        }
    }
    out
}
