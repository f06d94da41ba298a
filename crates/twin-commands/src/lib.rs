//! `twin ...`: the digital twin of the glass library, its traces, and logs played again.
//!
//! Everything here is simulated, and a run is a function of its files and its seed. Threads only
//! share runs out; they change no result.

mod paper;
mod plan;
mod plan_geo;
mod plan_rack;
mod plan_table;
mod pool;
mod replay;
mod report;
mod run;
mod served;
mod state;
mod sweep;
mod tape;
mod trace;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::Context as _;
use fulgurite_terminal::exit::{Coded, Exit};
use fulgurite_terminal::output::Output;
use fulgurite_twin::Workload;
use fulgurite_units::{error_chain, settings};
use serde::de::DeserializeOwned;

/// `twin`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct TwinCommand {
    #[command(subcommand)]
    command: TwinAction,
}

/// What the twin is asked for.
#[derive(Clone, Debug, clap::Subcommand)]
enum TwinAction {
    /// Print a scenario to begin with, as a file
    Scenario(run::ScenarioArgs),
    /// Simulate a scenario
    Run(run::RunArgs),
    /// Simulate all combinations of the values of one or two fields of a scenario
    Sweep(sweep::SweepArgs),
    /// Play the log of a library again; exit code 1 if it decides otherwise now
    Replay(replay::ReplayArgs),
    /// Ask the twin what a served library was asked, and compare how long it took
    Served(served::ServedArgs),
    /// Make traces of reads
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Serve the same reads with a tape library
    Tape(tape::TapeArgs),
    /// Hold the twin against what the papers say
    Paper(paper::PaperArgs),
    /// Find the cheapest libraries for an ingest and reads
    Plan(plan::PlanArgs),
    /// Find the cheapest racks of cold disks for an ingest and reads
    PlanRack(plan_rack::PlanRackArgs),
    /// Find the cheapest sites, fragments and quorums for objects that must last and be had in time
    PlanGeo(plan_geo::PlanGeoArgs),
}

/// Runs a command of the twin.
pub fn twin(args: &TwinCommand, out: &Output) -> anyhow::Result<()> {
    match &args.command {
        TwinAction::Scenario(args) => run::scenario(args, out),
        TwinAction::Run(args) => run::run(args, out),
        TwinAction::Sweep(args) => sweep::sweep(args, out),
        TwinAction::Replay(args) => replay::replay(args, out),
        TwinAction::Served(args) => served::served(args, out),
        TwinAction::Trace(command) => trace::trace(command, out),
        TwinAction::Tape(args) => tape::tape(args, out),
        TwinAction::Paper(args) => paper::paper(args, out),
        TwinAction::Plan(args) => plan::run(args, out),
        TwinAction::PlanRack(args) => plan_rack::run(args, out),
        TwinAction::PlanGeo(args) => plan_geo::run(args, out),
    }
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("cannot open \"{}\"", path.display()))?;
    Ok(BufReader::new(file))
}

fn create(path: &Path) -> anyhow::Result<std::io::BufWriter<File>> {
    let file =
        File::create(path).with_context(|| format!("cannot create \"{}\"", path.display()))?;
    Ok(std::io::BufWriter::new(file))
}

/// Reads a text file.
fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read \"{}\"", path.display()))
}

/// Reads a TOML file; what is wrong with it is named with file, line and field.
fn read_toml<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    settings::from_toml(&read(path)?).map_err(|error| not_toml(path, &error))
}

/// The error of a file that is not what it should be.
fn not_toml(path: &Path, error: &settings::Error) -> anyhow::Error {
    let message = format!("\"{}\" is wrong: {}", path.display(), error.to_string().trim_end());
    Coded::new(Exit::Config, message).into()
}

/// A file, with the line of the field that a message begins with, where just one line of the file
/// sets that: `"a.toml": line 5`.
fn located(path: &Path, message: &str) -> String {
    let shown = format!("\"{}\"", path.display());
    let Some(word) = message.split_whitespace().next() else { return shown };
    let last = |path: &str| path.trim().rsplit('.').next().unwrap_or_default().to_owned();
    let field = last(word);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.split_once('=').is_some_and(|(key, _)| last(key) == field));
    match (lines.next(), lines.next()) {
        (Some((number, _)), None) => format!("{shown}: line {number}"),
        (_, _) => shown,
    }
}

/// An error in what a file or a flag says.
fn wrong(what: &str, error: &(dyn std::error::Error + 'static), exit: Exit) -> anyhow::Error {
    Coded::new(exit, format!("{what}: {}", error_chain(error))).into()
}

/// Workloads that have a name.
const WORKLOADS: &str = "typical, iops, volume, six-months";

fn named_workload(name: &str) -> Option<Workload> {
    match name {
        "typical" => Some(Workload::typical()),
        "iops" => Some(Workload::iops()),
        "volume" => Some(Workload::volume()),
        "six-months" => Some(Workload::six_months(1)),
        _ => None,
    }
}

/// A workload by name, or from a file.
fn workload(text: &str) -> anyhow::Result<Workload> {
    if let Some(workload) = named_workload(text) {
        return Ok(workload);
    }
    let path = Path::new(text);
    if !path.exists() {
        let message = format!("\"{text}\" is neither a file nor a workload: {WORKLOADS}");
        return Err(Coded::new(Exit::NotFound, message).into());
    }
    let workload: Workload = read_toml(path)?;
    workload.validate().map_err(|error| wrong(&format!("\"{text}\""), &error, Exit::Config))?;
    Ok(workload)
}

fn percent(value: f64) -> String {
    format!("{:.2} %", value * 100.0)
}
