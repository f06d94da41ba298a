//! `twin plan`: finds the cheapest systems that meet a demand and its objective.
//!
//! The searches are in `fulgurite_twin`, behind one trait. This module has the file, the threads
//! for the runs, and the result as a table, as JSON and, with `--out`, as `plan.json` and
//! `plan.svg`.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, note};
use fulgurite_terminal::progress::spinner;
use fulgurite_twin::Trace;
use fulgurite_twin::plan::PlanReport;
use fulgurite_twin::systems::{self, AnyPlanner, PlannerError, ScenarioError};
use toml::Value;

use super::pool::{ThreadPool, thread_count};
use super::run::{change, changes};
use super::{invalid_input, open, read, toml_error, with_line};

/// Exit codes of `twin plan`, from the program's one table.
const EXIT_CODES: &str = "\
Exit codes:
  0  a plan was found
  1  no candidate meets the objective; the nearest miss is printed
  2  wrong command line, or a field or flag that the planner of this system does not have
  3  wrong scenario or trace
  4  a file was not found";

/// Flags of `twin plan`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct PlanArgs {
    /// Demand, objective, prices and space of a system: glass, rack or geo (TOML); docs/twin.md has
    /// an example of each
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// Set a field of the scenario, by its dotted path; may be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = change)]
    set: Vec<(String, Value)>,
    /// Trace of reads that replaces the workload, for glass
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Number of seeds, all of which must meet the objective; default: that of the scenario, or 3
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    /// Maximum number of runs of the twin; default: that of the scenario, or 2,000
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// Maximum number of concurrent runs; default: number of processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Folder for plan.json and plan.svg
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs `twin plan`.
pub(crate) fn run(args: &PlanArgs, out: &Output) -> anyhow::Result<()> {
    let planner = planner(args)?;
    let bar = spinner("planning", out.is_json());
    let mut tried = 0;
    let mut on_trial = |trial: &str| {
        tried += 1;
        bar.set_message(format!("{tried} tried; {trial}"));
    };
    let plan = planner
        .plan(&ThreadPool(thread_count(args.threads)), &mut on_trial)
        .map_err(|error| ExitError::new(Exit::Config, error.to_string()))?;
    bar.finish_and_clear();
    if let Some(folder) = &args.out {
        write(folder, &plan)?;
    }
    out.json("twin_plan", &plan.json)?;
    plan.lines.iter().try_for_each(|line| out.text(line))?;
    if !plan.is_found {
        let message = "no candidate meets the objective: allow more in [space], or a longer \
                       objective";
        return Err(ExitError::new(Exit::Failure, message).into());
    }
    Ok(())
}

fn planner(args: &PlanArgs) -> anyhow::Result<Box<dyn AnyPlanner>> {
    let path = &args.scenario;
    let mut set = args.set.clone();
    for (field, value) in [("seeds", args.seeds), ("runs_max", args.runs)] {
        set.extend(value.map(|value| (field.to_owned(), Value::Integer(value.into()))));
    }
    let planner = systems::planner(&read(path)?, &changes(&set)?);
    let planner = planner.map_err(|error| match error {
        PlannerError::File(ScenarioError::Syntax(error)) => toml_error(path, &error),
        PlannerError::File(ScenarioError::Value(error)) => {
            invalid_input(&with_line(path, &error.to_string()), &error, Exit::Config)
        }
        error @ (PlannerError::Field { .. } | PlannerError::NoPlanner) => {
            let message = format!("\"{}\": {error}", path.display());
            let is_field = matches!(error, PlannerError::Field { .. });
            ExitError::new(if is_field { Exit::Usage } else { Exit::Config }, message).into()
        }
    })?;
    let Some(trace) = &args.trace else { return Ok(planner) };
    let trace = Trace::read(open(trace)?).map_err(|error| {
        invalid_input(&format!("\"{}\"", trace.display()), &error, Exit::Config)
    })?;
    planner.with_trace(trace).ok_or_else(|| {
        ExitError::new(Exit::Usage, "--trace: only plans of glass read a trace").into()
    })
}

/// Writes a plan as JSON, and its picture if there is one.
fn write(folder: &Path, plan: &PlanReport) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let mut files = vec![("plan.json", serde_json::to_string_pretty(&plan.json)? + "\n")];
    match &plan.picture {
        Some(picture) => files.push(("plan.svg", picture.clone())),
        None => note("fulgurite: nothing was tried, so there is no picture"),
    }
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
