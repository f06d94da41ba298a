//! Requests by name give the same as the types.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fulgurite_glass_core::control::Policy;
use serde_json::json;
use toml::{Table, Value};

use super::{LogSink, RunRequest, ScenarioError, Workers, metrics, scenario, scenario_with, sweep};
use crate::engine::run;
use crate::queue::{Queue, Scenario};
use crate::report::Facts;
use crate::runner::Serial;
use crate::scenario::SystemName;
use crate::sweep::{Sweep, SweepAxis};

const QUEUE: &str =
    "system = \"queue\"\nservers = 2\nload = 0.5\nservice = \"1s\"\ncustomers = 500\n";
const ALL: [SystemName; 5] =
    [SystemName::Glass, SystemName::Queue, SystemName::Rack, SystemName::Tome, SystemName::Geo];

fn request(seeds: usize, is_recorded: bool, done: &(dyn Fn() + Sync)) -> RunRequest<'_> {
    let workers = Workers { runner: &Serial, done };
    RunRequest { first_seed: 7, seeds, is_recorded, workers }
}

#[test]
fn runs_by_name_equal_typed_runs() {
    let count = AtomicUsize::new(0);
    let done = || {
        count.fetch_add(1, Ordering::Relaxed);
    };
    let read = scenario(QUEUE).unwrap();
    let runs = read.run(&request(3, false, &done), None).unwrap();
    assert_eq!(count.into_inner(), 3);
    assert_eq!(runs.seeds, [7, 8, 9]);
    let typed: Scenario = toml::from_str(QUEUE).unwrap();
    let results = [7, 8, 9].map(|seed| run::<Queue>(&typed, seed).unwrap());
    assert_eq!(runs.hashes, results.each_ref().map(|of| of.hash));
    assert_eq!(runs.results, results.each_ref().map(|of| json!(of)));
    let events = runs.numbers.iter().find(|number| number.name == "events").unwrap();
    assert_eq!(events.values, [1000.0, 1000.0, 1000.0]);
    assert!(runs.report(&[], &Facts::default()).is_none(), "nothing was recorded");
    let again = scenario(&read.to_toml().unwrap()).unwrap();
    assert_eq!(
        format!("{again:?}"),
        format!("{read:?}"),
        "a written scenario parses to the same one"
    );
}

#[test]
fn recorded_run_has_page_and_timelines() {
    let runs = scenario(QUEUE).unwrap().run(&request(2, true, &|| ()), None).unwrap();
    let (page, json) = runs.report(&[], &Facts::default()).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    let lengths = ["runs", "courses"].map(|part| json[part].as_array().unwrap().len());
    assert_eq!(lengths, [2, 2]);
    assert_eq!(json["scenario"]["customers"], 500);
}

#[test]
fn syntax_and_value_errors_are_distinct() {
    let syntax = scenario(&format!("{QUEUE}color = 1\n"));
    assert!(matches!(syntax, Err(ScenarioError::Syntax(_))), "{syntax:?}");
    let value = scenario(&QUEUE.replace("0.5", "1.5")).unwrap_err();
    assert!(matches!(value, ScenarioError::Value(_)) && value.to_string().starts_with("load"));
    let table: Table = toml::from_str(QUEUE).unwrap();
    let set = Table::from_iter([("load".to_owned(), Value::Float(2.0))]);
    let refused = scenario_with(SystemName::Queue, table, &set).unwrap_err();
    assert!(refused.starts_with("load"), "{refused}");
}

/// A sink whose contents can be read while a run writes to it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A sink that fails after this many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn log_covers_the_first_seed_completely_or_fails() {
    let text = toml::to_string(&crate::glass::tests::scenario(Policy::silica())).unwrap();
    let library = scenario(&text).unwrap();
    assert!(library.has_log());
    assert!(!scenario(QUEUE).unwrap().has_log());
    let log_of = |seeds| {
        let shared = Shared::default();
        let sink: LogSink = Box::new(shared.clone());
        library.run(&request(seeds, false, &|| ()), Some(sink)).unwrap();
        std::mem::take(&mut *shared.0.lock().unwrap())
    };
    let (one, two) = (log_of(1), log_of(2));
    assert_eq!(one, two, "other seeds have no log");
    let last = String::from_utf8(one).unwrap();
    assert!(last.trim_end().lines().last().unwrap().contains("\"end\""), "the log is complete");
    let sink: LogSink = Box::new(Full(last.len() / 2));
    let failed = library.run(&request(1, false, &|| ()), Some(sink)).unwrap_err();
    assert!(matches!(failed, super::RunError::Log(_)), "{failed:?}");
}

#[test]
fn sweep_by_name_equals_typed_sweep() {
    let table: Table = toml::from_str(QUEUE).unwrap();
    let values = vec![Value::Integer(1), Value::Integer(4)];
    let over = vec![SweepAxis { field: "servers".to_owned(), values }];
    let names = metrics(SystemName::Queue, &[]).unwrap();
    let by_name = sweep(SystemName::Queue, &table, &Table::new(), over.clone()).unwrap();
    let workers = Workers { runner: &Serial, done: &|| () };
    let result = by_name.run(&names, &[1, 2], workers).unwrap();
    let typed = Sweep::<Queue>::new(&table, &Table::new(), over).unwrap();
    let jobs = typed.jobs(&[1, 2]);
    let runs: Vec<_> =
        jobs.iter().map(|job| run::<Queue>(&job.scenario, job.seed).unwrap()).collect();
    assert_eq!(result, typed.result(&names, &[1, 2], &runs).unwrap());
    assert_eq!(by_name.labels(), [["1"], ["4"]]);
    assert!(by_name.first_to_toml().unwrap().contains("servers = 1"));
}

#[test]
fn systems_have_metrics_and_reject_unknown_ones() {
    for system in ALL {
        assert!(!metrics(system, &[]).unwrap().is_empty(), "{system:?}");
        let unknown = metrics(system, &["no.such".to_owned()]).unwrap_err();
        assert!(unknown.starts_with("no metric no.such"), "{unknown}");
    }
}
