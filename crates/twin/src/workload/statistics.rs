//! Statistics of traces, for the statements of Silica sections 1, 2 and 7.2: each is a figure that
//! the paper gives, computed the way the paper says. They work on any trace, generated or not, one
//! read at a time.

use fulgurite_units::{ByteCount, Duration, Instant};

/// Steps of a histogram within a factor of two; at four bits, 10 MiB is the edge of a step.
const STEP_BITS: u32 = 4;
const STEPS: usize = 1 << STEP_BITS;

/// Reads, or writes, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of reads or writes.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Totals {
    /// Counts one.
    pub const fn add(&mut self, size: ByteCount) {
        self.count += 1;
        self.bytes += size.get();
    }

    /// Returns the mean size in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.bytes as f64 / self.count as f64
    }

    /// Returns the ratio of the counts to those of `other` (174 writes per read).
    #[must_use]
    pub fn count_over(&self, other: &Self) -> f64 {
        self.count as f64 / other.count as f64
    }

    /// Returns the ratio of the bytes to those of `other` (47 bytes written per byte read).
    #[must_use]
    pub fn bytes_over(&self, other: &Self) -> f64 {
        self.bytes as f64 / other.bytes as f64
    }

    /// Returns the ratio of reads per byte to those of `other` (10 for IOPS against Typical).
    #[must_use]
    pub fn reads_per_byte_over(&self, other: &Self) -> f64 {
        other.mean() / self.mean()
    }
}

/// Reads and bytes by size, in steps of a sixteenth of a factor of two.
#[derive(Clone, Debug)]
pub struct SizeShares {
    steps: Vec<Totals>,
    total: Totals,
}

impl Default for SizeShares {
    fn default() -> Self {
        Self { steps: vec![Totals::default(); 64 * STEPS], total: Totals::default() }
    }
}

impl SizeShares {
    /// Counts a read.
    pub fn add(&mut self, size: ByteCount) {
        self.total.add(size);
        self.steps[step(size.get().saturating_sub(1))].add(size);
    }

    /// Returns the totals.
    #[must_use]
    pub const fn total(&self) -> Totals {
        self.total
    }

    /// Returns the share of reads up to this size. Exact at edges of steps, such as 4, 10 and 256
    /// MiB; elsewhere the step is included.
    #[must_use]
    pub fn reads_up_to(&self, size: ByteCount) -> f64 {
        self.up_to(size).count_over(&self.total)
    }

    /// Returns the share of bytes in reads up to this size; exact as above.
    #[must_use]
    pub fn bytes_up_to(&self, size: ByteCount) -> f64 {
        self.up_to(size).bytes_over(&self.total)
    }

    /// Returns the size that this share of the reads does not exceed; the upper edge of its step.
    #[must_use]
    pub fn quantile(&self, share: f64) -> ByteCount {
        let wanted = share * self.total.count as f64;
        let mut count = 0;
        let at = self.steps.iter().position(|step| {
            count += step.count;
            count as f64 >= wanted
        });
        ByteCount::new(edge(at.unwrap_or(0) + 1))
    }

    /// Returns the share of the reads, largest first, that hold this share of the bytes ("80 % of
    /// bytes in less than 2 % of reads").
    #[must_use]
    pub fn reads_holding(&self, share_of_bytes: f64) -> f64 {
        let wanted = share_of_bytes * self.total.bytes as f64;
        let mut counted = Totals::default();
        for step in self.steps.iter().rev() {
            let missing = wanted - counted.bytes as f64;
            if step.bytes as f64 >= missing {
                let part = missing / step.bytes.max(1) as f64 * step.count as f64;
                return (counted.count as f64 + part) / self.total.count as f64;
            }
            counted.count += step.count;
            counted.bytes += step.bytes;
        }
        1.0
    }

    /// Returns the powers of ten between the smallest and the largest read.
    #[must_use]
    pub fn decades(&self) -> f64 {
        let any = |step: &Totals| step.count > 0;
        let first = self.steps.iter().position(any).unwrap_or(0);
        let last = self.steps.iter().rposition(any).unwrap_or(0);
        (edge(last + 1) as f64).log10() - (edge(first + 1) as f64).log10()
    }

    fn up_to(&self, size: ByteCount) -> Totals {
        let mut sum = Totals::default();
        for counted in &self.steps[..=step(size.get().saturating_sub(1))] {
            sum.count += counted.count;
            sum.bytes += counted.bytes;
        }
        sum
    }
}

/// Returns the step of a number: its exponent, and the four bits after the leading one.
fn step(number: u64) -> usize {
    let exponent = 63 - (number | 1).leading_zeros();
    if exponent < STEP_BITS {
        return usize::try_from(number).unwrap_or(0);
    }
    let steps = (number >> (exponent - STEP_BITS)) & (STEPS as u64 - 1);
    (exponent - STEP_BITS + 1) as usize * STEPS + usize::try_from(steps).unwrap_or(0)
}

/// Returns the smallest number of a step: the largest size of the one before.
const fn edge(step: usize) -> u64 {
    if step < STEPS {
        return step as u64;
    }
    let exponent = step / STEPS - 1;
    if exponent + STEP_BITS as usize > 63 {
        return u64::MAX;
    }
    ((STEPS + step % STEPS) as u64) << exponent
}

/// Reads and bytes by time, in bins of one width, from the start of a trace on.
#[derive(Clone, Debug)]
pub struct TimeBins {
    width: Duration,
    bins: Vec<Totals>,
}

impl TimeBins {
    /// Creates bins of this width over this length; the last may be shorter.
    ///
    /// # Panics
    /// When the width is zero.
    #[must_use]
    pub fn new(width: Duration, length: Duration) -> Self {
        assert!(width > Duration::ZERO, "a bin needs a width");
        let count = length.as_nanos().div_ceil(width.as_nanos());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Self { width, bins: vec![Totals::default(); count] }
    }

    /// Adds a read; one after the last bin is ignored.
    pub fn add(&mut self, at: Instant, size: ByteCount) {
        let index = usize::try_from(at.as_nanos() / self.width.as_nanos());
        if let Some(bin) = index.ok().and_then(|index| self.bins.get_mut(index)) {
            bin.add(size);
        }
    }

    /// Returns the bins.
    #[must_use]
    pub fn bins(&self) -> &[Totals] {
        &self.bins
    }

    /// Returns the bytes of each bin.
    #[must_use]
    pub fn bytes(&self) -> Vec<f64> {
        self.bins.iter().map(|bin| bin.bytes as f64).collect()
    }

    /// Returns the number of reads of each bin.
    #[must_use]
    pub fn counts(&self) -> Vec<f64> {
        self.bins.iter().map(|bin| bin.count as f64).collect()
    }
}

/// Returns the 99.9th percentile over the median: of hourly rates, Figure 1(c). `None` when the
/// median is zero, or there are no values.
#[must_use]
pub fn tail_over_median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    // The smallest value that at least this share of all does not exceed.
    let at = |per_mille: usize| sorted[(sorted.len() * per_mille).div_ceil(1000).min(last + 1) - 1];
    let median = at(500);
    (median > 0.0).then(|| at(999) / median)
}

/// Returns the largest sum of `window` adjacent values over the mean of such sums (the windows
/// overlap): Figure 2. `None` when there are fewer values, or all are zero.
#[must_use]
pub fn peak_over_mean(values: &[f64], window: usize) -> Option<f64> {
    if window == 0 || window > values.len() {
        return None;
    }
    let sums: Vec<f64> = values.windows(window).map(|part| part.iter().sum()).collect();
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    let peak = sums.into_iter().fold(0.0, f64::max);
    (mean > 0.0).then(|| peak / mean)
}

/// Returns [`peak_over_mean`] for windows from 1 to `longest` values: of daily volumes and 60,
/// Figure 2.
#[must_use]
pub fn peak_over_mean_curve(values: &[f64], longest: usize) -> Vec<f64> {
    (1..=longest).filter_map(|window| peak_over_mean(values, window)).collect()
}
