//! Fits the equalizer: solves the normal equations of windows whose symbols are known.
//!
//! Windows are taken at whole pixels of images resampled to the voxels' positions, which is
//! equivalent to what the bank of taps computes when decoding.

use fulgurite_platter::channel::{Medium, SectorImages, SectorShape};
use fulgurite_platter::numeric::dispatch_simd;

use crate::demap::target;
use crate::front::FrontEnd;
use crate::linear::{HALF_WINDOW, Taps, WINDOW, fraction_weights};
use crate::{
    DecodeError, Decoder, Demapper, Displacement, FlatImages, Linear, SymbolProbabilities,
};

/// Regularization: the ridge added to the diagonal, relative to its mean.
const RIDGE: f64 = 1e-4;

/// Weight of the original equalizer when it is refitted to a sector.
const REFIT_WEIGHT: f64 = 0.35;

/// Number of refits to a sector's decisions.
const REFITS: usize = 2;

/// Voxels added to the equations at a time.
const BATCH: usize = 8;

/// The normal equations: sums of products of windows.
#[derive(Clone, Debug)]
struct Equations {
    size: usize,
    /// The upper triangle, row by row.
    products: Vec<f64>,
    targets: [Vec<f64>; 2],
    voxels: u64,
}

/// Fits an equalizer.
#[derive(Clone, Debug)]
pub struct LinearFit {
    medium: Medium,
    per_pitch: usize,
    is_registered: bool,
    shape: SectorShape,
    equations: Equations,
    front: FrontEnd,
}

impl LinearFit {
    /// Creates a fit without sectors.
    #[must_use]
    pub fn new(medium: Medium, per_pitch: usize, is_registered: bool, shape: SectorShape) -> Self {
        let size = medium.images() * WINDOW * WINDOW + 1;
        let equations = Equations::new(size);
        Self { medium, per_pitch, is_registered, shape, equations, front: FrontEnd::default() }
    }

    /// Adds a sector whose symbols are known.
    ///
    /// # Errors
    /// [`DecodeError::Images`] when the images are not of the shape.
    pub fn add(&mut self, images: &SectorImages, symbols: &[u8]) -> Result<(), DecodeError> {
        let Self { medium, per_pitch, is_registered, shape, .. } = *self;
        let displacement =
            self.front.preprocess(images, shape, medium, per_pitch, is_registered)?;
        let windows = Windows::new(&self.front.flat, &displacement, self.shape);
        self.equations.add(&windows, |voxel| target(medium, symbols[voxel]));
        Ok(())
    }

    /// Solves for the taps, and fits the scatter of the estimates to other sectors.
    ///
    /// # Errors
    /// [`DecodeError::Fit`] when there were too few voxels.
    pub fn finish<'a>(
        &self,
        scatter: impl IntoIterator<Item = (&'a SectorImages, &'a [u8])>,
    ) -> Result<(Linear, Refit), DecodeError> {
        let images = self.medium.images();
        let weights = self.equations.solve(RIDGE, None)?;
        let rough = Demapper::isotropic(self.medium, 1.0)?;
        let taps = Taps { images, weights };
        let mut linear = Linear::new(self.medium, self.per_pitch, self.is_registered, taps, rough);
        let mut front = FrontEnd::default();
        let (mut estimates, mut symbols) = (Vec::new(), Vec::new());
        for (images, own) in scatter {
            let displacement = linear.preprocess(&mut front, images, self.shape)?;
            estimates.extend(linear.estimates(&front.flat, &displacement, self.shape));
            symbols.extend_from_slice(own);
        }
        linear.demapper = Demapper::fit(self.medium, &estimates, &symbols)?;
        let refit = Refit { linear: linear.clone(), prior: self.equations.clone() };
        Ok((linear, refit))
    }
}

/// The equalizer refitted to each sector by its own decisions (decision-directed): slow, and the
/// best linear decoder.
#[derive(Clone, Debug)]
pub struct Refit {
    linear: Linear,
    prior: Equations,
}

impl Decoder for Refit {
    fn name(&self) -> &'static str {
        "linear-refit"
    }

    fn decode(
        &mut self,
        images: &SectorImages,
        shape: SectorShape,
    ) -> Result<SymbolProbabilities, DecodeError> {
        let mut front = FrontEnd::default();
        let displacement = self.linear.preprocess(&mut front, images, shape)?;
        let flat = &front.flat;
        let medium = self.linear.medium();
        let mut best = self.linear.estimates(flat, &displacement, shape);
        let mut spread = scatter(medium, &best);
        let windows = Windows::new(flat, &displacement, shape);
        for _ in 0..REFITS {
            let decided: Vec<u8> = best.iter().map(|z| nearest(medium, *z)).collect();
            let mut own = Equations::new(self.prior.size);
            own.add(&windows, |voxel| target(medium, decided[voxel]));
            #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
            let weight = REFIT_WEIGHT * own.voxels as f64 / self.prior.voxels as f64;
            own.add_prior(&self.prior, weight, self.linear.taps());
            let Ok(weights) = own.solve(RIDGE, Some(self.linear.taps())) else { break };
            let taps = Taps { images: medium.images(), weights };
            let found = self.linear.with_taps(taps).estimates(flat, &displacement, shape);
            // Too many wrong decisions would make it worse: accept a refit only if it reduces the
            // scatter.
            let found_spread = scatter(medium, &found);
            if found_spread < spread {
                (best, spread) = (found, found_spread);
            }
        }
        Ok(fit_demapper(medium, &mut best)?.probabilities(&best))
    }
}

/// Scales estimates to their targets, and fits isotropic scatter to them.
fn fit_demapper(medium: Medium, estimates: &mut [[f32; 2]]) -> Result<Demapper, DecodeError> {
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let share = 1.0 / estimates.len() as f64;
    let (mut along, mut power) = (0.0, 0.0);
    for z in estimates.iter() {
        let t = target(medium, nearest(medium, *z));
        along += share * f64::from(z[0] * t[0] + z[1] * t[1]);
        power += share * f64::from(t[0] * t[0] + t[1] * t[1]);
    }
    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    let scale = (power / along.max(1e-6)) as f32;
    let mut variance = 0.0;
    for z in estimates.iter_mut() {
        *z = z.map(|part| part * scale);
        let t = target(medium, nearest(medium, *z));
        variance += 0.5 * share * f64::from((z[0] - t[0]).powi(2) + (z[1] - t[1]).powi(2));
    }
    Demapper::isotropic(medium, variance)
}

/// Returns the symbol whose target is nearest.
fn nearest(medium: Medium, z: [f32; 2]) -> u8 {
    let distance = |symbol: &u8| {
        let t = target(medium, *symbol);
        (z[0] - t[0]).powi(2) + (z[1] - t[1]).powi(2)
    };
    (0..medium.symbols()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
}

/// Returns the squared distance of estimates from their nearest targets, relative to their power.
fn scatter(medium: Medium, estimates: &[[f32; 2]]) -> f64 {
    let (mut error, mut power) = (0.0, 1e-12);
    for z in estimates {
        let t = target(medium, nearest(medium, *z));
        error += f64::from((z[0] - t[0]).powi(2) + (z[1] - t[1]).powi(2));
        power += f64::from(z[0] * z[0] + z[1] * z[1]);
    }
    error / power
}

impl Equations {
    fn new(size: usize) -> Self {
        let targets = [0, 1].map(|_| vec![0.0; size]);
        Self { size, products: vec![0.0; size * size], targets, voxels: 0 }
    }

    fn add(&mut self, windows: &Windows, target: impl Fn(usize) -> [f32; 2]) {
        let size = self.size;
        let voxels = windows.shape.voxels();
        let mut sums = vec![0.0f32; size * size];
        let mut batch = vec![[0.0f32; BATCH]; size];
        let mut values = vec![0.0f32; size];
        for first in (0..voxels).step_by(BATCH) {
            for k in 0..BATCH {
                let voxel = first + k;
                let is_there = voxel < voxels;
                windows.take(if is_there { voxel } else { 0 }, &mut values);
                let share = f32::from(u8::from(is_there));
                for (lane, value) in batch.iter_mut().zip(&values) {
                    lane[k] = share * value;
                }
                let aim = target(if is_there { voxel } else { 0 });
                for (sums, aim) in self.targets.iter_mut().zip(aim) {
                    for (sum, value) in sums.iter_mut().zip(&values) {
                        *sum += f64::from(share * aim * value);
                    }
                }
            }
            dispatch_simd(
                #[inline(always)]
                || add_outer_products(size, &batch, &mut sums),
            );
        }
        for (sum, value) in self.products.iter_mut().zip(&sums) {
            *sum += f64::from(*value);
        }
        self.voxels += u64::try_from(voxels).unwrap_or(u64::MAX);
    }

    /// Adds other equations, whose solution is `taps`, with this weight.
    fn add_prior(&mut self, prior: &Self, weight: f64, taps: &Taps) {
        for row in 0..self.size {
            for column in row..self.size {
                let at = row * self.size + column;
                let value = weight * prior.products[at];
                self.products[at] += value;
                for (sums, taps) in self.targets.iter_mut().zip(&taps.weights) {
                    sums[row] += value * f64::from(taps[column]);
                    if row != column {
                        sums[column] += value * f64::from(taps[row]);
                    }
                }
            }
        }
    }

    /// Solves the equations with a ridge by Cholesky decomposition. The ridge pulls towards `taps`,
    /// if there are any, else towards zero.
    fn solve(&self, ridge: f64, taps: Option<&Taps>) -> Result<[Vec<f32>; 2], DecodeError> {
        let size = self.size;
        let diagonal = (0..size).map(|i| self.products[i * size + i]).sum::<f64>();
        #[expect(clippy::cast_precision_loss, reason = "at most thousands")]
        let ridge = ridge * diagonal / size as f64;
        let mut lower = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let (done, rest) = lower.split_at(row * size);
                let own = &rest[..column];
                let other = if column < row { &done[column * size..][..column] } else { own };
                let dot: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                let mut value = self.products[column * size + row] - dot;
                if row == column {
                    value += ridge;
                    if !(value > 0.0 && value.is_finite()) {
                        let reason = format!("{} voxels are too few", self.voxels);
                        return Err(DecodeError::Fit { reason });
                    }
                    value = value.sqrt();
                } else {
                    value /= lower[column * size + column];
                }
                lower[row * size + column] = value;
            }
        }
        Ok([0, 1].map(|part| {
            let mut x = self.targets[part].clone();
            if let Some(taps) = taps {
                for (value, tap) in x.iter_mut().zip(&taps.weights[part]) {
                    *value += ridge * f64::from(*tap);
                }
            }
            for row in 0..size {
                let line = &lower[row * size..][..row];
                let dot: f64 = line.iter().zip(&x).map(|(a, b)| a * b).sum();
                x[row] = (x[row] - dot) / lower[row * size + row];
            }
            for row in (0..size).rev() {
                let dot: f64 = (row + 1..size).map(|k| lower[k * size + row] * x[k]).sum();
                x[row] = (x[row] - dot) / lower[row * size + row];
            }
            #[expect(clippy::cast_possible_truncation, reason = "single precision")]
            x.into_iter().map(|value| value as f32).collect()
        }))
    }
}

/// Adds the products of a batch to the upper triangle.
#[inline(always)]
fn add_outer_products(size: usize, batch: &[[f32; BATCH]], sums: &mut [f32]) {
    for row in 0..size {
        let own = batch[row];
        let line = &mut sums[row * size + row..(row + 1) * size];
        for (sum, other) in line.iter_mut().zip(&batch[row..]) {
            let mut dot = 0.0;
            for k in 0..BATCH {
                dot += own[k] * other[k];
            }
            *sum += dot;
        }
    }
}

/// The windows of a sector, at the voxels' positions.
struct Windows {
    shape: SectorShape,
    columns: usize,
    /// Resampled images with a border.
    images: Vec<Vec<f32>>,
    per_pitch: usize,
}

impl Windows {
    fn new(flat: &FlatImages, displacement: &Displacement, shape: SectorShape) -> Self {
        let [rows, columns] = flat.size();
        let wide = columns + 2 * HALF_WINDOW;
        let resample = |image: usize| {
            let mut out = vec![0.0; (rows + 2 * HALF_WINDOW) * wide];
            for (row, line) in out.chunks_mut(wide).enumerate() {
                let row = row.saturating_sub(HALF_WINDOW).min(rows - 1);
                for (column, value) in line.iter_mut().enumerate() {
                    let column = column.saturating_sub(HALF_WINDOW).min(columns - 1);
                    let shift = displacement.voxel(row / flat.per_pitch, column / flat.per_pitch);
                    *value = sample(flat, image, [row, column], shift);
                }
            }
            out
        };
        let images = (0..flat.images).map(resample).collect();
        Self { shape, columns: wide, images, per_pitch: flat.per_pitch }
    }

    fn take(&self, voxel: usize, out: &mut [f32]) {
        let at = [voxel / self.shape.columns(), voxel % self.shape.columns()];
        // The border is `HALF_WINDOW` pixels wide, so the center's index without border is the
        // window's first index with it.
        let [row, column] = at.map(|at| at * self.per_pitch + self.per_pitch / 2);
        let mut lines = out.chunks_exact_mut(WINDOW);
        for image in &self.images {
            for y in 0..WINDOW {
                let from = (row + y) * self.columns + column;
                if let Some(line) = lines.next() {
                    line.copy_from_slice(&image[from..from + WINDOW]);
                }
            }
        }
        if let Some(last) = out.last_mut() {
            *last = 1.0;
        }
    }
}

/// Samples an image at a pixel displaced by the nearest eighth of a pixel; borders repeat.
fn sample(flat: &FlatImages, image: usize, at: [usize; 2], shift: [f32; 2]) -> f32 {
    let split = |at: usize, shift: f32| {
        #[expect(clippy::cast_possible_truncation, reason = "a few pixels")]
        let eighths = at.cast_signed() * 8 + (shift * 8.0).round() as isize;
        (eighths.div_euclid(8), fraction_weights(eighths.rem_euclid(8).cast_unsigned()))
    };
    let ((row, vertical), (column, horizontal)) = (split(at[0], shift[0]), split(at[1], shift[1]));
    let mut sum = 0.0;
    for (dy, v) in (-1..).zip(vertical) {
        for (dx, h) in (-1..).zip(horizontal) {
            sum += v * h * flat.pixel(image, [row + dy, column + dx]);
        }
    }
    sum
}
