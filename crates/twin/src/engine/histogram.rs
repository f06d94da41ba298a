//! A histogram of durations whose memory does not grow with their number.
//!
//! Buckets are logarithmic with 512 steps per doubling: a quantile is off by at most 0.1 %.

use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

/// Steps per doubling, as a power of two.
const STEP_BITS: u32 = 9;

/// Summary of many durations, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Number of durations.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile: the paper's tail.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// A histogram of durations.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    buckets: Vec<u32>,
    count: u64,
    sum_ns: u128,
    max: Duration,
}

impl Histogram {
    /// Adds a duration.
    pub fn add(&mut self, time: Duration) {
        let bucket = bucket_of(time.as_nanos());
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum_ns += u128::from(time.as_nanos());
        self.max = self.max.max(time);
    }

    /// Returns how many of `count` durations may exceed a limit that their 99.9th percentile does
    /// not exceed.
    pub(crate) const fn above_tail(count: u64) -> u64 {
        count - (count * 999).div_ceil(1000)
    }

    /// Adds all durations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (bucket, other_bucket) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += other_bucket;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max = self.max.max(other.max);
    }

    /// Returns the mean and the quantiles, in seconds.
    #[must_use]
    pub fn quantiles(&self) -> Quantiles {
        if self.count == 0 {
            return Quantiles::default();
        }
        #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
        let mean = self.sum_ns as f64 / self.count as f64 / 1e9;
        Quantiles {
            count: self.count,
            mean,
            p50: self.quantile(500),
            p99: self.quantile(990),
            p999: self.quantile(999),
            max: self.max.as_secs_f64(),
        }
    }

    /// Returns whether the histogram is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the middle of the smallest bucket that `per_mille` of 1,000 durations do not exceed,
    /// in seconds.
    pub(crate) fn quantile(&self, per_mille: u64) -> f64 {
        let rank = (self.count * per_mille).div_ceil(1000).max(1);
        let mut passed = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            passed += u64::from(*count);
            if passed >= rank {
                let middle = Duration::from_nanos(middle_of(bucket));
                return middle.min(self.max).as_secs_f64();
            }
        }
        self.max.as_secs_f64()
    }
}

fn bucket_of(nanos: u64) -> usize {
    let doublings = (u64::BITS - nanos.leading_zeros()).saturating_sub(STEP_BITS + 1);
    let steps = usize::try_from(nanos >> doublings).unwrap_or(0);
    ((doublings as usize) << STEP_BITS) + steps
}

fn middle_of(bucket: usize) -> u64 {
    let step = 1usize << STEP_BITS;
    if bucket < 2 * step {
        return bucket as u64;
    }
    let doublings = (bucket >> STEP_BITS) - 1;
    let steps = (bucket - (doublings << STEP_BITS)) as u64;
    (steps << doublings) + ((1u64 << doublings) >> 1)
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{Duration, Seed};

    use super::{Histogram, bucket_of, middle_of};

    #[test]
    fn bucket_contains_its_middle_and_is_narrow() {
        let mut random = Seed::new(1).stream();
        for _ in 0..100_000 {
            let nanos = random.next_u64() >> random.below(60);
            let middle = middle_of(bucket_of(nanos));
            assert_eq!(bucket_of(middle), bucket_of(nanos), "{nanos}");
            let off = middle.abs_diff(nanos) as f64;
            assert!(off <= nanos as f64 * 0.001, "{nanos} counts as {middle}");
        }
    }

    #[test]
    fn quantiles_match_sorted_times() {
        let mut random = Seed::new(2).stream();
        let mut times: Vec<u64> = (0..20_001).map(|_| random.below(1_000_000_000_000)).collect();
        let mut histogram = Histogram::default();
        times.iter().for_each(|nanos| histogram.add(Duration::from_nanos(*nanos)));
        times.sort_unstable();
        let found = histogram.quantiles();
        for (per_mille, found) in [(500, found.p50), (990, found.p99), (999, found.p999)] {
            let exact = times[(times.len() * per_mille).div_ceil(1000) - 1] as f64 / 1e9;
            assert!((found / exact - 1.0).abs() < 0.0011, "p{per_mille}: {found} for {exact}");
        }
        assert!((found.max - *times.last().unwrap() as f64 / 1e9).abs() < 1e-9);
    }
}
