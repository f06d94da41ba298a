//! `twin run`: runs a scenario with one or more seeds.

use std::num::NonZero;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use fulgurite_glass_core::control::{
    LibraryShape, MechanicsParameters, POLICY_NAMES, Policy, Throughput,
};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, group_digits, seconds};
use fulgurite_terminal::progress::count_bar;
use fulgurite_twin::glass::scenario::{Recovery, SystemTag, Writes};
use fulgurite_twin::presentation::NumberFormat;
use fulgurite_twin::report::ResultRow;
use fulgurite_twin::systems::{
    self, AnyScenario, LogSink, RunError, RunNumber, RunRequest, Runs, ScenarioError, Workers,
};
use fulgurite_twin::{Scenario, Workload};
use fulgurite_units::{ByteCount, Instant, Ratio};
use serde_json::json;

use super::pool::{ThreadPool, thread_count};
use super::report::{facts, write_report};
use super::{create, invalid_input, percent, read, read_toml, toml_error, with_line};

/// Flags of `twin scenario`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ScenarioArgs {
    /// Read workload: typical, iops or volume
    #[arg(value_name = "WORKLOAD", value_parser = ["typical", "iops", "volume"])]
    workload: String,
    /// Scheduling policy of the library
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
    /// Number of seeds to run
    #[arg(long, value_name = "N", default_value = "1")]
    seeds: NonZero<u64>,
    /// First seed
    #[arg(long, value_name = "SEED", default_value = "1")]
    first_seed: u64,
    /// Set a field of the scenario, by its dotted path; may be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = change)]
    set: Vec<(String, toml::Value)>,
    /// Maximum number of concurrent runs; default: number of processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Write the events and decisions of the library in the run of the first seed
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Folder for run.html (queues and activity of each machine over time) and run.json
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// Parses FIELD=VALUE: the value as in the file, or a string without its quotes.
pub(super) fn change(text: &str) -> Result<(String, toml::Value), String> {
    let (field, text) = text.split_once('=').ok_or("expected FIELD=VALUE")?;
    let (field, text) = (field.trim(), text.trim());
    if field.is_empty() || text.is_empty() {
        return Err("expected FIELD=VALUE".to_owned());
    }
    Ok((field.to_owned(), value(text)))
}

/// Parses a value as in the file, or takes it as a string without its quotes.
pub(super) fn value(text: &str) -> toml::Value {
    let read = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let read = read.ok().filter(|table| table.len() == 1);
    let read = read.and_then(|mut table| table.remove("value"));
    read.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

/// Prints a scenario: the paper's minimum deployment with the workload named in `args`.
pub(super) fn scenario(args: &ScenarioArgs, out: &Output) -> anyhow::Result<()> {
    let workload = Workload::named(&args.workload).unwrap_or_default();
    let (platters, shard_size) = match args.workload.as_str() {
        "volume" => (8_000, 4_000_000_000),
        _ => (2_000, 1_000_000_000),
    };
    let scenario = Scenario {
        system: SystemTag::Glass,
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
        restores: None,
        battery: None,
    };
    out.json("scenario", &scenario)?;
    out.text(toml::to_string(&scenario)?.trim_end())
}

/// Runs `twin run`.
pub(super) fn run(args: &RunArgs, out: &Output) -> anyhow::Result<()> {
    let scenario = read_scenario(args)?;
    if args.log.is_some() && !scenario.has_log() {
        let message = "--log: only scenarios of glass have a log";
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let log = args.log.as_deref().map(create).transpose()?;
    let bar = count_bar("seeds", args.seeds.get(), false);
    let request = RunRequest {
        first_seed: args.first_seed,
        seeds: usize::try_from(args.seeds.get())?,
        is_recorded: args.report.is_some(),
        workers: Workers { runner: &ThreadPool(thread_count(args.threads)), done: &|| bar.inc(1) },
    };
    let log = log.map(|file| -> LogSink { Box::new(file) });
    let runs = scenario.run(&request, log).map_err(|error| match error {
        RunError::Scenario(error) => invalid_input("scenario", &error, Exit::Config),
        RunError::Log(error) => error.into(),
    })?;
    bar.finish_and_clear();
    for (run, findings) in runs.results.iter().zip(&runs.findings) {
        out.json("run", &json!({ "run": run, "constraints": findings }))?;
    }
    let rows = print(&runs, out)?;
    let (constraints, summary) = (&runs.constraints, &runs.summary);
    out.json("constraints", &json!({ "of": constraints, "summary": summary }))?;
    out.text(format!("{:<22}{}", "constraints", summary.line()))?;
    let Some(folder) = &args.report else { return Ok(()) };
    let text = scenario.to_toml()?;
    let facts = facts(&args.scenario, &args.set, args.first_seed, args.seeds, text);
    let (page, json) = runs.report(&rows, &facts).context("a recorded run has a report")?;
    write_report(folder, "run", &page, &json)
}

fn read_scenario(args: &RunArgs) -> anyhow::Result<Box<dyn AnyScenario>> {
    let path = &args.scenario;
    let text = read(path)?;
    if args.set.is_empty() {
        return systems::scenario(&text).map_err(|error| match error {
            ScenarioError::Syntax(error) => toml_error(path, &error),
            ScenarioError::Value(error) => {
                invalid_input(&with_line(path, &error.to_string()), &error, Exit::Config)
            }
        });
    }
    let system = systems::system_of(&text).map_err(|error| toml_error(path, &error))?;
    systems::scenario_with(system, read_toml(path)?, &changes(&args.set)?).map_err(|problem| {
        let changes: Vec<String> =
            args.set.iter().map(|(field, value)| format!("{field}={value}")).collect();
        let message =
            format!("\"{}\" with --set {}: {problem}", path.display(), changes.join(" --set "));
        ExitError::new(Exit::Config, message).into()
    })
}

/// Returns the changes of `--set`, each field once.
pub(super) fn changes(set: &[(String, toml::Value)]) -> anyhow::Result<toml::Table> {
    let mut changes = toml::Table::new();
    for (field, value) in set {
        if changes.insert(field.clone(), value.clone()).is_some() {
            let message = format!("--set {field}: the field is set twice");
            return Err(ExitError::new(Exit::Usage, message).into());
        }
    }
    Ok(changes)
}

/// Formats a number of a run.
fn show(format: NumberFormat, value: f64) -> String {
    match format {
        NumberFormat::Time => seconds(value),
        NumberFormat::Share => percent(value),
        NumberFormat::Count => number(value),
        NumberFormat::Decimal => ratio(value),
    }
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
    group_digits(value as u64)
}

/// Number of seeds that get a column of their own.
const COLUMNS_MAX: usize = 5;

/// Prints all metrics, and returns the printed rows.
fn print(runs: &Runs, out: &Output) -> anyhow::Result<Vec<ResultRow>> {
    let mut medians = serde_json::Map::new();
    let mut rows = Vec::new();
    let seeds: String =
        runs.seeds.iter().take(COLUMNS_MAX).map(|seed| format!("{seed:>12}")).collect();
    out.text(format!("{:<22}{:>12}{:>12}{:>12}   seeds{seeds}", "", "median", "min", "max"))?;
    for RunNumber { name, format, values } in &runs.numbers {
        let (format, mut values) = (*format, values.clone());
        let each: Vec<String> = values.iter().take(COLUMNS_MAX).map(|v| show(format, *v)).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (values[0], values[values.len() - 1]);
        let median = values[values.len() / 2];
        medians.insert(name.replace([' ', '-'], "_").replace('.', "_"), json!(median));
        let all = [median, min, max].map(|value| show(format, value));
        let wide = |texts: &[String]| -> String {
            texts.iter().map(|text| format!("{text:>12}")).collect()
        };
        out.text(format!("{name:<22}{}        {}", wide(&all), wide(&each)))?;
        rows.push(ResultRow { name: (*name).to_owned(), all, each });
    }
    out.json("medians", &json!({ "seeds": runs.seeds.len(), "medians": medians }))?;
    let hashes: Vec<String> = runs.hashes.iter().map(|hash| format!("{hash:016x}")).collect();
    out.text(format!("{:<22}{}", "hash", hashes.join(" ")))?;
    Ok(rows)
}
