//! The channel on which codewords are simulated: voxels with ordered levels and Gaussian noise.
//!
//! A voxel holds `b` bits as one of `2^b` levels at distance 1, with the Gray labels and the soft
//! bits of [`crate::symbols`]. Reading adds Gaussian noise; the symbol error rate determines its
//! deviation. This is the smallest model with the one property that matters for the code: unequal
//! and dependent bits. It is not a model of any glass.

use super::density::Density;
use crate::symbols::{Alphabet, Axis, DemapMethod, Demapper};

/// Maximum number of bits per voxel.
const BITS_MAX: usize = 4;
/// Quantization steps of a reading between two levels.
const STEPS: usize = 64;
/// Levels of margin on both sides: beyond, a reading counts as one at the edge.
const MARGIN: usize = 2;
/// Entries of the table of noise quantiles.
const QUANTILES: usize = 1 << 16;

/// Voxels of one type at one symbol error rate.
#[derive(Clone, Debug)]
pub struct VoxelChannel {
    bits: usize,
    deviation: f64,
    alphabet: Alphabet,
    /// Quantized log-likelihood ratios of all bits, by reading.
    ratios: Vec<[i8; BITS_MAX]>,
    /// Noise in steps, at equally likely quantiles; the two outermost are replaced by draws from
    /// `tail`.
    noise: Vec<i32>,
    tail: Vec<i32>,
}

/// Returns the upper tail of the normal distribution, with a relative error below 1.2e-7 (the
/// rational Chebyshev fit of erfc in Numerical Recipes).
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

/// Returns the value that a normal variable exceeds with the given probability, by bisection.
fn quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if upper_tail(middle) > probability { low = middle } else { high = middle }
    }
    low
}

impl VoxelChannel {
    /// Creates voxels of `bits` bits that are misread with probability `error_rate`, and whose
    /// log-likelihood ratios are in units of `1 / scale`.
    ///
    /// # Panics
    /// When `bits` is not 1 to 4, `error_rate` not between 0 and 0.5 or `scale` not positive.
    #[must_use]
    pub fn new(bits: usize, error_rate: f64, scale: f64) -> Self {
        assert!((1..=BITS_MAX).contains(&bits), "a voxel holds 1 to 4 bits");
        assert!(error_rate > 0.0 && error_rate < 0.5, "an error rate is below one half");
        assert!(scale > 0.0, "a scale is positive");
        let alphabet = Alphabet::new(Axis::Ordered { bits }).expect("1 to 4 bits");
        #[expect(clippy::cast_possible_truncation, reason = "a scale needs few digits")]
        let demapper =
            Demapper::new(&alphabet, DemapMethod::Exact, scale as f32).expect("positive");
        // Inner levels err to two sides, the outer two to one: SER = 2 (1 - 1/M) Q(1 / (2 s)).
        let one_side = error_rate / (2.0 * (1.0 - 1.0 / alphabet.size() as f64));
        let deviation = 0.5 / quantile(one_side);
        let ratios = (0..(alphabet.size() + 2 * MARGIN) * STEPS)
            .map(|reading| {
                let place = (reading as f64 + 0.5) / STEPS as f64 - MARGIN as f64;
                soft_bits(&demapper, bits, place, deviation)
            })
            .collect();
        let steps =
            |probability: f64| floor_to_i32(quantile(probability) * deviation * STEPS as f64);
        let noise =
            (0..QUANTILES).map(|index| steps((index as f64 + 0.5) / QUANTILES as f64)).collect();
        let tail = (0..QUANTILES)
            .map(|index| steps((index as f64 + 0.5) / QUANTILES as f64 / QUANTILES as f64))
            .collect();
        Self { bits, deviation, alphabet, ratios, noise, tail }
    }

    /// Number of bits per voxel.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Returns the density of the channel values, for [`super::density`].
    #[must_use]
    pub fn density(&self) -> Density {
        let levels = self.alphabet.size();
        let share = 1.0 / (levels * self.bits) as f64;
        let mut density = Density::empty();
        for level in 0..levels {
            let label = self.alphabet.label(level.to_le_bytes()[0]);
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

    /// Reads a voxel that holds `label`. Returns the ratios of its bits, and whether the nearest
    /// level is a wrong one.
    #[inline]
    pub(crate) fn read(&self, label: u8, random: u64) -> ([i8; BITS_MAX], bool) {
        let level = usize::from(self.alphabet.symbol(label));
        let [a, b, c, d, ..] = random.to_le_bytes();
        let index = usize::from(u16::from_le_bytes([a, b]));
        let noise = match index {
            0 => self.tail[usize::from(u16::from_le_bytes([c, d]))],
            _ if index == QUANTILES - 1 => -self.tail[usize::from(u16::from_le_bytes([c, d]))],
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

/// Returns the quantized ratios of one reading, computed by the demapper of a real reader.
fn soft_bits(demapper: &Demapper, bits: usize, place: f64, deviation: f64) -> [i8; 4] {
    let mut logarithms = [0.0; 1 << BITS_MAX];
    for (level, logarithm) in logarithms.iter_mut().enumerate().take(1 << bits) {
        let distance = (place - level as f64) / deviation;
        #[expect(clippy::cast_possible_truncation, reason = "a logarithm needs few digits")]
        let value = (-0.5 * distance * distance) as f32;
        *logarithm = value;
    }
    let mut soft = [0; BITS_MAX];
    demapper
        .logarithms(&logarithms[..1 << bits], &mut soft[..bits])
        .expect("one voxel of the alphabet");
    soft
}
