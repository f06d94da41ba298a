//! Fleets: several libraries under one workload, with platter-sets spread over them.
//!
//! ```text
//!   reads of the fleet --split by placement--> parts of library 0 --run--> ends --.
//!      a part of an unavailable platter:  --.  parts of library 1 --run--> ends --+--> a read is
//!      parts on the OTHER libraries      <--'  ...                                |    done with
//!                                                                    Histogram <--'  its last part
//! ```
//!
//! Libraries share only the workload, so each is a run of its own and they may run in parallel.
//! Parts are held in memory for some of the libraries at once ([`PARTS_HELD_MAX`]). The stream of
//! reads is regenerated for the others, so that memory does not grow with the fleet.
//!
//! Not modeled: machines that break. A skewed placement is exact between libraries; within one, its
//! law is drawn again over the available platters.

mod library;
mod split;
mod stop;

use std::hash::Hasher as _;

use fulgurite_units::{Duration, Instant, Seed};
use serde::{Deserialize, Serialize};

use crate::engine::RunHash;
use crate::engine::histogram::Histogram;
use crate::engine::histogram::Quantiles;
use crate::glass::result::{DriveTime, RunResult};
use crate::runner::{Runner, collect};
use crate::{Error, Scenario, TraceRead};
use library::LibraryRun;
use split::{MultipartRead, Share, Splitter};
pub use stop::Stop;

/// Maximum number of libraries of a fleet.
pub const LIBRARIES_MAX: u32 = 4096;
/// Approximate number of parts of reads held at once: 512 MiB of them.
pub const PARTS_HELD_MAX: u64 = 1 << 25;

/// Several identical libraries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// Each library: `platters` are those of one library, `workload` is that of the whole fleet.
    pub each: Scenario,
    /// Number of libraries.
    pub libraries: u32,
}

/// Measurements of a run of a fleet; times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetResult {
    /// The seed.
    pub seed: u64,
    /// Number of libraries.
    pub libraries: u32,
    /// Completion times of the measured reads, whatever libraries their parts came from.
    pub completion: Quantiles,
    /// Measured reads.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Reads with an unavailable part.
    pub failed: u64,
    /// Requests of all reads, measured or not.
    pub parts: u64,
    /// Shards that were read from other platters of their set.
    pub recovered: u64,
    /// Mean shares of the drives' time.
    pub drive_time: DriveTime,
    /// 99.9th percentile of the requests of each library.
    pub library_tails: Vec<f64>,
    /// Platters brought to drives for customers.
    pub fetches: u64,
    /// Platter operations.
    pub platter_operations: u64,
    /// Starts of horizontal motion.
    pub starts: u64,
    /// Meters of horizontal motion.
    pub meters: f64,
    /// Crabs.
    pub crabs: u64,
    /// Bytes verified in the measured window.
    pub verified_bytes: u64,
    /// Maximum number of reads waiting in one library.
    pub queue_max: u64,
    /// Simulated time until the last read ended.
    pub makespan: f64,
    /// Engine events.
    pub events: u64,
    /// Hash of the run: it differs as soon as any event of any library does.
    pub hash: u64,
    /// When the first library was stopped before its last read, as a [`Stop`] allowed. Reads in
    /// progress count as ending then, and later ones as taking no time: the quantiles are lower
    /// bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<f64>,
}

impl Fleet {
    /// Checks every part.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        self.each.validate()?;
        let refuse = |field, value: String, expected| Error::Parameter { field, value, expected };
        if !(1..=LIBRARIES_MAX).contains(&self.libraries) {
            let expected = "from 1 to 4096";
            return Err(refuse("libraries", self.libraries.to_string(), expected));
        }
        if self.each.restores.is_some() {
            let expected = "omitted: only a single library serves restores";
            return Err(refuse("restores", "set".to_owned(), expected));
        }
        if self.libraries > 1 && !self.each.faults.is_empty() {
            let count = self.each.faults.len().to_string();
            return Err(refuse("faults", count, "0 in a fleet"));
        }
        Ok(())
    }

    /// Runs all libraries with the fleet's own workload.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn run(&self, seed: u64, runner: &dyn Runner) -> Result<FleetResult, Error> {
        let workload = &self.each.workload;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, not negative; float casts saturate"
        )]
        let expected = workload.envelope.reads_mean() as u64;
        let reads = || workload.reads(Seed::new(seed).child(b"workload"));
        self.run_reads(seed, expected, Stop::Never, reads, runner)
    }

    /// Runs all libraries with these reads, about `expected` many, as far as `stop` says. The
    /// stream is requested several times when there are many reads, and must be the same each time.
    ///
    /// # Errors
    /// When a parameter is out of range.
    pub fn run_reads<I: Iterator<Item = TraceRead>>(
        &self,
        seed: u64,
        expected: u64,
        stop: Stop,
        reads: impl Fn() -> Result<I, Error>,
        runner: &dyn Runner,
    ) -> Result<FleetResult, Error> {
        self.validate()?;
        let mut sum = FleetTotals::default();
        let mut multipart_reads: Vec<MultipartRead> = Vec::new();
        let per_pass = self.libraries_per_pass(expected);
        let libraries = self.libraries as usize;
        for first in (0..libraries).step_by(per_pass) {
            let range = first..(first + per_pass).min(libraries);
            let mut splitter = Splitter::new(self, range.clone(), &Seed::new(seed))?;
            splitter.expect(expected);
            let mut measured = 0;
            for read in reads()? {
                splitter.split(&read);
                measured += u64::from(self.each.is_measured(read.at));
            }
            let late_max = Histogram::above_tail(measured);
            if first == 0 {
                multipart_reads = std::mem::take(&mut splitter.multipart_reads);
                (sum.result.parts, sum.result.recovered) = (splitter.parts, splitter.recovered);
                sum.measured = measured;
            }
            let shares: Vec<Share> = splitter.shares;
            let runs = collect(runner, shares.len(), |index| {
                let number = range.start + index;
                library::run(&self.each, &shares[index], seed, number, stop, late_max)
            });
            for run in runs {
                sum.add(run?, &mut multipart_reads);
            }
        }
        Ok(sum.finish(self, seed, &multipart_reads))
    }

    /// Returns how many libraries can have their parts in memory at once.
    fn libraries_per_pass(&self, expected: u64) -> usize {
        let unavailable = self.each.unavailable.get();
        let more = f64::from(self.each.recovery_reads).mul_add(unavailable, 1.0);
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let passes = (expected as f64 * more / PARTS_HELD_MAX as f64).ceil().max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at least 1, and no more than libraries"
        )]
        let per_pass = (f64::from(self.libraries) / passes).ceil() as usize;
        per_pass.max(1)
    }
}

/// Sums over the libraries.
#[derive(Debug, Default)]
struct FleetTotals {
    /// Measured reads of the workload, whether they arrived or not.
    measured: u64,
    completion: Histogram,
    drive_time: DriveTime,
    hash: RunHash,
    result: FleetResult,
}

impl FleetTotals {
    fn add(&mut self, run: LibraryRun, multipart_reads: &mut [MultipartRead]) {
        self.completion.merge(&run.completion);
        let LibraryRun { result: library_result, reads, bytes, failed, ends, stopped_at, .. } = run;
        for (multipart_read, end) in ends {
            let multipart_read = &mut multipart_reads[multipart_read as usize];
            match end {
                Some(end) => multipart_read.latest = multipart_read.latest.max(end),
                None => multipart_read.failed = true,
            }
        }
        self.drive_time.read += library_result.drive_time.read;
        self.drive_time.verify += library_result.drive_time.verify;
        self.drive_time.switch += library_result.drive_time.switch;
        self.drive_time.idle += library_result.drive_time.idle;
        let sum = &mut self.result;
        sum.reads += reads;
        sum.bytes += bytes;
        sum.failed += failed;
        let stopped = stopped_at.map(|at| at.since(Instant::ZERO).as_secs_f64());
        sum.stopped = sum.stopped.into_iter().chain(stopped).reduce(f64::min);
        self.hash.write_u64(library_result.hash);
        self.count(&library_result);
    }

    fn count(&mut self, library_result: &RunResult) {
        let sum = &mut self.result;
        sum.library_tails.push(library_result.completion.p999);
        sum.fetches += library_result.fetches;
        sum.platter_operations += library_result.platter_operations;
        sum.starts += library_result.starts;
        sum.meters += library_result.meters;
        sum.crabs += library_result.crabs;
        sum.verified_bytes += library_result.verified_bytes;
        sum.queue_max = sum.queue_max.max(library_result.queue_max);
        sum.makespan = sum.makespan.max(library_result.makespan);
        sum.events += library_result.events;
    }

    /// Computes the result. Reads of several parts end with the last of them.
    fn finish(
        mut self,
        fleet: &Fleet,
        seed: u64,
        multipart_reads: &[MultipartRead],
    ) -> FleetResult {
        let each = &fleet.each;
        for multipart_read in
            multipart_reads.iter().filter(|multipart_read| each.is_measured(multipart_read.arrived))
        {
            if multipart_read.failed {
                self.result.failed += 1;
                continue;
            }
            self.result.reads += 1;
            self.result.bytes += multipart_read.size.get();
            self.completion.add(multipart_read.latest.since(multipart_read.arrived));
        }
        if self.result.stopped.is_some() {
            let to_come = self.measured.saturating_sub(self.result.reads + self.result.failed);
            (0..to_come).for_each(|_| self.completion.add(Duration::ZERO));
        }
        let part = |sum: f64| sum / f64::from(fleet.libraries);
        let time = self.drive_time;
        FleetResult {
            seed,
            libraries: fleet.libraries,
            completion: self.completion.quantiles(),
            hash: self.hash.finish(),
            drive_time: DriveTime {
                read: part(time.read),
                verify: part(time.verify),
                switch: part(time.switch),
                idle: part(time.idle),
            },
            ..self.result
        }
    }
}

#[cfg(test)]
mod tests;
