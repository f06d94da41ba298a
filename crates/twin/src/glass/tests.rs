//! Invariants of any run of the engine: it repeats, it ends every read, and every invariant of the
//! controller holds after every event.

use std::collections::BTreeSet;

use fulgurite_glass_core::control::{
    Event, LibraryShape, Machine, MechanicsParameters, Output, PanelIndex, Policy, RailPosition,
    ShelfIndex, Throughput,
};
use fulgurite_units::{
    ByteCount, Controller as _, DriveIndex, Duration, Instant, PlatterId, Ratio, ShuttleIndex,
};

use super::{Glass, Observation, run, run_observed};
use crate::engine::Observer;
use crate::glass::scenario::{Battery, FaultPlan, Recovery, Scenario, SystemTag, Writes};
use crate::workload::{Envelope, Jobs, Placement, Profile, Sizes, Workload};

const HOUR: Duration = Duration::from_secs(3600);

/// Returns an hour of typical reads on a small library.
pub(crate) fn scenario(policy: Policy) -> Scenario {
    let envelope = Envelope {
        warm_up: Duration::from_secs(900),
        window: Duration::from_secs(1800),
        cool_down: Duration::from_secs(900),
        ..Envelope::twelve_hours(0.1, None)
    };
    let workload = Workload {
        envelope,
        jobs: Jobs::PAPER,
        sizes: Sizes::Table { profile: Profile::Typical },
        placement: Placement::Uniform,
    };
    let mut library = LibraryShape::small();
    library.spare_slots_per_shelf = 1;
    Scenario {
        system: SystemTag::Glass,
        library,
        policy,
        mechanics: MechanicsParameters::PAPER,
        throughput: Throughput::PAPER,
        track_size: ByteCount::new(20_000_000),
        platters: 300,
        shard_size: ByteCount::new(1_000_000_000),
        unavailable: Ratio::ZERO,
        recovery_reads: 16,
        recovery: Recovery::Anywhere,
        workload,
        writes: Writes::Saturated { platter_size: ByteCount::new(40_000_000_000) },
        faults: Vec::new(),
        restores: None,
        battery: None,
        measure_from: Duration::from_secs(900),
        measure_until: Duration::from_secs(2700),
    }
}

/// Checks every invariant after every event, and counts requests and their ends.
#[derive(Default)]
struct Checker {
    requested: u64,
    answered: u64,
    given_way: bool,
}

impl Observer<Glass> for Checker {
    fn observe(&mut self, _: Instant, observation: Observation<'_>) {
        match observation {
            Observation::Event(event) => {
                self.requested += u64::from(matches!(event, Event::Read { .. }))
            }
            Observation::Output(output) => {
                let ends = matches!(output, Output::Finished { .. } | Output::Rejected { .. });
                self.answered += u64::from(ends);
            }
            Observation::RestoreEvent(_) | Observation::RestoreCommand(_) => {}
            Observation::Stepped(library) => {
                library.check();
                self.given_way |= library.counters().give_ways > 0;
            }
        }
    }
}

#[test]
fn seed_determines_the_run() {
    for name in fulgurite_glass_core::control::POLICY_NAMES {
        let scenario = scenario(Policy::named(name).unwrap());
        let [first, again, other] = [1, 1, 2].map(|seed| run(&scenario, seed).unwrap());
        assert_eq!(first, again, "{name}");
        assert_ne!(first.hash, other.hash, "{name}");
        assert_eq!(first.failed, 0, "{name}");
        assert!(first.reads > 50, "{name}: {} reads", first.reads);
    }
}

#[test]
fn every_invariant_holds_after_every_event() {
    let mut given_way = false;
    for name in fulgurite_glass_core::control::POLICY_NAMES {
        let mut checker = Checker::default();
        run_observed(&scenario(Policy::named(name).unwrap()), 3, &mut checker).unwrap();
        assert!(checker.requested > 100, "{name}: only {} reads", checker.requested);
        assert!(checker.answered >= checker.requested, "{name}: some reads did not end");
        given_way |= checker.given_way;
    }
    assert!(given_way, "no shuttle gave way, so the test covers nothing");
}

#[test]
fn unavailable_platter_is_recovered_from_its_set() {
    let mut scenario = scenario(Policy::silica());
    let whole = run(&scenario, 4).unwrap();
    scenario.unavailable = Ratio::new(0.1).unwrap();
    let damaged = run(&scenario, 4).unwrap();
    assert_eq!((damaged.failed, damaged.reads), (0, whole.reads));
    assert!(damaged.fetches > whole.fetches, "16 platters are read instead of one");
    assert!(damaged.completion.p50 > whole.completion.p50);
}

/// Collects the platters that are requested.
#[derive(Default)]
struct RequestedPlatters(BTreeSet<PlatterId>);

impl Observer<Glass> for RequestedPlatters {
    fn observe(&mut self, _: Instant, observation: Observation<'_>) {
        if let Observation::Event(Event::Read { platter, .. }) = observation {
            self.0.insert(*platter);
        }
    }
}

/// All reads go to one platter, and that is unavailable.
#[test]
fn set_recovery_reads_only_its_own_set() {
    let mut scenario = scenario(Policy::silica());
    scenario.workload.placement = Placement::Zipf { exponent: 10.0 };
    scenario.unavailable = Ratio::new(0.1).unwrap();
    let requested = |recovery: Recovery| {
        let scenario = Scenario { recovery, ..scenario.clone() };
        // The first seeds for which the platter of all reads is unavailable.
        let runs = (0..60).filter_map(|seed| {
            let mut platters = RequestedPlatters::default();
            let result = run_observed(&scenario, seed, &mut platters).unwrap();
            assert_eq!(result.failed, 0, "seed {seed}");
            (platters.0.len() > 10).then_some(platters.0.len())
        });
        runs.take(3).collect::<Vec<_>>()
    };
    let [set, anywhere] = [Recovery::Set { redundancy: 3 }, Recovery::Anywhere].map(requested);
    assert!(set.len() == 3 && set.iter().all(|platters| (16..=38).contains(platters)), "{set:?}");
    assert!(anywhere.iter().all(|platters| *platters > 100), "{anywhere:?}");
}

#[test]
fn broken_machines_delay_but_lose_no_read() {
    let at = |minutes: u64| Duration::from_secs(60 * minutes);
    let machines = [
        Machine::Shuttle(ShuttleIndex::new(1)),
        Machine::Drive(DriveIndex::new(2)),
        Machine::Rail {
            panel: PanelIndex::new(0),
            shelf: ShelfIndex::new(4),
            from: RailPosition::new(4_000_000),
            to: RailPosition::new(5_000_000),
        },
    ];
    let faults = [15, 20, 25].into_iter().zip(machines).map(|(minutes, machine)| FaultPlan {
        machine,
        at: at(minutes),
        repaired_at: Some(at(minutes + 30)),
    });
    for policy in [Policy::silica(), Policy::shortest_paths(), Policy::fulgurite()] {
        let mut scenario = scenario(policy);
        scenario.faults = faults.clone().collect();
        let mut checker = Checker::default();
        let result = run_observed(&scenario, 5, &mut checker).unwrap();
        assert_eq!(result.failed, 0, "a set of 16+3 tolerates three failures");
        assert!(result.makespan < 12.0 * HOUR.as_secs_f64(), "the run ends");
    }
}

#[test]
fn without_shuttles_drives_are_fastest_and_never_idle() {
    let [bound, ours, paper, straw] =
        [Policy::no_shuttles(), Policy::fulgurite(), Policy::silica(), Policy::shortest_paths()]
            .map(|policy| run(&scenario(policy), 6).unwrap());
    assert!(bound.completion.p999 < ours.completion.p999);
    assert!(bound.completion.p999 < paper.completion.p999);
    assert!(paper.completion.p999 < straw.completion.p999);
    let busy = |of: &crate::RunResult| of.drive_time.read + of.drive_time.verify;
    assert!(busy(&bound) + bound.drive_time.switch > 0.99, "{:?}", bound.drive_time);
    let shares = paper.drive_time;
    let sum = shares.read + shares.verify + shares.switch + shares.idle;
    assert!((sum - 1.0).abs() < 1e-9, "shares add up to 1: {shares:?}");
}

#[test]
fn shuttles_charge_before_batteries_go_flat() {
    for policy in [Policy::silica(), Policy::fulgurite()] {
        let mut scenario = scenario(policy);
        // Small enough for some charges within the hour.
        scenario.battery = Some(Battery { capacity_kj: 60.0, ..Battery::ASSUMED });
        let without = run(&Scenario { battery: None, ..scenario.clone() }, 7).unwrap();
        let mut checker = Checker::default();
        let with = run_observed(&scenario, 7, &mut checker).unwrap();
        assert_eq!((with.failed, with.flat, with.reads), (0, 0, without.reads));
        assert!(with.charges > 10 && (1..80).contains(&with.battery_min), "{with:?}");
        assert_eq!((without.charges, without.flat, without.battery_min), (0, 0, 100));
        assert_eq!(with, run(&scenario, 7).unwrap(), "a run is repeatable");
    }
}

#[test]
fn every_read_ends_despite_flat_batteries() {
    let mut policy = Policy::fulgurite();
    (policy.charge_below, policy.charge_until) = (1, 2);
    let mut scenario = scenario(policy);
    let all = run(&scenario, 8).unwrap().reads;
    scenario.battery = Some(Battery { capacity_kj: 20.0, ..Battery::ASSUMED });
    let mut checker = Checker::default();
    let result = run_observed(&scenario, 8, &mut checker).unwrap();
    assert!(result.flat > 0 && result.battery_min == 0, "{result:?}");
    assert!(checker.answered >= checker.requested, "some reads did not end");
    // With all shuttles flat at once nothing can be fetched.
    assert_eq!(result.reads + result.failed, all, "every read ends");
    assert!(result.makespan < 24.0 * HOUR.as_secs_f64(), "the run ends");
}

/// Runs without batteries are the same as before batteries existed.
#[test]
fn run_without_batteries_is_unchanged() {
    let hashes = [Policy::silica(), Policy::fulgurite()].map(|policy| {
        let result = run(&scenario(policy), 1).unwrap();
        format!("{:016x}", result.hash)
    });
    assert_eq!(hashes, ["0666f5b69de5cdb5", "e8a9fcf4f36ccf4c"]);
}

#[test]
fn invalid_library_is_rejected() {
    let good = scenario(Policy::silica());
    let check = |change: &dyn Fn(&mut Scenario), named: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = run(&bad, 1).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    };
    check(&|s| s.library.shuttles_per_panel = 9, "shuttles_per_panel");
    check(&|s| s.platters = 1_000_000, "platters");
    check(&|s| s.platters = 0, "platters");
    check(&|s| s.track_size = ByteCount::new(0), "track_size");
    check(&|s| s.shard_size = ByteCount::new(1), "shard_size");
    check(&|s| s.mechanics.speed = 0.0, "speed");
    check(&|s| s.policy.candidates = 0, "candidates");
    check(&|s| s.recovery = Recovery::Set { redundancy: 0 }, "redundancy");
    check(
        &|s| {
            s.recovery = Recovery::Set { redundancy: 3 };
            s.unavailable = Ratio::new(0.2).unwrap();
        },
        "unavailable",
    );
    check(
        &|s| {
            s.recovery = Recovery::Set { redundancy: 3 };
            s.platters = 18;
        },
        "whole sets",
    );
    check(&|s| s.measure_until = s.measure_from, "measure_until");
    check(&|s| s.policy.charge_below = 90, "charge_below");
    let weak = Battery { charging_w: 1.0, ..Battery::ASSUMED };
    check(&move |s| s.battery = Some(weak), "charging_w");
    check(&|s| s.workload.jobs.alpha = f64::NAN, "alpha");
}

/// Returns a scenario in which reads arrive faster than the library fetches all the time, while new
/// platters wait.
fn siege(policy: Policy) -> Scenario {
    let mut siege = scenario(Policy { verify_within: HOUR + HOUR, ..policy });
    siege.workload.envelope.warm_up = Duration::from_secs(60);
    siege.workload.envelope.window = Duration::from_secs(8 * 3600);
    siege.workload.envelope.window_rate = 0.4;
    siege.measure_from = Duration::from_secs(60);
    siege.measure_until = Duration::from_secs(8 * 3600);
    // A drive needs 17 minutes per platter.
    siege.writes = Writes::Every {
        platter_size: ByteCount::new(60_000_000_000),
        interval: Duration::from_secs(900),
    };
    siege
}

#[test]
fn every_policy_verifies_new_platters_in_time() {
    for name in ["silica", "fulgurite", "thrifty", "shortest-paths"] {
        let siege = siege(Policy::named(name).unwrap());
        let mut checker = Checker::default();
        let result = run_observed(&siege, 7, &mut checker).unwrap();
        let oldest = result.unverified_age_max / 3600.0;
        assert!(result.queue_max > 100, "{name}: {} reads waited at most", result.queue_max);
        // The bound, plus the time of one verification.
        assert!(oldest <= 2.3, "{name}: a platter was unverified for {oldest:.2} h");
        assert!(result.verified_bytes > 1_200_000_000_000, "{name}: {}", result.verified_bytes);
    }
}

/// Returns three days with a new platter of this size each hour, and hardly a read.
fn three_days(policy: Policy, platter_size: u64) -> Scenario {
    let mut scenario = scenario(policy);
    let day = Duration::from_secs(86_400);
    let envelope = &mut scenario.workload.envelope;
    (envelope.warm_up, envelope.window, envelope.cool_down) = (day, day + day, HOUR);
    (envelope.window_rate, envelope.quiet_rate) = (0.001, 0.001);
    (scenario.measure_from, scenario.measure_until) = (day, day + day + day);
    let platter_size = ByteCount::new(platter_size);
    scenario.writes = Writes::Every { platter_size, interval: HOUR };
    scenario
}

#[test]
fn verification_shortfall_over_two_days_is_detected() {
    // Four drives of 60 MB/s read 864 GB per hour.
    let platters = [600_000_000_000, 1_200_000_000_000];
    for name in ["silica", "fulgurite", "thrifty", "no-shuttles"] {
        let [enough, too_much] = platters.map(|platter_size| {
            run(&three_days(Policy::named(name).unwrap(), platter_size), 8).unwrap()
        });
        assert_eq!(enough.verify_shortfall_bytes, Some(0), "{name}");
        // 58 TB were ingested, the drives had time for 41, and hold four platters half verified.
        let missing = too_much.verify_shortfall_bytes.unwrap() / 1_000_000_000_000;
        assert!((10..24).contains(&missing), "{name}: {missing} TB");
    }
}

#[test]
fn no_shortfall_without_a_two_day_window_or_interval() {
    let mut scenario = three_days(Policy::silica(), 1_200_000_000_000);
    scenario.measure_until = Duration::from_secs(47 * 3600);
    assert_eq!(run(&scenario, 9).unwrap().verify_shortfall_bytes, None);
    let Writes::Every { platter_size, .. } = scenario.writes else { unreachable!() };
    scenario.measure_until = Duration::from_secs(72 * 3600);
    for writes in [Writes::None, Writes::Saturated { platter_size }] {
        scenario.writes = writes;
        assert_eq!(run(&scenario, 9).unwrap().verify_shortfall_bytes, None);
    }
}
