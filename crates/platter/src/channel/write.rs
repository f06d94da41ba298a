//! The write process: the voxels that the laser leaves in the glass for a sector's symbols.
//!
//! The result is a pure function of the platter's seed, the sector's place and its symbols. Each
//! pulse is split, half of it the data pulse of one voxel and half the seed of the next, so a voxel
//! is affected by the previous one on the line, and less by the previous line:
//!
//! ```text
//! azimuth    phi + m/2 (sin 2(left - phi) + r sin 2(up - phi)) + noise
//! retardance R (1 + m' (cos 2(left - phi) + r cos 2(up - phi))) (1 + drift) (1 + noise), or 0
//! voxel      sin(2 pi retardance / lambda) exp(2 i azimuth)
//! ```
//!
//! The first voxel of a line and the first line have no predecessor; they are treated as if it had
//! the same symbols.

use fulgurite_units::Seed;

use super::noise::Noise;
use super::smooth::smooth;
use super::{Channel, Medium, SectorShape, WriteFaults};
use crate::PlatterError;
use crate::numeric::Plane;
use crate::numeric::{dispatch_simd, sincos_turns};

/// Length scale of the laser's energy drift, in pitches.
const DRIFT_PITCHES: f32 = 40.0;

/// Number of voxels to which the counts of [`super::DefectParameters`] refer.
pub(super) const DEFECT_VOXELS: f64 = 16_384.0;

/// A sector as written in the glass.
#[derive(Clone, Debug)]
pub struct WrittenSector {
    pub(super) shape: SectorShape,
    /// Real and imaginary part of each voxel.
    pub(super) field: [Plane; 2],
    /// Displacement of each voxel along and across the line, in pitches.
    pub(super) offsets: [Plane; 2],
    pub(super) symbols: Vec<u8>,
}

impl WrittenSector {
    /// Rows and columns.
    #[must_use]
    pub const fn shape(&self) -> SectorShape {
        self.shape
    }

    /// Symbols that were written, row by row.
    #[must_use]
    pub fn symbols(&self) -> &[u8] {
        &self.symbols
    }

    /// Returns the real and imaginary part of a voxel: sin(retardance) at twice the azimuth.
    #[must_use]
    pub fn voxel(&self, row: usize, column: usize) -> [f32; 2] {
        [self.field[0].row(row)[column], self.field[1].row(row)[column]]
    }
}

/// Returns the noise-free voxel of a symbol, given the one before it on the line and the one above
/// it: twice the azimuth in turns, and the retardance relative to its nominal value.
pub(super) fn ideal_voxel(channel: &Channel, own: u8, left: u8, up: u8) -> (f32, f32) {
    let v = &channel.voxels;
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let [pull, line, change] =
        [v.memory_azimuth, v.memory_line, v.memory_retardance].map(|value| value as f32);
    let count = f32::from(channel.medium.symbols());
    let [own, left, up] = [own, left, up].map(f32::from);
    match channel.medium {
        Medium::Birefringent => {
            // 2 (left - phi) is a multiple of the symbol step.
            let [(sin1, cos1), (sin2, cos2)] =
                [left, up].map(|other| sincos_turns((other - own) / count));
            let double_azimuth = own / count + pull * (sin1 + line * sin2) / std::f32::consts::TAU;
            (double_azimuth, 1.0 + change * (cos1 + line * cos2))
        }
        Medium::Phase => {
            let [own, left, up] = [own, left, up].map(|symbol| symbol / (count - 1.0));
            (0.0, own + change * ((left - own) + line * (up - own)))
        }
    }
}

/// Table of [`ideal_voxel`] for all triples of symbols.
pub(super) struct IdealVoxels(Vec<(f32, f32)>);

impl IdealVoxels {
    pub(super) fn new(channel: &Channel) -> Self {
        let symbols = channel.medium.symbols();
        let mut table = vec![(0.0, 0.0); 512];
        for own in 0..symbols {
            for left in 0..symbols {
                for up in 0..symbols {
                    table[Self::index(own, left, up)] = ideal_voxel(channel, own, left, up);
                }
            }
        }
        Self(table)
    }

    /// Returns the index of a triple of symbols in the table.
    pub(super) const fn index(own: u8, left: u8, up: u8) -> usize {
        (own & 7) as usize * 64 + (left & 7) as usize * 8 + (up & 7) as usize
    }

    /// The table, by [`Self::index`].
    pub(super) fn table(&self) -> &[(f32, f32)] {
        &self.0
    }
}

/// Writes a sector.
///
/// # Errors
/// [`PlatterError::Channel`] when the number of symbols is not that of the voxels, or a symbol is
/// invalid for the medium.
pub(super) fn write(
    channel: &Channel,
    shape: SectorShape,
    symbols: &[u8],
    seed: &Seed,
    faults: &WriteFaults,
) -> Result<WrittenSector, PlatterError> {
    check(channel, shape, symbols)?;
    let (rows, columns) = (shape.rows(), shape.columns());
    let mut noise = Noise::new(&seed.child(b"voxels"));
    let mut retardance = vec![0.0; rows * columns];
    let mut azimuth = vec![0.0; rows * columns];
    noise.normals(&mut retardance);
    noise.normals(&mut azimuth);
    let drift = smooth(rows, columns, DRIFT_PITCHES, &mut noise);
    pull(channel, shape, symbols, &drift, &mut azimuth, &mut retardance);
    drop_missing_voxels(channel, shape, &mut retardance, &mut noise, seed);
    faults.apply(shape, &mut retardance);
    let mut field = [Plane::new(rows, columns), Plane::new(rows, columns)];
    let retardance_waves = channel.retardance_waves();
    let reference_level = channel.medium.reference_level();
    let [real, imaginary] = &mut field;
    dispatch_simd(
        #[inline(always)]
        || {
            for i in 0..retardance.len() {
                let (amplitude, _) =
                    sincos_turns(retardance_waves * (retardance[i] - reference_level));
                let (sin, cos) = sincos_turns(azimuth[i]);
                real.values[i] = amplitude * cos;
                imaginary.values[i] = amplitude * sin;
            }
        },
    );
    let offsets = draw_offsets(channel, shape, &mut noise);
    Ok(WrittenSector { shape, field, offsets, symbols: symbols.to_vec() })
}

fn check(channel: &Channel, shape: SectorShape, symbols: &[u8]) -> Result<(), PlatterError> {
    let refuse = |field, value: String, allowed: String| {
        Err(PlatterError::Channel { field, value, allowed })
    };
    if symbols.len() != shape.voxels() {
        let allowed = format!("{} for {} x {}", shape.voxels(), shape.rows(), shape.columns());
        return refuse("symbols", format!("{} of them", symbols.len()), allowed);
    }
    let symbol_count = channel.medium.symbols();
    match symbols.iter().position(|symbol| *symbol >= symbol_count) {
        Some(at) => refuse(
            "symbols",
            format!("{} at voxel {at}", symbols[at]),
            format!("below {symbol_count}"),
        ),
        None => Ok(()),
    }
}

/// Turns normal numbers into azimuths (twice the angle, in turns) and retardances (relative to
/// nominal).
fn pull(
    channel: &Channel,
    shape: SectorShape,
    symbols: &[u8],
    drift: &Plane,
    azimuth: &mut [f32],
    retardance: &mut [f32],
) {
    let ideal_voxel = IdealVoxels::new(channel);
    let v = &channel.voxels;
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let [drifts, spread, jitter] =
        [v.drift, v.retardance_spread, v.azimuth_deg / 180.0].map(|value| value as f32);
    let columns = shape.columns();
    for row in 0..shape.rows() {
        let from = row * columns;
        let here = &symbols[from..][..columns];
        let above = &symbols[row.saturating_sub(1) * columns..][..columns];
        let drift = drift.row(row);
        let (azimuth, retardance) = (&mut azimuth[from..][..columns], &mut retardance[from..]);
        let mut left = here[0];
        for column in 0..columns {
            let own = here[column];
            let (double_azimuth, level) =
                ideal_voxel.table()[IdealVoxels::index(own, left, above[column])];
            azimuth[column] = double_azimuth + jitter * azimuth[column];
            let spread = 1.0 + spread * retardance[column];
            retardance[column] = (level * (1.0 + drifts * drift[column]) * spread).max(0.0);
            left = own;
        }
    }
}

/// Removes voxels that did not form: single ones and clusters.
fn drop_missing_voxels(
    channel: &Channel,
    shape: SectorShape,
    retardance: &mut [f32],
    noise: &mut Noise,
    seed: &Seed,
) {
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let missing = channel.voxels.missing as f32;
    let mut drawn = vec![0.0; shape.voxels()];
    noise.uniforms(&mut drawn);
    for (value, drawn) in retardance.iter_mut().zip(&drawn) {
        *value = if *drawn <= missing { 0.0 } else { *value };
    }
    let mut stream = seed.child(b"voids").stream();
    #[expect(clippy::cast_precision_loss, reason = "at most millions")]
    let mean = channel.defects.voids * shape.voxels() as f64 / DEFECT_VOXELS;
    for _ in 0..super::damage::poisson(mean, &mut stream) {
        let at = shape.random_position(&mut stream);
        let radius = 1.0 + 3.0 * stream.unit();
        super::damage::for_each_in_disc(shape, at, radius, |i| retardance[i] = 0.0);
    }
}

/// Draws the displacement of each voxel from its nominal position.
fn draw_offsets(channel: &Channel, shape: SectorShape, noise: &mut Noise) -> [Plane; 2] {
    let mut offsets = [0, 1].map(|_| Plane::new(shape.rows(), shape.columns()));
    let mut lines = vec![0.0; shape.rows()];
    for plane in &mut offsets {
        noise.normals(&mut plane.values);
    }
    noise.normals(&mut lines);
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let [voxel, line] =
        [channel.voxels.position, channel.voxels.line_position].map(|value| value as f32);
    let [along, across] = &mut offsets;
    for (row, moved) in lines.iter().enumerate() {
        for value in along.row_mut(row) {
            *value = voxel * *value + line * moved;
        }
    }
    for value in &mut across.values {
        *value *= voxel;
    }
    offsets
}
