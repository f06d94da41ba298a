//! Reads as a stream: arriving jobs, and a heap of the active jobs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use fulgurite_units::{Instant, Seed};

use super::Workload;
use super::draws::Draws;
use super::envelope::Steps;
use super::jobs::JobSampler;
use super::sizes::SizeSampler;
use crate::{Error, TraceRead};

/// The reads of a workload, in the order of time.
///
/// Reads of jobs after the end of the envelope are omitted.
#[derive(Clone, Debug)]
pub struct Reads {
    arrivals: Steps,
    jobs: JobSampler,
    sizes: SizeSampler,
    keys: Draws,
    active: BinaryHeap<Reverse<ActiveJob>>,
    job_at: Option<u64>,
    job_count: u64,
    end: u64,
}

/// A job with reads to come. Ordered by time, then by age, so that the order is total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ActiveJob {
    next_at: u64,
    number: u64,
    reads_left: u32,
}

impl Reads {
    pub(super) fn new(workload: &Workload, seed: &Seed) -> Result<Self, Error> {
        workload.envelope.validate()?;
        workload.jobs.validate()?;
        let mut arrivals = workload.envelope.steps(1.0 / workload.jobs.reads_mean(), seed);
        Ok(Self {
            jobs: JobSampler::new(&workload.jobs, seed),
            sizes: workload.sizes.sampler(seed)?,
            keys: Draws::new(seed, b"keys"),
            active: BinaryHeap::new(),
            job_at: arrivals.next(),
            job_count: 0,
            end: arrivals.end(),
            arrivals,
        })
    }

    /// Returns when the next read arrives; active jobs go before one that begins at the same time.
    #[inline]
    fn next_at(&mut self) -> Option<u64> {
        let begins = self.job_at.unwrap_or(u64::MAX);
        while let Some(mut first) = self.active.peek_mut() {
            let at = first.0.next_at;
            if at > begins {
                break;
            }
            if at >= self.end {
                PeekMut::pop(first);
                continue;
            }
            if first.0.reads_left == 1 {
                PeekMut::pop(first);
            } else {
                first.0.reads_left -= 1;
                first.0.next_at = at + self.jobs.gap();
            }
            return Some(at);
        }
        self.begin_job()
    }

    #[inline]
    fn begin_job(&mut self) -> Option<u64> {
        let at = self.job_at?;
        let number = self.job_count;
        self.job_count += 1;
        let reads_left = self.jobs.count() - 1;
        if reads_left > 0 {
            let next_at = at + self.jobs.gap();
            self.active.push(Reverse(ActiveJob { next_at, number, reads_left }));
        }
        self.job_at = self.arrivals.next();
        Some(at)
    }
}

impl Iterator for Reads {
    type Item = TraceRead;

    /// Returns the next read. Keys are drawn from all 64-bit numbers: no file is read twice (the
    /// paper assumes no locality), so that a key has only one size.
    #[inline]
    fn next(&mut self) -> Option<TraceRead> {
        let at = Instant::from_nanos(self.next_at()?);
        Some(TraceRead { at, size: self.sizes.draw(), key: self.keys.bits() })
    }
}
