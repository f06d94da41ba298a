//! Writes: the daily ingest of the archive, for the twin of ingest.
//!
//! Silica section 2: 47 bytes are written for each byte read, in 174 writes for each read; the
//! largest day has 16 times the mean volume, the largest 30 days about twice. Daily volumes are
//! drawn as e^(s z) with normal z, and s is solved for so that the ratio of the largest day to the
//! mean is exact. The correlation of adjacent days is fitted, so that the median over seeds of the
//! ratio over 30 days is 2; one seed gives from 1.4 to 3.4, as one data center would.

use fulgurite_units::{ByteCount, Instant, Ratio, Seed};
use serde::{Deserialize, Serialize};

use super::draws::{Draws, Exponentials, exp2};
use super::envelope::{Step, Steps};
use super::sizes::SizeSampler;
use super::{Sizes, check_range, share};
use crate::Error;

/// Bytes written for each byte read (Silica, section 2).
const BYTES_PER_BYTE_READ: u64 = 47;
/// Writes for each read (Silica, section 2).
const WRITES_PER_READ: u64 = 174;
const DAY_NANOS: u64 = 86_400_000_000_000;
/// Maximum number of days: a century.
const DAYS_MAX: u32 = 36_525;

/// Writes over many days.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ingest {
    /// Number of days.
    pub days: u32,
    /// Mean writes per second.
    pub rate: f64,
    /// Sizes of writes. The paper gives only their mean; their shape is assumed to be that of
    /// reads.
    pub sizes: Sizes,
    /// Volume of the largest day over the mean of all days; 16.
    pub peak_over_mean: f64,
    /// Correlation of the logarithms of neighboring days; 0.5, fitted (0 gives 1.65 over 30 days,
    /// 0.8 gives 2.5).
    pub correlation: Ratio,
}

/// One write of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceWrite {
    /// When it arrives.
    pub at: Instant,
    /// Its size.
    pub size: ByteCount,
    /// The file.
    pub key: u64,
}

impl Ingest {
    /// Returns half a year of writes to go with reads of this rate and mean size: 174 times as
    /// many, with 47 times the bytes, so that the mean write is 27 MB for reads of 100 MB.
    #[must_use]
    pub fn for_reads(reads_per_second: f64, read_mean: ByteCount) -> Self {
        let mean = read_mean.get() * BYTES_PER_BYTE_READ / WRITES_PER_READ;
        Self {
            days: 181,
            rate: reads_per_second * WRITES_PER_READ as f64,
            sizes: Sizes::TableOfMean { mean: ByteCount::new(mean) },
            peak_over_mean: 16.0,
            correlation: share(0.5),
        }
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        let days = f64::from(self.days);
        check_range("days", days, 2.0..=f64::from(DAYS_MAX), "from 2 to 36525")?;
        check_range("rate", self.rate, 0.0..=1e5, "from 0 to 100000 per second")?;
        let ratio = self.peak_over_mean;
        // With equal days the ratio is 1; if one day has everything, it is the number of days.
        check_range("peak_over_mean", ratio, 1.0..=days * 0.99, "from 1 to less than days")?;
        self.sizes.sampler(&Seed::new(0)).map(drop)
    }

    /// Draws the volumes of the days, each divided by their mean.
    ///
    /// # Errors
    /// Names the first parameter that is out of range.
    pub fn daily_factors(&self, seed: Seed) -> Result<Vec<f64>, Error> {
        self.validate()?;
        let mut draws = Draws::new(&seed, b"days");
        let correlation = self.correlation.get();
        let mut level = draws.normal();
        let levels: Vec<f64> = (0..self.days)
            .map(|_| {
                let day = level;
                let fresh = (1.0 - correlation * correlation).sqrt() * draws.normal();
                level = correlation * level + fresh;
                day
            })
            .collect();
        let (mut low, mut high) = (0.0, 100.0);
        // The ratio grows with the spread; 60 bisection steps are enough for full precision.
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let largest = spread(&levels, middle).into_iter().fold(0.0, f64::max);
            if largest < self.peak_over_mean { low = middle } else { high = middle }
        }
        Ok(spread(&levels, low))
    }

    /// Returns the writes in the order of time, in memory that grows only with the days.
    ///
    /// # Errors
    /// Names the first parameter that is out of range.
    pub fn writes(&self, seed: Seed) -> Result<IngestWrites, Error> {
        let factors = self.daily_factors(seed)?;
        let step = |(day, factor): (u64, f64)| Step::new(day * DAY_NANOS, self.rate * factor / 1e9);
        let steps = (1..).zip(factors).map(step).collect();
        Ok(IngestWrites {
            arrivals: Steps::new(steps, Exponentials::new(&seed, b"writes")),
            sizes: self.sizes.sampler(&seed)?,
            keys: Draws::new(&seed, b"keys"),
        })
    }
}

/// Writes as a stream.
#[derive(Clone, Debug)]
pub struct IngestWrites {
    arrivals: Steps,
    sizes: SizeSampler,
    keys: Draws,
}

impl Iterator for IngestWrites {
    type Item = TraceWrite;

    #[inline]
    fn next(&mut self) -> Option<TraceWrite> {
        let at = Instant::from_nanos(self.arrivals.next()?);
        Some(TraceWrite { at, size: self.sizes.draw(), key: self.keys.bits() })
    }
}

/// Returns e^(s z) over its mean; the largest level is subtracted first, so that nothing overflows.
fn spread(levels: &[f64], s: f64) -> Vec<f64> {
    let largest = levels.iter().copied().fold(f64::MIN, f64::max);
    let mut volumes: Vec<f64> =
        levels.iter().map(|level| exp2(s * (level - largest) * std::f64::consts::LOG2_E)).collect();
    let mean = volumes.iter().sum::<f64>() / volumes.len() as f64;
    volumes.iter_mut().for_each(|volume| *volume /= mean);
    volumes
}
