//! The camera: converts light to polarization states, electrons, noise and pixel values.
//!
//! It works row by row: intensities of a few rows are kept, each state's image is shifted relative
//! to the others by Lagrange interpolation over five rows and five columns, and electrons are
//! drawn. A Poisson number of mean and variance l with added read noise r is drawn as l + s z +
//! l/s^2 (z^2 - 1)/6 with s^2 = l + r^2 and z normal, which has the correct first three moments.

use fulgurite_units::Seed;

use super::Channel;
use super::fingerprint::{Optics, State};
use super::image::SectorImages;
use super::light::spot_area;
use super::noise::Noise;
use super::write::WrittenSector;
use crate::numeric::Plane;
use crate::numeric::{LANES, dispatch_simd, to_u16};

/// Taps of the interpolation on each side of the middle.
const HALF_TAPS: usize = 2;

/// Taps of the interpolation.
const TAPS: usize = 2 * HALF_TAPS + 1;

/// Number of rows kept: a power of two above the taps.
const RING_ROWS: usize = 8;

const _: () = assert!(RING_ROWS.is_power_of_two() && RING_ROWS > TAPS);

/// Full scale divided by the mean pixel value.
const HEADROOM: f64 = 2.5;

/// A camera.
#[derive(Debug)]
pub(super) struct Camera {
    rows: usize,
    columns: usize,
    bits: u8,
    /// Sensitivity of each pixel.
    pixels: Plane,
}

/// Exposure of a sector.
#[derive(Debug)]
pub(super) struct Exposure {
    states: Vec<State>,
    /// Share of a layer's own light that is not scattered.
    pub(super) unscattered: f32,
    /// Electrons per unit of intensity.
    electrons: f32,
    /// Variance of the read noise.
    read: f32,
    /// Pixel value per electron.
    gain: f32,
    /// Maximum pixel value.
    max: f32,
}

impl Exposure {
    /// Computes the exposure that gives the mean number of electrons for a field of this sector's
    /// strength.
    pub(super) fn new(channel: &Channel, sector: &WrittenSector, optics: &Optics) -> Self {
        let states = optics.states[..channel.medium.images()].to_vec();
        let squares =
            |plane: &Plane| plane.values.iter().map(|value| f64::from(value * value)).sum::<f64>();
        #[expect(clippy::cast_precision_loss, reason = "at most millions")]
        let voxel = sector.field.iter().map(squares).sum::<f64>() / sector.shape.voxels() as f64;
        let background = channel.polarization.background_rad.powi(2);
        let field = (0.5 * spot_area(channel) * voxel + background).min(0.9);
        let mean = |state: &State| {
            f64::from(state.weights[0]) + f64::from(state.weights[3]) * (1.0 - field).sqrt()
        };
        #[expect(clippy::cast_precision_loss, reason = "at most 4")]
        let mean = states.iter().map(mean).sum::<f64>() / states.len() as f64;
        let camera = &channel.camera;
        let max = f64::from((1u32 << camera.bits) - 1);
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let [unscattered, electrons, read, gain, max] = [
            1.0 - channel.optics.halo,
            camera.electrons / mean,
            camera.read_electrons * camera.read_electrons,
            max / (HEADROOM * camera.electrons),
            max,
        ]
        .map(|value| value as f32);
        Self { states, unscattered, electrons, read, gain, max }
    }
}

/// Rows of intensities of one state, with a border of two pixels.
struct RowRing([Vec<f32>; RING_ROWS]);

impl Camera {
    pub(super) fn new(channel: &Channel, rows: usize, columns: usize, drive: &Seed) -> Self {
        let mut pixels = Plane::new(rows, columns);
        Noise::new(&drive.child(b"pixels")).normals(&mut pixels.values);
        #[expect(clippy::cast_possible_truncation, reason = "single precision")]
        let spread = channel.camera.nonuniformity as f32;
        for value in &mut pixels.values {
            *value = (1.0 + spread * *value).max(0.0);
        }
        Self { rows, columns, bits: channel.camera.bits, pixels }
    }

    /// Takes an image of each state. `light` fills a row of the field's real part, its imaginary
    /// part and the brightness.
    pub(super) fn take(
        &self,
        exposure: &Exposure,
        read: &Seed,
        dead_columns: &[u16],
        mut light: impl FnMut(usize, [&mut [f32]; 3]),
    ) -> SectorImages {
        let (rows, columns) = (self.rows, self.columns);
        let mut noise = Noise::new(&read.child(b"camera"));
        let count = exposure.states.len();
        let mut ring: Vec<RowRing> = (0..count)
            .map(|_| RowRing(std::array::from_fn(|_| vec![0.0; columns + 2 * HALF_TAPS])))
            .collect();
        let shifts: Vec<[[f32; TAPS]; 2]> = exposure
            .states
            .iter()
            .map(|state| state.shift.map(|offset| lagrange(-offset)))
            .collect();
        let mut pixels = vec![0; count * rows * columns];
        let mut field = [0; 3].map(|_| vec![0.0; columns]);
        let mut line = vec![0.0; columns + 2 * HALF_TAPS];
        let mut normals = vec![0.0; columns.next_multiple_of(2 * LANES)];
        for row in 0..rows + HALF_TAPS {
            if row < rows {
                let [real, imaginary, bright] = &mut field;
                dispatch_simd(
                    #[inline(always)]
                    || light(row, [real, imaginary, bright]),
                );
                for (state, ring) in exposure.states.iter().zip(&mut ring) {
                    intensity(state, &field, &mut ring.0[row % RING_ROWS]);
                }
            }
            let Some(row) = row.checked_sub(HALF_TAPS) else { continue };
            for (index, (ring, shift)) in ring.iter().zip(&shifts).enumerate() {
                let inside =
                    |k: usize| (row + k).saturating_sub(HALF_TAPS).min(rows - 1) % RING_ROWS;
                let five: [&[f32]; TAPS] = std::array::from_fn(|k| &ring.0[inside(k)][..]);
                noise.normals(&mut normals);
                let out = &mut pixels[(index * rows + row) * columns..][..columns];
                let sensitivity = self.pixels.row(row);
                expose(exposure, five, shift, sensitivity, &normals, &mut line, out);
            }
        }
        for column in dead_columns.iter().map(|column| usize::from(*column)) {
            if column < columns {
                pixels[column..].iter_mut().step_by(columns).for_each(|pixel| *pixel = 0);
            }
        }
        SectorImages { count, rows, columns, bits: self.bits, pixels }
    }
}

/// Computes the intensity of one state, in a row with a border that repeats its ends.
fn intensity(state: &State, field: &[Vec<f32>; 3], out: &mut [f32]) {
    let [c0, c1, c2, c3] = state.weights;
    let [real, imaginary, bright] = field;
    let columns = real.len();
    dispatch_simd(
        #[inline(always)]
        || {
            let light = real.iter().zip(imaginary).zip(bright);
            for (out, ((re, im), bright)) in out[HALF_TAPS..].iter_mut().zip(light) {
                let cos = (1.0 - re * re - im * im).max(0.0).sqrt();
                *out = (c0 + c1 * re + c2 * im + c3 * cos) * bright;
            }
        },
    );
    for k in 0..HALF_TAPS {
        out[k] = out[HALF_TAPS];
        out[columns + HALF_TAPS + k] = out[columns + HALF_TAPS - 1];
    }
}

/// Shifts a state's image and draws its electrons.
fn expose(
    exposure: &Exposure,
    rows: [&[f32]; TAPS],
    [down, right]: &[[f32; TAPS]; 2],
    sensitivity: &[f32],
    normals: &[f32],
    line: &mut [f32],
    out: &mut [u16],
) {
    let Exposure { electrons, read, gain, max, .. } = *exposure;
    dispatch_simd(
        #[inline(always)]
        || {
            let [a, b, c, d, e] = rows.map(|row| &row[..line.len()]);
            for (i, value) in line.iter_mut().enumerate() {
                *value = down[0] * a[i]
                    + down[1] * b[i]
                    + down[2] * c[i]
                    + down[3] * d[i]
                    + down[4] * e[i];
            }
            let columns = out.len();
            let [a, b, c, d, e] = std::array::from_fn(|k| &line[k..][..columns]);
            let (sensitivity, normals) = (&sensitivity[..columns], &normals[..columns]);
            for i in 0..columns {
                let light = right[0] * a[i]
                    + right[1] * b[i]
                    + right[2] * c[i]
                    + right[3] * d[i]
                    + right[4] * e[i];
                let mean = (light * sensitivity[i] * electrons).max(0.0);
                let variance = mean + read;
                let z = normals[i];
                let skew = mean / (6.0 * variance).max(1e-6);
                let counted = mean + variance.sqrt() * z + skew * (z * z - 1.0);
                out[i] = to_u16((counted * gain).max(0.0).min(max));
            }
        },
    );
}

/// Returns the weights of five samples at -2..=2 for the value at `t`.
fn lagrange(t: f32) -> [f32; TAPS] {
    let nodes = [-2.0f32, -1.0, 0.0, 1.0, 2.0];
    nodes.map(|own| {
        let other_nodes = nodes.iter().filter(|node| (**node - own).abs() > 0.5);
        other_nodes.map(|node| (t - node) / (own - node)).product()
    })
}
