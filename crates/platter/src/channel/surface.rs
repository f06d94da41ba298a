//! The platter's surface over one track: dust and scratches that absorb light from every layer.

use fulgurite_units::Seed;

use super::damage::{Disc, Dust, ReadFaults, Scratch, poisson};
use super::write::DEFECT_VOXELS;
use super::{Channel, SectorShape};
use crate::numeric::{LANE_INDICES, LANES, dispatch_simd, exp_negative};

/// Cutoff in sigma: beyond it, defects absorb less than a thousandth of their maximum.
const CUTOFF_SIGMAS: f32 = 4.0;

/// Defects of the surface, in pixels.
#[derive(Debug)]
pub(super) struct Surface {
    spots: Vec<Spot>,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Spot {
    row: f32,
    column: f32,
    radius: f32,
    depth: f32,
}

#[derive(Debug)]
struct Line {
    row: f32,
    column: f32,
    sin: f32,
    cos: f32,
    width: f32,
    depth: f32,
}

impl Surface {
    /// Draws the surface of this place, and adds the injected faults.
    pub(super) fn draw(
        channel: &Channel,
        shape: SectorShape,
        track: &Seed,
        faults: &ReadFaults,
    ) -> Self {
        let pitch = f32::from(channel.optics.pixels_per_pitch);
        let mut stream = track.child(b"surface").stream();
        #[expect(clippy::cast_precision_loss, reason = "at most millions")]
        let area = shape.voxels() as f64 / DEFECT_VOXELS;
        let dust = poisson(channel.defects.dust * area, &mut stream);
        let mut spots: Vec<Spot> = Vec::new();
        for _ in 0..dust {
            let [row, column] = shape.random_position(&mut stream);
            let region = Disc { row, column, radius: 1.5 + 5.0 * stream.unit() };
            spots.push(Spot::new(&Dust { region, depth: 0.3 + 0.6 * stream.unit() }, pitch));
        }
        let scratches = poisson(channel.defects.scratches * area.sqrt(), &mut stream);
        let mut lines: Vec<Line> = Vec::new();
        for _ in 0..scratches {
            let angle_deg = 180.0 * stream.unit();
            let [row, column] = shape.random_position(&mut stream);
            let depth = 0.3 + 0.5 * stream.unit();
            lines.push(Line::new(&Scratch { row, column, angle_deg, width: 1.2, depth }, pitch));
        }
        spots.extend(faults.dust.iter().map(|dust| Spot::new(dust, pitch)));
        lines.extend(faults.scratches.iter().map(|scratch| Line::new(scratch, pitch)));
        Self { spots, lines }
    }

    /// Attenuates a row of pixels.
    pub(super) fn shade(&self, row: usize, bright: &mut [f32]) {
        #[expect(clippy::cast_precision_loss, reason = "thousands of pixels")]
        let y = row as f32;
        for spot in &self.spots {
            let dy = (y - spot.row) / spot.radius;
            if dy.abs() < CUTOFF_SIGMAS {
                spot.shade(dy, bright);
            }
        }
        for line in &self.lines {
            let across = (y - line.row) * line.cos;
            shade(bright, 0, line.depth, |x| {
                let distance = (across - (x - line.column) * line.sin) / line.width;
                distance * distance
            });
        }
    }
}

impl Spot {
    fn new(dust: &Dust, pitch: f32) -> Self {
        let Disc { row, column, radius } = dust.region;
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let [row, column, radius, depth] = [row, column, radius, dust.depth].map(|v| v as f32);
        Self { row: row * pitch, column: column * pitch, radius: radius * pitch, depth }
    }

    fn shade(&self, dy: f32, bright: &mut [f32]) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float casts saturate, which is what is meant"
        )]
        let [from, until] = [-CUTOFF_SIGMAS, CUTOFF_SIGMAS]
            .map(|sigmas| (self.column + sigmas * self.radius) as usize);
        let until = until.min(bright.len());
        let from = from.min(until);
        shade(&mut bright[from..until], from, self.depth, |x| {
            let dx = (x - self.column) / self.radius;
            dy * dy + dx * dx
        });
    }
}

impl Line {
    fn new(scratch: &Scratch, pitch: f32) -> Self {
        let (sin, cos) = scratch.angle_deg.to_radians().sin_cos();
        let Scratch { row, column, width, depth, .. } = *scratch;
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let [row, column, sin, cos, width, depth] =
            [row, column, sin, cos, width, depth].map(|value| value as f32);
        let width = (width * pitch).max(1e-3);
        Self { row: row * pitch, column: column * pitch, sin, cos, width, depth }
    }
}

/// Multiplies pixels from column `from` on by 1 - depth exp(-distance^2 / 2).
fn shade(bright: &mut [f32], from: usize, depth: f32, square: impl Fn(f32) -> f32) {
    dispatch_simd(
        #[inline(always)]
        || {
            for (at, block) in bright.chunks_mut(LANES).enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "thousands of pixels")]
                let first = (from + at * LANES) as f32;
                let mut transmission = [0.0; LANES];
                for lane in 0..LANES {
                    transmission[lane] =
                        1.0 - depth * exp_negative(0.5 * square(first + LANE_INDICES[lane]));
                }
                for (value, transmission) in block.iter_mut().zip(transmission) {
                    *value *= transmission;
                }
            }
        },
    );
}
