//! Positions of a row of voxels, to a fraction of a pixel.
//!
//! Displacements change slowly, so neighbors mostly have the same fraction, a pitch apart: voxels
//! with the same weights are processed together.

use fulgurite_platter::numeric::{dispatch_simd, round};

use crate::flat::BORDER;
use crate::{Displacement, FlatImages};

/// The displacements of a row of voxels, rounded to fractions of a pixel.
#[derive(Clone, Debug, Default)]
pub(crate) struct VoxelPositions<const FRACTIONS: usize> {
    row: usize,
    /// Vertical and horizontal.
    shift: [Vec<i32>; 2],
}

/// The pixels that are read for a voxel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// From the voxel's first pixel to the window's anchor.
    pub(crate) anchor: usize,
    /// Pixels of the window before the anchor.
    pub(crate) before: usize,
    /// Side in pixels.
    pub(crate) side: usize,
}

/// A run of voxels whose windows are a pitch apart, with the same fraction of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of voxels.
    pub(crate) count: usize,
    /// The first pixel of the first window, counted from the border's.
    pub(crate) first: [usize; 2],
    /// Vertical and horizontal.
    pub(crate) fraction: [usize; 2],
}

impl<const FRACTIONS: usize> VoxelPositions<FRACTIONS> {
    /// Sets the displacements to those of a row.
    pub(crate) fn set(&mut self, displacement: &Displacement, row: usize) {
        self.row = row;
        for (positions, shift) in self.shift.iter_mut().zip(&displacement.shift) {
            let shift = shift.row(row);
            positions.resize(shift.len(), 0);
            dispatch_simd(
                #[inline(always)]
                || {
                    for (position, shift) in positions.iter_mut().zip(shift) {
                        #[expect(clippy::cast_precision_loss, reason = "at most hundreds")]
                        let fractions = round(shift * FRACTIONS as f32);
                        #[expect(clippy::cast_possible_truncation, reason = "a few pixels")]
                        let fractions = fractions as i32;
                        *position = fractions;
                    }
                },
            );
        }
    }

    /// Returns the run of voxels with the same displacement that starts at `column`.
    pub(crate) fn run(&self, flat: &FlatImages, column: usize, window: Window) -> Run {
        let [down, right] = self.shift.each_ref().map(|shift| &shift[column..]);
        let own = (down[0], right[0]);
        let other = down.iter().zip(right).position(|(down, right)| (*down, *right) != own);
        let position = |voxel: usize, shift: i32| {
            let pixel = (BORDER + voxel * flat.per_pitch + window.anchor).cast_signed();
            let fractions = pixel * FRACTIONS.cast_signed() + shift as isize;
            let first = fractions.div_euclid(FRACTIONS.cast_signed());
            let fraction = fractions.rem_euclid(FRACTIONS.cast_signed()).cast_unsigned();
            (first - window.before.cast_signed(), fraction)
        };
        let (top, below) = position(self.row, own.0);
        let (left, behind) = position(column, own.1);
        // At the borders, windows are moved inside.
        let last = [flat.rows, flat.columns].map(|length| (length - window.side).cast_signed());
        let first = [top.clamp(0, last[0]), left.clamp(0, last[1])].map(isize::cast_unsigned);
        let room = (last[1] - left).max(0).cast_unsigned() / flat.per_pitch + 1;
        let count = if left < 0 { 1 } else { other.unwrap_or(down.len()).min(room) };
        Run { count, first, fraction: [below, behind] }
    }
}

#[cfg(test)]
mod tests {
    //! Runs against single voxels.

    use fulgurite_platter::channel::{SectorImages, SectorShape};
    use fulgurite_units::Seed;

    use super::{Run, VoxelPositions, Window};
    use crate::flat::BORDER;
    use crate::{Displacement, FlatImages};

    #[test]
    fn runs_match_single_positions() {
        let (voxels, pitch) = (24, 3);
        let shape = SectorShape::new(24, 24).unwrap();
        let side = voxels * pitch;
        let images = SectorImages {
            count: 1,
            rows: side,
            columns: side,
            bits: 8,
            pixels: vec![9; side * side],
        };
        let flat = FlatImages::new(&images, pitch);
        let mut stream = Seed::new(1).stream();
        let mut displacement = Displacement::zero(shape);
        for plane in &mut displacement.shift {
            for row in plane.values.chunks_mut(6) {
                #[expect(clippy::cast_possible_truncation, reason = "single precision")]
                let shift = (40.0 * stream.unit() - 20.0) as f32;
                row.fill(if shift > 12.0 { 90.0 } else { shift });
            }
        }
        let window = Window { anchor: 1, before: 7, side: 16 };
        let mut positions = VoxelPositions::<8>::default();
        for row in 0..voxels {
            positions.set(&displacement, row);
            let mut column = 0;
            while column < voxels {
                let found = positions.run(&flat, column, window);
                assert!(found.count > 0 && column + found.count <= voxels);
                for voxel in 0..found.count {
                    let shift = displacement.voxel(row, column + voxel);
                    let voxel_at = [row, column + voxel];
                    let fractions = [0, 1].map(|axis| {
                        #[expect(clippy::cast_possible_truncation, reason = "a few pixels")]
                        let shift = (8.0 * shift[axis]).round_ties_even() as isize;
                        8 * (BORDER + voxel_at[axis] * pitch + 1).cast_signed() + shift
                    });
                    let last = flat.rows - 16;
                    let first = fractions.map(|at| (at.div_euclid(8) - 7).max(0).cast_unsigned());
                    let first = first.map(|at| at.min(last));
                    let fraction = fractions.map(|at| at.rem_euclid(8).cast_unsigned());
                    let [top, left] = found.first;
                    let own = Run { first: [top, left + voxel * pitch], ..found };
                    assert_eq!((own.first, own.fraction), (first, fraction), "{row} {column}");
                }
                column += found.count;
            }
        }
    }
}
