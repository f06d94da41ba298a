//! Light that varies slowly over the sector: its halo, neighboring layers, the glass itself.
//!
//! It is blurred over at least two pitches, so it is computed at half the voxels' resolution. A
//! neighboring layer contributes the light of its symbols without the variation of its voxels: that
//! is 8 % of a voxel's amplitude, averages out over hundreds of them, and is below 1 % of the
//! layer's light.

use fulgurite_units::Seed;

use super::noise::Noise;
use super::smooth::smooth;
use super::write::{IdealVoxels, WrittenSector};
use super::{Channel, SectorShape};
use crate::numeric::sincos_turns;
use crate::numeric::{DOWNSAMPLING_VARIANCE, Plane, blur, downsample};

/// Radius of the halo in pitches.
const HALO_PITCHES: f64 = 2.5;

/// Length scale of the glass's birefringence, in pitches.
const BACKGROUND_PITCHES: f32 = 60.0;

/// A layer near the one being read.
#[derive(Clone, Copy, Debug)]
pub struct Neighbor<'a> {
    /// Distance in layers; 1 is adjacent.
    pub distance: u8,
    /// Symbols of the layer, as many as the sector's.
    pub symbols: &'a [u8],
}

/// Computes the real and imaginary part of the slow light, at half the voxels' resolution.
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
            sum.add(halo, &blur(&downsample(own), half_resolution_sigma(HALO_PITCHES)));
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
            sum.add(strength, &blur(&downsample(light), half_resolution_sigma(sigma)));
        }
    }
    slow
}

/// Returns the blur that remains to be done at half resolution for a total blur of `sigma` pitches.
fn half_resolution_sigma(sigma: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let sigma = (0.5 * (sigma * sigma - DOWNSAMPLING_VARIANCE).max(0.0).sqrt()) as f32;
    sigma
}

/// Returns the area of a spot in focus, in square pitches. Light is conserved, so a distant layer
/// adds its mean field times this.
pub(super) fn spot_area(channel: &Channel) -> f64 {
    2.0 * std::f64::consts::PI * channel.blur_pitches(0.0).powi(2)
}

/// Draws the birefringence of the glass at this place.
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

/// Noise-free voxels by three symbols: its own, the one before on the line and the one above.
struct Table {
    real: Vec<f32>,
    imaginary: Vec<f32>,
}

impl Table {
    fn new(channel: &Channel) -> Self {
        let (retardance_waves, reference_level) =
            (channel.retardance_waves(), channel.medium.reference_level());
        let voxel = |(double_azimuth, level): &(f32, f32)| {
            let (amplitude, _) =
                sincos_turns(retardance_waves * (level.max(0.0) - reference_level));
            let (sin, cos) = sincos_turns(*double_azimuth);
            (amplitude * cos, amplitude * sin)
        };
        let (real, imaginary) = IdealVoxels::new(channel).table().iter().map(voxel).unzip();
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
                let at = IdealVoxels::index(*own, left, *up);
                *re += self.real[at];
                *im += self.imaginary[at];
                left = *own;
            }
        }
    }
}
