//! Simulation of several sites: the real step and operations in a world that delays, reorders,
//! duplicates and loses messages, whose sites fail, lose their rows and are replaced, and whose
//! clients die at any moment. Everything follows from one seed.
//!
//! ```text
//! Plan (drawn from the seed) --> World: clients run operations over sites --> repair, all up
//!    --> every object is the same at all sites, nothing is open, no fragment orphaned or missing
//!    --> History: every answer was right (an order of all operations exists that explains them)
//! ```

mod history;
mod plan;
mod run;
mod site;
mod world;

use plan::Plan;
use run::run;

/// Returns the seeds to run: `FULGURITE_TEST_GEO_SEEDS=100000` at night, `FULGURITE_TEST_GEO_FROM`
/// to repeat one.
#[expect(clippy::disallowed_methods, reason = "the caller sets how long to search")]
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let from = number("FULGURITE_TEST_GEO_FROM").unwrap_or(0);
    from..from + number("FULGURITE_TEST_GEO_SEEDS").unwrap_or(500)
}

#[test]
fn answers_are_correct_and_everything_heals() {
    let mut total = run::Totals::default();
    for seed in seeds() {
        let totals = run(&Plan::draw(seed)).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        total.add(&totals);
    }
    println!("{total:?}");
    // A run without any failures proves nothing.
    let Some(often) = seeds().count().checked_div(10) else { return };
    if often >= 10 {
        assert!(total.acknowledged > often && total.lost_messages > often, "{total:?}");
        assert!(total.indeterminate > 0 && total.crashed > 0 && total.replaced > 0, "{total:?}");
    }
}

#[test]
fn same_seed_gives_same_run() {
    let twice = [7, 7].map(|seed| run(&Plan::draw(seed)).unwrap());
    assert_eq!(twice[0], twice[1]);
    assert_ne!(twice[0].hash, run(&Plan::draw(8)).unwrap().hash);
}

#[test]
fn uncontended_write_and_read_take_one_round() {
    for sites in [3, 5, 7] {
        let totals = run(&Plan::quiet(sites)).unwrap();
        assert!(totals.acknowledged >= 10, "{totals:?}");
        let operations = totals.acknowledged + totals.reads + totals.refused;
        assert_eq!(totals.rounds, operations, "{totals:?}");
    }
}

#[test]
fn planted_faults_are_detected() {
    for fault in run::Fault::ALL {
        // Only one seed in a thousand detects some of them.
        let detected = (0..5_000).any(|seed| {
            let plan = Plan::draw(seed).with(fault);
            std::panic::catch_unwind(|| run(&plan)).map_or(true, |result| result.is_err())
        });
        assert!(detected, "{fault:?} was never detected");
    }
}
