//! Sizes of reads: the piecewise log-uniform table fitted to Silica section 2, a smooth
//! alternative, and one fixed size.
//!
//! A segment is drawn by its probability, then a size within it as `lo * (hi / lo)^u`.

use fulgurite_units::{ByteCount, Seed};
use serde::{Deserialize, Serialize};

use super::draws::{AliasTable, Draws, exp2, floor, ln};
use crate::Error;

/// Smallest size.
const SIZE_MIN: f64 = 100.0;
/// Upper bound of all sizes, exclusive.
const SIZE_END: f64 = 1e12;
const MIB: f64 = 1_048_576.0;
const SEGMENT_COUNT: usize = 9;
const BLOCK_SIZES: usize = 256;

/// Upper ends of the segments; the first begins at 100 bytes.
const ENDS: [f64; SEGMENT_COUNT] = [
    65_536.0,
    MIB,
    4.0 * MIB,
    10.0 * MIB,
    64.0 * MIB,
    256.0 * MIB,
    4096.0 * MIB,
    32_768.0 * MIB,
    SIZE_END,
];
/// An exact fit of the shares of Silica section 2, by non-negative least squares.
const TYPICAL: [f64; SEGMENT_COUNT] =
    [0.041040, 0.020520, 0.525441, 0.223000, 0.109524, 0.061476, 0.015214, 0.003756, 0.000030];
/// Ten times the reads per byte (Silica, section 7.2): fewer reads above 64 MiB.
const IOPS_FACTOR: f64 = 0.03357;
/// Segments from this on are rarer under IOPS.
const IOPS_FROM: usize = 5;
/// 25 times the bytes in 5 times the reads: more reads above 256 MiB.
const VOLUME_FACTOR: f64 = 6.298;
/// Segments from this on are more frequent under Volume.
const VOLUME_FROM: usize = 6;
/// Weight, median in bytes and standard deviation of the logarithm: four lognormals, truncated to
/// the same range.
const LOGNORMALS: [(f64, f64, f64); 4] = [
    (0.122732, 20e3, 1.99807),
    (0.697136, 3.26812e6, 0.58230),
    (0.174044, 63.8843e6, 0.99434),
    (0.006087, 6.0e9, 1.24436),
];

/// The interval of the paper that sizes are drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// A typical interval: mean 100 MB.
    Typical,
    /// The interval with the most reads: mean 10 MB.
    Iops,
    /// The interval with the most bytes: mean 500 MB.
    Volume,
}

/// Sizes of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sizes {
    /// Drawn from the table.
    Table {
        /// The interval.
        profile: Profile,
    },
    /// Drawn from the table, with its part above 64 MiB weighted to give this mean.
    TableOfMean {
        /// The mean: from 8 MB to 500 MB.
        mean: ByteCount,
    },
    /// Drawn from four lognormals that meet the same shares as the table of a typical interval.
    Smooth,
    /// All the same.
    Fixed {
        /// The size.
        size: ByteCount,
    },
}

impl Sizes {
    /// Creates a sampler of these sizes.
    ///
    /// # Errors
    /// When a mean or a size is not possible.
    pub fn sampler(&self, seed: &Seed) -> Result<SizeSampler, Error> {
        let kind = match *self {
            Self::Table { profile } => Kind::Table(TableSampler::new(&weights(profile))),
            Self::TableOfMean { mean } => Kind::Table(TableSampler::new(&weights_of_mean(mean)?)),
            Self::Smooth => Kind::Smooth(AliasTable::new(&LOGNORMALS.map(|(weight, ..)| weight))),
            Self::Fixed { size } if size > ByteCount::ZERO => Kind::Fixed(size),
            Self::Fixed { size } => {
                return Err(parameter("sizes.fixed.size", size, "at least one byte"));
            }
        };
        let block = Box::new([ByteCount::ZERO; BLOCK_SIZES]);
        Ok(SizeSampler { kind, draws: Draws::new(seed, b"sizes"), block, position: BLOCK_SIZES })
    }

    /// Returns the mean in bytes: exact, or measured for the smooth alternative.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Table { profile } => table_mean(&weights(profile)),
            Self::TableOfMean { mean } | Self::Fixed { size: mean } => mean.get() as f64,
            Self::Smooth => 99.8e6,
        }
    }
}

/// Draws sizes, one after another. They are computed a block at a time, so that their powers do not
/// wait for the code between two draws.
#[derive(Clone, Debug)]
pub struct SizeSampler {
    kind: Kind,
    draws: Draws,
    block: Box<[ByteCount; BLOCK_SIZES]>,
    position: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    Table(TableSampler),
    Smooth(AliasTable),
    Fixed(ByteCount),
}

impl SizeSampler {
    /// Draws the next size.
    #[inline]
    pub fn draw(&mut self) -> ByteCount {
        if self.position == BLOCK_SIZES {
            self.refill();
        }
        let drawn = self.block[self.position];
        self.position += 1;
        drawn
    }

    #[inline(never)]
    fn refill(&mut self) {
        let (block, draws) = (self.block.iter_mut(), &mut self.draws);
        match &self.kind {
            Kind::Table(table) => block.for_each(|size| *size = table.draw(draws)),
            Kind::Smooth(mixture) => block.for_each(|size| *size = smooth(mixture, draws)),
            Kind::Fixed(fixed) => block.for_each(|size| *size = *fixed),
        }
        self.position = 0;
    }
}

#[derive(Clone, Debug)]
struct TableSampler {
    choice: AliasTable,
    /// Binary logarithms of a segment's lower end, and of the ratio of its ends.
    spans: [(f64, f64); SEGMENT_COUNT],
}

impl TableSampler {
    fn new(weights: &[f64; SEGMENT_COUNT]) -> Self {
        let log2 = |x: f64| ln(x) * std::f64::consts::LOG2_E;
        let spans = std::array::from_fn(|index| {
            let (low, high) = segment(index);
            (log2(low), log2(high / low))
        });
        Self { choice: AliasTable::new(weights), spans }
    }

    #[inline]
    fn draw(&self, draws: &mut Draws) -> ByteCount {
        let (low, span) = self.spans[self.choice.draw(draws.bits()) as usize];
        let size = exp2(low + span * draws.unit());
        ByteCount::new(floor(size).max(floor(SIZE_MIN)))
    }
}

fn smooth(mixture: &AliasTable, draws: &mut Draws) -> ByteCount {
    loop {
        let (_, median, deviation) = LOGNORMALS[mixture.draw(draws.bits()) as usize];
        let size = median * exp2(draws.normal() * deviation * std::f64::consts::LOG2_E);
        if (SIZE_MIN..SIZE_END).contains(&size) {
            return ByteCount::new(floor(size));
        }
    }
}

const fn segment(index: usize) -> (f64, f64) {
    (if index == 0 { SIZE_MIN } else { ENDS[index - 1] }, ENDS[index])
}

fn weights(profile: Profile) -> [f64; SEGMENT_COUNT] {
    match profile {
        Profile::Typical => TYPICAL,
        Profile::Iops => weighted(IOPS_FROM, IOPS_FACTOR),
        Profile::Volume => weighted(VOLUME_FROM, VOLUME_FACTOR),
    }
}

/// Returns the typical weights, multiplied from one segment on; they need not add up to 1.
fn weighted(from: usize, factor: f64) -> [f64; SEGMENT_COUNT] {
    std::array::from_fn(|index| TYPICAL[index] * if index < from { 1.0 } else { factor })
}

/// Returns the mean of a size that is log-uniform in a segment: (hi - lo) / ln(hi / lo).
fn segment_mean(index: usize) -> f64 {
    let (low, high) = segment(index);
    (high - low) / ln(high / low)
}

fn table_mean(weights: &[f64; SEGMENT_COUNT]) -> f64 {
    let bytes: f64 =
        (0..SEGMENT_COUNT).map(|position| weights[position] * segment_mean(position)).sum();
    bytes / weights.iter().sum::<f64>()
}

/// Solves (A + f B) / (a + f b) = mean, for A and a the bytes and reads of the lower segments, B
/// and b of the upper ones: f = (mean a - A) / (B - mean b).
fn weights_of_mean(mean: ByteCount) -> Result<[f64; SEGMENT_COUNT], Error> {
    if !(8_000_000..=500_000_000).contains(&mean.get()) {
        return Err(parameter("sizes.table-of-mean.mean", mean, "from 8 MB to 500 MB"));
    }
    let mean = mean.get() as f64;
    let (mut lower, mut upper) = (0.0, 0.0);
    for (index, weight) in TYPICAL.iter().enumerate() {
        let excess = weight * (segment_mean(index) - mean);
        if index < IOPS_FROM { lower += excess } else { upper += excess }
    }
    let factor = -lower / upper;
    assert!(factor > 0.0 && factor.is_finite(), "the range of means keeps the weights positive");
    Ok(weighted(IOPS_FROM, factor))
}

fn parameter(field: &'static str, value: ByteCount, expected: &'static str) -> Error {
    Error::Parameter { field, value: value.to_string(), expected }
}
