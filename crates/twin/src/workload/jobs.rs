//! Jobs: reads that arrive together, as when one user restores many files.

use fulgurite_units::{Duration, Seed};
use serde::{Deserialize, Serialize};

use super::check_range;
use super::draws::{Draws, Exponentials, floor, power};
use crate::Error;

/// How many reads arrive together, and how close.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Exponent of the bounded Pareto distribution of the reads per job; 1.1.
    pub alpha: f64,
    /// Its bound; 1000, fitted to the tails of a typical interval. At 1, jobs are single reads.
    pub reads_max: u32,
    /// Mean time between two reads of a job, exponential; 50 ms.
    pub gap: Duration,
}

impl Jobs {
    /// Jobs of the paper's intervals, as fitted.
    pub const PAPER: Self = Self { alpha: 1.1, reads_max: 1000, gap: Duration::from_millis(50) };
    /// Single reads, so that reads are Poisson.
    pub const SINGLE: Self = Self { reads_max: 1, ..Self::PAPER };

    pub(super) fn validate(&self) -> Result<(), Error> {
        check_range("jobs.alpha", self.alpha, 0.1..=10.0, "from 0.1 to 10")?;
        let reads_max = f64::from(self.reads_max);
        check_range("jobs.reads_max", reads_max, 1.0..=1e6, "from 1 to 1000000")?;
        let gap = self.gap.as_secs_f64();
        check_range("jobs.gap", gap, 0.0..=86_400.0, "at most a day")
    }

    /// Returns the mean reads per job. With H the bound and a the exponent, a job has k reads or
    /// more with probability (k^-a - H^-a) / (1 - H^-a); the mean is the sum of these over all k.
    #[must_use]
    pub fn reads_mean(&self) -> f64 {
        if self.reads_max <= 1 {
            return 1.0;
        }
        let rest = power(f64::from(self.reads_max), -self.alpha);
        let at_least = |k: u32| (power(f64::from(k), -self.alpha) - rest) / (1.0 - rest);
        (1..=self.reads_max).map(at_least).sum()
    }
}

/// Draws the reads of jobs and the gaps between them.
#[derive(Clone, Debug)]
pub(super) struct JobSampler {
    counts: Draws,
    gaps: Exponentials,
    /// 1 - H^-a.
    range: f64,
    /// -1 / a.
    exponent: f64,
    gap_nanos: f64,
    reads_max: u32,
}

impl JobSampler {
    pub(super) fn new(jobs: &Jobs, seed: &Seed) -> Self {
        Self {
            counts: Draws::new(seed, b"jobs"),
            gaps: Exponentials::new(seed, b"gaps"),
            range: 1.0 - power(f64::from(jobs.reads_max), -jobs.alpha),
            exponent: -1.0 / jobs.alpha,
            gap_nanos: jobs.gap.as_nanos() as f64,
            reads_max: jobs.reads_max,
        }
    }

    /// Draws the number of reads of the next job: the integer part of a bounded Pareto number, by
    /// inversion.
    #[inline]
    pub(super) fn count(&mut self) -> u32 {
        if self.reads_max == 1 {
            return 1;
        }
        let pareto = power(1.0 - self.counts.unit() * self.range, self.exponent);
        u32::try_from(floor(pareto)).unwrap_or(u32::MAX).clamp(1, self.reads_max)
    }

    /// Draws the nanoseconds to the next read of a job.
    #[inline]
    pub(super) fn gap(&mut self) -> u64 {
        floor(self.gaps.draw() * self.gap_nanos)
    }
}
