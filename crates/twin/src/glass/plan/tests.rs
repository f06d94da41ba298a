//! Plans of tiny libraries, by a serial runner.

use std::cell::Cell;

use fulgurite_glass_core::control::{LibraryShape, Throughput};
use fulgurite_glass_core::plan::SetShape;
use fulgurite_units::{ByteCount, Duration, Instant, Ratio, settings};

use super::trial::{evaluate, simulate};
use super::{Candidate, CostTable, Demand, Miss, PlanRequest, Trial};
use crate::glass::fleet::Stop;
use crate::plan::{Plan, PlanReport, Planner as _, costs};
use crate::runner::Serial;
use crate::workload::Workload;
use crate::{Trace, TraceRead};

const TB: u64 = 1_000_000_000_000;

fn picture(request: &PlanRequest, plan: &Plan<Trial>) -> String {
    PlanReport::new(request, plan).unwrap().picture.unwrap()
}

/// Returns an hour of typical reads.
fn hour(scale: f64) -> Demand {
    let mut workload = Workload::typical();
    workload.envelope.warm_up = Duration::ZERO;
    workload.envelope.window = Duration::from_secs(3600);
    workload.envelope.cool_down = Duration::ZERO;
    Demand { workload, scale, trace: None }
}

/// Returns a request with small racks and few choices.
fn request(demand: Demand) -> PlanRequest {
    let ingest_per_day = ByteCount::new(5 * TB);
    let mut request = PlanRequest { ingest_per_day, demand, ..PlanRequest::default() };
    request.library = LibraryShape { slots_per_shelf: 30, ..LibraryShape::mdu() };
    request.objective = Duration::from_secs(4500);
    request.seeds = 2;
    request.space.libraries = [1, 3];
    request.space.read_racks = vec![2];
    request.space.drives_per_read_rack = vec![2, 4];
    request.space.policies = vec!["silica".to_owned()];
    request.space.throughputs = [30, 60].map(|mb| Throughput::new(mb).unwrap()).to_vec();
    request
}

fn check(request: &PlanRequest) -> Plan<Trial> {
    let reported = Cell::new(0);
    request.check().unwrap();
    let plan = request.search(&Serial, &mut |_| reported.set(reported.get() + 1)).unwrap();
    assert_eq!(reported.get(), plan.tried.len());
    let enough = || plan.tried.iter().filter(|trial| trial.is_enough());
    assert_eq!(enough().count() == 0, plan.best.is_none());
    for trial in &plan.tried {
        let (candidate, costs) = (&trial.candidate, &request.costs);
        assert!(candidate.shape(request).validate().is_ok(), "{candidate:?}");
        assert!(costs.cost_lower_bound(candidate) <= trial.cost, "the lower bound holds");
        assert!(candidate.storage_racks >= request.set_racks().unwrap());
        let best = plan.best.as_ref();
        assert!(!trial.is_enough() || best.is_some_and(|best| best.cost <= trial.cost));
        let drops = |miss| matches!(miss, &Miss::Verification | &Miss::Failed);
        assert!(trial.constraints.is_met() || trial.misses.iter().any(drops), "{trial:?}");
        assert!(trial.constraints.is_met() || trial.constraints.missed().is_some());
        if trial.given_up_s.is_some() {
            let whole = whole_trial(request, candidate);
            let missed = trial.misses.iter().all(|miss| whole.misses.contains(miss));
            assert!(!trial.is_enough() && missed, "stopped early: {trial:?}, complete: {whole:?}");
            assert!(trial.tail_s <= whole.tail_s, "the tail of a stopped run is a lower bound");
        }
    }
    plan
}

/// Checks that the plan equals that of an exhaustive search with complete runs.
fn check_against_all(request: &PlanRequest) -> Plan<Trial> {
    let found = check(request);
    let (Some(best), Some(other)) = (&found.best, &found.runner_up) else {
        unreachable!("two groups meet the requirements")
    };
    let mut runs = 0;
    for (_, group) in super::groups::groups(request, request.set_racks().unwrap()) {
        for shuttles in 1..=group.shuttles_per_panel {
            // Only another number of shuttles of the best group may be cheaper than the runner-up.
            let candidate = group.with_shuttles(shuttles);
            let of_best = candidate.is_group_of(&best.candidate);
            let bound = if of_best { best.cost } else { other.cost };
            if request.costs.cost_lower_bound(&candidate) >= bound {
                continue;
            }
            let trial = whole_trial(request, &candidate);
            runs += trial.seeds;
            assert!(!trial.is_enough() || trial.cost >= bound, "{trial:?}");
        }
    }
    assert!(found.runs < runs, "{} runs instead of {runs}", found.runs);
    for trial in [best, other] {
        assert_eq!(whole_trial(request, &trial.candidate), *trial);
    }
    found
}

/// Runs all seeds of a candidate to their end, up to the first that misses.
fn whole_trial(request: &PlanRequest, candidate: &Candidate) -> Trial {
    let mut runs = Vec::new();
    for seed in 1..=request.seeds {
        runs.push(simulate(request, candidate, seed, Stop::Never, &Serial).unwrap());
        if !evaluate(request, candidate, &runs).is_enough() {
            break;
        }
    }
    evaluate(request, candidate, &runs)
}

#[test]
fn plan_matches_exhaustive_search() {
    let found = check_against_all(&request(hour(3.0)));
    assert!(u64::from(found.runs) < found.candidates, "fewer runs than candidates");
}

#[test]
fn plan_matches_exhaustive_search_over_policies() {
    let mut request = request(hour(2.0));
    request.space.policies = ["fulgurite", "silica"].map(str::to_owned).to_vec();
    request.space.libraries = [1, 2];
    check_against_all(&request);
}

#[test]
fn plan_is_cheapest_when_verification_is_the_limit() {
    let mut request = request(hour(2.0));
    request.ingest_per_day = ByteCount::new(28 * TB);
    request.growth_days = 60;
    request.objective = Duration::from_secs(8500);
    request.space.libraries = [1, 2];
    request.space.policies = ["fulgurite", "silica"].map(str::to_owned).to_vec();
    let found = check_against_all(&request);
    let given_up = |trial: &Trial| trial.given_up_s.is_some();
    let verifies = |trial: &Trial| trial.misses == [Miss::Verification];
    assert!(found.tried.iter().any(|trial| given_up(trial) && verifies(trial)));
    assert!(found.tried.iter().any(|trial| given_up(trial) && trial.misses.contains(&Miss::Tail)));
}

#[test]
fn plan_adds_libraries_when_slots_run_out() {
    let mut request = request(hour(1.0));
    request.growth_days = 1460;
    request.space.storage_racks_max = 7;
    let plan = check(&request);
    let best = plan.best.unwrap();
    assert!(best.candidate.libraries > 1);
    let slots = u64::from(best.candidate.shape(&request).slot_count());
    assert!(slots * u64::from(best.candidate.libraries) >= request.platters());
}

#[test]
fn drives_too_slow_to_verify_are_excluded() {
    let mut request = request(hour(0.2));
    request.ingest_per_day = ByteCount::new(15 * TB);
    request.growth_days = 1;
    request.space.libraries = [1, 1];
    let plan = check(&request);
    let best = plan.best.unwrap();
    assert!(best.verify_margin >= 1.0);
    assert!(best.constraints.is_met(), "the best plan meets its constraints");
    // 4 drives of 30 MB/s verify 10.4 TB a day; 17.8 are written.
    let weak = |trial: &Trial| {
        trial.candidate.drives() == 4 && u32::from(trial.candidate.throughput) == 30
    };
    assert!(!plan.tried.iter().any(weak));
    request.ingest_per_day = ByteCount::new(1000 * TB);
    let plan = check(&request);
    assert!(plan.best.is_none() && plan.runner_up.is_none());
}

#[test]
fn objective_of_one_second_has_no_plan() {
    let mut request = request(hour(1.0));
    request.objective = Duration::from_secs(1);
    request.space.libraries = [1, 1];
    let plan = check(&request);
    assert!(plan.best.is_none());
    assert_eq!(plan.runs, 1, "the largest candidate fails, which excludes all others");
    assert!(plan.tried[0].misses.contains(&Miss::Tail));
    assert!(picture(&request, &plan).contains("<svg"));
}

#[test]
fn plan_accepts_a_trace() {
    let read = |at| TraceRead {
        at: Instant::from_nanos(at * 20_000_000_000),
        size: ByteCount::new(50_000_000),
        key: at,
    };
    let trace = Trace::new((0..100).map(read).collect()).unwrap();
    let demand = Demand { scale: 2.5, trace: Some(trace), ..Demand::default() };
    let reads = demand.reads(1).unwrap().count();
    assert!((220..280).contains(&reads), "{reads}");
    let request = request(demand);
    let plan = check(&request);
    assert!(plan.best.is_some());
    assert!(picture(&request, &plan).contains("least cost"));
}

#[test]
fn search_stops_at_its_run_limit() {
    let mut request = request(hour(1.0));
    request.runs_max = 1;
    assert!(check(&request).is_cut_short);
}

#[test]
fn assumed_prices_are_listed() {
    let default = CostTable::default();
    assert_eq!(costs::assumed(&default).len(), 22);
    let table = |text| settings::from_toml::<CostTable>(text);
    let own = costs::assumed(&table("drive_60 = 9000.0\nkwh = 0.3").unwrap());
    assert!(!own.contains(&"drive_60".to_owned()));
    assert_eq!(own.len(), 20);
    assert!(table("drives_60 = 1.0").is_err());
    let battery = crate::glass::scenario::Battery::ASSUMED;
    assert_eq!(default.start_joules.to_bits(), battery.start_j.to_bits(), "one table");
    let mut request = request(hour(1.0));
    request.costs = table("shuttle = -1.0").unwrap();
    assert!(request.check().is_err());
}

#[test]
fn invalid_request_is_rejected() {
    let good = request(hour(1.0));
    let mut bad = good.clone();
    bad.seeds = 0;
    assert!(bad.check().is_err());
    let mut bad = good.clone();
    bad.ingest_per_day = ByteCount::ZERO;
    assert!(bad.check().is_err());
    let mut bad = good.clone();
    bad.space.policies = vec!["fastest".to_owned()];
    assert!(bad.check().is_err());
    let mut bad = good.clone();
    bad.glass.set = SetShape::new(400, 3);
    assert!(bad.search(&Serial, &mut |_| ()).is_err());
    let mut bad = good;
    bad.unavailable = Ratio::new(1.0).unwrap();
    assert!(bad.search(&Serial, &mut |_| ()).is_err());
}
