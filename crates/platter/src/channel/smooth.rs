//! Smooth random fields: the laser's drift, illumination, the glass's own birefringence.

use super::noise::Noise;
use crate::numeric::Plane;

/// Draws a smooth random field of mean 0 and variance 1 with a length scale of `scale` samples:
/// normal numbers on a coarse grid, interpolated by a cubic B-spline, whose own standard deviation
/// in two dimensions is 151/315.
pub(super) fn smooth(rows: usize, columns: usize, scale: f32, noise: &mut Noise) -> Plane {
    let cells = |len: usize| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "some tens"
        )]
        let count = (len as f32 / scale) as usize + 5;
        count
    };
    let (coarse_rows, coarse_columns) = (cells(rows), cells(columns));
    let mut grid = Plane::new(coarse_rows, coarse_columns);
    noise.normals(&mut grid.values);
    let [first, second]: [Vec<(usize, [f32; 4])>; 2] =
        [rows, columns].map(|len| (0..len).map(|i| spline(i, scale)).collect());
    let mut out = Plane::new(rows, columns);
    let mut line = vec![0.0; coarse_columns];
    for (row, (base, weights)) in first.iter().enumerate() {
        for (column, value) in line.iter_mut().enumerate() {
            *value = (0..4).map(|k| weights[k] * grid.row(base + k)[column]).sum::<f32>();
        }
        for (value, (base, weights)) in out.row_mut(row).iter_mut().zip(&second) {
            let sum: f32 = (0..4).map(|k| weights[k] * line[base + k]).sum();
            *value = sum * (315.0 / 151.0);
        }
    }
    out
}

/// Returns the first cell and the weights of the cubic B-spline at a sample.
fn spline(sample: usize, scale: f32) -> (usize, [f32; 4]) {
    #[expect(clippy::cast_precision_loss, reason = "a sector has thousands of columns at most")]
    let at = sample as f32 / scale;
    let base = at.floor();
    let t = at - base;
    let u = 1.0 - t;
    let weights = [
        u * u * u / 6.0,
        (3.0 * t * t * t - 6.0 * t * t + 4.0) / 6.0,
        (3.0 * u * u * u - 6.0 * u * u + 4.0) / 6.0,
        t * t * t / 6.0,
    ];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
    (base as usize, weights)
}
