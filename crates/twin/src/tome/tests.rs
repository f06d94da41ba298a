//! Sets of tomes against closed forms, and the paper's files.

use std::fs;
use std::path::Path;

use expect_test::expect;
use fulgurite_units::{ByteCount, Duration, settings};
use toml::{Table, Value};

use super::{Code, Ingest, Rebuild, RunResult, Scenario, SetModel, TokenPriority, TomeSet};
use crate::engine::{run, run_observed};
use crate::experiment::{Job, JobResult, JobRunner, PaperSystem, SourceFile, Suite, Verdict};
use crate::metrics::metric_names;
use crate::presentation::ReportedSystem;
use crate::report::{Facts, run_page};
use crate::scenario::{Head, SystemName, with_overrides};

const HOUR: u64 = 3_600;

fn near(ours: f64, expected: f64, within: f64) {
    assert!((ours / expected - 1.0).abs() < within, "{ours} for {expected}");
}

fn analytic() -> Scenario {
    Scenario { model: SetModel::Analytic, ..Scenario::default() }
}

fn writing(clients: u32, session: u64, total: Option<u64>) -> Scenario {
    let total = total.map(ByteCount::new);
    let first = TokenPriority::Protection;
    let ingest = Ingest { clients, session: ByteCount::new(session), total, first };
    Scenario { ingest: Some(ingest), until: Duration::from_secs(48 * HOUR), ..analytic() }
}

/// Returns a set in which a disk fails at the beginning, and nothing else happens.
fn failing(rebuild: Rebuild) -> Scenario {
    let until = Duration::from_secs(4_000 * HOUR);
    Scenario { one_fails: true, rebuild, until, ..analytic() }
}

#[test]
fn session_spins_up_each_tome_once_two_at_a_time() {
    let scenario = writing(1, 1_000_000_000, Some(1_000_000_000));
    let one = run::<TomeSet>(&scenario, 1).unwrap();
    // One ingests it and makes parity, and each of three applies it: n - m + 1 disks.
    assert_eq!((one.spinning_max, one.spin_ups), (2, 4));
    assert_eq!((one.acknowledged, one.protected), (1_000_000_000, 1_000_000_000));
    let rates = scenario.rates;
    near(one.acknowledged_at, 8.0 + 1e3 / rates.ingest, 1e-9);
    let protection = 1e3 / rates.segment + 3.0 * (8.0 + 1e3 / rates.fold + 3.0);
    near(one.protected_at - one.acknowledged_at, protection, 1e-9);
    near(one.protection.mean, protection, 1e-9);
    // Between two parity tomes the next disk spins up after the last one has spun down.
    let extra = scenario.hardware.active_w() - scenario.hardware.asleep_w;
    let alone = one.protected_at + 3.0;
    let helped = 3.0 * (8.0 + 1e3 / rates.fold + 3.0);
    near(one.spinning_energy, extra * (alone + helped), 1e-9);
}

#[test]
fn write_with_two_parity_tomes_matches_table_5() {
    let scenario = Scenario {
        group: Code::new(3, 2),
        spin_up: Duration::ZERO,
        limited_scrub: Duration::ZERO,
        ..writing(1, 100_000_000_000, Some(100_000_000_000))
    };
    let one = run::<TomeSet>(&scenario, 1).unwrap();
    near(1e5 / one.acknowledged_at, 3.66, 1e-6);
    near(1e5 / one.protected_at, 0.75, 1e-6);
}

#[test]
fn staggered_rebuild_writes_13_times_and_reads_12_times() {
    let scenario = failing(Rebuild::Staggered);
    let one = run::<TomeSet>(&scenario, 1).unwrap();
    assert_eq!((one.rebuild_writes, one.rebuild_reads), (13, 12));
    assert_eq!((one.spinning_max, one.spin_ups, one.groups_lost), (2, 14, 0));
    // The first pass is as fast as its source, the others as the target disk, which reads and
    // writes.
    let rates = scenario.rates;
    let passes = 1e6 / rates.source + 12.0 * 1e6 / (rates.target / 2.0) + 13.0 * 11.0;
    near(one.rebuild.mean, passes, 1e-9);
    let parallel = run::<TomeSet>(&failing(Rebuild::Parallel), 1).unwrap();
    assert_eq!((parallel.rebuild_writes, parallel.rebuild_reads), (1, 0));
    assert_eq!((parallel.spinning_max, parallel.spin_ups), (14, 14));
    near(parallel.rebuild.mean, 13.0 * 1e6 / rates.multiply + 11.0, 1e-9);
}

#[test]
fn spinning_disks_never_exceed_tokens_and_all_is_protected() {
    for first in [TokenPriority::Protection, TokenPriority::Clients] {
        for (clients, seed) in [(1, 1), (20, 2), (50, 3), (200, 4)] {
            let mut scenario = writing(clients, 5_000_000_000, None);
            scenario.ingest = scenario.ingest.map(|ingest| Ingest { first, ..ingest });
            scenario.failures_per_hour = 0.001;
            let one = run::<TomeSet>(&scenario, seed).unwrap();
            assert!(one.spinning_max <= 50, "{one:?}");
            assert!(clients < 50 || one.spinning > 49.0, "{one:?}");
            assert!(one.protected + one.unprotected_lost <= one.acknowledged);
            assert!(one.failures > 20, "{one:?}");
            assert_eq!(one, run::<TomeSet>(&scenario, seed).unwrap());
        }
    }
    let hash = |seed| {
        let scenario = Scenario { failures_per_hour: 0.001, ..writing(3, 5_000_000_000, None) };
        run::<TomeSet>(&scenario, seed).unwrap().hash
    };
    assert_ne!(hash(1), hash(2));
}

/// Clients first: tomes are filled before anything is protected, and the written data is at risk.
#[test]
fn token_priority_decides_how_much_is_unprotected() {
    let run_first = |first| {
        let mut scenario = writing(50, 10_000_000_000, Some(2_000_000_000_000));
        scenario.ingest = scenario.ingest.map(|ingest| Ingest { first, ..ingest });
        run::<TomeSet>(&scenario, 1).unwrap()
    };
    let [careful, quick] = [TokenPriority::Protection, TokenPriority::Clients].map(run_first);
    assert_eq!((careful.protected, quick.protected), (2_000_000_000_000, 2_000_000_000_000));
    assert!(quick.acknowledged_at < careful.acknowledged_at);
    assert!(quick.unprotected_max > careful.unprotected_max);
    near(quick.protected_at, careful.protected_at, 0.2);
}

/// All tomes fill, and then no client is served.
#[test]
fn full_set_accepts_no_more_writes() {
    let capacity = ByteCount::new(10_000_000_000);
    let scenario = Scenario {
        tomes: 32,
        spinning: 0.25,
        capacity,
        until: Duration::from_secs(400 * HOUR),
        ..writing(8, 700_000_000, None)
    };
    let one = run::<TomeSet>(&scenario, 1).unwrap();
    // Of 7.87 GB per tome, 11 sessions of 0.7 GB fit.
    assert_eq!(one.acknowledged, 32 * 11 * 700_000_000);
    assert_eq!(one.protected, one.acknowledged);
    assert!(one.acknowledged as f64 <= one.room);
}

/// A group with fewer members than it needs counts as a loss, and rebuilds restart.
#[test]
fn group_with_more_losses_than_parity_is_lost() {
    let scenario = Scenario {
        tomes: 16,
        spinning: 0.25,
        failures_per_hour: 0.01,
        until: Duration::from_secs(2_000 * HOUR),
        ..analytic()
    };
    let one = run::<TomeSet>(&scenario, 1).unwrap();
    assert!(one.groups_lost > 0 && one.restarts > 0, "{one:?}");
    let safe = run::<TomeSet>(&Scenario { failures_per_hour: 1e-6, ..scenario }, 1).unwrap();
    assert_eq!(safe.groups_lost, 0);
}

#[test]
fn invalid_set_is_rejected() {
    let refused = |scenario: Scenario, named: &str| {
        let error = run::<TomeSet>(&scenario, 1).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
    };
    let set = analytic();
    refused(Scenario { tomes: 15, ..set.clone() }, "tomes");
    refused(Scenario { spinning: 0.001, ..set.clone() }, "spinning");
    refused(Scenario { spinning: f64::NAN, ..set.clone() }, "spinning");
    refused(Scenario { spinning: 0.01, ..failing(Rebuild::Parallel) }, "spinning");
    refused(Scenario { filled: 2.0, ..set.clone() }, "filled");
    refused(Scenario { until: Duration::ZERO, ..set }, "capacity, until");
    refused(writing(0, 1, None), "ingest.clients");
    refused(writing(1, 800_000_000_000, None), "ingest.session");
    let driven = |scenario: Scenario| Scenario { model: SetModel::Driven, ..scenario };
    refused(
        driven(writing(1, 1_000_000_000, None)),
        "ingest.session is 953.7MiB, but must be from one",
    );
    refused(driven(writing(1, 1, None)), "ingest.session");
    refused(driven(failing(Rebuild::Parallel)), "rebuild");
    refused(driven(Scenario { filled: 0.5, ..analytic() }), "filled");
}

#[test]
fn omitted_fields_default_to_the_paper() {
    let text = "system = \"tome\"\ningest = { clients = 3, session = \"1GiB\" }";
    let table: Table = toml::from_str(text).unwrap();
    assert_eq!(settings::from_toml::<Head>(text).unwrap().system, SystemName::Tome);
    let set: Table = toml::from_str("'rates.fold' = 5.0\n'hardware.disk_w' = 9.0").unwrap();
    let changed_to = with_overrides::<Scenario>(table.clone(), &set).unwrap();
    near(changed_to.rates.fold, 5.0, 1e-12);
    near(changed_to.hardware.active_w(), 13.1, 1e-12);
    assert_eq!(changed_to.tokens(), 50);
    let wrong: Table = [("rates.folds".to_owned(), Value::Float(1.0))].into_iter().collect();
    assert!(with_overrides::<Scenario>(table, &wrong).unwrap_err().contains("unknown field"));
}

#[test]
fn run_is_recorded_and_drawn() {
    let scenario = Scenario { one_fails: true, ..writing(50, 10_000_000_000, None) };
    let timelines: Vec<_> = [1, 2]
        .map(|seed| {
            let mut recorder = TomeSet::recorder(&scenario, seed);
            run_observed::<TomeSet, _>(&scenario, seed, &mut recorder).unwrap();
            TomeSet::timeline(recorder)
        })
        .into();
    assert!(timelines[0].spinning.max.iter().all(|most| *most <= 50.0));
    let page = run_page::<TomeSet>(&scenario, &timelines, &[], &Facts::default());
    assert!(page.contains("Spinning disks") && page.contains("Tomes lost and not rebuilt"));
    let rows = TomeSet::rows(&scenario, &[]);
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    for name in TomeSet::HIGHLIGHTS {
        assert!(names.contains(name), "{name}");
    }
    let companions = TomeSet::companions(&scenario, &[&RunResult::default()]);
    assert_eq!(companions.work, Some((0.0, "protects")));
    let names = metric_names::<RunResult>();
    for name in TomeSet::DEFAULT_METRICS {
        assert!(names.contains(&(*name).to_owned()), "{name}");
    }
}

/// Runs one job after the other.
struct OneByOne;

impl JobRunner<TomeSet> for OneByOne {
    fn run(&self, jobs: &[Job<Scenario>], done: &mut dyn FnMut(usize, JobResult<RunResult>)) {
        for (index, job) in jobs.iter().enumerate() {
            let result = run::<TomeSet>(&job.scenario, job.seed);
            done(index, result.map_err(|error| error.to_string()));
        }
    }
}

/// Each statement of the paper holds, or its file says why not. Some simulate years of 1,000 tomes,
/// or write to 60 of them block by block.
#[test]
fn paper_statements_hold_or_explain_their_miss() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/pergamum");
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        files.push(SourceFile { name, text: fs::read_to_string(path).unwrap() });
    }
    let suite = Suite::<TomeSet>::read(&files).unwrap().with_seeds(1).unwrap();
    let report = suite.run(&OneByOne, &mut |_| ());
    let rows: Vec<_> = report.rows().collect();
    assert!(rows.iter().all(|row| row.details.problem.is_none()), "{rows:?}");
    let misses: Vec<&str> =
        rows.iter().filter(|row| row.verdict == Verdict::Miss).map(|row| row.id.as_str()).collect();
    expect![[r#"
        [
            "E2.terabyte",
            "E2.yearly",
            "E6.terabyte",
            "E6.protected",
            "E6.year",
            "E7.two",
            "E7.energy",
            "E8.hundred",
            "B3.archive",
            "B4.rebuilds",
            "B4.protected",
            "B6.spin_ups",
        ]
    "#]]
    .assert_debug_eq(&misses);
    for statement in &report.statements {
        assert!(!statement.misses() || statement.explanation.is_some(), "{}", statement.id);
        assert!(statement.figure_problem.is_none(), "{:?}", statement.figure_problem);
    }
}
