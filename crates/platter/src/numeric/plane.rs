//! Planes of numbers: blurs, downsampling by two, and magnification from voxels to pixels.

use super::{LANES, dispatch_simd};

/// A plane of `rows` x `columns` numbers, row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plane {
    /// Number of rows.
    pub rows: usize,
    /// Numbers per row.
    pub columns: usize,
    /// All numbers, row by row.
    pub values: Vec<f32>,
}

impl Plane {
    /// Creates a plane of zeros.
    #[must_use]
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    /// Changes the size; the content is undefined afterwards.
    pub fn resize(&mut self, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
        self.values.resize(rows * columns, 0.0);
    }

    /// Returns a row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..][..self.columns]
    }

    /// Returns a row, mutably.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.columns..][..self.columns]
    }

    /// Adds `factor` times the other plane.
    ///
    /// # Panics
    /// When they differ in size.
    pub fn add(&mut self, factor: f32, other: &Self) {
        assert_eq!(self.values.len(), other.values.len(), "planes are of one size");
        dispatch_simd(
            #[inline(always)]
            || {
                for (sum, value) in self.values.iter_mut().zip(&other.values) {
                    *sum += factor * value;
                }
            },
        );
    }
}

/// Returns half of a Gaussian kernel, from its center; both halves together have sum 1.
fn taps(sigma: f32) -> Vec<f32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some tens")]
    let radius = (3.5 * sigma).ceil() as usize;
    let weight = |i: usize| {
        let x = f64::from(u32::try_from(i).unwrap_or(u32::MAX)) / f64::from(sigma);
        (-0.5 * x * x).exp()
    };
    let half: Vec<f64> = (0..=radius).map(weight).collect();
    let sum = 2.0 * half.iter().sum::<f64>() - half[0];
    #[expect(clippy::cast_possible_truncation, reason = "single precision is what images need")]
    half.iter().map(|tap| (tap / sum) as f32).collect()
}

/// Applies a Gaussian blur with mirrored borders, so that no light is lost. `sigma` is in samples.
#[must_use]
pub fn blur(plane: &Plane, sigma: f32) -> Plane {
    let taps = taps(sigma);
    dispatch_simd(
        #[inline(always)]
        || blur_columns(&blur_rows(plane, &taps), &taps),
    )
}

/// Reflects an index at both ends.
fn mirror(index: isize, len: usize) -> usize {
    let period = 2 * len.cast_signed();
    let folded = index.rem_euclid(period);
    let folded = if folded >= len.cast_signed() { period - 1 - folded } else { folded };
    folded.cast_unsigned()
}

#[inline(always)]
fn blur_rows(plane: &Plane, taps: &[f32]) -> Plane {
    let radius = taps.len() - 1;
    let mut out = Plane::new(plane.rows, plane.columns);
    let mut padded = vec![0.0; plane.columns + 2 * radius];
    for row in 0..plane.rows {
        let source = plane.row(row);
        padded[radius..][..plane.columns].copy_from_slice(source);
        for i in 0..radius {
            let (before, behind) = (-1 - i.cast_signed(), (plane.columns + i).cast_signed());
            padded[radius - 1 - i] = source[mirror(before, plane.columns)];
            padded[radius + plane.columns + i] = source[mirror(behind, plane.columns)];
        }
        for (at, target) in out.row_mut(row).chunks_mut(BLOCK).enumerate() {
            let from = at * BLOCK + radius;
            sum_taps(target, taps, |i| [&padded[from - i..], &padded[from + i..]]);
        }
    }
    out
}

#[inline(always)]
fn blur_columns(plane: &Plane, taps: &[f32]) -> Plane {
    let mut out = Plane::new(plane.rows, plane.columns);
    for row in 0..plane.rows {
        let rows: Vec<[&[f32]; 2]> = (0..taps.len().cast_signed())
            .map(|i| {
                [row.cast_signed() - i, row.cast_signed() + i]
                    .map(|row| plane.row(mirror(row, plane.rows)))
            })
            .collect();
        for (at, target) in out.row_mut(row).chunks_mut(BLOCK).enumerate() {
            sum_taps(target, taps, |i| rows[i].map(|row| &row[at * BLOCK..]));
        }
    }
    out
}

/// Number of sums kept in registers at once.
const BLOCK: usize = 4 * LANES;

/// Sets each target to the sum of taps times the two samples at that distance on either side.
#[inline(always)]
fn sum_taps<'a>(target: &mut [f32], taps: &[f32], sides: impl Fn(usize) -> [&'a [f32]; 2]) {
    let mut sums = [0.0; BLOCK];
    for (i, tap) in taps.iter().enumerate() {
        // The center tap is counted on both sides.
        let tap = if i == 0 { 0.5 * tap } else { *tap };
        let [before, after] = sides(i);
        if let (Some(a), Some(b)) = (before.first_chunk::<BLOCK>(), after.first_chunk::<BLOCK>()) {
            for lane in 0..BLOCK {
                sums[lane] += tap * (a[lane] + b[lane]);
            }
        } else {
            for ((sum, a), b) in sums[..target.len()].iter_mut().zip(before).zip(after) {
                *sum += tap * (a + b);
            }
        }
    }
    target.copy_from_slice(&sums[..target.len()]);
}

/// Returns the voxel at or before a pixel's center, and the distance beyond it.
fn position(pixel: usize, per_pitch: usize) -> (isize, f32) {
    #[expect(clippy::cast_precision_loss, reason = "thousands of pixels")]
    let at = (pixel as f32 + 0.5) / per_pitch as f32 - 0.5;
    #[expect(clippy::cast_possible_truncation, reason = "thousands of pixels")]
    (at.floor() as isize, at - at.floor())
}

/// Downsamples a plane by two. The taps 1, 3, 3, 1 prevent aliasing: symbols are white noise, and
/// with the mean of two, their grain would be 10 to 20 % of the slow light.
#[must_use]
pub fn downsample(plane: &Plane) -> Plane {
    let (rows, columns) = (plane.rows, plane.columns);
    let mut out = Plane::new(rows / 2, columns / 2);
    let mut line = vec![0.0; columns + 2];
    for row in 0..out.rows {
        let four: [&[f32]; 4] =
            std::array::from_fn(|k| plane.row(mirror((2 * row + k).cast_signed() - 1, rows)));
        dispatch_simd(
            #[inline(always)]
            || {
                let [a, b, c, d] = four.map(|row| &row[..columns]);
                for (i, value) in line[1..=columns].iter_mut().enumerate() {
                    *value = (1.0 / 64.0) * ((a[i] + d[i]) + 3.0 * (b[i] + c[i]));
                }
            },
        );
        line[0] = line[1];
        line[columns + 1] = line[columns];
        let pairs = line.as_chunks::<2>().0;
        for (value, ([a, b], [c, d])) in
            out.row_mut(row).iter_mut().zip(pairs.iter().zip(&pairs[1..]))
        {
            *value = (a + d) + 3.0 * (b + c);
        }
    }
    out
}

/// Blur, as a variance in square voxels, that [`downsample`] and the magnification by [`Magnifier`]
/// add by themselves: its taps 3/4, and linear interpolation between samples two voxels apart
/// another 3/4.
pub const DOWNSAMPLING_VARIANCE: f64 = 1.5;

/// Magnifies a plane at half the voxels' resolution to rows of pixels, linearly.
#[derive(Debug)]
pub struct Magnifier {
    per_pitch: usize,
    /// A row interpolated between two rows of the plane, with a sample of border on each side.
    line: Vec<f32>,
    /// The same row at the voxels' resolution.
    voxels: Vec<f32>,
}

impl Magnifier {
    /// Creates a magnifier for planes of `columns` columns.
    #[must_use]
    pub fn new(per_pitch: usize, columns: usize) -> Self {
        Self { per_pitch, line: vec![0.0; columns + 2], voxels: vec![0.0; 2 * columns + 2] }
    }

    /// Computes row `row` of the magnified plane.
    #[inline(always)]
    pub fn row(&mut self, plane: &Plane, row: usize, out: &mut [f32]) {
        let (above, weight) = self.source_row(row);
        let last = plane.rows.cast_signed() - 1;
        let [above, below] =
            [above, above + 1].map(|row| plane.row(row.clamp(0, last).cast_unsigned()));
        let columns = plane.columns;
        for ((value, a), b) in self.line[1..=columns].iter_mut().zip(above).zip(below) {
            *value = a + weight * (b - a);
        }
        self.interpolate_row(out);
    }

    /// Returns the row of the plane at or before a row of pixels, -1 being its border, and the
    /// distance beyond it.
    #[inline(always)]
    #[must_use]
    pub fn source_row(&self, row: usize) -> (isize, f32) {
        position(row, 2 * self.per_pitch)
    }

    /// Magnifies a row of the plane to the pixels' resolution.
    #[inline(always)]
    pub fn magnify_row(&mut self, row: &[f32], out: &mut [f32]) {
        let columns = row.len();
        self.line[1..=columns].copy_from_slice(row);
        self.interpolate_row(out);
    }

    /// Interpolates from samples to pixels.
    #[inline(always)]
    fn interpolate_row(&mut self, out: &mut [f32]) {
        let Self { per_pitch, line, voxels } = self;
        let columns = line.len() - 2;
        line[0] = line[1];
        line[columns + 1] = line[columns];
        let three = line.iter().zip(&line[1..]).zip(&line[2..]);
        let pairs = voxels[1..].as_chunks_mut::<2>().0.iter_mut();
        for (pair, ((a, b), c)) in pairs.zip(three) {
            *pair = [b + 0.25 * (a - b), b + 0.25 * (c - b)];
        }
        voxels[0] = voxels[1];
        voxels[2 * columns + 1] = voxels[2 * columns];
        let three = voxels.iter().zip(&voxels[1..]).zip(&voxels[2..]);
        if *per_pitch == 3 {
            for (pixels, ((a, b), c)) in out.as_chunks_mut::<3>().0.iter_mut().zip(three) {
                *pixels = [b + (a - b) * (1.0 / 3.0), *b, b + (c - b) * (1.0 / 3.0)];
            }
            return;
        }
        for (pixels, ((a, b), c)) in out.chunks_exact_mut(*per_pitch).zip(three) {
            for (phase, pixel) in pixels.iter_mut().enumerate() {
                // Offset by a pitch, because of the border.
                let (from, weight) = position(phase + *per_pitch, *per_pitch);
                let (from, to) = if from == 0 { (a, b) } else { (b, c) };
                *pixel = from + weight * (to - from);
            }
        }
    }
}
