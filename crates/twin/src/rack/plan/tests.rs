//! Plans of small spaces against an exhaustive search, with a serial runner.

use std::cell::Cell;

use fulgurite_units::{ByteCount, Duration, settings};

use super::trial::evaluate;
use super::{CostTable, PlanRequest, Provision, Trial};
use crate::plan::{Plan, PlanReport, Planner as _, costs, examine};
use crate::runner::Serial;

const TB: u64 = 1_000_000_000_000;

/// Returns a request with short windows and few choices.
fn request(rate: f64) -> PlanRequest {
    let ingest_per_day = ByteCount::new(20 * TB);
    let mut request = PlanRequest { ingest_per_day, rate, ..PlanRequest::default() };
    request.warm_up = Duration::from_secs(900);
    request.window = Duration::from_secs(2700);
    request.seeds = 2;
    request.space.racks_max = 3;
    request.space.disks = [8, 16].map(|size| ByteCount::new(size * TB)).to_vec();
    request.space.nic_gbps = vec![10, 20];
    request
}

fn check(request: &PlanRequest) -> Plan<Trial> {
    let reported = Cell::new(0);
    request.check().unwrap();
    let plan = request.search(&Serial, &mut |_| reported.set(reported.get() + 1)).unwrap();
    assert_eq!(reported.get(), plan.tried.len());
    for trial in &plan.tried {
        let cost_lower_bound = request.costs.cost_lower_bound(request, &trial.candidate);
        assert!(cost_lower_bound <= trial.cost, "the lower bound holds");
        assert!(trial.used <= 1.0, "the capacity suffices");
        assert!(trial.power_w_max <= trial.supplied_w, "domains supply enough power");
    }
    plan
}

/// Checks that the plan equals that of an exhaustive search.
fn check_against_all(request: &PlanRequest) -> Plan<Trial> {
    let found = check(request);
    let all = request.candidates();
    let mut enough: Vec<Trial> = all
        .iter()
        .map(|of| evaluate(request, of, &examine(request, of, &Serial).unwrap()))
        .filter(Trial::is_enough)
        .collect();
    enough.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    assert_eq!(found.best.as_ref(), enough.first());
    assert_eq!(found.runner_up.as_ref(), enough.get(1));
    assert!(found.tried.len() < all.len(), "{} tried of {}", found.tried.len(), all.len());
    found
}

#[test]
fn plan_matches_exhaustive_search() {
    let request = request(0.5);
    let found = check_against_all(&request);
    let best = found.best.unwrap();
    assert_eq!(best.candidate.provision, Provision::Sleeping, "{best:?}");
    // 20 TB a day for a year, with redundancy and the space that stays empty.
    let raw = 20e12 * 365.0 * 18.0 / 15.0 / 0.99386;
    assert!((request.raw_bytes() / raw - 1.0).abs() < 1e-9);
}

#[test]
fn tail_of_seconds_needs_always_spinning_disks() {
    let mut request = request(1.0);
    request.objective = Duration::from_secs(5);
    let best = check_against_all(&request).best.unwrap();
    assert_eq!(best.candidate.provision, Provision::All);
    assert!(best.power_w_max > 10_000.0, "the power of spinning disks is reported");
    // A power limit that leaves no candidate.
    request.power_w_max = Some(4_000.0);
    let plan = check(&request);
    assert!(plan.best.is_none() && plan.runner_up.is_none());
    let misses = |trial: &Trial| trial.is_late || trial.constraints.missed().is_some();
    assert!(plan.tried.iter().all(misses), "every trial has a miss");
}

#[test]
fn spin_up_budget_is_met_at_a_higher_cost() {
    let mut request = request(0.5);
    let free = check(&request).best.unwrap();
    assert!(free.spin_ups_a_day > 100.0, "{}", free.spin_ups_a_day);
    request.spin_ups_a_day_max = Some(free.spin_ups_a_day / 10.0);
    let bounded = check_against_all(&request).best.unwrap();
    assert!(bounded.spin_ups_a_day <= free.spin_ups_a_day / 10.0);
    assert!(bounded.cost > free.cost, "{} after {}", bounded.cost, free.cost);
}

#[test]
fn rejected_reads_require_more_racks() {
    let mut request = request(8.0);
    request.space.provisions = vec![Provision::Sleeping];
    request.objective = Duration::from_secs(1_000);
    // Their queues fill up after a while.
    request.warm_up = Duration::from_secs(3_600);
    let plan = check_against_all(&request);
    let best = plan.best.as_ref().unwrap();
    assert!(best.candidate.racks > 1 && best.refused == 0.0, "{best:?}");
    assert!(plan.tried.iter().any(|trial| trial.refused > 0.0 || trial.is_late));
    let report = PlanReport::new(&request, &plan).unwrap();
    assert!(report.picture.unwrap().contains("least cost"));
}

#[test]
fn ingest_needs_network_bandwidth() {
    let mut request = request(0.1);
    // 100 TB a day are 9.3 Gbit/s; with the reads, above one port of 10 Gbit/s.
    request.ingest_per_day = ByteCount::new(107 * TB);
    request.growth_days = 30;
    request.space.racks_max = 1;
    request.space.servers = vec![1];
    let best = check(&request).best.unwrap();
    assert_eq!(best.candidate.nic_gbps, 20, "{best:?}");
}

#[test]
fn assumed_prices_are_listed_and_invalid_plans_rejected() {
    assert_eq!(costs::assumed(&CostTable::default()).len(), 11);
    let table = |text| settings::from_toml::<CostTable>(text);
    let own = table("disk = 55.0\nkwh = 0.3").unwrap();
    assert_eq!(costs::assumed(&own).len(), 9);
    assert!(table("disks = 1.0").is_err());
    let refused = |change: fn(&mut PlanRequest), named: &str| {
        let mut request = request(1.0);
        change(&mut request);
        let error = request.check().unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
    };
    refused(|of| of.ingest_per_day = ByteCount::ZERO, "ingest_per_day");
    refused(|of| of.rate = 0.0, "rate");
    refused(|of| of.seeds = 0, "seeds");
    refused(|of| of.power_w_max = Some(f64::NAN), "power_w_max");
    // As much as all of its disks draw in standby.
    refused(
        |of| of.power_w_max = Some(1_797.0),
        "power_w_max is 1797 W per rack (standby draws 1797 W)",
    );
    refused(|of| of.space.racks_max = 0, "space.racks_max");
    refused(|of| of.space.servers = vec![3], "network.servers");
    refused(|of| of.costs.disk = -1.0, "cost table: disk");
}

#[test]
fn search_stops_at_its_run_limit() {
    let mut request = request(0.5);
    request.runs_max = 1;
    assert!(check(&request).is_cut_short);
}
