//! Workloads: arrival times and sizes of reads, as values, and traces generated from them.
//!
//! ```text
//! envelope x modulation --> jobs (Poisson) --> reads of a job, 0.05 s apart --> TraceRead
//!                                              sizes, keys -----------------------^
//! ```
//!
//! The numbers are fitted to what Silica (sections 2 and 7.2) says of its traces, which are not
//! public: nothing here is a real trace. Each component draws from its own child stream, so that
//! another size table leaves every arrival unchanged. Which platter a read goes to is not part of a
//! trace; [`PlacementSampler`] draws it for the consumer.

mod draws;
mod envelope;
mod ingest;
mod jobs;
mod placement;
mod reads;
mod sizes;
mod statistics;

use fulgurite_units::{ByteCount, Duration, Ratio, Seed};
use serde::{Deserialize, Serialize};

use crate::trace::TRACE_READS_MAX;
use crate::{Error, Trace};
pub(crate) use draws::{Draws, Exponentials, exp2, floor, ln};
pub use envelope::{Burst, Envelope, Modulation};
pub use ingest::{Ingest, IngestWrites, TraceWrite};
pub use jobs::Jobs;
pub use placement::{Placement, PlacementSampler};
pub use reads::Reads;
pub use sizes::{Profile, SizeSampler, Sizes};
pub use statistics::{
    SizeShares, TimeBins, Totals, peak_over_mean, peak_over_mean_curve, tail_over_median,
};

/// Mean reads per second of one library in the early deployment (Silica, section 7.7).
pub const LIBRARY_RATE: f64 = 0.3;
/// Mean size of a file (Silica, section 7.7).
pub const FILE_SIZE_MEAN: ByteCount = ByteCount::new(100_000_000);

/// The arrival times, sizes and placement of reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The read rate over time.
    pub envelope: Envelope,
    /// Reads that arrive together.
    pub jobs: Jobs,
    /// Sizes of reads.
    pub sizes: Sizes,
    /// Which platters reads go to; drawn by the consumer, one draw per shard.
    #[serde(default)]
    pub placement: Placement,
}

impl Workload {
    /// Returns a typical interval of 12 h: 0.3 reads/s of 100 MB (Silica, sections 7.2 and 7.7).
    #[must_use]
    pub fn typical() -> Self {
        Self::interval(Profile::Typical, LIBRARY_RATE, None)
    }

    /// Returns the interval with the most reads: 4.3 reads/s of 10 MB, 18 % of them within half an
    /// hour. Rate and burst are fitted to the tails of Silica section 7.3.
    #[must_use]
    pub fn iops() -> Self {
        let burst = Burst::new(0.18, Duration::from_secs(1_800));
        Self::interval(Profile::Iops, 4.3, Some(burst))
    }

    /// Returns the interval with the most bytes: 1.22 reads/s of 500 MB, 83 % of them within 5 h.
    /// Rate and burst are fitted as above.
    #[must_use]
    pub fn volume() -> Self {
        let burst = Burst::new(0.83, Duration::from_secs(18_000));
        Self::interval(Profile::Volume, 1.22, Some(burst))
    }

    /// Returns Poisson reads of 100 MB at a steady rate, measured for 6 h (Silica, section 7.7).
    #[must_use]
    pub const fn full_library(rate: f64) -> Self {
        let envelope = Envelope {
            window: Duration::from_secs(6 * 3600),
            quiet_rate: rate,
            ..Envelope::twelve_hours(rate, None)
        };
        Self {
            envelope,
            jobs: Jobs::SINGLE,
            sizes: Sizes::Fixed { size: FILE_SIZE_MEAN },
            placement: Placement::Uniform,
        }
    }

    /// Names of the built-in workloads.
    pub const NAMES: [&'static str; 5] =
        ["typical", "iops", "volume", "six-months", "full-library"];

    /// Returns a built-in workload of one library.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "typical" => Some(Self::typical()),
            "iops" => Some(Self::iops()),
            "volume" => Some(Self::volume()),
            "six-months" => Some(Self::six_months(1)),
            "full-library" => Some(Self::full_library(1.6)),
            _ => None,
        }
    }

    /// Returns half a year (181 days) of typical reads for this many libraries, with hourly
    /// modulation of their rate.
    #[must_use]
    pub fn six_months(libraries: u32) -> Self {
        let rate = LIBRARY_RATE * f64::from(libraries);
        let envelope = Envelope {
            warm_up: Duration::ZERO,
            window: Duration::from_secs(181 * 86_400),
            cool_down: Duration::ZERO,
            modulation: Some(Modulation::hourly()),
            ..Envelope::twelve_hours(rate, None)
        };
        Self {
            envelope,
            jobs: Jobs::PAPER,
            sizes: Sizes::Table { profile: Profile::Typical },
            placement: Placement::Uniform,
        }
    }

    const fn interval(profile: Profile, rate: f64, burst: Option<Burst>) -> Self {
        Self {
            envelope: Envelope::twelve_hours(rate, burst),
            jobs: Jobs::PAPER,
            sizes: Sizes::Table { profile },
            placement: Placement::Uniform,
        }
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        self.reads(Seed::new(0))?;
        self.placement.validate()
    }

    /// Returns the reads in the order of time, in memory that does not grow with their number. (It
    /// grows with the active jobs, and by 16 bytes for each interval of a modulation.)
    ///
    /// # Errors
    /// Names the first parameter that is out of range.
    pub fn reads(&self, seed: Seed) -> Result<Reads, Error> {
        Reads::new(self, &seed)
    }

    /// Generates the reads in memory.
    ///
    /// # Errors
    /// As [`Workload::reads`]; or when there are none, or more than [`TRACE_READS_MAX`] are
    /// expected.
    pub fn generate(&self, seed: Seed) -> Result<Trace, Error> {
        if self.envelope.reads_mean() > TRACE_READS_MAX as f64 {
            return Err(Error::TraceTooLong { limit: TRACE_READS_MAX });
        }
        Trace::collect(self.reads(seed)?.map(Ok))
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self::typical()
    }
}

/// Checks that `value` lies in a range.
fn check_range(
    field: &'static str,
    value: f64,
    range: std::ops::RangeInclusive<f64>,
    expected: &'static str,
) -> Result<(), Error> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(Error::Parameter { field, value: value.to_string(), expected })
}

/// Creates a share from a value known to be valid.
fn share(value: f64) -> Ratio {
    let ratio = Ratio::new(value);
    assert!(ratio.is_ok(), "{value} is not a share");
    ratio.unwrap_or(Ratio::ZERO)
}

#[cfg(test)]
mod tests;
