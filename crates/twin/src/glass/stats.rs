//! Counters of a run.

use fulgurite_glass_core::control::{Action, Counters, Travel};
use fulgurite_units::{Duration, Instant};

use super::batteries::Batteries;
use crate::engine::Ended;
use crate::engine::histogram::Histogram;
use crate::glass::result::{DriveTime, RunResult};
use crate::glass::scenario::Scenario;

/// Sums of one run.
#[derive(Clone, Debug)]
pub(crate) struct Stats {
    from: Instant,
    until: Instant,
    crab_mean: f64,
    pub(crate) completion: Histogram,
    travel: Histogram,
    travel_expected: f64,
    travel_took: f64,
    read_ns: u64,
    verify_ns: u64,
    switch_ns: u64,
    pub(crate) verified_tracks: u64,
    pub(crate) reads: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: u64,
    pub(crate) platter_operations: u64,
    starts: u64,
    meters: f64,
    crabs: u64,
    pub(crate) queue_max: usize,
    pub(crate) eject_bay_max: u64,
    pub(crate) unverified_age_max: Duration,
    pub(crate) last_end: Instant,
}

impl Stats {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mechanics = &scenario.mechanics;
        let fast = mechanics.crab_fast_share;
        let crab_mean = fast * (mechanics.crab_min + mechanics.crab_fast_max) / 2.0
            + (1.0 - fast) * (mechanics.crab_fast_max + mechanics.crab_max) / 2.0;
        Self {
            from: Instant::ZERO + scenario.measure_from,
            until: Instant::ZERO + scenario.measure_until,
            crab_mean,
            completion: Histogram::default(),
            travel: Histogram::default(),
            travel_expected: 0.0,
            travel_took: 0.0,
            read_ns: 0,
            verify_ns: 0,
            switch_ns: 0,
            verified_tracks: 0,
            reads: 0,
            bytes: 0,
            failed: 0,
            platter_operations: 0,
            starts: 0,
            meters: 0.0,
            crabs: 0,
            queue_max: 0,
            eject_bay_max: 0,
            unverified_age_max: Duration::ZERO,
            last_end: Instant::ZERO,
        }
    }

    pub(crate) fn is_measured(&self, at: Instant) -> bool {
        self.from <= at && at < self.until
    }

    /// Counts an action of a machine that ends now.
    pub(crate) fn worked(&mut self, action: &Action, new: bool, from: Instant, to: Instant) {
        let clipped = to.min(self.until).since(from.max(self.from)).as_nanos();
        match *action {
            Action::Move { from, to, .. } => {
                self.starts += 1;
                self.meters += from.meters_to(to);
            }
            Action::Crab { .. } => self.crabs += 1,
            Action::Charge { .. } => {}
            Action::Pick { .. } | Action::Place { .. } => self.platter_operations += 1,
            Action::Mount { .. } | Action::Unmount { .. } if new => self.verify_ns += clipped,
            Action::VerifyPass { .. } => self.verify_ns += clipped,
            Action::Mount { .. }
            | Action::Unmount { .. }
            | Action::Seek { .. }
            | Action::Read { .. } => self.read_ns += clipped,
            Action::Switch { .. } => self.switch_ns += clipped,
        }
    }

    /// Counts a shuttle's arrival at its destination.
    pub(crate) fn traveled(&mut self, travel: &Travel, scenario: &Scenario, now: Instant) {
        if !self.is_measured(now) {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rail is shorter than 2^53 micrometers")]
        let meters = travel.rail_um as f64 / 1e6;
        let mechanics = &scenario.mechanics;
        let along =
            if travel.rail_um > 0 { mechanics.travel(meters) + mechanics.fine_tuning } else { 0.0 };
        if !travel.for_customers {
            return;
        }
        self.travel_expected += along + f64::from(travel.shelves) * self.crab_mean;
        self.travel_took += travel.took.as_secs_f64();
        self.travel.add(travel.took);
    }

    pub(crate) fn result(
        self,
        scenario: &Scenario,
        counters: &Counters,
        batteries: &Batteries,
        drives: usize,
        ended: Ended,
    ) -> RunResult {
        #[expect(clippy::cast_precision_loss, reason = "shares are rounded anyway")]
        let share = |ns: u64| {
            let whole = self.until.since(self.from).as_secs_f64() * drives as f64;
            if whole > 0.0 { ns as f64 / 1e9 / whole } else { 0.0 }
        };
        let [read, verify, switch] = [self.read_ns, self.verify_ns, self.switch_ns].map(share);
        let idle = (1.0 - read - verify - switch).max(0.0);
        let congestion = if self.travel_expected > 0.0 {
            self.travel_took / self.travel_expected - 1.0
        } else {
            0.0
        };
        RunResult {
            seed: ended.seed,
            completion: self.completion.quantiles(),
            reads: self.reads,
            bytes: self.bytes,
            failed: self.failed,
            drive_time: DriveTime { read, verify, switch, idle },
            travel: self.travel.quantiles(),
            congestion,
            give_ways: counters.give_ways,
            fetches: counters.fetches,
            steals: counters.steals,
            platter_operations: self.platter_operations,
            starts: self.starts,
            meters: self.meters,
            crabs: self.crabs,
            charges: counters.charges,
            flat: batteries.flat,
            battery_min: u64::from(batteries.percent_min),
            verified_bytes: self.verified_tracks.saturating_mul(scenario.track_size.get()),
            unverified_age_max: self.unverified_age_max.as_secs_f64(),
            verify_shortfall_bytes: None,
            eject_bay_max: self.eject_bay_max,
            age_max: Duration::from_nanos(counters.age_max_ns).as_secs_f64(),
            queue_max: self.queue_max as u64,
            restores: None,
            makespan: self.last_end.since(Instant::ZERO).as_secs_f64(),
            events: ended.events,
            hash: ended.hash,
            wall_seconds: 0.0,
        }
    }
}
