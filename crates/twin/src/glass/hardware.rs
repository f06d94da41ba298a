//! More hardware makes no tail longer, except for noise: drives and customer slots.
//!
//! A drive that keeps one of its slots waiting, or shuttles that crowd where drives are many, would
//! make a library with more of them slower. Each seed has the same reads with less hardware and
//! with more. The test compares the median over the seeds of the 99.9th percentile, and allows a
//! twentieth of it as noise: no more than the tails of different seeds differ from their median (5
//! to 9 %).

use fulgurite_glass_core::control::{POLICY_NAMES, Policy};
use fulgurite_units::{ByteCount, Duration};

use super::run;
use super::tests::scenario;
use crate::glass::scenario::{Scenario, Writes};
use crate::workload::{Envelope, Jobs, Sizes};

const SEEDS: u64 = 5;

/// Returns a library with large reads for half an hour, which keep most of ten drives busy.
fn library(policy: &str, drives: u16, customer_slots: u8) -> Scenario {
    let mut scenario = scenario(Policy { customer_slots, ..Policy::named(policy).unwrap() });
    scenario.library.drives_per_read_rack = drives / 2;
    scenario.library.shuttles_per_panel = 10;
    scenario.platters = 1000;
    scenario.workload.jobs = Jobs::SINGLE;
    scenario.workload.sizes = Sizes::Fixed { size: ByteCount::new(9_000_000_000) };
    scenario.workload.envelope = Envelope {
        warm_up: Duration::from_secs(600),
        window: Duration::from_secs(1800),
        cool_down: Duration::from_secs(600),
        window_rate: 0.1,
        quiet_rate: 0.02,
        ..Envelope::twelve_hours(0.1, None)
    };
    scenario.shard_size = ByteCount::new(9_000_000_000);
    scenario.writes = Writes::Saturated { platter_size: ByteCount::new(200_000_000_000) };
    (scenario.measure_from, scenario.measure_until) =
        (Duration::from_secs(600), Duration::from_secs(2400));
    scenario
}

/// Returns the tails of the seeds, the shortest first, in seconds.
fn tails(scenario: &Scenario) -> Vec<f64> {
    let tail = |seed| run(scenario, seed).unwrap().completion.p999;
    let mut tails: Vec<f64> = (1..=SEEDS).map(tail).collect();
    tails.sort_by(f64::total_cmp);
    tails
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

/// Returns how much longer a tail may be, as a share: noise, and known cases (docs/twin.md).
fn allowed(policy: &str, what: &str) -> f64 {
    match (policy, what) {
        // A platter in a second slot is bound to that drive, though another may be free sooner: 8
        // to 13 % longer in every seed.
        ("no-shuttles", "2 slots") => 0.2,
        _ => 0.05,
    }
}

#[test]
fn more_drives_or_slots_never_lengthen_the_tail() {
    let mut longer = Vec::new();
    for policy in POLICY_NAMES {
        let less = library(policy, 10, 1);
        // Where new platters wait, they take the second slot.
        let no_writes = Scenario { writes: Writes::None, ..less.clone() };
        let slots = Policy { customer_slots: 2, ..less.policy.clone() };
        let two_slots = Scenario { policy: slots, ..no_writes.clone() };
        let pairs =
            [("20 drives", less, library(policy, 20, 1)), ("2 slots", no_writes, two_slots)];
        for (what, less, more) in pairs {
            let [less, more] = [less, more].map(|scenario| tails(&scenario));
            if median(&more) > median(&less) * (1.0 + allowed(policy, what)) {
                longer.push(format!("{policy}, {what}: {more:.0?} s instead of {less:.0?} s"));
            }
        }
    }
    assert!(longer.is_empty(), "{longer:#?}");
}
