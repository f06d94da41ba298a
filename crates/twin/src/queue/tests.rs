//! The engine against what is known of a queue.

use fulgurite_units::{Duration, Instant};

use super::{Queue, Scenario, Seen, Waits};
use crate::engine::{Observer, run, run_arrivals, run_observed};

const SECOND: Duration = Duration::from_secs(1);

fn queue(servers: u32, load: f64, customers: u64) -> Scenario {
    Scenario { servers, load, service: SECOND, customers }
}

/// Bounds are three times what means over so many customers deviate by (a check of its own found
/// 0.7 to 2 %).
#[test]
fn waits_are_those_of_theory() {
    const SEEDS: u64 = 8;
    for (servers, load, service) in [(1, 0.5, 1), (2, 0.6, 1), (3, 0.7, 60)] {
        let service = Duration::from_secs(service);
        let scenario = Scenario { service, ..queue(servers, load, 100_000) };
        let all: Vec<_> = (1..=SEEDS).map(|seed| run::<Queue>(&scenario, seed).unwrap()).collect();
        let theory = all[0].theory;
        let check = |of: &dyn Fn(&Waits) -> f64, expected: f64, bound: f64| {
            let mean = all.iter().map(of).sum::<f64>() / SEEDS as f64;
            let off = (mean / expected - 1.0).abs();
            assert!(off < bound, "{servers} servers, load {load}: {mean} for {expected}");
        };
        check(&|waits| waits.wait.mean, theory.mean, 0.06);
        check(&|waits| waits.wait.p99, theory.p99, 0.06);
        check(&|waits| waits.busy, load, 0.005);
        for waits in &all {
            assert_eq!((waits.wait.count, waits.events), (100_000, 200_000), "each comes and goes");
        }
    }
    // One server at half its load: half of all wait, and then for two seconds.
    let theory = queue(1, 0.5, 1).theory();
    assert!((theory.mean - 1.0).abs() < 1e-9);
    assert!((theory.p99 - 50.0_f64.ln() * 2.0).abs() < 1e-9);
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_another() {
    let [first, again, other] = [1, 1, 2].map(|seed| run::<Queue>(&queue(3, 0.8, 1000), seed));
    let [first, again, other] = [first.unwrap(), again.unwrap(), other.unwrap()];
    assert_eq!(first, again);
    assert_ne!(first.hash, other.hash);
}

/// Counts who is there, and goes when it has seen so many.
struct Counter {
    there: usize,
    most: usize,
    seen: u64,
    enough: u64,
}

impl Observer<Queue> for Counter {
    fn see(&mut self, _: Instant, seen: Seen) {
        match seen {
            Seen::Came => (self.there, self.seen) = (self.there + 1, self.seen + 1),
            Seen::Begun { .. } => {}
            Seen::Gone => self.there -= 1,
        }
        self.most = self.most.max(self.there);
    }

    fn has_enough(&self) -> bool {
        self.seen >= self.enough
    }
}

#[test]
fn whoever_watches_sees_all_and_may_end_the_run() {
    let scenario = queue(2, 0.7, 500);
    let plain = run::<Queue>(&scenario, 4).unwrap();
    let mut pair =
        [u64::MAX, 100].map(|enough| Counter { there: 0, most: 0, seen: 0, enough }).into_iter();
    let mut watching = (pair.next(), Some(pair.next().unwrap()));
    let cut = run_observed::<Queue, _>(&scenario, 4, &mut watching).unwrap();
    let (all, first) = (watching.0.unwrap(), watching.1.unwrap());
    assert_eq!((all.seen, first.seen), (100, 100), "either may end it");
    assert!(cut.makespan < plain.makespan);
    let mut all = Counter { enough: u64::MAX, seen: 0, there: 0, most: 0 };
    assert_eq!(run_observed::<Queue, _>(&scenario, 4, &mut all).unwrap(), plain);
    assert_eq!((all.seen, all.there), (500, 0));
    assert!(all.most as u64 <= plain.queue_max + 2);
}

#[test]
fn arrivals_may_be_handed_in_and_go_behind_what_happens_then() {
    // Both come at once; the second waits for as long as the first takes.
    let two = [Instant::ZERO, Instant::ZERO].into_iter();
    let waits =
        run_arrivals::<Queue, _>(&queue(1, 0.5, 7), 9, two, &mut crate::engine::Silent).unwrap();
    assert_eq!((waits.wait.count, waits.queue_max), (2, 1));
    assert!(waits.wait.max > 0.0 && waits.wait.max < waits.makespan);
    assert!((waits.busy - 1.0).abs() < 1e-9);
}

#[test]
fn what_is_no_queue_is_refused() {
    let refused = |scenario: Scenario, named: &str| {
        let error = run::<Queue>(&scenario, 1).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
    };
    refused(queue(0, 0.5, 1), "servers");
    refused(queue(1, 1.0, 1), "load");
    refused(queue(1, f64::NAN, 1), "load");
    refused(queue(1, 0.5, 0), "customers");
    refused(Scenario { service: Duration::ZERO, ..queue(1, 0.5, 1) }, "service");
}
