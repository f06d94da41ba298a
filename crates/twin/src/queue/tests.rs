//! The engine against queueing theory.

use expect_test::{Expect, expect};
use fulgurite_units::{Duration, Instant, settings};
use toml::{Table, Value};

use super::{Observation, Queue, QueueResult, Scenario, SystemTag};
use crate::engine::{Observer, run, run_arrivals, run_observed};
use crate::experiment::{Job, JobResult, JobRunner, SourceFile, Suite, Verdict};
use crate::presentation::ReportedSystem;
use crate::report::{Facts, Head, html, run_page, sweep_page};
use crate::scenario::{Head as FileHead, SystemName, with_overrides};
use crate::sweep::{Sweep, SweepAxis};

const SECOND: Duration = Duration::from_secs(1);

fn queue(servers: u32, load: f64, customers: u64) -> Scenario {
    Scenario { system: SystemTag::Queue, servers, load, service: SECOND, customers }
}

/// Bounds are three times the deviation of means over this many customers (a separate check found
/// 0.7 to 2 %).
#[test]
fn waits_match_theory() {
    const SEEDS: u64 = 8;
    for (servers, load, service) in [(1, 0.5, 1), (2, 0.6, 1), (3, 0.7, 60)] {
        let service = Duration::from_secs(service);
        let scenario = Scenario { service, ..queue(servers, load, 100_000) };
        let all: Vec<_> = (1..=SEEDS).map(|seed| run::<Queue>(&scenario, seed).unwrap()).collect();
        let theory = all[0].theory;
        let check = |of: &dyn Fn(&QueueResult) -> f64, expected: f64, bound: f64| {
            let mean = all.iter().map(of).sum::<f64>() / SEEDS as f64;
            let off = (mean / expected - 1.0).abs();
            assert!(off < bound, "{servers} servers, load {load}: {mean} for {expected}");
        };
        check(&|waits| waits.wait.mean, theory.mean, 0.06);
        check(&|waits| waits.wait.p99, theory.p99, 0.06);
        check(&|waits| waits.busy, load, 0.005);
        for waits in &all {
            assert_eq!(
                (waits.wait.count, waits.events),
                (100_000, 200_000),
                "each customer arrives and leaves"
            );
        }
    }
    // One server at half its load: half of the customers wait, for two seconds on average.
    let theory = queue(1, 0.5, 1).theory();
    assert!((theory.mean - 1.0).abs() < 1e-9);
    assert!((theory.p99 - 50.0_f64.ln() * 2.0).abs() < 1e-9);
}

#[test]
fn seed_determines_the_run() {
    let [first, again, other] = [1, 1, 2].map(|seed| run::<Queue>(&queue(3, 0.8, 1000), seed));
    let [first, again, other] = [first.unwrap(), again.unwrap(), other.unwrap()];
    assert_eq!(first, again);
    assert_ne!(first.hash, other.hash);
}

/// Counts the customers present, and ends the run after this many.
struct Counter {
    there: usize,
    most: usize,
    seen: u64,
    enough: u64,
}

impl Observer<Queue> for Counter {
    fn observe(&mut self, _: Instant, seen: Observation) {
        match seen {
            Observation::Arrived => (self.there, self.seen) = (self.there + 1, self.seen + 1),
            Observation::ServiceStarted { .. } => {}
            Observation::Departed => self.there -= 1,
        }
        self.most = self.most.max(self.there);
    }

    fn is_satisfied(&self) -> bool {
        self.seen >= self.enough
    }
}

#[test]
fn observer_sees_every_event_and_may_end_the_run() {
    let scenario = queue(2, 0.7, 500);
    let plain = run::<Queue>(&scenario, 4).unwrap();
    let mut pair =
        [u64::MAX, 100].map(|enough| Counter { there: 0, most: 0, seen: 0, enough }).into_iter();
    let mut watching = (pair.next(), Some(pair.next().unwrap()));
    let cut = run_observed::<Queue, _>(&scenario, 4, &mut watching).unwrap();
    let (all, first) = (watching.0.unwrap(), watching.1.unwrap());
    assert_eq!((all.seen, first.seen), (100, 100), "either observer may end the run");
    assert!(cut.makespan < plain.makespan);
    let mut all = Counter { enough: u64::MAX, seen: 0, there: 0, most: 0 };
    assert_eq!(run_observed::<Queue, _>(&scenario, 4, &mut all).unwrap(), plain);
    assert_eq!((all.seen, all.there), (500, 0));
    assert!(all.most as u64 <= plain.queue_max + 2);
}

#[test]
fn given_arrivals_follow_pending_events_of_equal_time() {
    // Both come at once; the second waits for as long as the first takes.
    let two = [Instant::ZERO, Instant::ZERO].into_iter();
    let waits =
        run_arrivals::<Queue, _>(&queue(1, 0.5, 7), 9, two, &mut crate::engine::NullObserver)
            .unwrap();
    assert_eq!((waits.wait.count, waits.queue_max), (2, 1));
    assert!(waits.wait.max > 0.0 && waits.wait.max < waits.makespan);
    assert!((waits.busy - 1.0).abs() < 1e-9);
}

#[test]
fn invalid_queue_is_rejected() {
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

const FILE: &str =
    "system = \"queue\"\nservers = 2\nload = 0.5\nservice = \"1s\"\ncustomers = 400\n";

#[test]
fn file_names_its_system() {
    let system = |text: &str| settings::from_toml::<FileHead>(text).map(|head| head.system);
    assert_eq!(system(FILE), Ok(SystemName::Queue));
    assert_eq!(system("platters = 3"), Ok(SystemName::Glass), "glass is the default");
    expect![[r#"
        TOML parse error at line 1, column 10
          |
        1 | system = "pelican"
          |          ^^^^^^^^^
        unknown variant `pelican`, expected one of `glass`, `rack`, `tome`, `geo`, `queue`
    "#]]
    .assert_eq(&system("system = \"pelican\"").unwrap_err().to_string());
    let file: Scenario = settings::from_toml(FILE).unwrap();
    assert_eq!(file, queue(2, 0.5, 400));
    assert!(settings::from_toml::<Scenario>(&FILE.replace("queue", "glass")).is_err());
    let table: Table = toml::from_str(FILE).unwrap();
    let set = |field: &str, value: Value| {
        with_overrides::<Scenario>(table.clone(), &Table::from_iter([(field.to_owned(), value)]))
    };
    assert_eq!(set("servers", 3.into()), Ok(queue(3, 0.5, 400)));
    let refused = |field, value, expect: Expect| expect.assert_eq(&set(field, value).unwrap_err());
    refused("load", 1.5.into(), expect!["load is 1.5, but must be above 0 and below 1"]);
    refused(
        "policy",
        "silica".into(),
        expect![
            "unknown field `policy`, expected one of `system`, `servers`, `load`, `service`, \
             `customers`"
        ],
    );
}

#[test]
fn queue_is_swept_and_reported_like_any_system() {
    let table: Table = toml::from_str(FILE).unwrap();
    let over = |field: &str, values: Vec<Value>| SweepAxis { field: field.to_owned(), values };
    let fields =
        vec![over("servers", vec![1.into(), 8.into()]), over("load", vec![0.3.into(), 0.9.into()])];
    let sweep = Sweep::<Queue>::new(&table, &Table::new(), fields).unwrap();
    let run_job = |job: &Job<Scenario>| run::<Queue>(&job.scenario, job.seed).unwrap();
    let results: Vec<QueueResult> = sweep.jobs(&[1, 2]).iter().map(run_job).collect();
    let names: Vec<String> = Queue::DEFAULT_METRICS.iter().map(|name| (*name).to_owned()).collect();
    let result = sweep.result(&names, &[1, 2], &results).unwrap();
    let mean = |cell: usize| result.metrics[0].cells[cell].median;
    assert!(mean(0) < mean(1) && mean(2) < mean(3), "a heavier load waits longer");
    assert!(mean(3) < mean(1), "one queue for eight servers has shorter waits");
    let page = sweep_page(&result, &Facts::default());
    assert!(page.contains("servers") && page.contains("<svg"));
    let wrong = vec![over("load", vec![0.5.into(), 1.0.into()])];
    let refused = Sweep::<Queue>::new(&table, &Table::new(), wrong).unwrap_err();
    assert_eq!(refused.at, "load=1.0");

    let scenario = queue(2, 0.7, 500);
    let timelines: Vec<_> = [1, 2]
        .map(|seed| {
            let mut recorder = Queue::recorder(&scenario, seed);
            let watched = run_observed::<Queue, _>(&scenario, seed, &mut recorder).unwrap();
            assert_eq!(watched, run::<Queue>(&scenario, seed).unwrap());
            let timeline = Queue::timeline(recorder);
            assert!((timeline.end_s - watched.makespan).abs() < 1e-9);
            let most = timeline.waiting.max.iter().copied().fold(0.0, f64::max);
            assert!((most - watched.queue_max as f64).abs() < 1.5, "{most}");
            let busy = timeline.served.mean.iter().sum::<f64>();
            assert!(busy > 0.0 && timeline.served.max.iter().all(|served| *served <= 2.0));
            timeline
        })
        .into();
    let page = run_page::<Queue>(&scenario, &timelines, &[], &Facts::default());
    for title in ["Customers waiting", "Customers being served"] {
        assert!(page.contains(&format!("<b>{title}</b>")), "{title}");
    }
    assert!(!page.contains("NaN"));
}

/// A statement from Erlang's formula, written like one of a paper.
const STATEMENT: &str = r#"
id = "E1"
title = "Erlang"
setting = "M/M/2"
section = "1"
paper = "mean waits"
seeds = 5

[[run]]
name = "queue"
base = "two"
sweep = { of = "load", values = [0.5, 0.7] }

[[check]]
id = "E1.mean"
title = "the mean wait"
metric = "wait.mean"
unit = "s"
measure = { value = "queue@0.5" }
band = [0.28, 0.39]
expected = 0.333
fitted = false

[[check]]
id = "E1.theory"
title = "over theory"
metric = "wait_over_theory"
unit = "1"
measure = { largest = "queue" }
band = [0.8, 1.2]
fitted = false

[[check]]
id = "E1.busy"
title = "busier than it is"
metric = "busy"
unit = "%"
measure = { value = "queue@0.7" }
band = [80, 90]
fitted = false
"#;

struct Here;

impl JobRunner<Queue> for Here {
    fn run(&self, jobs: &[Job<Scenario>], done: &mut dyn FnMut(usize, JobResult<QueueResult>)) {
        for (index, job) in jobs.iter().enumerate() {
            done(index, run::<Queue>(&job.scenario, job.seed).map_err(|error| error.to_string()));
        }
    }
}

#[test]
fn queue_is_compared_with_statements_like_any_system() {
    let file = |name: &str, text: String| SourceFile { name: name.to_owned(), text };
    let base = "name = \"two\"\nsummary = \"s\"\n\n[scenario]\n".to_owned() + FILE;
    let base = base.replace("customers = 400", "customers = 40000");
    let files = |base: &str, statement: &str| {
        [file("base-two.toml", base.to_owned()), file("E1.toml", statement.to_owned())]
    };
    let suite = Suite::<Queue>::read(&files(&base, STATEMENT)).unwrap();
    assert_eq!(suite.job_count(), 10);
    let report = suite.run(&Here, &mut |_| ());
    let verdicts: Vec<_> = report.rows().map(|row| (row.id.as_str(), row.verdict)).collect();
    let [hit, miss] = [Verdict::Hit, Verdict::Miss];
    assert_eq!(verdicts, [("E1.mean", hit), ("E1.theory", hit), ("E1.busy", miss)]);
    let row = serde_json::to_value(report.rows().next().unwrap()).unwrap();
    assert!(row["details"]["constraints"][0]["wait_s"].as_f64().unwrap() > 0.2, "{row}");
    let head = Head { paper: "Erlang 1917".to_owned(), ..Head::default() };
    assert!(html(&report, &head).contains("Erlang 1917, statement by statement."));

    let refused = |base: &str, statement: &str, expect: Expect| {
        let error = Suite::<Queue>::read(&files(base, statement)).unwrap_err().to_string();
        expect.assert_eq(error.split(", expected").next().unwrap());
    };
    refused(
        &base,
        &STATEMENT.replace("wait.mean", "completion.mean"),
        expect!["E1.toml:14: check E1.mean: metric: there is no metric completion.mean"],
    );
    refused(
        &base.replace("\"queue\"", "\"glass\""),
        STATEMENT,
        expect!["base-two.toml:1: scenario: unknown variant `glass`"],
    );
}
