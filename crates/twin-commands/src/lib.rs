//! `twin ...`: the digital twin of the glass library, its traces, and the replay of logs.
//!
//! Everything here is simulated, and a run is a function of its files and its seed. Threads only
//! divide the runs among themselves; they change no result.

mod paper;
mod plan;
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
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use fulgurite_twin::Workload;
use fulgurite_units::{error_chain, settings};
use serde::de::DeserializeOwned;

/// `twin`, with one of its subcommands.
#[derive(Clone, Debug, clap::Args)]
pub struct TwinCommand {
    #[command(subcommand)]
    command: TwinAction,
}

/// Subcommands of `twin`.
#[derive(Clone, Debug, clap::Subcommand)]
enum TwinAction {
    /// Print an example scenario to start from
    Scenario(run::ScenarioArgs),
    /// Simulate a scenario
    Run(run::RunArgs),
    /// Simulate all combinations of the values of one or two fields of a scenario
    Sweep(sweep::SweepArgs),
    /// Replay the log of a library; exit code 1 if it decides differently now
    Replay(replay::ReplayArgs),
    /// Run the requests of a real library's log in the twin, and compare latencies
    Served(served::ServedArgs),
    /// Generate or import traces of reads
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Simulate the same reads on a tape library
    Tape(tape::TapeArgs),
    /// Compare the twin with what the papers state
    Paper(paper::PaperArgs),
    /// Find the cheapest libraries, racks or sites that meet a demand and its objective
    Plan(plan::PlanArgs),
}

/// Runs a subcommand of `twin`.
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

/// Reads a TOML file; an error names file, line and field.
fn read_toml<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    settings::from_toml(&read(path)?).map_err(|error| toml_error(path, &error))
}

/// Returns the error of a file that is not valid.
fn toml_error(path: &Path, error: &settings::Error) -> anyhow::Error {
    let message = format!("\"{}\" is wrong: {}", path.display(), error.to_string().trim_end());
    ExitError::new(Exit::Config, message).into()
}

/// Formats a path, with the line that sets the field with which `message` begins, if exactly one
/// line does: `"a.toml": line 5`.
fn with_line(path: &Path, message: &str) -> String {
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

/// Returns the error of an invalid value in a file or a flag.
fn invalid_input(
    what: &str,
    error: &(dyn std::error::Error + 'static),
    exit: Exit,
) -> anyhow::Error {
    ExitError::new(exit, format!("{what}: {}", error_chain(error))).into()
}

/// Returns a built-in workload by its name, or reads one from a file.
fn workload(text: &str) -> anyhow::Result<Workload> {
    if let Some(workload) = Workload::named(text) {
        return Ok(workload);
    }
    let path = Path::new(text);
    if !path.exists() {
        let names = Workload::NAMES.join(", ");
        let message = format!("\"{text}\" is neither a file nor a workload: {names}");
        return Err(ExitError::new(Exit::NotFound, message).into());
    }
    let workload: Workload = read_toml(path)?;
    workload
        .validate()
        .map_err(|error| invalid_input(&format!("\"{text}\""), &error, Exit::Config))?;
    Ok(workload)
}

fn percent(value: f64) -> String {
    format!("{:.2} %", value * 100.0)
}
