//! Measurements of a run of a set of tomes.

use fulgurite_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::jobs::Job;
use super::live_set::DrivenResult;
use super::scenario::{Scenario, bytes};
use crate::engine::Ended;
use crate::engine::histogram::{Histogram, Quantiles};
use crate::metrics::{DerivedMetric, Dimension, Measured};

const YEAR_S: f64 = 365.25 * 86_400.0;

/// Measurements of a run, from beginning to end. Times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// Disks that may spin at a time.
    pub tokens: u64,
    /// Maximum number of disks that spun at a time.
    pub spinning_max: u64,
    /// Mean number of spinning disks.
    pub spinning: f64,
    /// Spin-ups of all disks.
    pub spin_ups: u64,
    /// Spin-ups per disk and year.
    pub spin_ups_a_year: f64,
    /// User bytes that tomes acknowledged.
    pub acknowledged: u64,
    /// Time of the last acknowledgment.
    pub acknowledged_at: f64,
    /// Of these, bytes that have parity on other tomes.
    pub protected: u64,
    /// Time when the last of them became protected.
    pub protected_at: f64,
    /// From the acknowledgment to a client until its data is protected.
    pub protection: Quantiles,
    /// Maximum number of acknowledged bytes that no other tome had parity for.
    pub unprotected_max: u64,
    /// Of these, bytes that were lost with their tome.
    pub unprotected_lost: u64,
    /// Tomes that failed.
    pub failures: u64,
    /// Groups that lost more members than they have parity.
    pub groups_lost: u64,
    /// Rebuilds that restarted because a tome they needed was lost.
    pub restarts: u64,
    /// From the loss of a tome until it is rebuilt elsewhere.
    pub rebuild: Quantiles,
    /// How often each place of a rebuilt tome was written.
    pub rebuild_writes: u64,
    /// How often each place was read.
    pub rebuild_reads: u64,
    /// Mean power of the set, in watts.
    pub power: f64,
    /// Additional energy of spinning over standby, in joules.
    pub spinning_energy: f64,
    /// Terabytes of user data that fit in the set.
    pub room: f64,
    /// Further measurements of a set run by its tomes.
    pub driven: DrivenResult,
    /// Simulated time.
    pub makespan: f64,
    /// Number of events.
    pub events: u64,
    /// Hash of the run: it differs as soon as any event, its order or its time differs.
    pub hash: u64,
}

impl Measured for RunResult {
    const DERIVED_METRICS: &'static [DerivedMetric<Self>] = &[
        ("acknowledged_mb_per_s", |run| rate(run.acknowledged, run.acknowledged_at)),
        ("protected_mb_per_s", |run| rate(run.protected, run.protected_at)),
        ("over_tokens", |run| to_f64(run.spinning_max) - to_f64(run.tokens)),
        ("spinning_kwh", |run| run.spinning_energy / 3.6e6),
    ];

    fn seed(&self) -> u64 {
        self.seed
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn dimension(metric: &str) -> Dimension {
        if let Some(metric) = metric.strip_prefix("driven.") {
            return driven_dimension(metric);
        }
        match metric {
            "acknowledged_at" | "protected_at" | "makespan" => Dimension::Time,
            "acknowledged" | "protected" | "unprotected_max" | "unprotected_lost" | "room" => {
                Dimension::Bytes
            }
            _ if metric.ends_with(".count") => Dimension::Number,
            _ if metric.starts_with("protection.") || metric.starts_with("rebuild.") => {
                Dimension::Time
            }
            _ => Dimension::Number,
        }
    }
}

fn driven_dimension(metric: &str) -> Dimension {
    match metric {
        "bytes_read" | "bytes_written" | "bytes_sent" => Dimension::Bytes,
        "without_wake" | "fell_back" | "duty" | "scrubbed_min" => Dimension::Share,
        _ if metric.ends_with(".count") || !metric.contains('.') => Dimension::Number,
        _ => Dimension::Time,
    }
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { to_f64(bytes) / 1e6 / seconds } else { 0.0 }
}

/// Counters of a run.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    spinning: u32,
    spinning_max: u32,
    /// Number of spinning disks times nanoseconds, up to the last change.
    area: u128,
    changed: Instant,
    spin_ups: u64,
    acknowledged: u64,
    acknowledged_at: Instant,
    protected: u64,
    protected_at: Instant,
    protection: Histogram,
    unprotected: u64,
    unprotected_max: u64,
    unprotected_lost: u64,
    pub(crate) failures: u64,
    pub(crate) groups_lost: u64,
    pub(crate) restarts: u64,
    rebuild: Histogram,
    rebuild_writes: u32,
    rebuild_reads: u32,
}

impl Stats {
    /// Changes the number of spinning disks; returns the new number.
    pub(crate) fn change_spinning(&mut self, now: Instant, delta: i32) -> u32 {
        self.pass(now);
        let spinning = self.spinning.checked_add_signed(delta);
        assert!(spinning.is_some(), "only a spinning disk can stop");
        self.spinning = spinning.unwrap_or(0);
        self.spinning_max = self.spinning_max.max(self.spinning);
        self.spin_ups += u64::try_from(delta.max(0)).unwrap_or(0);
        self.spinning
    }

    fn pass(&mut self, now: Instant) {
        self.area += u128::from(self.spinning) * u128::from(now.since(self.changed).as_nanos());
        self.changed = now;
    }

    pub(crate) fn acknowledged(&mut self, now: Instant, bytes: u64) {
        self.acknowledged += bytes;
        self.acknowledged_at = now;
        self.unprotected += bytes;
        self.unprotected_max = self.unprotected_max.max(self.unprotected);
    }

    pub(crate) fn protected(&mut self, now: Instant, since: Instant, bytes: u64) {
        self.protected += bytes;
        self.protected_at = now;
        self.protection.add(now.since(since));
        self.unprotected -= bytes;
    }

    /// Counts unprotected bytes that are lost.
    pub(crate) const fn dropped(&mut self, bytes: u64) {
        self.unprotected -= bytes;
        self.unprotected_lost += bytes;
    }

    pub(crate) fn rebuilt(&mut self, now: Instant, job: &Job) {
        self.rebuild.add(now.since(job.since));
        (self.rebuild_writes, self.rebuild_reads) = (job.writes, job.reads);
    }

    /// Counts a lost tome that is rebuilt elsewhere.
    pub(crate) fn rebuilt_within(&mut self, time: Duration) {
        self.rebuild.add(time);
    }

    /// Sets how often each place of a rebuilt tome was written and read.
    pub(crate) fn rebuild_passes(&mut self, writes: u64, reads: u64) {
        let saturate = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        (self.rebuild_writes, self.rebuild_reads) = (saturate(writes), saturate(reads));
    }

    /// Returns the number of spin-ups so far.
    pub(crate) const fn spin_ups(&self) -> u64 {
        self.spin_ups
    }

    /// Returns the seconds that disks were spinning, summed over all.
    pub(crate) fn spinning_s(&mut self, now: Instant) -> f64 {
        self.pass(now);
        #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
        let spun_s = self.area as f64 / 1e9;
        spun_s
    }

    pub(crate) fn result(mut self, scenario: &Scenario, ended: Ended) -> RunResult {
        self.pass(ended.at);
        let at = |instant: Instant| instant.since(Instant::ZERO).as_secs_f64();
        let (makespan, tomes) = (at(ended.at), f64::from(scenario.tomes));
        #[expect(clippy::cast_precision_loss, reason = "a mean is rounded anyway")]
        let spun_s = self.area as f64 / 1e9;
        let hardware = &scenario.hardware;
        let spinning_energy = spun_s * (hardware.active_w() - hardware.asleep_w);
        let groups = scenario.tomes / scenario.group.members();
        let members = f64::from(groups * scenario.group.members());
        assert!(scenario.room() <= bytes(scenario.capacity), "parity takes space");
        RunResult {
            seed: ended.seed,
            tokens: u64::from(scenario.tokens()),
            spinning_max: u64::from(self.spinning_max),
            spinning: spun_s / makespan,
            spin_ups: self.spin_ups,
            spin_ups_a_year: to_f64(self.spin_ups) / tomes * YEAR_S / makespan,
            acknowledged: self.acknowledged,
            acknowledged_at: at(self.acknowledged_at),
            protected: self.protected,
            protected_at: at(self.protected_at),
            protection: self.protection.quantiles(),
            unprotected_max: self.unprotected_max,
            unprotected_lost: self.unprotected_lost,
            failures: self.failures,
            groups_lost: self.groups_lost,
            restarts: self.restarts,
            rebuild: self.rebuild.quantiles(),
            rebuild_writes: u64::from(self.rebuild_writes),
            rebuild_reads: u64::from(self.rebuild_reads),
            power: tomes * hardware.asleep_w + spinning_energy / makespan,
            spinning_energy,
            room: scenario.room() * members,
            driven: DrivenResult::default(),
            makespan,
            events: ended.events,
            hash: ended.hash,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 of anything happen")]
const fn to_f64(count: u64) -> f64 {
    count as f64
}
