//! Amplitude and phase of the tone at the pitch in each block of a sector, by which
//! `registration.rs` finds voxels. It is summed row by row while the images are flattened.

use fulgurite_platter::numeric::{Plane, dispatch_simd, sincos_turns};

/// Side of a block in voxels.
pub(crate) const BLOCK: usize = 16;

/// The tone of the pitch in each block, vertical and horizontal: sums of the energy times exp(-2 pi
/// i distance / pitch), with the distance from the nominal centers of voxels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tones {
    per_pitch: usize,
    columns: usize,
    /// For each row of blocks and each row of a pitch: sums over those rows of pixels. A block is
    /// 64 rows at most, and a pixel's energy below 2^17.
    sums: Vec<u32>,
}

impl Tones {
    /// Resets the sums for images of this size.
    pub(crate) fn set(&mut self, rows: usize, columns: usize, per_pitch: usize) {
        (self.per_pitch, self.columns) = (per_pitch, columns);
        self.sums.clear();
        self.sums.resize(rows.div_ceil(BLOCK * per_pitch) * per_pitch * columns, 0);
    }

    /// Returns the sums that the energy of a row of pixels is added to.
    pub(crate) fn line(&mut self, row: usize) -> &mut [u32] {
        let Self { per_pitch, columns, .. } = *self;
        let line = row / (BLOCK * per_pitch) * per_pitch + row % per_pitch;
        &mut self.sums[line * columns..][..columns]
    }

    /// Returns the vertical and the horizontal tones.
    pub(crate) fn by_axis(&self) -> [[Plane; 2]; 2] {
        let Self { per_pitch, columns, ref sums } = *self;
        #[expect(clippy::cast_precision_loss, reason = "at most 4")]
        let turn =
            |at: usize| sincos_turns((at as f32 - (per_pitch / 2) as f32) / per_pitch as f32);
        let turns: Vec<(f32, f32)> = (0..per_pitch).map(turn).collect();
        let rows = sums.len() / (per_pitch * columns);
        let plane = || Plane::new(rows, columns.div_ceil(BLOCK * per_pitch));
        let [mut down, mut right] = [0, 1].map(|_| [plane(), plane()]);
        // Real part, imaginary part and sum over the rows of a pitch.
        let mut lines = [0, 1, 2].map(|_| vec![0.0f32; columns]);
        for row in 0..rows {
            lines.iter_mut().for_each(|line| line.fill(0.0));
            let [real, imaginary, all] = lines.each_mut().map(|line| &mut line[..]);
            for (phase, (sin, cos)) in turns.iter().enumerate() {
                let own = &sums[(row * per_pitch + phase) * columns..][..columns];
                dispatch_simd(
                    #[inline(always)]
                    || {
                        let lines = real.iter_mut().zip(&mut *imaginary).zip(&mut *all);
                        for (((real, imaginary), all), energy) in lines.zip(own) {
                            #[expect(clippy::cast_precision_loss, reason = "rounded")]
                            let energy = *energy as f32;
                            *real += cos * energy;
                            *imaginary -= sin * energy;
                            *all += energy;
                        }
                    },
                );
            }
            let side = BLOCK * per_pitch;
            for (plane, line) in down.iter_mut().zip([real, imaginary]) {
                for (tone, pixels) in plane.row_mut(row).iter_mut().zip(line.chunks(side)) {
                    *tone = pixels.iter().sum();
                }
            }
            let [real, imaginary] = right.each_mut().map(|plane| plane.row_mut(row));
            for (block, pixels) in all.chunks(side).enumerate() {
                for (pixel, (sin, cos)) in pixels.iter().zip(turns.iter().cycle()) {
                    real[block] += cos * pixel;
                    imaginary[block] -= sin * pixel;
                }
            }
        }
        [down, right]
    }
}
