//! `twin served`: simulates the requests in the log of a real library, and compares latencies.

use std::path::PathBuf;

use fulgurite_glass_core::control::log::LogError;
use fulgurite_glass_core::control::{Mechanics, Throughput};
use fulgurite_restore::log as restore_log;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::{Output, group_digits, seconds};
use fulgurite_twin::glass::log_comparison::{
    LatencyComparison, RestoreComparison, ServedLog, ServedResult,
};
use fulgurite_units::ByteCount;
use serde_json::json;

use super::{invalid_input, open, percent};

/// Flags of `twin served`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ServedArgs {
    /// Log of a library (`[tiers.glass.library] log`, or `twin run --log`)
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Log of the archive's restores (`[restore] log`): the twin is then given the restores of
    /// clients instead of the library reads that they caused
    #[arg(long, value_name = "LOG")]
    restores: Option<PathBuf>,
    /// Seconds that machines take for each second in the paper: `[tiers.glass.library] time_scale`
    #[arg(long, value_name = "SCALE", default_value_t = 1.0)]
    time_scale: f64,
    /// User bytes per track
    #[arg(long, value_name = "BYTES", default_value = "20000000B")]
    track_size: ByteCount,
    /// Number of seeds, counted from 1
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Exit with code 1 if the tail latencies of all restores (without --restores: of all reads)
    /// differ by more than this
    #[arg(long, value_name = "PERCENT")]
    within: Option<f64>,
}

/// Runs `twin served`.
pub(super) fn served(args: &ServedArgs, out: &Output) -> anyhow::Result<()> {
    let shown = format!("\"{}\"", args.log.display());
    if !(args.time_scale > 0.0 && args.time_scale <= 1e6) {
        let message =
            format!("--time-scale {}: must be above 0 and at most 1000000", args.time_scale);
        return Err(ExitError::new(Exit::Config, message).into());
    }
    let served = ServedLog::read(open(&args.log)?).map_err(|error| {
        let is_read = matches!(error, LogError::Read { .. });
        invalid_input(&shown, &error, if is_read { Exit::Failure } else { Exit::Corrupt })
    })?;
    let served = match &args.restores {
        Some(path) => served.with_restores(open(path)?, args.track_size).map_err(|error| {
            let is_read = matches!(error, restore_log::LogError::Read { .. });
            let exit = if is_read { Exit::Failure } else { Exit::Corrupt };
            invalid_input(&format!("\"{}\"", path.display()), &error, exit)
        })?,
        None => served,
    };
    let mechanics =
        Mechanics::new(Throughput::PAPER, args.track_size).with_time_scale(args.time_scale);
    let mut worst: f64 = 0.0;
    for seed in 1..=args.seeds {
        let result = served
            .run(mechanics, seed)
            .map_err(|error| invalid_input(&shown, &error, Exit::Config))?;
        out.json("served", &json!({ "served": result }))?;
        print(&result, out)?;
        let held = result.restores.map_or(result.reads, |restores| restores.all);
        worst = worst.max(tail_difference_percent(&held).abs());
    }
    match args.within.filter(|within| worst > *within) {
        Some(within) => {
            let message = format!("the tails differ by {worst:.1} %, more than {within} %");
            Err(ExitError::new(Exit::Failure, message).into())
        }
        None => Ok(()),
    }
}

/// Returns by how many percent the twin's tail latency is longer.
fn tail_difference_percent(compared: &LatencyComparison) -> f64 {
    let (served, twin) = (compared.served.p999, compared.twin.p999);
    if served > 0.0 { (twin / served - 1.0) * 100.0 } else { 0.0 }
}

fn print(result: &ServedResult, out: &Output) -> anyhow::Result<()> {
    let mut kinds = Vec::new();
    if let Some(restores) = &result.restores {
        kinds.extend([
            ("all restores", &restores.all),
            ("Expedited", &restores.expedited),
            ("Standard", &restores.standard),
            ("Bulk", &restores.bulk),
        ]);
    }
    kinds.extend([
        ("all reads", &result.reads),
        ("due in minutes", &result.due_in_minutes),
        ("due in hours", &result.due_in_hours),
        ("due later", &result.due_later),
        ("verifications", &result.verifications),
    ]);
    out.text(format!("seed {}: served, twin", result.seed))?;
    for (name, compared) in kinds.into_iter().filter(|(_, compared)| compared.served.count > 0) {
        let LatencyComparison { served, twin } = compared;
        let pair = |quantile: fn(&fulgurite_twin::engine::histogram::Quantiles) -> f64| {
            format!("{}, {}", seconds(quantile(served)), seconds(quantile(twin)))
        };
        out.text(format!(
            "{name:<16}{:>6}{}  median {:<18} p99 {:<18} p99.9 {:<18} ({:+.1} %)",
            served.count,
            if twin.count == served.count { String::new() } else { format!("/{}", twin.count) },
            pair(|times| times.p50),
            pair(|times| times.p99),
            pair(|times| times.p999),
            tail_difference_percent(compared)
        ))?;
    }
    if let Some(restores) = &result.restores {
        print_restores(restores, out)?;
    }
    if result.ended_otherwise + result.unended > 0 {
        out.text(format!(
            "{} requests ended differently in the twin, {} have no end in the log",
            result.ended_otherwise, result.unended
        ))?;
    }
    Ok(())
}

fn print_restores(restores: &RestoreComparison, out: &Output) -> anyhow::Result<()> {
    let order = &restores.order;
    let (served, twin) = (group_digits(order.visits_served), group_digits(order.visits_twin));
    out.text(format!("{:<22}{served}, {twin}", "platter visits"))?;
    out.text(format!(
        "{:<22}{} of {} pairs of fetches reordered by timing, {} reordered without explanation",
        "order",
        group_digits(order.by_timing),
        group_digits(order.pairs),
        group_digits(order.unexplained)
    ))?;
    let (served, twin) = (percent(restores.busy_served), percent(restores.busy_twin));
    out.text(format!("{:<22}{served}, {twin}", "drives busy"))?;
    let (served, twin) =
        (percent(restores.shuttles_busy_served), percent(restores.shuttles_busy_twin));
    out.text(format!("{:<22}{served}, {twin}", "shuttles busy"))?;
    if restores.platters_of_no_use > 0 {
        let count = restores.platters_of_no_use;
        out.text(format!("{:<22}{count}", "unusable platters"))?;
    }
    if restores.unended_twin > 0 {
        out.text(format!("{} restores have no end in the twin", restores.unended_twin))?;
    }
    Ok(())
}
