//! The reads of a rack: when they arrive, how large they are, and which group each blob is in.

use fulgurite_units::{ByteCount, Duration, Instant, Seed};
use serde::{Deserialize, Serialize};

use super::latencies::stream;
use crate::Error;
use crate::workload::{Draws, Exponentials, exp2, floor, ln};

/// Maximum number of reads in a burst or in the trace of a file.
const READS_MAX: u32 = 1_000_000;
/// Bisection steps to find the scale of a truncated distribution.
const HALVINGS: u32 = 80;

/// The workload of a rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Workload {
    /// When reads arrive.
    pub arrivals: Arrivals,
    /// Sizes of blobs.
    #[serde(default)]
    pub sizes: Sizes,
    /// Blobs that are read together, and whether they are stored together.
    #[serde(default)]
    pub jobs: Jobs,
    /// Promised times of reads; none, as in the paper, if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promises: Option<Promises>,
}

/// Deadlines of reads: soon for some, later for the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promises {
    /// Share of reads that are due soon, drawn for each.
    pub soon_share: f64,
    /// Time from their arrival to their deadline.
    pub soon: Duration,
    /// The same time for the other reads.
    pub later: Duration,
}

/// The promise made to one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Time from arrival to the deadline.
    pub within: Duration,
    /// Whether it is due soon.
    pub is_soon: bool,
}

/// When reads arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Arrivals {
    /// At random, independently (a Poisson process).
    Poisson {
        /// Reads per second.
        rate: f64,
    },
    /// A burst, uniformly distributed over a time from the end of the warm-up on.
    Burst {
        /// Number of reads.
        reads: u32,
        /// Length of the burst.
        over: Duration,
    },
    /// A trace, in the order of time.
    Trace(Vec<TraceRead>),
}

/// One read of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRead {
    /// When it arrives, from the beginning of the run.
    pub at: Duration,
    /// The group of its blob.
    pub group: u32,
    /// The size of its blob.
    pub size: ByteCount,
}

/// Sizes of blobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Sizes {
    /// All the same.
    Fixed {
        /// The size.
        size: ByteCount,
    },
    /// Exponential between two bounds: the paper's images of virtual disks are 200 MB to 9 GB, 3.3
    /// GB on average (section 4.9), with the distribution given as a picture.
    Exponential {
        /// Minimum.
        min: ByteCount,
        /// Maximum.
        max: ByteCount,
        /// Mean; closer to the minimum.
        mean: ByteCount,
    },
}

/// Reads that arrive together, of blobs written one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jobs {
    /// Reads per job.
    pub reads: u32,
    /// Number of consecutively written blobs put into one group before the next group is drawn. 1
    /// is the paper's placement, each blob in a random group.
    pub together: u32,
}

impl Default for Sizes {
    /// Returns blobs of 1 GB (section 4.3).
    fn default() -> Self {
        Self::Fixed { size: ByteCount::new(1_000_000_000) }
    }
}

impl Default for Jobs {
    fn default() -> Self {
        Self { reads: 1, together: 1 }
    }
}

impl Workload {
    /// Returns the paper's workload: random reads of blobs of 1 GB that lie anywhere.
    #[must_use]
    pub fn poisson(rate: f64) -> Self {
        let (sizes, jobs) = (Sizes::default(), Jobs::default());
        Self { arrivals: Arrivals::Poisson { rate }, sizes, jobs, promises: None }
    }

    /// Checks every part; groups are below `groups`.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub(crate) fn validate(&self, groups: u32) -> Result<(), Error> {
        let refuse =
            |field, value: String, expected| Err(Error::Parameter { field, value, expected });
        match &self.arrivals {
            Arrivals::Poisson { rate } if !(*rate > 0.0 && *rate <= 1_000.0) => {
                return refuse("rate", rate.to_string(), "above 0 and at most 1000");
            }
            Arrivals::Burst { reads, .. } if !(1..=READS_MAX).contains(reads) => {
                return refuse("reads", reads.to_string(), "from 1 to 1000000");
            }
            Arrivals::Trace(reads) => {
                let in_order = reads.is_sorted_by_key(|read| read.at);
                if reads.is_empty() || reads.len() > READS_MAX as usize || !in_order {
                    let value = format!("{} reads", reads.len());
                    return refuse("trace", value, "from 1 to 1000000 reads in the order of time");
                }
                if let Some(read) = reads.iter().find(|read| read.group >= groups) {
                    return refuse("group", read.group.to_string(), "a group of the rack");
                }
                if let Some(read) = reads.iter().find(|read| read.size == ByteCount::ZERO) {
                    return refuse("size", read.size.to_string(), "at least one byte");
                }
            }
            Arrivals::Poisson { .. } | Arrivals::Burst { .. } => {}
        }
        if !(1..=10_000).contains(&self.jobs.reads) {
            return refuse("jobs.reads", self.jobs.reads.to_string(), "from 1 to 10000");
        }
        if !(1..=100_000).contains(&self.jobs.together) {
            return refuse("jobs.together", self.jobs.together.to_string(), "from 1 to 100000");
        }
        if let Some(share) = self.promises.map(|of| of.soon_share)
            && !(0.0..=1.0).contains(&share)
        {
            return refuse("promises.soon_share", share.to_string(), "from 0 to 1");
        }
        self.sizes.sampler().map(|_| ())
    }
}

impl Sizes {
    /// Returns a sampler of sizes.
    pub(crate) fn sampler(&self) -> Result<SizeSampler, Error> {
        let refuse =
            |value: String, expected| Err(Error::Parameter { field: "sizes", value, expected });
        match *self {
            Self::Fixed { size: ByteCount::ZERO } => refuse("0B".to_owned(), "at least one byte"),
            Self::Fixed { size } => Ok(SizeSampler::Fixed(size)),
            Self::Exponential { min, max, mean } => {
                let [low, high, mean] = [min, max, mean].map(to_f64);
                if !(low > 0.0 && low < mean && mean < (low + high) / 2.0) {
                    let value = format!("{min} to {max}, mean {mean}");
                    return refuse(value, "a mean above the minimum and below the midpoint");
                }
                let (below, span) = (mean - low, high - low);
                Ok(SizeSampler::Exponential { low, span, scale: scale(below, span) })
            }
        }
    }
}

/// Returns the mean of the exponential distribution whose mean is `mean` when truncated at `span`.
fn scale(mean: f64, span: f64) -> f64 {
    let cut = |scale: f64| {
        let left = exp2(-span / scale * std::f64::consts::LOG2_E);
        scale - span * left / (1.0 - left)
    };
    let (mut low, mut high) = (mean / 2.0, mean);
    while cut(high) < mean {
        high *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if cut(middle) < mean { low = middle } else { high = middle }
    }
    high
}

/// Draws sizes of blobs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SizeSampler {
    Fixed(ByteCount),
    Exponential { low: f64, span: f64, scale: f64 },
}

impl SizeSampler {
    pub(crate) fn draw(&self, draws: &mut Draws) -> ByteCount {
        match *self {
            Self::Fixed(size) => size,
            Self::Exponential { low, span, scale } => {
                let cut = 1.0 - exp2(-span / scale * std::f64::consts::LOG2_E);
                let above = -scale * ln(1.0 - draws.unit() * cut);
                ByteCount::new(floor(low + above.clamp(0.0, span)))
            }
        }
    }
}

/// An arriving read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Its arrival.
    pub at: Instant,
    /// The group of its blob.
    pub group: u32,
    /// The size of its blob.
    pub size: ByteCount,
    /// Its promise, if any.
    pub promise: Option<Promise>,
}

/// Reads in the order of time.
#[derive(Debug)]
pub(crate) struct Reads {
    source: Source,
    sizes: SizeSampler,
    draws: Draws,
    /// A separate stream, so that promises do not change the reads.
    soon: Draws,
    promises: Option<Promises>,
    jobs: Jobs,
    groups: u64,
    /// Reads of the current job still to come.
    left: u32,
    /// Blobs of the current job's group still to be read.
    run: u32,
    group: u32,
    at: Instant,
}

#[derive(Debug)]
enum Source {
    Poisson { gaps: Box<Exponentials>, gap: f64, until: Instant },
    Times(std::vec::IntoIter<Instant>),
    Trace(std::vec::IntoIter<TraceRead>),
}

impl Reads {
    /// Creates the reads of a workload. Poisson reads arrive until `until`, those of a burst from
    /// `from` on.
    pub(crate) fn new(
        workload: &Workload,
        groups: u32,
        [from, until]: [Instant; 2],
        seed: &Seed,
    ) -> Result<Self, Error> {
        let mut draws = stream(seed, b"blobs");
        let source = match &workload.arrivals {
            Arrivals::Poisson { rate } => {
                let gap = f64::from(workload.jobs.reads) / rate;
                let gaps = Box::new(Exponentials::new(&seed.child(b"rack"), b"arrivals"));
                Source::Poisson { gaps, gap, until }
            }
            Arrivals::Burst { reads, over } => {
                let mut times: Vec<Instant> = (0..*reads)
                    .map(|_| from + Duration::from_secs_f64(draws.unit() * over.as_secs_f64()))
                    .collect();
                times.sort_unstable();
                Source::Times(times.into_iter())
            }
            Arrivals::Trace(reads) => Source::Trace(reads.clone().into_iter()),
        };
        Ok(Self {
            source,
            sizes: workload.sizes.sampler()?,
            draws,
            soon: stream(seed, b"promises"),
            promises: workload.promises,
            jobs: workload.jobs,
            groups: u64::from(groups),
            left: 0,
            run: 0,
            group: 0,
            at: Instant::ZERO,
        })
    }

    fn promise(&mut self) -> Option<Promise> {
        let Promises { soon_share, soon, later } = self.promises?;
        let is_soon = self.soon.unit() < soon_share;
        Some(Promise { within: if is_soon { soon } else { later }, is_soon })
    }

    /// Returns the group of the next blob of the job.
    fn place(&mut self) -> u32 {
        if self.run == 0 {
            self.group = u32::try_from(self.draws.below(self.groups)).unwrap_or(0);
            self.run = self.jobs.together;
        }
        self.run -= 1;
        self.group
    }
}

impl Iterator for Reads {
    type Item = Read;

    fn next(&mut self) -> Option<Read> {
        if self.left == 0 {
            self.at = match &mut self.source {
                Source::Poisson { gaps, gap, until } => {
                    let at = self.at + Duration::from_secs_f64(gaps.draw() * *gap);
                    Some(at).filter(|at| at < until)?
                }
                Source::Times(times) => times.next()?,
                Source::Trace(reads) => {
                    let TraceRead { at, group, size } = reads.next()?;
                    let promise = self.promise();
                    return Some(Read { at: Instant::ZERO + at, group, size, promise });
                }
            };
            self.left = self.jobs.reads;
            // A job begins anywhere in a run of blobs written together.
            self.run = 0;
            self.place();
            let into = self.draws.below(u64::from(self.jobs.together));
            self.run = self.jobs.together - u32::try_from(into).unwrap_or(0);
        }
        self.left -= 1;
        let group = self.place();
        let (size, promise) = (self.sizes.draw(&mut self.draws), self.promise());
        Some(Read { at: self.at, group, size, promise })
    }
}

#[expect(clippy::cast_precision_loss, reason = "blobs are below 2^53 bytes")]
pub(crate) const fn to_f64(size: ByteCount) -> f64 {
    size.get() as f64
}

#[cfg(test)]
mod tests {
    use fulgurite_units::{ByteCount, Duration, Instant, Seed};

    use super::{Arrivals, Jobs, Read, Reads, Sizes, TraceRead, Workload};

    const END: Instant = Instant::from_nanos(100_000_000_000_000);

    fn reads(workload: &Workload) -> Vec<Read> {
        workload.validate(48).unwrap();
        Reads::new(workload, 48, [Instant::ZERO, END], &Seed::new(3)).unwrap().collect()
    }

    #[test]
    fn poisson_reads_have_their_rate_and_spread_evenly() {
        let all = reads(&Workload::poisson(2.0));
        let count = all.len() as f64;
        assert!((count / 200_000.0 - 1.0).abs() < 0.01, "{count} in 100,000 s at 2 a second");
        for group in 0..48 {
            let of = all.iter().filter(|read| read.group == group).count() as f64;
            assert!((of / count * 48.0 - 1.0).abs() < 0.08, "{group}: {of}");
        }
        assert!(all.is_sorted_by_key(|read| read.at));
    }

    #[test]
    fn image_sizes_match_mean_and_bounds_of_the_paper() {
        let [min, max, mean] = [200_000_000, 9_000_000_000, 3_300_000_000].map(ByteCount::new);
        let sizes = Sizes::Exponential { min, max, mean };
        let all = reads(&Workload { sizes, ..Workload::poisson(1.0) });
        let sum: u64 = all.iter().map(|read| read.size.get()).sum();
        let drawn = sum as f64 / all.len() as f64;
        assert!((drawn / 3.3e9 - 1.0).abs() < 0.01, "{drawn}");
        assert!(all.iter().all(|read| (min..=max).contains(&read.size)));
    }

    /// A job of 40 reads lies in 40 groups drawn one by one, or in two, or in three if it begins
    /// late in its first.
    #[test]
    fn blobs_written_together_are_read_together() {
        let groups = |together| {
            let jobs = Jobs { reads: 40, together };
            let all = reads(&Workload { jobs, ..Workload::poisson(4.0) });
            let jobs: Vec<usize> = all
                .chunks(40)
                .map(|job| {
                    assert!(job.iter().all(|read| read.at == job[0].at));
                    job.windows(2).filter(|pair| pair[0].group != pair[1].group).count() + 1
                })
                .collect();
            (jobs.iter().sum::<usize>() as f64 / jobs.len() as f64, all.len())
        };
        let (apart, count) = groups(1);
        assert!((38.5..=39.9).contains(&apart), "{apart}");
        assert!((count as f64 / 400_000.0 - 1.0).abs() < 0.05, "the rate counts reads, not jobs");
        let (together, _) = groups(30);
        assert!((2.1..=2.5).contains(&together), "{together}");
        assert!((groups(10_000).0 - 1.0).abs() < 0.02);
    }

    #[test]
    fn burst_and_trace_yield_their_own_reads() {
        let over = Duration::from_secs(60);
        let arrivals = Arrivals::Burst { reads: 480, over };
        let all = reads(&Workload { arrivals, ..Workload::poisson(1.0) });
        assert_eq!(all.len(), 480);
        assert!(all.iter().all(|read| read.at < Instant::ZERO + over));
        let size = ByteCount::new(7);
        let trace = vec![TraceRead { at: over, group: 47, size }];
        let arrivals = Arrivals::Trace(trace);
        let all = reads(&Workload { arrivals, ..Workload::poisson(1.0) });
        assert_eq!(all, [Read { at: Instant::ZERO + over, group: 47, size, promise: None }]);
    }

    #[test]
    fn invalid_workload_is_rejected() {
        let refused = |workload: Workload, named: &str| {
            let error = workload.validate(48).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        };
        refused(Workload::poisson(0.0), "rate");
        refused(Workload::poisson(f64::NAN), "rate");
        let size = ByteCount::new(1);
        let at = |seconds| TraceRead { at: Duration::from_secs(seconds), group: 0, size };
        let trace = |reads| Workload { arrivals: Arrivals::Trace(reads), ..Workload::poisson(1.0) };
        refused(trace(vec![at(2), at(1)]), "trace");
        refused(trace(vec![TraceRead { group: 48, ..at(1) }]), "group");
        refused(trace(vec![TraceRead { size: ByteCount::ZERO, ..at(1) }]), "size");
        let jobs = |reads, together| Jobs { reads, together };
        refused(Workload { jobs: jobs(0, 1), ..Workload::poisson(1.0) }, "jobs.reads");
        refused(Workload { jobs: jobs(1, 0), ..Workload::poisson(1.0) }, "jobs.together");
        let sizes = Sizes::Fixed { size: ByteCount::ZERO };
        refused(Workload { sizes, ..Workload::poisson(1.0) }, "sizes");
    }
}
