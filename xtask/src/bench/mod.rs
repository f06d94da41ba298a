//! `cargo xtask bench`: the speed of a release build, client and server on this machine.
//!
//! Every number is the median of `REPEATS` runs. Where a plain tool does a comparable job, its runs
//! alternate with ours in the same minute on the same disk, so that a noisy machine is noisy for
//! both. A row names machine, commit and command; without them a number means nothing.
//!
//! Not a profiler and not a gate: targets are printed beside the rows, nothing fails on them.

mod client;
mod codes;
mod glass;
mod ingest;
mod peer;
mod pipeline;
mod recover;
mod server;
mod start;
mod twin;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::shell;

/// Runs of which a row is the median.
const REPEATS: usize = 3;

/// One measured number, as it is recorded.
#[derive(Clone, Debug, Serialize)]
struct Row {
    bench: &'static str,
    row: &'static str,
    ours: f64,
    peer: Option<f64>,
    peer_name: Option<&'static str>,
    ratio: Option<f64>,
    unit: &'static str,
    target: &'static str,
    input: String,
    machine: String,
    commit: String,
    command: String,
}

/// What a benchmark found; the rest of a row is the same for all.
struct Measured {
    row: &'static str,
    ours: Vec<f64>,
    peer: Option<(&'static str, Vec<f64>)>,
    unit: &'static str,
    target: &'static str,
    input: String,
}

/// What every benchmark needs.
struct Bench {
    /// The release build of the archive.
    binary: PathBuf,
    /// The release build of the catalog filler.
    fill_catalog: PathBuf,
    /// An empty folder on the project's disk.
    folder: PathBuf,
    /// How many objects, where a benchmark can be made smaller.
    objects: Option<u32>,
}

/// A benchmark: its name, and what runs it.
type Entry = (&'static str, fn(&Bench) -> Result<Vec<Measured>>);

const BENCHES: [Entry; 12] = [
    ("ingest-large", ingest::large),
    ("ingest-small", ingest::small),
    ("seal", pipeline::seal),
    ("restore", pipeline::restore),
    ("memory", pipeline::memory),
    ("start", start::start),
    ("recover", recover::recover),
    ("codes", codes::codes),
    ("signature", codes::signature),
    ("ldpc", codes::ldpc),
    ("twin", twin::twin),
    ("glass", glass::glass),
];

/// Benchmarks that need no server: they build examples of their own.
const OWN_BUILDS: [&str; 6] = ["recover", "codes", "signature", "ldpc", "twin", "glass"];

/// Runs one benchmark, or all.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut name = None;
    let (mut is_json, mut is_recorded) = (false, false);
    let mut objects = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--objects" => objects = Some(args.next().context("--objects COUNT")?.parse()?),
            "--json" => is_json = true,
            "--record" => is_recorded = true,
            _ if name.is_none() && BENCHES.iter().any(|(known, _)| *known == arg.as_str()) => {
                name = Some(arg.as_str());
            }
            _ => bail!("no benchmark {arg:?}; there are {}", BENCHES.map(|b| b.0).join(", ")),
        }
    }
    let needs_server = name.is_none_or(|name| !OWN_BUILDS.contains(&name));
    let bench = Bench { objects, ..build(needs_server)? };
    let (machine, commit) = (machine()?, commit()?);
    eprintln!("machine: {machine}\ncommit: {commit}");
    for (known, work) in BENCHES {
        if name.is_some_and(|name| name != known) {
            continue;
        }
        eprintln!("command: cargo xtask bench {known}");
        empty(&bench.folder)?;
        for measured in work(&bench).with_context(|| format!("benchmark {known}"))? {
            let row = finish(known, measured, &machine, &commit);
            print(&row, is_json)?;
            if is_recorded {
                record(&row)?;
            }
        }
    }
    empty(&bench.folder)
}

/// The folders and programs of benchmarks; those of `OWN_BUILDS` need no server.
fn build(needs_server: bool) -> Result<Bench> {
    let mut command = shell::cargo();
    command.args([
        "build",
        "--release",
        "--package",
        "fulgurite",
        "--package",
        "fulgurite-archive",
    ]);
    if needs_server {
        shell::run(command.args(["--bins", "--example", "fill_catalog"]))?;
    }
    let release = shell::target().join("release");
    Ok(Bench {
        binary: release.join("fulgurite"),
        fill_catalog: release.join("examples/fill_catalog"),
        folder: shell::target().join("bench"),
        objects: None,
    })
}

fn finish(bench: &'static str, measured: Measured, machine: &str, commit: &str) -> Row {
    let ours = median(measured.ours);
    let (peer_name, peer) = measured.peer.map(|(name, runs)| (name, median(runs))).unzip();
    Row {
        bench,
        row: measured.row,
        ours,
        peer,
        peer_name,
        ratio: peer.map(|peer| ours / peer),
        unit: measured.unit,
        target: measured.target,
        input: measured.input,
        machine: machine.to_owned(),
        commit: commit.to_owned(),
        command: format!("cargo xtask bench {bench}"),
    }
}

fn print(row: &Row, is_json: bool) -> Result<()> {
    if is_json {
        println!("{}", serde_json::to_string(row)?);
        return Ok(());
    }
    let peer = row.peer_name.zip(row.peer).zip(row.ratio);
    let peer = peer.map(|((name, value), ratio)| format!(", {name} {value:.1}, ratio {ratio:.2}"));
    println!(
        "{} {}: {:.1} {} (target {}{}); {}",
        row.bench,
        row.row,
        row.ours,
        row.unit,
        row.target,
        peer.unwrap_or_default(),
        row.input
    );
    Ok(())
}

fn record(row: &Row) -> Result<()> {
    let folder = shell::root().join("bench");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("history.ndjson");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
    writeln!(file, "{}", serde_json::to_string(row)?)?;
    Ok(())
}

/// The middle run, or the mean of the two in the middle.
fn median(mut runs: Vec<f64>) -> f64 {
    assert!(!runs.is_empty(), "a row has at least one run");
    runs.sort_by(f64::total_cmp);
    let middle = runs.len() / 2;
    if runs.len().is_multiple_of(2) {
        f64::midpoint(runs[middle - 1], runs[middle])
    } else {
        runs[middle]
    }
}

/// Bytes in a time, as MB/s (10^6 bytes).
fn megabytes_per_second(bytes: u64, took: std::time::Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate is printed with four digits")]
    let megabytes = bytes as f64 / 1e6;
    megabytes / took.as_secs_f64()
}

fn machine() -> Result<String> {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown CPU", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().context("cannot count cores")?;
    Ok(format!("{model}, {cores} cores"))
}

fn commit() -> Result<String> {
    let commit = shell::read(shell::program("git").args(["rev-parse", "--short=12", "HEAD"]))?;
    let mut status = shell::program("git");
    let changed = shell::read(status.args(["status", "--porcelain", "--untracked-files=no"]))?;
    Ok(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

fn empty(folder: &std::path::Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot empty {folder:?}"))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {folder:?}"))
}

#[cfg(test)]
mod tests {
    use super::{median, megabytes_per_second};

    #[test]
    fn a_median_ignores_the_order_and_the_outlier() {
        assert!((median(vec![900.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 900.0]) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn rates_are_in_millions_of_bytes() {
        let rate = megabytes_per_second(5_000_000, std::time::Duration::from_millis(500));
        assert!((rate - 10.0).abs() < 1e-9);
    }
}
