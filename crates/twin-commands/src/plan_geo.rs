//! `twin plan-geo`: finds the cheapest sites, fragments and quorums for given durability, write and
//! read objectives.
//!
//! The search is `fulgurite_twin::geo::plan`. This module has its input file, the threads for its
//! runs, and its result as `twin plan` prints it: a table, JSON and, with `--out`, `plan.json` and
//! `plan.svg`.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use fulgurite_terminal::progress::spinner;
use fulgurite_twin::geo::plan::{Plan, PlanRequest, Trial, picture, plan_with_progress};

use super::plan::{plan_error, write};
use super::plan_table::Columns;
use super::pool::{ThreadPool, thread_count};
use super::{read_toml, with_line};

/// Exit codes of `twin plan-geo`, from the program's one table.
const EXIT_CODES: &str = "\
Exit codes:
  0  a plan was found
  1  no candidate meets the objective; the nearest miss is printed
  2  wrong command line
  3  wrong file
  4  the file was not found";

/// What a plan leaves out.
const LIMITATIONS: &str = "\
not included: nodes, healing, retained versions, and failures of two sites at a time.";

/// Flags of `twin plan-geo`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct PlanGeoArgs {
    /// Sites with prices, rates and round trips, demand and objective (TOML); docs/twin.md has an
    /// example
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Maximum number of concurrent runs; default: number of processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    /// Folder for plan.json and plan.svg
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs `twin plan-geo`.
pub(crate) fn run(args: &PlanGeoArgs, out: &Output) -> anyhow::Result<()> {
    let request: PlanRequest = read_toml(&args.file)?;
    request.validate().map_err(|error| {
        let message = format!("{}: {error}", with_line(&args.file, &error.to_string()));
        ExitError::new(Exit::Config, message)
    })?;
    let bar = spinner("planning", out.is_json());
    let mut tried = 0;
    let mut on_trial = |trial: &Trial| {
        tried += 1;
        bar.set_message(format!("{tried} tried; {}", summary(trial)));
    };
    let threads = ThreadPool(thread_count(args.threads));
    let plan = plan_with_progress(&request, &threads, &mut on_trial).map_err(plan_error)?;
    bar.finish_and_clear();
    if let Some(folder) = &args.out {
        write_plan(folder, &plan)?;
    }
    out.json(&plan)?;
    show(&plan, out)?;
    if plan.best.is_none() {
        let message = "no candidate meets the objective: allow more sites or a longer objective";
        return Err(ExitError::new(Exit::Failure, message).into());
    }
    Ok(())
}

fn write_plan(folder: &Path, plan: &Plan) -> anyhow::Result<()> {
    let picture = || picture(plan).map_err(plan_error);
    let picture = if plan.tried.is_empty() { None } else { Some(picture()?) };
    write(folder, serde_json::to_string_pretty(plan)?, picture)
}

/// Returns the share of its objective that a trial uses up, put or get, whichever is more.
fn objective_share(plan: &Plan, trial: &Trial) -> f64 {
    (trial.put_s / plan.put_s).max(trial.get_s / plan.get_s)
}

fn show(plan: &Plan, out: &Output) -> anyhow::Result<()> {
    let nearest = || {
        plan.tried
            .iter()
            .min_by(|a, b| objective_share(plan, a).total_cmp(&objective_share(plan, b)))
    };
    let found = (plan.best.as_ref(), plan.runner_up.as_ref());
    let columns = Columns::print(found, nearest, 18, out)?;
    let line = |name: &str, value: &dyn Fn(&Trial) -> String| columns.line(name, value);
    let ms = |seconds: f64| format!("{:.0}", seconds * 1e3);
    line(&format!("cost per month, {}", plan.currency), &|trial| format!("{:.2}", trial.cost))?;
    line("  stored bytes", &|trial| format!("{:.2}", trial.of.stored))?;
    line("  requests", &|trial| format!("{:.2}", trial.of.requests))?;
    line("  bytes between sites", &|trial| format!("{:.2}", trial.of.sent))?;
    line("fragments, data + parity", &|trial| {
        format!("{} + {}", trial.candidate.data, trial.candidate.parity)
    })?;
    line("voting sites", &|trial| trial.candidate.voters.len().to_string())?;
    line("quorum sizes", &|trial| format!("{:?}", trial.candidate.sizes.get()).to_lowercase())?;
    line("unavailable sites tolerated", &|trial| trial.goes_with_away.to_string())?;
    line("  with puts in one round", &|trial| trial.fast_with_away.to_string())?;
    line("bytes stored per user byte", &|trial| format!("{:.2}", trial.stored))?;
    line("bytes between sites per byte put", &|trial| format!("{:.2}", trial.put_crossed))?;
    line("bytes between sites per byte got", &|trial| format!("{:.2}", trial.get_crossed))?;
    line("losses per year", &|trial| format!("{:.1e}", trial.losses_a_year))?;
    line("put, median, ms", &|trial| ms(trial.put_median_s))?;
    line("put, 99th percentile, ms", &|trial| ms(trial.put_s))?;
    line("get, median, ms", &|trial| ms(trial.get_median_s))?;
    line("get, 99th percentile, ms", &|trial| ms(trial.get_s))?;
    for (head, trial) in columns.trials() {
        out.text(format_args!("{head}: fragments at {}", names(plan, &trial.candidate.holders)))?;
        out.text(format_args!("{head}: voting rows at {}", names(plan, &trial.candidate.voters)))?;
    }
    print_remarks(plan, out)
}

fn names(plan: &Plan, places: &[u8]) -> String {
    let name = |place: &u8| plan.sites.get(usize::from(*place)).cloned().unwrap_or_default();
    places.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Prints what the table leaves out.
fn print_remarks(plan: &Plan, out: &Output) -> anyhow::Result<()> {
    let excluded = plan.excluded;
    out.text(format_args!(
        "\n{} runs for {} of {} candidates, {} seeds each{}",
        plan.runs,
        plan.tried.len(),
        plan.candidates,
        plan.seeds,
        if plan.is_cut_short { "; stopped at the limit of runs" } else { "" }
    ))?;
    out.text(format_args!(
        "excluded without a run: {} lose objects too often, {} tolerate too few unavailable \
         sites, {} are too slow",
        excluded.lost, excluded.away, excluded.late
    ))?;
    out.text(LIMITATIONS)?;
    out.text("Simulated: nothing here was sent or stored. Prices and rates are those of the file.")
}

fn summary(trial: &Trial) -> String {
    let candidate = &trial.candidate;
    format!(
        "{} + {}, {} vote, {:.2} per month: put {:.0} ms, get {:.0} ms, {}",
        candidate.data,
        candidate.parity,
        candidate.voters.len(),
        trial.cost,
        trial.put_s * 1e3,
        trial.get_s * 1e3,
        if trial.is_enough { "enough" } else { "not enough" }
    )
}
