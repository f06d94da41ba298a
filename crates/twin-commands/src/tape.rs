//! `twin tape`: simulates the same reads on a tape library.

use std::path::Path;

use clap::ValueEnum;
use fulgurite_terminal::exit::Exit;
use fulgurite_terminal::output::{Output, group_digits, seconds};
use fulgurite_terminal::progress::spinner;
use fulgurite_twin::glass::tape::{TapeLibrary, TapeResult};
use fulgurite_twin::workload::Placement;
use fulgurite_twin::{Error, Trace, Workload};
use fulgurite_units::{Instant, Seed};

use super::{invalid_input, open, percent, workload};

/// Flags of `twin tape`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TapeArgs {
    /// Trace file, or a workload: typical, iops, volume, six-months, full-library, or a file (TOML)
    #[arg(value_name = "TRACE|WORKLOAD")]
    reads: String,
    /// Generation of cartridges and drives: lto8 or lto9
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value = "lto9",
        hide_possible_values = true
    )]
    generation: Generation,
    /// Number of drives
    #[arg(long, value_name = "N", default_value = "20")]
    drives: u16,
    /// Number of robots
    #[arg(long, value_name = "N", default_value = "2")]
    robots: u16,
    /// Number of cartridges
    #[arg(long, value_name = "N", default_value = "1000")]
    cartridges: u32,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
}

/// LTO tape generation.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Generation {
    /// LTO 8.
    Lto8,
    /// LTO 9.
    Lto9,
}

/// Runs `twin tape`.
pub(super) fn tape(args: &TapeArgs, out: &Output) -> anyhow::Result<()> {
    let (drives, robots, cartridges) = (args.drives, args.robots, args.cartridges);
    let library = match args.generation {
        Generation::Lto8 => TapeLibrary::lto8(drives, robots, cartridges),
        Generation::Lto9 => TapeLibrary::lto9(drives, robots, cartridges),
    };
    library.validate().map_err(|error| invalid_input("tape library", &error, Exit::Usage))?;
    let bar = spinner("simulating", false);
    let result = simulate(args, &library)?;
    bar.finish_and_clear();
    out.json("tape", &serde_json::json!({ "tape": result }))?;
    print(&result, out)
}

fn simulate(args: &TapeArgs, library: &TapeLibrary) -> anyhow::Result<TapeResult> {
    let seed = Seed::new(args.seed);
    let refuse =
        |error: Error| invalid_input(&format!("\"{}\"", args.reads), &error, Exit::Corrupt);
    let is_trace = Workload::named(&args.reads).is_none()
        && Path::new(&args.reads).exists()
        && !args.reads.ends_with(".toml");
    let placement = seed.child(b"placement");
    if is_trace {
        let trace = Trace::read(open(Path::new(&args.reads))?).map_err(refuse)?;
        let all = Instant::ZERO..Instant::from_nanos(u64::MAX);
        let reads = trace.reads().iter().copied();
        return library.run(reads, all, Placement::Uniform, placement).map_err(refuse);
    }
    let workload = workload(&args.reads)?;
    let window = workload.envelope.window_from()..workload.envelope.window_until();
    let reads = workload.reads(seed.child(b"workload")).map_err(refuse)?;
    library.run(reads, window, workload.placement, placement).map_err(refuse)
}

fn print(result: &TapeResult, out: &Output) -> anyhow::Result<()> {
    let (completion, time) = (&result.completion, &result.drive_time);
    let rows = [
        ("reads measured", group_digits(completion.count)),
        ("completion median", seconds(completion.p50)),
        ("completion p99", seconds(completion.p99)),
        ("completion p99.9", seconds(completion.p999)),
        ("completion max", seconds(completion.max)),
        ("drives read", percent(time.read)),
        ("drives locate", percent(time.locate)),
        ("drives load", percent(time.load)),
        ("drives unmount", percent(time.unmount)),
        ("drives wait for robots", percent(time.robot)),
        ("drives idle", percent(time.idle)),
        ("robots busy", percent(result.robots_busy)),
        ("mounts", group_digits(result.mounts)),
        ("reads per mount", format!("{:.2}", result.reads_per_mount)),
        ("queue max", group_digits(result.queue_max)),
        ("makespan", seconds(result.makespan)),
    ];
    rows.iter().try_for_each(|(name, value)| out.text(format!("{name:<24}{value:>14}")))
}
