//! The voxels that codewords are tried on: ordered levels with Gaussian noise.
//!
//! A voxel holds `b` bits as one of `2^b` levels a distance 1 apart, with Gray labels
//! `x ^ (x >> 1)`, so that the likely confusion, with a neighbor, costs one bit. Reading adds
//! Gaussian noise; the symbol error rate fixes its deviation. This is the smallest model that has
//! the one property that matters for the code, unequal and dependent bits; it is not a model
//! of any glass.

use super::decode::CHANNEL_MAX;
use super::density::Density;

/// Steps of the quantized reading between two levels.
const STEPS: usize = 64;
/// Levels of margin on both sides: beyond, a reading says no more than at the edge.
const MARGIN: usize = 2;
/// Entries of the table of noise quantiles.
const QUANTILES: usize = 1 << 16;

/// Voxels of one kind at one symbol error rate.
#[derive(Clone, Debug)]
pub struct VoxelChannel {
    bits: usize,
    deviation: f64,
    /// Quantized log-likelihood ratios of all bits, by reading.
    ratios: Vec<[i8; 4]>,
    /// Noise in steps, at equally likely quantiles; the outermost two stand for their tails.
    noise: Vec<i32>,
    tail: Vec<i32>,
}

/// The upper tail of the normal distribution, to a relative error below 1.2e-7 (the rational
/// Chebyshev fit of erfc in Numerical Recipes).
fn upper_tail(x: f64) -> f64 {
    const TERMS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let sum = TERMS.iter().rev().fold(0.0, |sum, term| sum * t + term);
    let tail = t * (sum - z * z).exp() / 2.0;
    if x >= 0.0 { tail } else { 1.0 - tail }
}

/// The point that a normal variable exceeds with the given chance, by bisection.
fn quantile(chance: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if upper_tail(middle) > chance { low = middle } else { high = middle }
    }
    low
}

impl VoxelChannel {
    /// Voxels of `bits` bits that are read wrongly with chance `error_rate`, and whose
    /// log-likelihood ratios are written in units of `1 / scale`.
    ///
    /// # Panics
    /// When `bits` is not 1 to 4, `error_rate` not between 0 and 0.5 or `scale` not positive.
    #[must_use]
    pub fn new(bits: usize, error_rate: f64, scale: f64) -> Self {
        assert!((1..=4).contains(&bits), "a voxel holds 1 to 4 bits");
        assert!(error_rate > 0.0 && error_rate < 0.5, "an error rate is below one half");
        assert!(scale > 0.0, "a scale is positive");
        let levels = 1usize << bits;
        // Inner levels err on two sides, the outer two on one: SER = 2 (1 - 1/M) Q(1 / (2 s)).
        let one_side = error_rate / (2.0 * (1.0 - 1.0 / levels as f64));
        let deviation = 0.5 / quantile(one_side);
        let readings = (levels + 2 * MARGIN) * STEPS;
        let ratios = (0..readings)
            .map(|reading| {
                let place = (reading as f64 + 0.5) / STEPS as f64 - MARGIN as f64;
                log_likelihood_ratios(bits, place, deviation, scale)
            })
            .collect();
        let steps = |chance: f64| floor_to_i32(quantile(chance) * deviation * STEPS as f64);
        let noise =
            (0..QUANTILES).map(|index| steps((index as f64 + 0.5) / QUANTILES as f64)).collect();
        let tail = (0..QUANTILES)
            .map(|index| steps((index as f64 + 0.5) / QUANTILES as f64 / QUANTILES as f64))
            .collect();
        Self { bits, deviation, ratios, noise, tail }
    }

    /// Bits of a voxel.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// The density of the channel's values, for [`super::density`].
    #[must_use]
    pub fn density(&self) -> Density {
        let levels = 1usize << self.bits;
        let share = 1.0 / (levels * self.bits) as f64;
        let mut density = Density::empty();
        for level in 0..levels {
            let label = level ^ (level >> 1);
            let mut above = 1.0;
            for (reading, ratios) in self.ratios.iter().enumerate() {
                let edge = (reading + 1) as f64 / STEPS as f64 - (MARGIN + level) as f64;
                let last = reading + 1 == self.ratios.len();
                let beyond = if last { 0.0 } else { upper_tail(edge / self.deviation) };
                for (bit, &ratio) in ratios[..self.bits].iter().enumerate() {
                    let value = if label >> bit & 1 == 0 { ratio } else { -ratio };
                    density.add(value, (above - beyond) * share);
                }
                above = beyond;
            }
        }
        density
    }

    /// Reads a voxel that holds `label`: the ratios of its bits, and whether the nearest level is
    /// a wrong one.
    #[inline]
    pub(crate) fn read(&self, label: usize, random: u64) -> ([i8; 4], bool) {
        let mut level = label;
        level ^= level >> 1;
        level ^= level >> 2;
        let index = usize::from(u16::from_le_bytes([random as u8, (random >> 8) as u8]));
        let noise = match index {
            0 => self.tail[(random >> 16) as usize % QUANTILES],
            _ if index == QUANTILES - 1 => -self.tail[(random >> 16) as usize % QUANTILES],
            _ => self.noise[index],
        };
        let half = i32::try_from(STEPS / 2).unwrap_or(0);
        let center = i32::try_from((level + MARGIN) * STEPS).unwrap_or(0);
        let last = self.ratios.len() - 1;
        let reading = usize::try_from(center + noise).unwrap_or(0).min(last);
        let wrong = (noise >= half && level + 1 < 1 << self.bits) || (noise < -half && level > 0);
        (self.ratios[reading], wrong)
    }
}

fn floor_to_i32(value: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, as is meant")]
    let floor = value.floor() as i32;
    floor
}

/// The quantized ratios of one reading, exactly summed over the levels.
fn log_likelihood_ratios(bits: usize, place: f64, deviation: f64, scale: f64) -> [i8; 4] {
    let mut ratios = [0; 4];
    let levels = 1usize << bits;
    let exponent = |level: usize| {
        let distance = (place - level as f64) / deviation;
        -0.5 * distance * distance
    };
    let highest = (0..levels).map(exponent).fold(f64::NEG_INFINITY, f64::max);
    for (bit, ratio) in ratios.iter_mut().take(bits).enumerate() {
        let mut sums = [f64::MIN_POSITIVE; 2];
        for level in 0..levels {
            sums[(level ^ (level >> 1)) >> bit & 1] += (exponent(level) - highest).exp();
        }
        *ratio = quantize((sums[0] / sums[1]).ln(), scale);
    }
    ratios
}

/// A log-likelihood ratio in units of `1 / scale`, within the decoder's range.
#[must_use]
pub fn quantize(ratio: f64, scale: f64) -> i8 {
    let limit = f64::from(CHANNEL_MAX);
    #[expect(clippy::cast_possible_truncation, reason = "clamped to the range of the type")]
    let quantized = (ratio * scale).round().clamp(-limit, limit) as i8;
    quantized
}
