//! Light that varies slowly over the sector: its halo, neighboring layers, the glass itself.
//!
//! All of it is blurred over two pitches and more, so it is made at half the voxels' resolution.
//! What a neighboring layer adds is that of its symbols: the spread of its voxels is left out,
//! which is 8 % of a voxel's amplitude, averages over hundreds of them and is below 1 % of the
//! layer's light.

use fulgurite_units::Seed;

use super::noise::Noise;
use super::smooth::smooth;
use super::write::{Meant, WrittenSector};
use super::{Channel, SectorShape};
use crate::numeric::sincos_turns;
use crate::numeric::{HALVING_VARIANCE, Plane, blur, halve};

/// Radius of the halo in pitches.
const HALO_PITCHES: f64 = 2.5;

/// Pitches over which the birefringence of the glass changes.
const BACKGROUND_PITCHES: f32 = 60.0;

/// A layer near the one that is read.
#[derive(Clone, Copy, Debug)]
pub struct Neighbor<'a> {
    /// Layers between them, and one more.
    pub distance: u8,
    /// Its symbols, as many as the sector's.
    pub symbols: &'a [u8],
}

/// Real and imaginary part of the slow light, at half the voxels' resolution.
pub(super) fn slow_light(
    channel: &Channel,
    sector: &WrittenSector,
    neighbors: &[Neighbor<'_>],
    track: &Seed,
) -> [Plane; 2] {
    let shape = sector.shape;
    let mut slow = background(channel, shape, track);
    let area = spot_area(channel);
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let halo = (channel.optics.halo * area) as f32;
    if halo > 0.0 {
        for (sum, own) in slow.iter_mut().zip(&sector.field) {
            sum.add(halo, &blur(&halve(own), halved(HALO_PITCHES)));
        }
    }
    let table = Table::new(channel);
    for distance in 1..=channel.optics.layers {
        let mut light = [0, 1].map(|_| Plane::new(shape.rows(), shape.columns()));
        let mut is_lit = false;
        for neighbor in neighbors.iter().filter(|neighbor| neighbor.distance == distance) {
            table.add(shape, neighbor.symbols, &mut light);
            is_lit = true;
        }
        if !is_lit {
            continue;
        }
        let sigma = channel.blur_pitches(f64::from(distance) * channel.voxels.layer_um);
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let strength = (channel.optics.crosstalk * area) as f32;
        for (sum, light) in slow.iter_mut().zip(&light) {
            sum.add(strength, &blur(&halve(light), halved(sigma)));
        }
    }
    slow
}

/// The blur that is left to do at half the resolution for one of so many pitches.
fn halved(sigma: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let sigma = (0.5 * (sigma * sigma - HALVING_VARIANCE).max(0.0).sqrt()) as f32;
    sigma
}

/// Area of a spot in focus, in square pitches: light is conserved, so a layer far away adds its
/// mean field times this.
pub(super) fn spot_area(channel: &Channel) -> f64 {
    2.0 * std::f64::consts::PI * channel.blur_pitches(0.0).powi(2)
}

/// The birefringence of the glass at this place.
fn background(channel: &Channel, shape: SectorShape, track: &Seed) -> [Plane; 2] {
    let mut noise = Noise::new(&track.child(b"background"));
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let size = channel.polarization.background_rad as f32;
    [0.7, 0.3].map(|mean| {
        let [rows, columns] = [shape.rows(), shape.columns()].map(|side| side / 2);
        let mut plane = smooth(rows, columns, BACKGROUND_PITCHES / 2.0, &mut noise);
        for value in &mut plane.values {
            *value = size * (mean + 0.5 * *value);
        }
        plane
    })
}

/// The voxel that three symbols make, its own, the one before and the one above, without noise.
struct Table {
    real: Vec<f32>,
    imaginary: Vec<f32>,
}

impl Table {
    fn new(channel: &Channel) -> Self {
        let (turns, rest) = (channel.turns(), channel.medium.rest());
        let voxel = |(twice, level): &(f32, f32)| {
            let (amplitude, _) = sincos_turns(turns * (level.max(0.0) - rest));
            let (sin, cos) = sincos_turns(*twice);
            (amplitude * cos, amplitude * sin)
        };
        let (real, imaginary) = Meant::new(channel).table().iter().map(voxel).unzip();
        Self { real, imaginary }
    }

    fn add(&self, shape: SectorShape, symbols: &[u8], light: &mut [Plane; 2]) {
        assert_eq!(symbols.len(), shape.voxels(), "layers of a track have one shape");
        let columns = shape.columns();
        let [real, imaginary] = light;
        for row in 0..shape.rows() {
            let here = &symbols[row * columns..][..columns];
            let above = &symbols[row.saturating_sub(1) * columns..][..columns];
            let mut left = here[0];
            let sums = real.row_mut(row).iter_mut().zip(imaginary.row_mut(row));
            for ((re, im), (own, up)) in sums.zip(here.iter().zip(above)) {
                let at = Meant::index(*own, left, *up);
                *re += self.real[at];
                *im += self.imaginary[at];
                left = *own;
            }
        }
    }
}
