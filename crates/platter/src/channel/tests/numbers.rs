//! Arithmetic and noise.

use expect_test::expect;
use fulgurite_units::Seed;

use super::super::noise::Noise;
use super::super::smooth::smooth;
use super::{moments, near};
use crate::numeric::{Magnifier, Plane, blur, downsample};
use crate::numeric::{exp_negative, ln, round, sincos_turns, to_u16};

#[test]
fn arithmetic_matches_doubles_within_its_error_bounds() {
    for i in -200_000i32..200_000 {
        let x = i as f32 * 1.37e-5;
        let (sin, cos) = sincos_turns(x);
        let angle = f64::from(x) * std::f64::consts::TAU;
        near(f64::from(sin), angle.sin(), 5e-7);
        near(f64::from(cos), angle.cos(), 5e-7);
        let x = (i.abs() as f32 + 1.0) * 4.3e-4;
        let exact = (-f64::from(x)).exp();
        near(f64::from(exp_negative(x)), exact, (3e-7 + 1e-7 * f64::from(x)) * exact + 1e-37);
        near(f64::from(ln(x)), f64::from(x).ln(), 1e-6);
    }
    for (x, whole) in [(0.4, 0.0), (0.6, 1.0), (-1.6, -2.0), (65535.0, 65535.0)] {
        near(f64::from(round(x)), whole, 0.0);
    }
    assert_eq!([0.0, 0.4, 254.6, 65535.0].map(to_u16), [0, 0, 255, 65535]);
}

/// Written platters depend on these numbers: changing them changes the medium.
#[test]
fn noise_is_the_same_on_every_machine() {
    let mut noise = Noise::new(&Seed::new(7));
    let mut normals = [0.0; 70];
    noise.normals(&mut normals);
    let bits: Vec<String> =
        [0, 1, 31, 32, 69].iter().map(|i| format!("{:08x}", normals[*i].to_bits())).collect();
    expect!["c038dccc 3fda5b28 3fefdbfa bf1a9025 3fa28b54"].assert_eq(&bits.join(" "));
    let mut uniforms = [0.0; 3];
    noise.uniforms(&mut uniforms);
    expect!["[0.46726167, 0.40227425, 0.19365442]"].assert_eq(&format!("{uniforms:?}"));
}

#[test]
fn noise_is_normal_and_white() {
    let mut noise = Noise::new(&Seed::new(8));
    let mut values = vec![0.0; 1 << 20];
    noise.normals(&mut values);
    let power = |k: i32| moments(values.iter().map(move |v| f64::from(*v).powi(k))).0;
    // Four standard errors of each moment over 2^20 numbers.
    let error = |variance: f64| 4.0 * (variance / f64::from(1 << 20)).sqrt();
    near(power(1), 0.0, error(1.0));
    near(power(2), 1.0, error(2.0));
    near(power(3), 0.0, error(15.0));
    near(power(4), 3.0, error(96.0));
    near(power(6), 15.0, error(10_170.0));
    for lag in [1, 2, 15, 16, 17, 31, 32, 33, 320, 960] {
        let pairs = values.iter().zip(&values[lag..]);
        near(moments(pairs.map(|(a, b)| f64::from(a * b))).0, 0.0, error(1.0));
    }
    let beyond = values.iter().filter(|v| v.abs() > 3.0).count() as f64;
    near(beyond / f64::from(1 << 20), 0.0027, error(0.0027));
    noise.uniforms(&mut values);
    assert!(values.iter().all(|v| *v > 0.0 && *v <= 1.0));
    let (mean, variance) = moments(values.iter().map(|v| f64::from(*v)));
    near(mean, 0.5, error(1.0 / 12.0));
    near(variance, 1.0 / 12.0, error(1.0 / 180.0));
}

#[test]
fn blur_keeps_all_light_and_is_gaussian() {
    let mut plane = Plane::new(60, 72);
    plane.row_mut(3)[70] = 5.0;
    plane.row_mut(30)[36] = 1.0;
    for sigma in [0.7, 2.5, 6.0, 9.0] {
        let sum = |plane: &Plane| plane.values.iter().map(|v| f64::from(*v)).sum::<f64>();
        near(sum(&blur(&plane, sigma)), sum(&plane), 1e-5);
    }
    let mut point = Plane::new(64, 64);
    point.row_mut(32)[31] = 1.0;
    let blurred = blur(&point, 3.0);
    for (row, column) in [(32, 31), (32, 34), (30, 28), (36, 36)] {
        let (y, x) = (row as f64 - 32.0, column as f64 - 31.0);
        let expected = (-(y * y + x * x) / 18.0).exp() / (18.0 * std::f64::consts::PI);
        near(f64::from(blurred.row(row)[column]), expected, 2e-5);
    }
}

/// Computing at half resolution equals a blur of the voxels with linear interpolation.
#[test]
fn slow_light_is_accurate_at_half_resolution() {
    let mut noise = Noise::new(&Seed::new(9));
    let mut plane = Plane::new(64, 96);
    noise.normals(&mut plane.values);
    for (sigma, within) in [(2.5f32, 0.04), (3.0, 0.03), (5.9, 0.01)] {
        let slow = blur(&downsample(&plane), 0.5 * (sigma * sigma - 1.5).sqrt());
        let direct = blur(&plane, sigma);
        for per_pitch in [2, 3, 4] {
            let mut magnifier = Magnifier::new(per_pitch, 48);
            let mut row = vec![0.0; 96 * per_pitch];
            let (mut errors, mut light) = (Vec::new(), Vec::new());
            for at in 8..56 {
                // With an even number of pixels per pitch, the middle is between two rows: take the
                // mean of both.
                let middle = at * per_pitch + per_pitch / 2;
                magnifier.row(&slow, middle, &mut row);
                let mut other = row.clone();
                if per_pitch % 2 == 0 {
                    magnifier.row(&slow, middle - 1, &mut other);
                }
                for column in 8..88 {
                    let x = column * per_pitch + per_pitch / 2;
                    let y = x - usize::from(per_pitch % 2 == 0);
                    let found = (row[x] + row[y] + other[x] + other[y]) / 4.0;
                    let expected = direct.row(at)[column];
                    errors.push(f64::from(found - expected));
                    light.push(f64::from(expected));
                }
            }
            let (error, spread) = (moments(errors).1.sqrt(), moments(light).1.sqrt());
            assert!(error < within * spread, "{sigma}, {per_pitch}: {error} of {spread}");
        }
    }
}

#[test]
fn smooth_fields_have_unit_variance_and_the_given_scale() {
    let mut noise = Noise::new(&Seed::new(10));
    let field = smooth(800, 800, 10.0, &mut noise);
    let (mean, variance) = moments(field.values.iter().map(|v| f64::from(*v)));
    // 80 x 80 independent cells.
    near(mean, 0.0, 4.0 / 80.0);
    near(variance, 1.0, 4.0 * 2.0f64.sqrt() / 80.0);
    let lagged = |lag: usize| {
        let pairs = (0..800).flat_map(|row| field.row(row).iter().zip(&field.row(row)[lag..]));
        moments(pairs.map(|(a, b)| f64::from(a * b))).0
    };
    // The autocorrelation of a cubic B-spline: 1191/2416 at one cell, 1/2416 at three.
    near(lagged(10), 1191.0 / 2416.0, 0.08);
    near(lagged(30), 0.0, 0.08);
}
