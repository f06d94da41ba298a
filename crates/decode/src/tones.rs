//! How strong the tone of the pitch is in each block of a sector, and its phase: what
//! `registration.rs` finds voxels by. Summed up while the images are looked at, row by row.

use fulgurite_glass::numeric::{LANES, Plane, sincos_turns, vectorized};

/// Voxels of a block's side.
pub(crate) const BLOCK: usize = 16;

/// The tone of the pitch in each block, down and to the right: sums of the energy times
/// exp(-2 pi i distance / pitch), the distance from the nominal middles of voxels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tones {
    per_pitch: usize,
    /// Sine and cosine for the pixels of a pitch.
    turns: Vec<(f32, f32)>,
    /// Real and imaginary part, down.
    down: [Plane; 2],
    /// Sums over the rows of each row of blocks.
    profiles: Plane,
}

impl Tones {
    /// Of so many pixels, all dark.
    pub(crate) fn new(rows: usize, columns: usize, per_pitch: usize) -> Self {
        let [block_rows, block_columns] =
            [rows, columns].map(|pixels| pixels.div_ceil(BLOCK * per_pitch));
        #[expect(clippy::cast_precision_loss, reason = "at most 4")]
        let turn =
            |at: usize| sincos_turns((at as f32 - (per_pitch / 2) as f32) / per_pitch as f32);
        Self {
            per_pitch,
            turns: (0..per_pitch).map(turn).collect(),
            down: [0, 1].map(|_| Plane::new(block_rows, block_columns)),
            profiles: Plane::new(block_rows, columns),
        }
    }

    /// Adds a row of pixels' energy.
    pub(crate) fn add(&mut self, row: usize, energy: &[f32]) {
        let Self { per_pitch, turns, down, profiles } = self;
        let side = BLOCK * *per_pitch;
        let (sin, cos) = turns[row % *per_pitch];
        let [real, imaginary] = down.each_mut().map(|plane| plane.row_mut(row / side));
        let profile = profiles.row_mut(row / side);
        vectorized(
            #[inline(always)]
            || {
                for (sum, value) in profile.iter_mut().zip(energy) {
                    *sum += value;
                }
                for (block, energy) in energy.chunks(side).enumerate() {
                    let sum = sum(energy);
                    real[block] += cos * sum;
                    imaginary[block] -= sin * sum;
                }
            },
        );
    }

    /// Those down, and those to the right.
    pub(crate) fn by_axis(&self) -> [[Plane; 2]; 2] {
        let Self { per_pitch, turns, down, profiles } = self;
        let mut right = [0, 1].map(|_| Plane::new(down[0].rows, down[0].columns));
        for block_row in 0..profiles.rows {
            let [real, imaginary] = right.each_mut().map(|plane| plane.row_mut(block_row));
            for (block, pixels) in profiles.row(block_row).chunks(BLOCK * per_pitch).enumerate() {
                for (pixel, (sin, cos)) in pixels.iter().zip(turns.iter().cycle()) {
                    real[block] += cos * pixel;
                    imaginary[block] -= sin * pixel;
                }
            }
        }
        [down.clone(), right]
    }
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
