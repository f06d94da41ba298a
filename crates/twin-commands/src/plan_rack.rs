//! `twin plan-rack`: finds the cheapest racks of cold disks that take an ingest rate and meet the
//! objective for the time to first byte.
//!
//! The search is `fulgurite_twin::rack::plan`. This module has its inputs as flags, the threads for
//! its runs, and its result as `twin plan` prints it: a table, JSON and, with `--out`, `plan.json`
//! and `plan.svg`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use fulgurite_terminal::progress::spinner;
use fulgurite_twin::rack::plan::{
    CostTable, Plan, PlanRequest, Provision, Trial, picture, plan_with_progress,
};
use fulgurite_units::{ByteCount, Duration};

use super::plan::{bytes, per_day, plan_error, write};
use super::plan_table::Columns;
use super::pool::{ThreadPool, thread_count};

/// Exit codes of `twin plan-rack`, from the program's one table.
const EXIT_CODES: &str = "\
Exit codes:
  0  a plan was found
  1  no candidate meets the objective; the nearest miss is printed
  2  wrong command line
  3  wrong cost table or parameter
  4  the cost table was not found";

/// What a plan leaves out.
const LIMITATIONS: &str = "\
not included: how writes delay reads (they wait for an idle rack), and replaced disks.";

/// Flags of `twin plan-rack`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct PlanRackArgs {
    /// User bytes ingested per day, like 50TB/day (TB is 10^12 bytes, TiB is 2^40)
    #[arg(long, value_name = "BYTES/day", value_parser = per_day)]
    ingest: ByteCount,
    /// Random reads per second of all racks together
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    rate: f64,
    /// Size of the blobs that are read
    #[arg(long, value_name = "BYTES", default_value = "1GB", value_parser = bytes)]
    blob: ByteCount,
    /// Objective: 99 of 100 reads return their first byte within this
    #[arg(long, value_name = "TIME", default_value = "5m")]
    slo: Duration,
    /// Bound: maximum power of the disks of a rack, in kW
    #[arg(long, value_name = "KW")]
    power_kw: Option<f64>,
    /// Budget: average spin-ups per disk and day
    #[arg(long, value_name = "COUNT")]
    spin_ups_per_day: Option<f64>,
    /// Days of ingest for which there must be room
    #[arg(long, value_name = "DAYS", default_value_t = 365)]
    growth_days: u32,
    /// User bytes stored already
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes)]
    stored: ByteCount,
    /// Number of seeds, all of which must meet the objective and the bounds
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    seeds: u32,
    /// Maximum number of racks
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    racks: u32,
    /// Disk sizes to choose from
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "4TB,8TB,12TB,16TB,20TB,24TB",
        value_parser = bytes
    )]
    disks: Vec<ByteCount>,
    /// Price table that replaces the assumed prices (TOML)
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Maximum number of runs of the twin
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    runs: u32,
    /// Folder for plan.json and plan.svg
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs `twin plan-rack`.
pub(crate) fn run(args: &PlanRackArgs, out: &Output) -> anyhow::Result<()> {
    let request = request(args)?;
    let bar = spinner("planning", out.is_json());
    let mut tried = 0;
    let mut on_trial = |trial: &Trial| {
        tried += 1;
        bar.set_message(format!("{tried} tried; {}", summary(trial)));
    };
    let plan = plan_with_progress(&request, &ThreadPool(thread_count(None)), &mut on_trial)
        .map_err(plan_error)?;
    bar.finish_and_clear();
    if let Some(folder) = &args.out {
        write_plan(folder, &plan)?;
    }
    out.json(&plan)?;
    show(&plan, &request, out)?;
    if plan.best.is_none() {
        let message = "no candidate meets the objective: allow more racks or a longer objective";
        return Err(ExitError::new(Exit::Failure, message).into());
    }
    Ok(())
}

fn request(args: &PlanRackArgs) -> anyhow::Result<PlanRequest> {
    let mut request = PlanRequest::new(args.ingest, args.rate);
    request.blob = args.blob;
    request.objective = args.slo;
    request.power_w_max = args.power_kw.map(|kilowatts| kilowatts * 1e3);
    request.spin_ups_a_day_max = args.spin_ups_per_day;
    request.growth_days = args.growth_days;
    request.stored = args.stored;
    request.seeds = args.seeds;
    request.runs_max = args.runs;
    request.space.racks_max = args.racks;
    request.space.disks.clone_from(&args.disks);
    if let Some(path) = &args.costs {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        request.costs = CostTable::from_toml(&text).map_err(plan_error)?;
    }
    request.validate().map_err(plan_error)?;
    Ok(request)
}

fn write_plan(folder: &Path, plan: &Plan) -> anyhow::Result<()> {
    let picture = || picture(plan).map_err(plan_error);
    let picture = if plan.tried.is_empty() { None } else { Some(picture()?) };
    write(folder, serde_json::to_string_pretty(plan)?, picture)
}

fn show(plan: &Plan, request: &PlanRequest, out: &Output) -> anyhow::Result<()> {
    let nearest = || plan.tried.iter().min_by(|a, b| a.tail_s.total_cmp(&b.tail_s));
    let found = (plan.best.as_ref(), plan.runner_up.as_ref());
    let columns = Columns::print(found, nearest, 18, out)?;
    let line = |name: &str, value: &dyn Fn(&Trial) -> String| columns.line(name, value);
    line(&format!("cost, million {}", plan.currency), &|trial| format!("{:.3}", trial.cost / 1e6))?;
    line("  of that, machines", &|trial| format!("{:.3}", trial.capital / 1e6))?;
    line("racks", &|trial| trial.candidate.racks.to_string())?;
    line("disks", &|trial| trial.candidate.disks().to_string())?;
    line("  each, TB", &|trial| format!("{:.1}", terabytes(trial.candidate.disk)))?;
    line("spinning disks at most, per rack", &|trial| {
        trial.candidate.provision.awake().to_string()
    })?;
    line("  per tray and column", &|trial| domains(trial).to_owned())?;
    line("servers x Gbit/s, per rack", &|trial| {
        format!("{} x {}", trial.candidate.servers, trial.candidate.nic_gbps)
    })?;
    line("power and cooling, kW per rack", &|trial| format!("{:.2}", trial.supplied_w / 1e3))?;
    line("maximum power of its disks, kW", &|trial| format!("{:.2}", trial.power_w_max / 1e3))?;
    line("energy, kWh per day", &|trial| format!("{:.1}", trial.kwh_per_day))?;
    line("capacity used at that age", &|trial| format!("{:.1} %", trial.used * 100.0))?;
    line("first byte, mean, s", &|trial| format!("{:.2}", trial.mean_s))?;
    line("first byte, 99th percentile, s", &|trial| format!("{:.2}", trial.tail_s))?;
    line("  left of the objective", &|trial| format!("{:.1} %", trial.margin * 100.0))?;
    line("reads rejected", &|trial| format!("{:.2} %", trial.refused * 100.0))?;
    line("spin-ups per disk and day", &|trial| format!("{:.1}", trial.spin_ups_a_day))?;
    line("constraints", &|trial| {
        if trial.constraints.is_met() { "met" } else { "not met" }.to_owned()
    })?;
    for (head, trial) in columns.trials() {
        if let Some(missed) = trial.constraints.missed() {
            out.text(format_args!("{head}: {missed}"))?;
        }
    }
    print_remarks(plan, request, out)
}

/// Spin-ups per day that add up, in five years, to 300,000, the lowest rating in data sheets.
const RATED_SPIN_UPS_PER_DAY: f64 = 164.0;

/// Prints what the table leaves out.
fn print_remarks(plan: &Plan, request: &PlanRequest, out: &Output) -> anyhow::Result<()> {
    let bounds = match (request.power_w_max, request.spin_ups_a_day_max) {
        (None, None) => "no power limit and no spin-up budget was set",
        (Some(_), None) => "no spin-up budget was set",
        (None, Some(_)) => "no power limit was set",
        (Some(_), Some(_)) => "power and spin-ups are limited",
    };
    out.text(format_args!(
        "constraints: no rejected reads, room for all data, bandwidth for the ingest; {bounds}"
    ))?;
    let best = plan.best.as_ref().filter(|_| request.spin_ups_a_day_max.is_none());
    if let Some(best) = best.filter(|best| best.spin_ups_a_day > RATED_SPIN_UPS_PER_DAY) {
        out.text(format_args!(
            "spin-ups: {:.0} per disk and year; data sheets rate disks for 300,000 to 1,000,000 in \
             their lifetime. Limit them with --spin-ups-per-day",
            best.spin_ups_a_day * 365.25
        ))?;
    }
    out.text(LIMITATIONS)?;
    out.text(format_args!(
        "\n{:.2} PB of blobs are {:.2} PB on disks; {} runs for {} candidates, {} seeds each{}",
        plan.user_bytes / 1e15,
        plan.raw_bytes / 1e15,
        plan.runs,
        plan.candidates,
        plan.seeds,
        if plan.is_cut_short { "; stopped at the limit of runs" } else { "" }
    ))?;
    if !plan.assumed.is_empty() {
        out.text(format_args!(
            "assumed prices and powers (set them with --costs): {}",
            plan.assumed.join(", ")
        ))?;
    }
    out.text("Simulated: nothing here was measured on machines.")
}

const fn domains(trial: &Trial) -> &'static str {
    match trial.candidate.provision {
        Provision::Sleeping => "2 of 16, 1 of 12",
        Provision::All => "all, all",
    }
}

#[expect(clippy::cast_precision_loss, reason = "a disk is below 2^53 bytes")]
fn terabytes(size: ByteCount) -> f64 {
    size.get() as f64 / 1e12
}

fn summary(trial: &Trial) -> String {
    let candidate = &trial.candidate;
    format!(
        "{} x (disks of {:.1} TB, {} spin, {} x {} Gbit/s): {:.1} s, {}",
        candidate.racks,
        terabytes(candidate.disk),
        candidate.provision.awake(),
        candidate.servers,
        candidate.nic_gbps,
        trial.tail_s,
        if trial.is_enough() { "enough" } else { "not enough" }
    )
}
