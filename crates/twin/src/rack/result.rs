//! Measurements of a run of a rack.

use fulgurite_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::power::Power;
use super::scenario::Scenario;
use super::shape::DISKS;
use super::spin_up_counter::SpinUpCounter;
use super::workload::Promise;
use crate::engine::Ended;
use crate::engine::histogram::{Histogram, Quantiles};
use crate::metrics::{DerivedMetric, Dimension, Measured};

const YEAR_S: f64 = 365.25 * 86_400.0;

/// Measurements of a run: of reads that arrived in the window, and of events in it. Times in
/// seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// Reads that arrived.
    pub offered: u64,
    /// Of these, reads rejected because the queue of their class was full.
    pub rejected: u64,
    /// Share of reads that were rejected.
    pub reject_rate: f64,
    /// Time from a read's arrival to its last byte.
    pub completion: Quantiles,
    /// Time from a read's arrival to its first byte.
    pub first_byte: Quantiles,
    /// 95th percentile of the time to the first byte.
    pub first_byte_p95: f64,
    /// Time from the arrival of a read with a soon deadline to its first byte.
    pub soon_first_byte: Quantiles,
    /// Share of those that missed their deadline.
    pub soon_late: f64,
    /// Share of the reads with a later deadline that missed it.
    pub later_late: f64,
    /// Time from the start of a read's turn, including spin-up, to its last byte.
    pub service: Quantiles,
    /// Bytes per second over the network.
    pub throughput: f64,
    /// Bytes of all measured reads.
    pub bytes: f64,
    /// Time from the beginning of the window until the last of them was sent.
    pub span: f64,
    /// Spin-ups per disk and year.
    pub spin_ups: f64,
    /// Spin-ups of disks per TB read.
    pub spin_ups_per_tb: f64,
    /// Maximum spin-ups of a disk in any 24 hours.
    pub spin_ups_day_max: u64,
    /// Bytes read per disk and year.
    pub disk_bytes: f64,
    /// Mean power of the disks, in watts.
    pub power: f64,
    /// Maximum power of the disks, in watts.
    pub power_max: f64,
    /// Maximum number of reads waiting in a class.
    pub queue_max: u64,
    /// The rebuild of a failed disk.
    pub rebuild: RebuildResult,
    /// Simulated time until the last read ended.
    pub makespan: f64,
    /// Number of events.
    pub events: u64,
    /// Hash of the run: it differs as soon as any event, its order or its time differs.
    pub hash: u64,
}

/// The rebuild of a failed disk; times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RebuildResult {
    /// Time until its last stack was written elsewhere.
    pub took: f64,
    /// Rebuilt stacks.
    pub stacks: u64,
    /// 95th percentile of the time to the first byte of reads of the same class that arrived
    /// meanwhile.
    pub class_p95: f64,
    /// The same percentile for the other classes.
    pub others_p95: f64,
}

impl Measured for RunResult {
    const DERIVED_METRICS: &'static [DerivedMetric<Self>] = &[
        ("throughput_gbps", |run| run.throughput * 8.0 / 1e9),
        ("disk_terabytes", |run| run.disk_bytes / 1e12),
        ("power_kw", |run| run.power / 1e3),
        ("power_max_kw", |run| run.power_max / 1e3),
        ("spin_ups_thousand", |run| run.spin_ups / 1e3),
        ("burst_gbps", |run| if run.span > 0.0 { run.bytes * 8.0 / 1e9 / run.span } else { 0.0 }),
    ];

    fn seed(&self) -> u64 {
        self.seed
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn dimension(metric: &str) -> Dimension {
        match metric {
            "reject_rate" | "soon_late" | "later_late" => Dimension::Share,
            "makespan" | "span" | "first_byte_p95" => Dimension::Time,
            "rebuild.took" | "rebuild.class_p95" | "rebuild.others_p95" => Dimension::Time,
            "throughput" | "bytes" | "disk_bytes" => Dimension::Bytes,
            _ if metric.ends_with(".count") => Dimension::Number,
            _ => {
                let times = ["completion.", "first_byte.", "soon_first_byte.", "service."];
                let is_time = times.iter().any(|of| metric.starts_with(of));
                if is_time { Dimension::Time } else { Dimension::Number }
            }
        }
    }
}

/// Counters of a run.
#[derive(Debug)]
pub(crate) struct Stats {
    window: [Instant; 2],
    offered: u64,
    rejected: u64,
    completion: Histogram,
    first_byte: Histogram,
    soon_first_byte: Histogram,
    /// Reads with a deadline, later and soon, and those of them that were late.
    promised: [[u64; 2]; 2],
    service: Histogram,
    /// Bytes of reads that ended in the window, and bytes read from disks for them.
    sent: f64,
    read: f64,
    /// Bytes of reads that arrived in the window, and when the last of them was sent.
    bytes: f64,
    done: Instant,
    spun_up: u64,
    spin_up_counter: SpinUpCounter,
    queue_max: u64,
    pub(crate) power: Power,
    pub(crate) rebuild: RebuildStats,
    last: Instant,
}

/// Counters of a rebuild.
#[derive(Debug, Default)]
pub(crate) struct RebuildStats {
    /// When the disk failed, until its last stack is written.
    pub(crate) since: Option<Instant>,
    pub(crate) took: Duration,
    pub(crate) stacks: u64,
    class: Histogram,
    others: Histogram,
}

/// Times of a read, for its statistics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) arrived: Instant,
    /// When its turn came.
    pub(crate) dequeued: Instant,
    /// The promised time.
    pub(crate) promise: Option<Promise>,
}

impl Times {
    /// Creates the times of an arriving operation.
    pub(crate) const fn new(arrived: Instant, promise: Option<Promise>) -> Self {
        Self { arrived, dequeued: arrived, promise }
    }
}

impl Stats {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let window = scenario.measured();
        let [completion, first_byte, soon_first_byte, service] = Default::default();
        Self {
            window,
            offered: 0,
            rejected: 0,
            completion,
            first_byte,
            soon_first_byte,
            promised: [[0; 2]; 2],
            service,
            sent: 0.0,
            read: 0.0,
            bytes: 0.0,
            done: window[0],
            spun_up: 0,
            spin_up_counter: SpinUpCounter::default(),
            queue_max: 0,
            power: Power::new(&scenario.disks, window),
            rebuild: RebuildStats::default(),
            last: Instant::ZERO,
        }
    }

    /// Whether something at this time is measured.
    pub(crate) fn counts(&self, at: Instant) -> bool {
        let [from, until] = self.window;
        (from..until).contains(&at)
    }

    pub(crate) fn offered(&mut self, now: Instant, queued: u64) {
        self.last = now;
        if self.counts(now) {
            self.offered += 1;
            self.queue_max = self.queue_max.max(queued);
        }
    }

    pub(crate) fn rejected(&mut self, now: Instant) {
        if self.counts(now) {
            self.rejected += 1;
        }
    }

    /// Counts the first byte of a read; `same_class` says whether it shares its class with a disk
    /// being rebuilt.
    pub(crate) fn first_byte(&mut self, now: Instant, times: Times, same_class: bool) {
        let waited = now.since(times.arrived);
        if self.counts(times.arrived) {
            self.first_byte.add(waited);
            if times.promise.is_some_and(|promise| promise.is_soon) {
                self.soon_first_byte.add(waited);
            }
        }
        if self.rebuild.since.is_some_and(|since| times.arrived >= since) {
            let histogram =
                if same_class { &mut self.rebuild.class } else { &mut self.rebuild.others };
            histogram.add(waited);
        }
    }

    /// Counts the last byte of a read: the bytes sent, and those read from disks for it.
    pub(crate) fn ended(&mut self, now: Instant, times: Times, sent: f64, read: f64) {
        self.last = now;
        if self.counts(times.arrived) {
            self.completion.add(now.since(times.arrived));
            if let Some(promise) = times.promise {
                let [all, late] = &mut self.promised[usize::from(promise.is_soon)];
                *all += 1;
                *late += u64::from(now.since(times.arrived) > promise.within);
            }
            self.service.add(now.since(times.dequeued));
            self.bytes += sent;
            self.done = now;
        }
        if self.counts(now) {
            self.sent += sent;
            self.read += read;
        }
    }

    /// Counts a stack of a failed disk that was written elsewhere.
    pub(crate) fn rebuilt(&mut self, now: Instant, bytes: f64, left: u32) {
        self.last = now;
        self.rebuild.stacks += 1;
        if self.counts(now) {
            self.read += bytes;
        }
        if left == 0
            && let Some(since) = self.rebuild.since.take()
        {
            self.rebuild.took = now.since(since);
        }
    }

    /// Counts the spin-up of disks of a group, or of a read's disks that belong to no group.
    pub(crate) fn spun_up(&mut self, now: Instant, group: Option<u32>, disks: u32) {
        if let Some(group) = group {
            self.spin_up_counter.record(now, group);
        }
        if self.counts(now) {
            self.spun_up += u64::from(disks);
        }
    }

    pub(crate) fn result(mut self, ended: Ended) -> RunResult {
        let [from, until] = self.window;
        let window = until.since(from).as_secs_f64();
        let a_year = YEAR_S / window / f64::from(DISKS);
        let (offered, rejected, spun_up) =
            (count(self.offered), count(self.rejected), count(self.spun_up));
        let (power, power_max) = self.power.window_power();
        let p95 = |of: &Histogram| if of.is_empty() { 0.0 } else { of.quantile(950) };
        RunResult {
            seed: ended.seed,
            offered: self.offered,
            rejected: self.rejected,
            reject_rate: if self.offered > 0 { rejected / offered } else { 0.0 },
            completion: self.completion.quantiles(),
            first_byte: self.first_byte.quantiles(),
            first_byte_p95: p95(&self.first_byte),
            soon_first_byte: self.soon_first_byte.quantiles(),
            soon_late: late(self.promised[1]),
            later_late: late(self.promised[0]),
            service: self.service.quantiles(),
            throughput: self.sent / window,
            bytes: self.bytes,
            span: self.done.since(from).as_secs_f64(),
            spin_ups_day_max: self.spin_up_counter.most(),
            spin_ups: spun_up * a_year,
            spin_ups_per_tb: if self.sent > 0.0 { spun_up / self.sent * 1e12 } else { 0.0 },
            disk_bytes: self.read * a_year,
            power,
            power_max,
            queue_max: self.queue_max,
            rebuild: RebuildResult {
                took: self.rebuild.took.as_secs_f64(),
                stacks: self.rebuild.stacks,
                class_p95: p95(&self.rebuild.class),
                others_p95: p95(&self.rebuild.others),
            },
            makespan: self.last.since(Instant::ZERO).as_secs_f64(),
            events: ended.events,
            hash: ended.hash,
        }
    }
}

fn late([all, late]: [u64; 2]) -> f64 {
    if all > 0 { count(late) / count(all) } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 of anything happen")]
const fn count(number: u64) -> f64 {
    number as f64
}
