//! Where voxels really are: a shift for each block of 16 x 16, found without knowing any symbol.
//!
//! Light is strongest at the middle of voxels. For each block the energy of the field is summed at
//! its voxels' nominal places moved by whole pixels, -2 to 2 both ways; the sums at a finer grid of
//! shifts follow by interpolation, which is linear and so the same as interpolating every voxel.
//! The shift is the mean of the grid weighted by how much energy each has (a softmax), over a block
//! and half of its neighbors, and interpolated between blocks. It assumes a sector that is already
//! registered to half a pitch by its fiducials.

use fulgurite_glass::channel::SectorShape;
use fulgurite_glass::numeric::{Plane, blur, vectorized};

use crate::Flat;

/// Voxels of a block's side.
const BLOCK: usize = 16;

/// Whole pixels that voxels are looked for to each side.
const REACH: usize = 2;

/// Whole shifts in one direction.
const SHIFTS: usize = 2 * REACH + 1;

/// Fine shifts in one direction, 5/16 of a pixel apart.
const FINE: usize = 9;

/// Pixels between fine shifts.
const FINE_STEP: f32 = 0.3125;

/// Blur of the field before its energy is taken, in pitches.
const SMOOTH_PITCHES: f32 = 0.45;

/// How much the strongest shift outweighs the others.
const SHARPNESS: f32 = 6.0;

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
        let sums = block_sums(&energy, per_pitch, shape, blocks);
        let shifts = best_shifts(&sums, blocks);
        Self { by: shifts.map(|plane| between_blocks(&plane, shape)) }
    }

    /// Down and to the right, for one voxel.
    #[must_use]
    pub fn at(&self, row: usize, column: usize) -> [f32; 2] {
        [self.by[0].row(row)[column], self.by[1].row(row)[column]]
    }
}

/// Energy at the voxels of each block, moved by each whole shift.
fn block_sums(
    energy: &Plane,
    per_pitch: usize,
    shape: SectorShape,
    [block_rows, block_columns]: [usize; 2],
) -> Vec<[[f32; SHIFTS]; SHIFTS]> {
    let mut sums = vec![[[0.0; SHIFTS]; SHIFTS]; block_rows * block_columns];
    let middle = per_pitch / 2;
    let inside = |at: usize, len: usize| at.saturating_sub(REACH).min(len - 1);
    for row in 0..shape.rows() {
        let shifts: [&[f32]; SHIFTS] = std::array::from_fn(|down| {
            energy.row(inside(row * per_pitch + middle + down, energy.rows))
        });
        for (down, pixels) in shifts.into_iter().enumerate() {
            for block in 0..block_columns {
                let from = block * BLOCK;
                let until = (from + BLOCK).min(shape.columns());
                let sum = &mut sums[row / BLOCK * block_columns + block][down];
                for column in from..until {
                    let at = column * per_pitch + middle;
                    if let Some(five) = at
                        .checked_sub(REACH)
                        .and_then(|left| pixels[left..].first_chunk::<SHIFTS>())
                    {
                        for (sum, pixel) in sum.iter_mut().zip(five) {
                            *sum += pixel;
                        }
                    } else {
                        for (right, sum) in sum.iter_mut().enumerate() {
                            *sum += pixels[inside(at + right, energy.columns)];
                        }
                    }
                }
            }
        }
    }
    // Blocks at the border may have fewer voxels.
    let side = |block: usize, len: usize| (len - block * BLOCK).min(BLOCK);
    for (i, sum) in sums.iter_mut().enumerate() {
        let (row, column) = (i / block_columns, i % block_columns);
        let voxels = side(row, shape.rows()) * side(column, shape.columns());
        #[expect(clippy::cast_precision_loss, reason = "at most 256")]
        let share = 1.0 / voxels as f32;
        sum.iter_mut().flatten().for_each(|sum| *sum *= share);
    }
    sums
}

/// The shift of each block.
fn best_shifts(sums: &[[[f32; SHIFTS]; SHIFTS]], [rows, columns]: [usize; 2]) -> [Plane; 2] {
    let fine = |k: usize| {
        #[expect(clippy::cast_precision_loss, reason = "at most 8")]
        let shift = (k as f32 - (FINE / 2) as f32) * FINE_STEP;
        shift
    };
    // The scores of each fine shift, as a plane of blocks, so that blocks help their neighbors.
    let mut scores: Vec<Plane> = Vec::with_capacity(FINE * FINE);
    for down in 0..FINE {
        for right in 0..FINE {
            let mut plane = Plane::new(rows, columns);
            for (score, sums) in plane.values.iter_mut().zip(sums) {
                *score = interpolate(sums, fine(down), fine(right));
            }
            let help = blur(&plane, 1.0);
            plane.add(0.5, &help);
            scores.push(plane);
        }
    }
    let mut shifts = [Plane::new(rows, columns), Plane::new(rows, columns)];
    #[expect(clippy::cast_precision_loss, reason = "81")]
    let count = scores.len() as f32;
    for block in 0..rows * columns {
        let of = |k: usize| scores[k].values[block];
        let mean = (0..scores.len()).map(of).sum::<f32>() / count;
        let variance =
            (0..scores.len()).map(|k| (of(k) - mean).powi(2)).sum::<f32>() / (count - 1.0);
        let best = (0..scores.len()).map(of).fold(f32::MIN, f32::max);
        let scale = SHARPNESS / variance.sqrt().max(1e-12);
        let (mut weight, mut down, mut right) = (0.0, 0.0, 0.0);
        for k in 0..scores.len() {
            let share = ((of(k) - best) * scale).exp();
            weight += share;
            down += share * fine(k / FINE);
            right += share * fine(k % FINE);
        }
        shifts[0].values[block] = down / weight;
        shifts[1].values[block] = right / weight;
    }
    shifts
}

/// The sum at a fraction of a pixel, from those at the four whole pixels around it.
fn interpolate(sums: &[[f32; SHIFTS]; SHIFTS], down: f32, right: f32) -> f32 {
    let split = |shift: f32| {
        #[expect(clippy::cast_precision_loss, reason = "2")]
        let at = shift + REACH as f32;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 4")]
        let whole = (at.floor() as usize).min(SHIFTS - 2);
        #[expect(clippy::cast_precision_loss, reason = "at most 3")]
        (whole, at - whole as f32)
    };
    let ((y, fy), (x, fx)) = (split(down), split(right));
    let line = |row: &[f32; SHIFTS]| row[x] + fx * (row[x + 1] - row[x]);
    let (above, below) = (line(&sums[y]), line(&sums[y + 1]));
    above + fy * (below - above)
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
