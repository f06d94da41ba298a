//! Counters of a set run by the tomes' own code, in addition to those of every set.

use serde::{Deserialize, Serialize};

use crate::engine::histogram::{Histogram, Quantiles};

/// Measurements of such a run. Times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DrivenResult {
    /// From the beginning of a session until all of it is acknowledged.
    pub session: Quantiles,
    /// Puts that were refused and retried.
    pub refused: u64,
    /// From a read request until its last byte.
    pub read: Quantiles,
    /// The same time for reads whose own disk was spinning.
    pub read_awake: Quantiles,
    /// The same time for degraded reads from the group.
    pub read_group: Quantiles,
    /// The same time for reads that had to spin up their disk.
    pub read_woke: Quantiles,
    /// Share of reads that spun up no disk.
    pub without_wake: f64,
    /// Share of degraded reads that fell back to their own tome.
    pub fell_back: f64,
    /// Spin-ups per read.
    pub wakes_a_read: f64,
    /// Bytes read from disks.
    pub bytes_read: f64,
    /// Bytes written to disks.
    pub bytes_written: f64,
    /// Bytes that tomes sent over the network.
    pub bytes_sent: f64,
    /// From the request for all objects of an episode until the last byte.
    pub job: Quantiles,
    /// Tomes that hold them, per job.
    pub tomes_a_job: f64,
    /// Of these, tomes whose disks were not spinning.
    pub asleep_a_job: f64,
    /// Data blocks of the fullest tome over the mean.
    pub fullest: f64,
    /// Bad blocks that occurred.
    pub bad: u64,
    /// From then until a read discovered them.
    pub discovered: Quantiles,
    /// From then until they were repaired.
    pub repaired: Quantiles,
    /// Segments with more bad blocks than their parity can correct.
    pub segments_lost: u64,
    /// Members that were asked for blocks of others.
    pub asked: u64,
    /// Spin-ups per repaired block.
    pub wakes_a_block: f64,
    /// Minimum share of its blocks that a tome has read in its passes of the full scrub.
    pub scrubbed_min: f64,
    /// Spin-ups, including the first.
    pub spin_ups: u64,
    /// Share of a tome's time in which its disk spins.
    pub duty: f64,
    /// Number of invariant checks.
    pub checks: u64,
}

/// Counters of a run.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) session: Histogram,
    pub(crate) refused: u64,
    pub(crate) read_awake: Histogram,
    pub(crate) read_group: Histogram,
    pub(crate) read_woke: Histogram,
    pub(crate) group_reads: u64,
    pub(crate) fell_back: u64,
    pub(crate) blocks_read: u64,
    pub(crate) blocks_written: u64,
    pub(crate) blocks_sent: u64,
    pub(crate) job: Histogram,
    pub(crate) jobs: u64,
    pub(crate) job_tomes: u64,
    pub(crate) job_asleep: u64,
    pub(crate) fullest: f64,
    pub(crate) bad: u64,
    pub(crate) discovered: Histogram,
    pub(crate) repaired: Histogram,
    pub(crate) segments_lost: u64,
    pub(crate) asked: u64,
    pub(crate) scrubbed_min: f64,
    pub(crate) spins: u64,
    pub(crate) duty: f64,
    pub(crate) checks: u64,
    pub(crate) requests: u64,
    pub(crate) build_writes: u64,
    pub(crate) build_reads: u64,
    pub(crate) built_regions: u64,
}

impl Counts {
    pub(crate) fn result(self, block: f64) -> DrivenResult {
        let bytes = |blocks: u64| to_f64(blocks) * block;
        let mut read = self.read_awake.clone();
        read.merge(&self.read_group);
        read.merge(&self.read_woke);
        let [awake, group, woke] =
            [self.read_awake, self.read_group, self.read_woke].map(|part| part.quantiles());
        let read = read.quantiles();
        let repaired = self.repaired.quantiles();
        DrivenResult {
            session: self.session.quantiles(),
            refused: self.refused,
            without_wake: share(awake.count + group.count, read.count),
            fell_back: share(self.fell_back, self.group_reads),
            wakes_a_read: share(self.spins, read.count),
            read,
            read_awake: awake,
            read_group: group,
            read_woke: woke,
            bytes_read: bytes(self.blocks_read),
            bytes_written: bytes(self.blocks_written),
            bytes_sent: bytes(self.blocks_sent),
            job: self.job.quantiles(),
            tomes_a_job: share(self.job_tomes, self.jobs),
            asleep_a_job: share(self.job_asleep, self.jobs),
            fullest: self.fullest,
            bad: self.bad,
            discovered: self.discovered.quantiles(),
            wakes_a_block: share(self.spins, repaired.count),
            repaired,
            segments_lost: self.segments_lost,
            asked: self.asked,
            scrubbed_min: self.scrubbed_min,
            spin_ups: self.spins,
            duty: self.duty,
            checks: self.checks,
        }
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { to_f64(part) / to_f64(all) }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 of anything happen")]
pub(crate) const fn to_f64(part: u64) -> f64 {
    part as f64
}
