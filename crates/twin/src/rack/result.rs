//! What a run of a rack measured.

use fulgurite_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::power::Power;
use super::scenario::Scenario;
use super::shape::DISKS;
use super::spins::Spins;
use super::workload::Promise;
use crate::engine::Ended;
use crate::engine::histogram::{Histogram, Quantiles};
use crate::measured::{Dimension, Made, Measured};

const YEAR_S: f64 = 365.25 * 86_400.0;

/// What a run measured: of reads that came in the window, and of what happened in it. Times in
/// seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// Reads that came.
    pub offered: u64,
    /// Those of them that were rejected, their class's queue being full.
    pub rejected: u64,
    /// The same as a share.
    pub reject_rate: f64,
    /// From a read's arrival to its last byte.
    pub completion: Quantiles,
    /// From a read's arrival to its first byte.
    pub first_byte: Quantiles,
    /// 95th percentile of that.
    pub first_byte_p95: f64,
    /// From the arrival of a read that is due soon to its first byte.
    pub soon_first_byte: Quantiles,
    /// The share of those that were done later than promised.
    pub soon_late: f64,
    /// The same of the others that were promised a time.
    pub later_late: f64,
    /// From when a read's turn came, disks asleep or not, to its last byte.
    pub service: Quantiles,
    /// Bytes per second over the network.
    pub throughput: f64,
    /// Bytes of all that was measured.
    pub bytes: f64,
    /// From the beginning of the window until the last of them went out.
    pub span: f64,
    /// Spin-ups of disks, of a disk and a year.
    pub spin_ups: f64,
    /// Spin-ups of disks for each TB that was read.
    pub spin_ups_per_tb: f64,
    /// The most spin-ups of a disk in any 24 hours.
    pub spin_ups_day_max: u64,
    /// Bytes read of a disk in a year.
    pub disk_bytes: f64,
    /// Mean power of the disks, in watts.
    pub power: f64,
    /// The most that they drew, in watts.
    pub power_max: f64,
    /// The most reads that waited in a class.
    pub queue_max: u64,
    /// What became of a disk that failed.
    pub rebuild: RebuildResult,
    /// Simulated time until the last read ended.
    pub makespan: f64,
    /// Events.
    pub events: u64,
    /// A number that differs as soon as any event, its order or its time differs.
    pub hash: u64,
}

/// What became of a disk that failed; times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RebuildResult {
    /// Until its last stack was written elsewhere.
    pub took: f64,
    /// Stacks that were.
    pub stacks: u64,
    /// 95th percentile of the time to the first byte of reads that came meanwhile and were of the
    /// same class.
    pub class_p95: f64,
    /// The same of the other classes.
    pub others_p95: f64,
}

impl Measured for RunResult {
    const MADE: &'static [Made<Self>] = &[
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

/// What is counted while a run goes on.
#[derive(Debug)]
pub(crate) struct Accounts {
    window: [Instant; 2],
    offered: u64,
    rejected: u64,
    completion: Histogram,
    first_byte: Histogram,
    soon_first_byte: Histogram,
    /// Reads that were promised a time, soon and later, and those of them that were late.
    promised: [[u64; 2]; 2],
    service: Histogram,
    /// Bytes of reads that ended in the window, and what disks read for them.
    sent: f64,
    read: f64,
    /// Bytes of reads that came in the window, and when the last of them went out.
    bytes: f64,
    done: Instant,
    spun_up: u64,
    spins: Spins,
    queue_max: u64,
    pub(crate) power: Power,
    pub(crate) rebuild: RebuildAccount,
    last: Instant,
}

/// Counts while a disk is rebuilt.
#[derive(Debug, Default)]
pub(crate) struct RebuildAccount {
    /// When the disk failed, until its last stack is written.
    pub(crate) since: Option<Instant>,
    pub(crate) took: Duration,
    pub(crate) stacks: u64,
    class: Histogram,
    others: Histogram,
}

/// A read as it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) arrived: Instant,
    /// When its turn came.
    pub(crate) dequeued: Instant,
    /// What was promised.
    pub(crate) promise: Option<Promise>,
}

impl Times {
    /// Of what comes now.
    pub(crate) const fn new(arrived: Instant, promise: Option<Promise>) -> Self {
        Self { arrived, dequeued: arrived, promise }
    }
}

impl Accounts {
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
            spins: Spins::default(),
            queue_max: 0,
            power: Power::new(&scenario.disks, window),
            rebuild: RebuildAccount::default(),
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

    /// The first byte of a read goes out; `same_class` says whether it shares its class with a
    /// disk that is rebuilt.
    pub(crate) fn first_byte(&mut self, now: Instant, of: Times, same_class: bool) {
        let waited = now.since(of.arrived);
        if self.counts(of.arrived) {
            self.first_byte.add(waited);
            if of.promise.is_some_and(|promise| promise.is_soon) {
                self.soon_first_byte.add(waited);
            }
        }
        if self.rebuild.since.is_some_and(|since| of.arrived >= since) {
            let histogram =
                if same_class { &mut self.rebuild.class } else { &mut self.rebuild.others };
            histogram.add(waited);
        }
    }

    /// The last byte of a read went out: so many bytes, for which disks read so many.
    pub(crate) fn ended(&mut self, now: Instant, of: Times, sent: f64, read: f64) {
        self.last = now;
        if self.counts(of.arrived) {
            self.completion.add(now.since(of.arrived));
            if let Some(promise) = of.promise {
                let [all, late] = &mut self.promised[usize::from(promise.is_soon)];
                *all += 1;
                *late += u64::from(now.since(of.arrived) > promise.within);
            }
            self.service.add(now.since(of.dequeued));
            self.bytes += sent;
            self.done = now;
        }
        if self.counts(now) {
            self.sent += sent;
            self.read += read;
        }
    }

    /// A stack of a failed disk was written elsewhere.
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

    /// All disks of a group spin up, or those of a read that lie in none.
    pub(crate) fn spun_up(&mut self, now: Instant, group: Option<u32>, disks: u32) {
        if let Some(group) = group {
            self.spins.note(now, group);
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
        let (power, power_max) = self.power.of_window();
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
            spin_ups_day_max: self.spins.most(),
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
const fn count(of: u64) -> f64 {
    of as f64
}
