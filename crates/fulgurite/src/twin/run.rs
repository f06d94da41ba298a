//! `twin run`: a scenario, with one or more seeds.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use fulgurite_library::log::{End, LogError, LogWriter};
use fulgurite_library::{
    Event, Library, LibraryShape, MechanicsParameters, POLICY_NAMES, Policy, Throughput,
};
use fulgurite_twin::experiment::changed;
use fulgurite_twin::scenario::Writes;
use fulgurite_twin::{Observer, RunResult, Scenario, run_observed};
use fulgurite_units::{ByteCount, Instant, Ratio};
use serde_json::json;

use super::pool::{share, thread_count};
use super::{create, named_workload, percent, read_toml, wrong};
use crate::exit::{Coded, Exit};
use crate::output::{Output, grouped, seconds};
use crate::progress::count_bar;

/// Flags of `twin scenario`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ScenarioArgs {
    /// Reads: typical, iops or volume
    #[arg(value_name = "WORKLOAD", value_parser = ["typical", "iops", "volume"])]
    workload: String,
    /// How the library decides
    #[arg(long, value_name = "NAME", default_value = "fulgurite",
        value_parser = PossibleValuesParser::new(POLICY_NAMES))]
    policy: String,
}

/// Flags of `twin run`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML); `twin scenario` prints one
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// Seeds to run
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: NonZero<u64>,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value = "1")]
    first_seed: u64,
    /// Change a field of the scenario, by its dotted path; may be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = change)]
    set: Vec<(String, toml::Value)>,
    /// Runs at one time; by default as many as there are processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Write what the library of the first seed is told and decides
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// A change of a field: the value as in the file, or a text without its quotes.
fn change(text: &str) -> Result<(String, toml::Value), String> {
    let (field, value) = text.split_once('=').ok_or("it is not FIELD=VALUE")?;
    let (field, value) = (field.trim(), value.trim());
    if field.is_empty() || value.is_empty() {
        return Err("it is not FIELD=VALUE".to_owned());
    }
    let read = toml::from_str::<toml::Table>(&format!("value = {value}"));
    let read = read.ok().filter(|table| table.len() == 1);
    let read = read.and_then(|mut table| table.remove("value"));
    Ok((field.to_owned(), read.unwrap_or_else(|| toml::Value::String(value.to_owned()))))
}

/// Prints a scenario: the paper's minimum deployment with some workload.
pub(super) fn scenario(args: &ScenarioArgs, out: &Output) -> anyhow::Result<()> {
    let workload = named_workload(&args.workload).unwrap_or_default();
    let (platters, shard_size) = match args.workload.as_str() {
        "volume" => (8_000, 4_000_000_000),
        _ => (2_000, 1_000_000_000),
    };
    let scenario = Scenario {
        library: LibraryShape { spare_slots_per_shelf: 1, ..LibraryShape::mdu() },
        policy: Policy::named(&args.policy)?,
        mechanics: MechanicsParameters::PAPER,
        throughput: Throughput::PAPER,
        track_size: ByteCount::new(20_000_000),
        platters,
        shard_size: ByteCount::new(shard_size),
        unavailable: Ratio::ZERO,
        recovery_reads: 16,
        measure_from: workload.envelope.window_from().since(Instant::ZERO),
        measure_until: workload.envelope.window_until().since(Instant::ZERO),
        workload,
        writes: Writes::Saturated { platter_size: ByteCount::new(2_000_000_000_000) },
        faults: Vec::new(),
        battery: None,
    };
    out.json(&scenario)?;
    out.text(toml::to_string(&scenario)?.trim_end())
}

/// Runs `twin run`.
pub(super) fn run(args: &RunArgs, out: &Output) -> anyhow::Result<()> {
    let shown = format!("\"{}\"", args.scenario.display());
    let scenario = read_scenario(args, &shown)?;
    let count = usize::try_from(args.seeds.get())?;
    let bar = count_bar("seeds", args.seeds.get(), false);
    let mut results: Vec<Option<anyhow::Result<RunResult>>> = Vec::new();
    results.resize_with(count, || None);
    let work = |index: usize| {
        let log = args.log.as_deref().filter(|_| index == 0);
        simulate(&scenario, args.first_seed.saturating_add(index as u64), log)
    };
    share(thread_count(args.threads), count, work, &mut |index, result| {
        bar.inc(1);
        results[index] = Some(result);
    });
    bar.finish_and_clear();
    let results: Vec<RunResult> = results.into_iter().flatten().collect::<Result<_, _>>()?;
    for result in &results {
        out.json(&json!({ "type": "run", "run": result }))?;
    }
    let mut metrics = METRICS.to_vec();
    if scenario.battery.is_some() {
        metrics.extend(BATTERY_METRICS);
    }
    print(&results, &metrics, out)
}

fn read_scenario(args: &RunArgs, shown: &str) -> anyhow::Result<Scenario> {
    if args.set.is_empty() {
        let scenario: Scenario = read_toml(&args.scenario)?;
        scenario.validate().map_err(|error| wrong(shown, &error, Exit::Config))?;
        return Ok(scenario);
    }
    let mut set = toml::Table::new();
    for (field, value) in &args.set {
        if set.insert(field.clone(), value.clone()).is_some() {
            let message = format!("--set {field}: it is given twice");
            return Err(Coded::new(Exit::Usage, message).into());
        }
    }
    changed(read_toml(&args.scenario)?, &set).map_err(|problem| {
        let changes: Vec<String> =
            args.set.iter().map(|(field, value)| format!("{field}={value}")).collect();
        let message = format!("{shown} with --set {}: {problem}", changes.join(" --set "));
        Coded::new(Exit::Config, message).into()
    })
}

fn simulate(scenario: &Scenario, seed: u64, log: Option<&Path>) -> anyhow::Result<RunResult> {
    let wrong_scenario = |error| wrong("scenario", &error, Exit::Config);
    let Some(path) = log else {
        return fulgurite_twin::run(scenario, seed).map_err(wrong_scenario);
    };
    let library = Library::with_policy(&scenario.library, scenario.policy.clone())?;
    let mut logging = Logging { log: LogWriter::new(create(path)?, &library)?, failed: None };
    let result = run_observed(scenario, seed, &mut logging).map_err(wrong_scenario)?;
    match logging.failed {
        Some(error) => Err(error.into()),
        None => {
            logging.log.end(End::Stopped)?;
            Ok(result)
        }
    }
}

/// Writes the log of a simulated library.
struct Logging<W> {
    log: LogWriter<W>,
    failed: Option<LogError>,
}

impl<W: std::io::Write> Logging<W> {
    fn note(&mut self, written: Result<(), LogError>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

impl<W: std::io::Write> Observer for Logging<W> {
    fn event(&mut self, now: Instant, event: &Event) {
        let written = self.log.event(now, event);
        self.note(written);
    }

    fn output(&mut self, _: Instant, output: &fulgurite_library::Output) {
        let written = self.log.output(output);
        self.note(written);
    }

    fn stepped(&mut self, _: &Library) {}
}

/// A number of a run: its name, how it is shown, and where it is.
type Metric = (&'static str, fn(f64) -> String, fn(&RunResult) -> f64);

#[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
const METRICS: [Metric; 27] = [
    ("completion median", seconds, |r| r.completion.p50),
    ("completion p99", seconds, |r| r.completion.p99),
    ("completion p99.9", seconds, |r| r.completion.p999),
    ("completion max", seconds, |r| r.completion.max),
    ("drives read", percent, |r| r.drive_time.read),
    ("drives verify", percent, |r| r.drive_time.verify),
    ("drives switch", percent, |r| r.drive_time.switch),
    ("drives idle", percent, |r| r.drive_time.idle),
    ("travel mean", seconds, |r| r.travel.mean),
    ("travel p99.9", seconds, |r| r.travel.p999),
    ("congestion", percent, |r| r.congestion),
    ("give-ways", number, |r| r.give_ways as f64),
    ("fetches", number, |r| r.fetches as f64),
    ("steals", number, |r| r.steals as f64),
    ("platter operations", number, |r| r.platter_operations as f64),
    ("starts per operation", ratio, |r| per_operation(r, r.starts as f64)),
    ("meters per operation", ratio, |r| per_operation(r, r.meters)),
    ("crabs per operation", ratio, |r| per_operation(r, r.crabs as f64)),
    ("reads", number, |r| r.reads as f64),
    ("reads failed", number, |r| r.failed as f64),
    ("queue max", number, |r| r.queue_max as f64),
    ("eject bay max", number, |r| r.eject_bay_max as f64),
    ("age max", seconds, |r| r.age_max),
    ("unverified max", seconds, |r| r.unverified_age_max),
    ("verified TB", ratio, |r| r.verified_bytes as f64 / 1e12),
    ("makespan", seconds, |r| r.makespan),
    ("events", number, |r| r.events as f64),
];

/// Besides, where shuttles run on batteries.
#[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
const BATTERY_METRICS: [Metric; 3] = [
    ("charges", number, |r| r.charges as f64),
    ("batteries flat", number, |r| r.flat as f64),
    ("battery min", percent, |r| r.battery_min as f64 / 100.0),
];

#[expect(clippy::cast_precision_loss, reason = "a ratio is shown with two digits")]
fn per_operation(result: &RunResult, value: f64) -> f64 {
    value / (result.platter_operations.max(1) as f64)
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are whole, not negative, and float casts saturate"
)]
fn number(value: f64) -> String {
    grouped(value as u64)
}

/// Seeds that get a column of their own.
const COLUMNS_MAX: usize = 5;

fn print(results: &[RunResult], metrics: &[Metric], out: &Output) -> anyhow::Result<()> {
    let mut medians = serde_json::Map::new();
    let seeds: String =
        results.iter().take(COLUMNS_MAX).map(|r| format!("{:>12}", r.seed)).collect();
    out.text(format!("{:<22}{:>12}{:>12}{:>12}   seeds{seeds}", "", "median", "min", "max"))?;
    for &(name, show, of) in metrics {
        let mut values: Vec<f64> = results.iter().map(of).collect();
        let each: String =
            values.iter().take(COLUMNS_MAX).map(|value| format!("{:>12}", show(*value))).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (values[0], values[values.len() - 1]);
        let median = values[values.len() / 2];
        medians.insert(name.replace([' ', '-'], "_").replace('.', "_"), json!(median));
        let of_all = [median, min, max].map(|value| format!("{:>12}", show(value))).concat();
        out.text(format!("{name:<22}{of_all}        {each}"))?;
    }
    out.json(&json!({ "type": "medians", "seeds": results.len(), "medians": medians }))?;
    let hashes: Vec<String> = results.iter().map(|r| format!("{:016x}", r.hash)).collect();
    out.text(format!("{:<22}{}", "hash", hashes.join(" ")))
}
