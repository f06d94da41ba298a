//! `twin plan`: finds the cheapest libraries that take an ingest rate and meet the read objective.
//!
//! The search is `fulgurite_twin::glass::plan`. This module has its inputs as flags, the threads
//! for its runs, and its result as a table, as JSON and, with `--out`, as `plan.json` and
//! `plan.svg`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, note};
use fulgurite_terminal::progress::spinner;
use fulgurite_twin::glass::plan::{
    CostTable, Demand, Plan, PlanRequest, Trial, picture, plan_with_progress,
};
use fulgurite_twin::{Trace, Workload};
use fulgurite_units::{ByteCount, Duration, Ratio};

use super::named_workload;
use super::plan_table::Columns;
use super::pool::{ThreadPool, thread_count};

/// Exit codes of `twin plan`, from the program's one table.
const EXIT_CODES: &str = "\
Exit codes:
  0  a plan was found
  1  no candidate meets the objective; the nearest miss is printed
  2  wrong command line
  3  wrong cost table, trace or parameter
  4  a file was not found";

/// The constraints that a plan meets, and what it leaves out.
const CONSTRAINTS: &str = "\
constraints: every read is answered, and as much is verified in the measured window as is
written in it. A new platter always waits there, so the age of the oldest one is not checked.";

/// Flags of `twin plan`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct PlanArgs {
    /// User bytes ingested per day, like 50TB/day (TB is 10^12 bytes, TiB is 2^40)
    #[arg(long, value_name = "BYTES/day", value_parser = per_day)]
    ingest: ByteCount,
    /// Read workload of all libraries together: typical, iops, volume, full-library, or a trace
    /// file
    #[arg(long, value_name = "WORKLOAD|TRACE")]
    reads: String,
    /// Factor by which the read rate is multiplied
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,
    /// Objective: 999 of 1,000 reads complete within this
    #[arg(long, value_name = "TIME", default_value = "15h")]
    slo: Duration,
    /// Share of platters that are unavailable
    #[arg(long, value_name = "SHARE", default_value = "0.1", value_parser = share)]
    unavailable: Ratio,
    /// Days of ingest for which there must be slots
    #[arg(long, value_name = "DAYS", default_value_t = 365)]
    growth_days: u32,
    /// User bytes stored already
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes)]
    stored: ByteCount,
    /// Number of seeds, all of which must meet the objective
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    seeds: u32,
    /// Policies to choose from
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "fulgurite,silica"
    )]
    policies: Vec<String>,
    /// Maximum number of libraries
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    libraries: u32,
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

/// Runs `twin plan`.
pub(crate) fn run(args: &PlanArgs, out: &Output) -> anyhow::Result<()> {
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
    show(&plan, out)?;
    if plan.best.is_none() {
        let message =
            "no candidate meets the objective: allow more libraries or a longer objective";
        return Err(ExitError::new(Exit::Failure, message).into());
    }
    Ok(())
}

fn request(args: &PlanArgs) -> anyhow::Result<PlanRequest> {
    let mut request = PlanRequest::new(args.ingest, demand(&args.reads, args.scale)?);
    request.objective = args.slo;
    request.unavailable = args.unavailable;
    request.growth_days = args.growth_days;
    request.stored = args.stored;
    request.seeds = args.seeds;
    request.runs_max = args.runs;
    request.space.policies.clone_from(&args.policies);
    request.space.libraries = [1, args.libraries];
    if let Some(path) = &args.costs {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        request.costs = CostTable::from_toml(&text).map_err(plan_error)?;
    }
    request.validate().map_err(plan_error)?;
    Ok(request)
}

/// Returns a built-in workload by its name, or else reads the trace at this path.
fn demand(reads: &str, scale: f64) -> anyhow::Result<Demand> {
    let named = named_workload(reads);
    let Some(workload) =
        named.or_else(|| (reads == "full-library").then(|| Workload::full_library(1.6)))
    else {
        let file = File::open(reads).with_context(|| format!("cannot open trace {reads}"))?;
        let trace = Trace::read(BufReader::new(file)).map_err(plan_error)?;
        return Ok(Demand::Trace { trace, scale });
    };
    Ok(Demand::Workload { workload: Box::new(workload), scale })
}

pub(super) fn plan_error(error: fulgurite_twin::Error) -> anyhow::Error {
    ExitError::new(Exit::Config, error.to_string()).into()
}

fn write_plan(folder: &Path, plan: &Plan) -> anyhow::Result<()> {
    let picture = || picture(plan).map_err(plan_error);
    let picture = if plan.tried.is_empty() { None } else { Some(picture()?) };
    write(folder, serde_json::to_string_pretty(plan)?, picture)
}

/// Writes a plan as JSON, and its picture if there is one.
pub(super) fn write(folder: &Path, json: String, picture: Option<String>) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let mut files = vec![("plan.json", json + "\n")];
    match picture {
        Some(picture) => files.push(("plan.svg", picture)),
        None => note("fulgurite: nothing was tried, so there is no picture"),
    }
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn show(plan: &Plan, out: &Output) -> anyhow::Result<()> {
    // The tail of an aborted trial is unknown.
    let by_tail = |a: &&Trial, b: &&Trial| {
        let given_up = |of: &Trial| of.given_up_s.is_some();
        given_up(a).cmp(&given_up(b)).then(a.tail_s.total_cmp(&b.tail_s))
    };
    let nearest = || plan.tried.iter().min_by(by_tail);
    let found = (plan.best.as_ref(), plan.runner_up.as_ref());
    let columns = Columns::print(found, nearest, 16, out)?;
    let line = |name: &str, value: &dyn Fn(&Trial) -> String| columns.line(name, value);
    let currency = &plan.currency;
    line(&format!("cost, million {currency}"), &|trial| format!("{:.3}", trial.cost / 1e6))?;
    line("  of that, machines", &|trial| format!("{:.3}", trial.capital / 1e6))?;
    line("libraries", &|trial| trial.candidate.libraries.to_string())?;
    line("policy", &|trial| trial.candidate.policy.clone())?;
    line("read racks x drives, each", &|trial| {
        format!("{} x {}", trial.candidate.read_racks, trial.candidate.drives_per_read_rack)
    })?;
    line("drive throughput, MB/s", &|trial| u32::from(trial.candidate.throughput).to_string())?;
    line("shuttles, each", &|trial| trial.candidate.shuttles().to_string())?;
    line("storage racks, each", &|trial| trial.candidate.storage_racks.to_string())?;
    line("energy, kWh per day", &|trial| format!("{:.1}", trial.kwh_per_day))?;
    line("drive utilization", &|trial| format!("{:.1} %", trial.utilization * 100.0))?;
    line("99.9th percentile of reads, h", &|trial| format!("{:.2}", trial.tail_s / 3600.0))?;
    line("  left of the objective", &|trial| format!("{:.1} %", trial.margin * 100.0))?;
    line("verification over ingest", &|trial| format!("{:.2}", trial.verify_margin))?;
    line("constraints", &|trial| {
        if trial.constraints.is_met() { "met" } else { "not met" }.to_owned()
    })?;
    for (head, trial) in columns.trials() {
        if let Some(missed) = trial.constraints.missed() {
            out.text(format_args!("{head}: {missed}"))?;
        }
    }
    out.text(CONSTRAINTS)?;
    out.text(format_args!(
        "\n{} platters; a set needs {} storage racks; {} runs for {} candidates, {} seeds each{}",
        plan.platters,
        plan.set_racks,
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

fn summary(trial: &Trial) -> String {
    let candidate = &trial.candidate;
    format!(
        "{} x ({} drives of {} MB/s, {} shuttles): {}{:.1} h, {}",
        candidate.libraries,
        candidate.drives(),
        u32::from(candidate.throughput),
        candidate.shuttles(),
        if trial.given_up_s.is_some() { "at least " } else { "" },
        trial.tail_s / 3600.0,
        if trial.is_enough() { "enough" } else { "not enough" }
    )
}

/// Parses `50TB/day`, with or without `/day`.
pub(super) fn per_day(text: &str) -> Result<ByteCount, String> {
    bytes(text.strip_suffix("/day").unwrap_or(text))
}

/// Parses a number with a unit: powers of ten as in `50TB`, or of two as in `50TiB`.
pub(super) fn bytes(text: &str) -> Result<ByteCount, String> {
    const UNITS: [(&str, f64); 6] =
        [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15), ("EB", 1e18)];
    let Some((number, unit)) = UNITS
        .iter()
        .find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number.trim_end(), unit)))
    else {
        return text.parse::<ByteCount>().map_err(|error| error.to_string());
    };
    match number.parse::<f64>() {
        Ok(number) if (0.0..=1.8e19).contains(&(number * unit)) => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in the range of 64 bits"
            )]
            let bytes = (number * unit).round() as u64;
            Ok(ByteCount::new(bytes))
        }
        _ => Err(format!(
            "\"{text}\" is not a number of bytes; write a number and a unit, like 50TB"
        )),
    }
}

fn share(text: &str) -> Result<Ratio, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    Ratio::new(number).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use fulgurite_units::ByteCount;

    use super::{bytes, per_day, share};

    #[test]
    fn byte_units_are_decimal_or_binary() {
        assert_eq!(per_day("50TB/day"), Ok(ByteCount::new(50_000_000_000_000)));
        assert_eq!(per_day("1.5 PB"), Ok(ByteCount::new(1_500_000_000_000_000)));
        assert_eq!(bytes("2TiB"), Ok(ByteCount::new(2 << 40)));
        assert_eq!(bytes("0"), Ok(ByteCount::ZERO));
        for plan_error in ["TB", "-1TB", "50XB", "nan TB", "50TB/week"] {
            assert!(per_day(plan_error).is_err(), "{plan_error}");
        }
        assert!(share("1.5").is_err());
    }
}
