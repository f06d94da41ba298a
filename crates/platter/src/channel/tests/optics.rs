//! Optics: polarization against Mueller matrices, focus, layers, fingerprints.

use fulgurite_units::Seed;

use super::super::fingerprint::Optics;
use super::super::light::slow_light;
use super::super::splat::{BORDER, splat};
use super::super::{Channel, Neighbor};
use super::{clean, moments, near, shape, symbols, written};
use crate::numeric::Plane;

type Mueller = [[f64; 4]; 4];

fn times(matrix: &Mueller, vector: [f64; 4]) -> [f64; 4] {
    std::array::from_fn(|i| (0..4).map(|k| matrix[i][k] * vector[k]).sum())
}

/// Returns a linear retarder whose slow axis is at an angle.
fn retarder(retardance: f64, axis: f64) -> Mueller {
    let (s, c) = (2.0 * axis).sin_cos();
    let (sd, cd) = retardance.sin_cos();
    [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, c * c + s * s * cd, c * s * (1.0 - cd), s * sd],
        [0.0, c * s * (1.0 - cd), s * s + c * c * cd, -c * sd],
        [0.0, -s * sd, c * sd, cd],
    ]
}

/// The weights of each state are those of circular light behind a depolarizing retarder, seen
/// through an elliptical analyzer, computed slowly by matrices.
#[test]
fn intensities_match_mueller_matrices() {
    let optics = Optics::draw(&clean(), &Seed::new(1), &Seed::new(2), &Seed::new(3));
    for step in 0u32..200 {
        let (retardance, axis) = (f64::from(step) * 0.006, f64::from(step * 37 % 180).to_radians());
        let light = times(&retarder(retardance, axis), [1.0, 0.0, 0.0, 1.0]);
        let field = retardance.sin();
        let cos = (1.0 - field * field).sqrt();
        for (index, state) in optics.states.iter().enumerate() {
            let swing = std::f64::consts::TAU * 0.08;
            let (sin_axis, cos_axis) = (index as f64 * std::f64::consts::FRAC_PI_2).sin_cos();
            let analyzer = [1.0, swing.sin() * cos_axis, swing.sin() * sin_axis, -swing.cos()];
            let expected: f64 = (0..4)
                .map(|i| 0.5 * analyzer[i] * light[i] * if i == 0 { 1.0 } else { 0.92 })
                .sum();
            let parts = [1.0, field * (2.0 * axis).cos(), field * (2.0 * axis).sin(), cos];
            let found: f64 = state.weights.iter().zip(parts).map(|(w, p)| f64::from(*w) * p).sum();
            near(found, expected, 1e-6);
        }
    }
}

/// The total light of one voxel does not depend on the focus; the border of the planes catches the
/// rest.
#[test]
fn defocus_spreads_light_and_loses_none() {
    let channel = clean();
    let shape = shape(32);
    let mut sector = written(&channel, shape, &vec![0; 1024]);
    for plane in &mut sector.field {
        plane.values.fill(0.0);
    }
    sector.field[0].row_mut(16)[16] = 1.0;
    let optics = Optics::draw(&channel, &Seed::new(1), &Seed::new(2), &Seed::new(3));
    let light = |defocus: f64| {
        let side = 96 + 2 * BORDER;
        let mut planes = [Plane::new(side, side), Plane::new(side, side)];
        splat(&channel, &optics, defocus, &sector, &mut planes);
        let sum: f64 = planes[0].values.iter().map(|v| f64::from(*v)).sum();
        let peak = planes[0].values.iter().copied().fold(0.0, f32::max);
        assert!(planes[1].values.iter().all(|v| *v == 0.0));
        (sum, f64::from(peak))
    };
    let sigma = |defocus: f64| 3.0 * channel.blur_pitches(defocus);
    let whole = std::f64::consts::TAU * sigma(0.0).powi(2);
    for defocus in [0.0, 0.4, -0.8] {
        let (sum, peak) = light(defocus);
        near(sum, whole, 0.01 * whole);
        near(peak, (sigma(0.0) / sigma(defocus)).powi(2), 0.01);
    }
    // 13 rows are 2.4 sigma at 1.6 um, the worst of the nominal preset: 2 % of the light is beyond.
    near(light(1.6).0, whole, 0.03 * whole);
}

#[test]
fn crosstalk_falls_with_the_distance_of_layers() {
    let mut channel = clean();
    let shape = shape(128);
    let own = symbols(&channel, shape, 1);
    let other = symbols(&channel, shape, 2);
    let strength = |channel: &Channel, distance: u8| {
        let sector = written(channel, shape, &own);
        let light =
            slow_light(channel, &sector, &[Neighbor { distance, symbols: &other }], &Seed::new(1));
        let squares = |plane: &Plane| moments(plane.values.iter().map(|v| f64::from(*v))).1;
        // Relative to the light of the layer itself: one voxel's field at its own place.
        (light.iter().map(squares).sum::<f64>()).sqrt()
            / (std::f64::consts::TAU * 0.012 / 0.52).sin()
    };
    channel.optics.layers = 3;
    let by_layer = [1, 2, 3].map(|distance| strength(&channel, distance));
    assert!(by_layer[0] > 1.5 * by_layer[1] && by_layer[1] > 1.2 * by_layer[2], "{by_layer:?}");
    // Each neighbor adds about 11 % rms at 6.6 um (the documented experiment).
    near(by_layer[0], 0.11, 0.02);
    let by_pitch = [4.0, 6.6, 10.0, 20.0].map(|layer_um| {
        channel.voxels.layer_um = layer_um;
        strength(&channel, 1)
    });
    assert!(by_pitch.is_sorted_by(|a, b| a > b), "{by_pitch:?}");
    // Blurred over many voxels, random fields add like the root of their number: halved at twice
    // the distance.
    near(by_pitch[3] / by_pitch[2], 0.5, 0.05);
}

#[test]
fn drives_and_platters_have_their_own_optics() {
    let channel = Channel::nominal();
    let focus = |drive: u64, platter: u64, read: u64| {
        f64::from(
            Optics::draw(&channel, &Seed::new(drive), &Seed::new(platter), &Seed::new(read)).focus
                [0],
        )
    };
    let all: Vec<[f64; 4]> = (0u64..4000)
        .map(|i| {
            let (drive, platter, read) = (3 * i, 20_000 + i, 50_000 + i);
            [
                focus(drive, platter, read),
                focus(drive, platter, 90_000 + i),
                focus(drive, 120_000 + i, 150_000 + i),
                focus(200_000 + i, 220_000 + i, 250_000 + i),
            ]
        })
        .collect();
    let (mean, variance) = moments(all.iter().map(|v| v[0]));
    near(mean, 0.0, 0.025);
    // Clipped at two sigma (values beyond become the bound), the variance is 0.9205 of a normal's.
    near(variance, 0.9205 * 0.16, 0.01);
    let together = |k: usize| moments(all.iter().map(|v| v[0] * v[k])).0 / variance;
    near(together(1), 0.6, 0.06);
    near(together(2), 0.4, 0.06);
    near(together(3), 0.0, 0.06);
}
