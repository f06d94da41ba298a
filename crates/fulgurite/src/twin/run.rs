//! `twin run`: a scenario, with one or more seeds.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use fulgurite_library::log::{End, LogError, LogWriter};
use fulgurite_library::{
    Library, LibraryShape, MechanicsParameters, POLICY_NAMES, Policy, Throughput,
};
use fulgurite_twin::engine::Observer;
use fulgurite_twin::experiment::changed;
use fulgurite_twin::glass::course::{Course, Recorder};
use fulgurite_twin::glass::scenario::{Recovery, Writes};
use fulgurite_twin::glass::{Glass, Seen, run_observed};
use fulgurite_twin::report::{ResultRow, run_page};
use fulgurite_twin::{Constraints, RunResult, Scenario};
use fulgurite_units::{ByteCount, Instant, Ratio};
use serde_json::json;

use super::pool::{share, thread_count};
use super::report::{facts, write_report};
use super::{create, located, named_workload, percent, read_toml, wrong};
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
    /// Folder for run.html, what waits and what each machine does over time, and run.json
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// A change of a field: the value as in the file, or a text without its quotes.
pub(super) fn change(text: &str) -> Result<(String, toml::Value), String> {
    let (field, text) = text.split_once('=').ok_or("it is not FIELD=VALUE")?;
    let (field, text) = (field.trim(), text.trim());
    if field.is_empty() || text.is_empty() {
        return Err("it is not FIELD=VALUE".to_owned());
    }
    Ok((field.to_owned(), value(text)))
}

/// A value as in a file, or a text without its quotes.
pub(super) fn value(text: &str) -> toml::Value {
    let read = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let read = read.ok().filter(|table| table.len() == 1);
    let read = read.and_then(|mut table| table.remove("value"));
    read.unwrap_or_else(|| toml::Value::String(text.to_owned()))
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
        recovery: Recovery::Anywhere,
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
    let mut results: Vec<Option<anyhow::Result<Watched>>> = Vec::new();
    results.resize_with(count, || None);
    let work = |index: usize| {
        let log = args.log.as_deref().filter(|_| index == 0);
        let seed = args.first_seed.saturating_add(index as u64);
        simulate(&scenario, seed, log, args.report.is_some())
    };
    share(thread_count(args.threads), count, work, &mut |index, result| {
        bar.inc(1);
        results[index] = Some(result);
    });
    bar.finish_and_clear();
    let results: Vec<Watched> = results.into_iter().flatten().collect::<Result<_, _>>()?;
    let (results, courses): (Vec<RunResult>, Vec<Option<Course>>) = results.into_iter().unzip();
    let constraints = Constraints::of(&scenario);
    for result in &results {
        let held = constraints.findings(result);
        out.json(&json!({ "type": "run", "run": result, "constraints": held }))?;
    }
    let mut metrics = METRICS.to_vec();
    if scenario.battery.is_some() {
        metrics.extend(BATTERY_METRICS);
    }
    if results.iter().all(|result| result.verify_shortfall_bytes.is_some()) {
        metrics.push(SHORTFALL);
    }
    let rows = print(&results, &metrics, out)?;
    let summary = constraints.summary(&results);
    out.json(&json!({ "type": "constraints", "of": constraints, "summary": summary }))?;
    out.text(format!("{:<22}{}", "constraints", summary.line()))?;
    let Some(folder) = &args.report else { return Ok(()) };
    let courses: Vec<Course> = courses.into_iter().flatten().collect();
    let facts = facts(&args.scenario, &args.set, args.first_seed, args.seeds, &scenario)?;
    let json = json!({ "scenario": scenario, "runs": results, "courses": courses });
    write_report(folder, "run", &run_page(&scenario, &courses, &rows, &facts), &json)
}

fn read_scenario(args: &RunArgs, shown: &str) -> anyhow::Result<Scenario> {
    if args.set.is_empty() {
        let scenario: Scenario = read_toml(&args.scenario)?;
        scenario.validate().map_err(|error| {
            wrong(&located(&args.scenario, &error.to_string()), &error, Exit::Config)
        })?;
        return Ok(scenario);
    }
    changed(read_toml(&args.scenario)?, &changes(&args.set)?).map_err(|problem| {
        let changes: Vec<String> =
            args.set.iter().map(|(field, value)| format!("{field}={value}")).collect();
        let message = format!("{shown} with --set {}: {problem}", changes.join(" --set "));
        Coded::new(Exit::Config, message).into()
    })
}

/// The changes of `--set`, each field once.
pub(super) fn changes(set: &[(String, toml::Value)]) -> anyhow::Result<toml::Table> {
    let mut changes = toml::Table::new();
    for (field, value) in set {
        if changes.insert(field.clone(), value.clone()).is_some() {
            let message = format!("--set {field}: it is given twice");
            return Err(Coded::new(Exit::Usage, message).into());
        }
    }
    Ok(changes)
}

/// What a run measured, and its course if that was recorded.
type Watched = (RunResult, Option<Course>);

/// Runs one seed; with its log written, and its course recorded, if that is asked for.
fn simulate(
    scenario: &Scenario,
    seed: u64,
    log: Option<&Path>,
    report: bool,
) -> anyhow::Result<Watched> {
    let wrong_scenario = |error| wrong("scenario", &error, Exit::Config);
    if log.is_none() && !report {
        let result = fulgurite_twin::glass::run(scenario, seed).map_err(wrong_scenario)?;
        return Ok((result, None));
    }
    let logging = log.map(|path| Logging::new(scenario, path)).transpose()?;
    let mut watching = (logging, report.then(|| Recorder::new(scenario, seed)));
    let result = run_observed(scenario, seed, &mut watching).map_err(wrong_scenario)?;
    let (logging, recorder) = watching;
    match logging.map(|Logging { log, failed }| (log, failed)) {
        Some((_, Some(error))) => return Err(error.into()),
        Some((log, None)) => {
            log.end(End::Stopped)?;
        }
        None => {}
    }
    Ok((result, recorder.map(Recorder::finish)))
}

/// Writes the log of a simulated library.
struct Logging<W> {
    log: LogWriter<W>,
    failed: Option<LogError>,
}

impl Logging<std::io::BufWriter<std::fs::File>> {
    fn new(scenario: &Scenario, path: &Path) -> anyhow::Result<Self> {
        let library = Library::with_policy(&scenario.library, scenario.policy.clone())?;
        Ok(Self { log: LogWriter::new(create(path)?, &library)?, failed: None })
    }
}

impl<W: std::io::Write> Logging<W> {
    fn note(&mut self, written: Result<(), LogError>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

impl<W: std::io::Write> Observer<Glass> for Logging<W> {
    fn see(&mut self, now: Instant, seen: Seen<'_>) {
        match seen {
            Seen::Event(event) => {
                let written = self.log.event(now, event);
                self.note(written);
            }
            Seen::Output(output) => {
                let written = self.log.output(output);
                self.note(written);
            }
            Seen::Stepped(_) => {}
        }
    }
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

/// Besides, where new platters come at an interval and for two days.
#[expect(clippy::cast_precision_loss, reason = "a ratio is shown with two digits")]
const SHORTFALL: Metric =
    ("shortfall TB", ratio, |r| r.verify_shortfall_bytes.unwrap_or_default() as f64 / 1e12);

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

/// Prints all metrics, and hands on what it printed.
fn print(
    results: &[RunResult],
    metrics: &[Metric],
    out: &Output,
) -> anyhow::Result<Vec<ResultRow>> {
    let mut medians = serde_json::Map::new();
    let mut rows = Vec::new();
    let seeds: String =
        results.iter().take(COLUMNS_MAX).map(|r| format!("{:>12}", r.seed)).collect();
    out.text(format!("{:<22}{:>12}{:>12}{:>12}   seeds{seeds}", "", "median", "min", "max"))?;
    for &(name, show, of) in metrics {
        let mut values: Vec<f64> = results.iter().map(of).collect();
        let each: Vec<String> = values.iter().take(COLUMNS_MAX).map(|v| show(*v)).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (values[0], values[values.len() - 1]);
        let median = values[values.len() / 2];
        medians.insert(name.replace([' ', '-'], "_").replace('.', "_"), json!(median));
        let all = [median, min, max].map(show);
        let wide = |texts: &[String]| -> String {
            texts.iter().map(|text| format!("{text:>12}")).collect()
        };
        out.text(format!("{name:<22}{}        {}", wide(&all), wide(&each)))?;
        rows.push(ResultRow { name: name.to_owned(), all, each });
    }
    out.json(&json!({ "type": "medians", "seeds": results.len(), "medians": medians }))?;
    let hashes: Vec<String> = results.iter().map(|r| format!("{:016x}", r.hash)).collect();
    out.text(format!("{:<22}{}", "hash", hashes.join(" ")))?;
    Ok(rows)
}
