//! Invariants of fleets.

use fulgurite_glass_core::control::{LibraryShape, MechanicsParameters, Policy, Throughput};
use fulgurite_units::{ByteCount, Duration, Ratio};

use super::{Fleet, FleetResult, Stop};
use crate::Runner;
use crate::glass::run;
use crate::glass::scenario::{FaultPlan, Recovery, Scenario, SystemTag, Writes};
use crate::runner::Serial;
use crate::workload::{Placement, Workload};

fn fleet(libraries: u32, unavailable: f64) -> Fleet {
    let mut workload = Workload::typical();
    workload.envelope.warm_up = Duration::ZERO;
    workload.envelope.window = Duration::from_secs(3600);
    workload.envelope.cool_down = Duration::ZERO;
    let each = Scenario {
        system: SystemTag::Glass,
        library: LibraryShape::small(),
        policy: Policy::silica(),
        mechanics: MechanicsParameters::PAPER,
        throughput: Throughput::PAPER,
        track_size: ByteCount::new(20_000_000),
        platters: 500,
        shard_size: ByteCount::new(1_000_000_000),
        unavailable: Ratio::new(unavailable).unwrap(),
        recovery_reads: 16,
        recovery: Recovery::Anywhere,
        workload,
        writes: Writes::None,
        faults: Vec::new(),
        restores: None,
        battery: None,
        measure_from: Duration::ZERO,
        measure_until: Duration::from_secs(3600),
    };
    Fleet { each, libraries }
}

fn check(fleet: &Fleet) -> FleetResult {
    let result = fleet.run(7, &Serial).unwrap();
    let reads = fleet.each.workload.generate(fulgurite_units::Seed::new(7).child(b"workload"));
    let reads = reads.unwrap();
    assert_eq!(result.reads + result.failed, reads.reads().len() as u64, "every read ends");
    assert_eq!(result.bytes, reads.reads().iter().map(|read| read.size.get()).sum::<u64>());
    assert_eq!(result.completion.count, result.reads);
    assert_eq!(result.library_tails.len(), fleet.libraries as usize);
    result
}

#[test]
fn fleet_of_one_behaves_like_a_library() {
    let (fleet, mut alone) = (fleet(1, 0.0), 0.0);
    let result = check(&fleet);
    for seed in 1..=5 {
        alone += run(&fleet.each, seed).unwrap().completion.p50 / 5.0;
    }
    let ratio = result.completion.p50 / alone;
    assert!((0.3..3.0).contains(&ratio), "median {ratio} times that of a library");
}

#[test]
fn more_libraries_share_reads_and_are_faster() {
    let [one, four] = [1, 4].map(|libraries| check(&fleet(libraries, 0.0)));
    assert!(four.completion.p999 < one.completion.p999);
    assert_eq!(one.parts, four.parts);
    assert_eq!(one.recovered, 0);
}

#[test]
fn unavailable_platters_are_recovered_with_more_reads() {
    let [all, some] = [0.0, 0.1].map(|unavailable| check(&fleet(4, unavailable)));
    assert!(some.recovered > 0);
    assert_eq!(some.parts, all.parts + 15 * some.recovered);
    assert!(some.completion.p999 > all.completion.p999);
}

#[test]
fn job_order_does_not_change_the_result() {
    struct Backwards;
    impl Runner for Backwards {
        fn for_each(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
            (0..count).rev().for_each(job);
        }
    }
    let mut fleet = fleet(3, 0.1);
    fleet.each.workload.placement = Placement::Zipf { exponent: 0.95 };
    let [forward, backward] = [fleet.run(3, &Serial).unwrap(), fleet.run(3, &Backwards).unwrap()];
    assert_eq!(forward, backward);
}

#[test]
fn number_of_passes_does_not_change_the_result() {
    let fleet = fleet(5, 0.1);
    let workload = &fleet.each.workload;
    let reads = || workload.reads(fulgurite_units::Seed::new(7).child(b"workload"));
    let [once, often] = [1, super::PARTS_HELD_MAX * 2]
        .map(|expected| (fleet.libraries_per_pass(expected), expected));
    assert_eq!((once.0, often.0), (5, 1));
    let results = [once.1, often.1];
    // Only the estimate differs: it merely reserves memory.
    let results =
        results.map(|expected| fleet.run_reads(7, expected, Stop::Never, reads, &Serial).unwrap());
    assert_eq!(results[0], results[1]);
}

/// Returns a run that may be stopped, and the same run to its end.
fn stopped(fleet: &Fleet, stop: Stop) -> [FleetResult; 2] {
    let workload = &fleet.each.workload;
    let reads = || workload.reads(fulgurite_units::Seed::new(7).child(b"workload"));
    [stop, Stop::Never].map(|stop| fleet.run_reads(7, 1000, stop, reads, &Serial).unwrap())
}

#[test]
fn run_stops_only_when_its_tail_is_certain() {
    let mut early = 0;
    for (libraries, unavailable, minutes) in [1, 3]
        .into_iter()
        .flat_map(|count| [0.0, 0.1].map(|share| (count, share)))
        .flat_map(|(count, share)| {
            [1, 2, 5, 10, 15, 20, 30, 45, 60, 90].map(|limit| (count, share, limit))
        })
    {
        let limit = Duration::from_secs(minutes * 60);
        let [run, whole] = stopped(&fleet(libraries, unavailable), Stop::Above(limit));
        let Some(at) = run.stopped else {
            assert_eq!(run, whole, "a run that is not stopped equals the complete run");
            continue;
        };
        assert!(whole.completion.p999 > limit.as_secs_f64());
        assert!(run.completion.p999 > limit.as_secs_f64());
        assert!(
            run.completion.p999 <= whole.completion.p999,
            "the tail of a stopped run is a lower bound"
        );
        early += u32::from(at < whole.makespan && run.events < whole.events);
    }
    assert!(early > 10, "{early} runs are shorter");
}

#[test]
fn stopping_at_window_end_keeps_verified_bytes() {
    let mut fleet = fleet(2, 0.1);
    fleet.each.writes = Writes::Saturated { platter_size: ByteCount::new(20_000_000_000) };
    fleet.each.measure_until = Duration::from_secs(1800);
    let [run, whole] = stopped(&fleet, Stop::WindowEnd);
    assert!(run.stopped.is_some_and(|at| at < whole.makespan));
    assert!(run.verified_bytes > 0);
    assert_eq!(run.verified_bytes, whole.verified_bytes);
    assert_eq!(run.reads, whole.reads, "reads in progress count as ended");
    assert!(run.completion.p999 <= whole.completion.p999);
}

#[test]
fn invalid_fleet_is_rejected() {
    assert!(fleet(0, 0.0).validate().is_err());
    let mut broken = fleet(2, 0.0);
    broken.each.faults.push(FaultPlan {
        machine: fulgurite_glass_core::control::Machine::Drive(fulgurite_units::DriveIndex::new(0)),
        at: Duration::ZERO,
        repaired_at: None,
    });
    assert!(broken.validate().is_err());
}
