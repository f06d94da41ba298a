//! `cargo xtask bench`: the speed of a release build, client and server on this machine.
//!
//! Numbers are medians over runs (`REPEATS`, or a benchmark's own `ROUNDS`). Where a plain tool
//! does a comparable job, its runs alternate with ours in the same minute on the same disk, so that
//! a noisy machine is noisy for both. A row names machine, commit and command; without them a
//! number means nothing.
//!
//! `--against FOLDER` compares with another release build of ours instead of the plain tool, for
//! example from before a change: `target/release` of another checkout, with its program and its
//! `examples/fill_catalog`. Then whole benchmarks alternate.
//!
//! Not a profiler and not a gate: targets are printed beside the rows, but nothing fails on them.

mod build;
mod client;
mod codes;
mod compare;
mod geo;
mod geo_wan;
mod glass;
mod ingest;
mod peer;
mod pipeline;
mod rack;
mod recover;
mod s3;
mod server;
mod start;
mod tomes;
mod twin;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::shell;

/// Peer name of another build of ours.
const OTHER_BUILD: &str = "the other build";
/// Highest load average (1 minute) at which a row is recorded.
const LOAD_MAX: f64 = 0.5;
/// Runs per row; a row is their median.
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
    /// Sizes of its caches, and its vector instructions that kernels support.
    caches: String,
    instructions: String,
    commit: String,
    command: String,
}

/// The result of a benchmark; the rest of a row is common to all.
struct Measurement {
    row: &'static str,
    ours: Vec<f64>,
    peer: Option<(&'static str, Vec<f64>)>,
    unit: &'static str,
    target: &'static str,
    input: String,
}

/// The environment of benchmarks.
#[derive(Clone, Debug)]
struct Bench {
    /// The release build of the archive.
    binary: PathBuf,
    /// The release build of the catalog filler.
    fill_catalog: PathBuf,
    /// An empty folder on the project's disk.
    folder: PathBuf,
    /// Number of objects, for benchmarks that can be scaled.
    objects: Option<u32>,
}

/// A benchmark: its name, and its function.
type Entry = (&'static str, fn(&Bench) -> Result<Vec<Measurement>>);

const BENCHES: [Entry; 19] = [
    ("build", build::build),
    ("ingest-large", ingest::large),
    ("ingest-small", ingest::small),
    ("s3", s3::s3),
    ("seal", pipeline::seal),
    ("restore", pipeline::restore),
    ("memory", pipeline::memory),
    ("start", start::start),
    ("recover", recover::recover),
    ("codes", codes::codes),
    ("signature", codes::signature),
    ("roofline", codes::roofline),
    ("ldpc", codes::ldpc),
    ("twin", twin::twin),
    ("glass", glass::glass),
    ("rack", rack::rack),
    ("tomes", tomes::tomes),
    ("geo", geo::geo),
    ("geo-wan", geo_wan::geo_wan),
];

/// Benchmarks that need no server: they build their own examples.
const OWN_BUILDS: [&str; 12] = [
    "build",
    "recover",
    "codes",
    "signature",
    "roofline",
    "ldpc",
    "twin",
    "glass",
    "rack",
    "tomes",
    "geo",
    "geo-wan",
];

/// Runs one benchmark, or all.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut name = None;
    let (mut is_json, mut is_recorded, mut may_be_loaded) = (false, false, false);
    let (mut objects, mut against) = (None, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--objects" => objects = Some(args.next().context("--objects COUNT")?.parse()?),
            "--against" => against = Some(args.next().context("--against FOLDER")?),
            "--json" => is_json = true,
            "--record" => is_recorded = true,
            "--loaded" => may_be_loaded = true,
            "--compare" => {
                let path = history();
                let text = std::fs::read_to_string(&path).with_context(|| format!("{path:?}"))?;
                print!("{}", compare::compare(&text)?);
                return Ok(());
            }
            _ if name.is_none() && BENCHES.iter().any(|(known, _)| *known == arg.as_str()) => {
                name = Some(arg.as_str());
            }
            _ => bail!("no benchmark {arg:?}; there are {}", BENCHES.map(|b| b.0).join(", ")),
        }
    }
    if is_recorded && !may_be_loaded {
        check_load(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default())?;
    }
    let needs_server = name.is_none_or(|name| !OWN_BUILDS.contains(&name));
    let bench = Bench { objects, ..prepare(needs_server)? };
    let other = against.map(|folder| bench.with_release(Path::new(folder))).transpose()?;
    if other.is_some() && (!needs_server || name.is_none()) {
        bail!("--against is for one benchmark of the server: not {}", OWN_BUILDS.join(", "));
    }
    let (machine, commit) = (machine()?, commit()?);
    eprintln!("machine: {machine}\ncommit: {commit}");
    for (known, work) in BENCHES {
        if name.is_some_and(|name| name != known) {
            continue;
        }
        eprintln!("command: cargo xtask bench {known}");
        let measured = match &other {
            None => fresh(&bench, work),
            Some(other) => alternating(&bench, other, work),
        };
        for measured in measured.with_context(|| format!("benchmark {known}"))? {
            let row = finish(known, measured, &machine, &commit);
            print(&row, is_json)?;
            if is_recorded {
                record(&row)?;
            }
        }
    }
    empty(&bench.folder)
}

impl Bench {
    /// Returns a copy that uses the programs of another release build.
    fn with_release(&self, release: &Path) -> Result<Self> {
        // An absolute path, because the server starts in another directory.
        let release = release.canonicalize().with_context(|| format!("no build {release:?}"))?;
        let binary = release.join("fulgurite");
        if !binary.is_file() {
            bail!("{binary:?} is not there: build with cargo build --release -p fulgurite");
        }
        let fill_catalog = release.join("examples/fill_catalog");
        Ok(Self { binary, fill_catalog, ..self.clone() })
    }
}

/// Runs a benchmark in an empty folder.
fn fresh(bench: &Bench, work: fn(&Bench) -> Result<Vec<Measurement>>) -> Result<Vec<Measurement>> {
    empty(&bench.folder)?;
    work(bench)
}

/// Runs a benchmark of two builds alternately, equally often; the other build takes the peer's
/// place.
fn alternating(
    bench: &Bench,
    other: &Bench,
    work: fn(&Bench) -> Result<Vec<Measurement>>,
) -> Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for round in 1..=REPEATS {
        eprintln!("round {round} of {REPEATS}");
        let (ours, peer_runs) = (fresh(bench, work)?, fresh(other, work)?);
        if all.is_empty() {
            all = ours.iter().map(Measurement::without_runs).collect();
        }
        for (row, (ours, peer_runs)) in all.iter_mut().zip(ours.into_iter().zip(peer_runs)) {
            row.add(ours.ours, peer_runs.ours);
        }
    }
    Ok(all)
}

impl Measurement {
    /// Returns a copy without runs.
    fn without_runs(&self) -> Self {
        let Self { row, unit, target, ref input, .. } = *self;
        let peer = Some((OTHER_BUILD, Vec::new()));
        Self { row, ours: Vec::new(), peer, unit, target, input: input.clone() }
    }

    fn add(&mut self, ours: Vec<f64>, peer_runs: Vec<f64>) {
        self.ours.extend(ours);
        if let Some((_, runs)) = &mut self.peer {
            runs.extend(peer_runs);
        }
    }
}

/// Prepares folders and programs of benchmarks; those of `OWN_BUILDS` need no server.
fn prepare(needs_server: bool) -> Result<Bench> {
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

fn finish(bench: &'static str, measured: Measurement, machine: &str, commit: &str) -> Row {
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
        caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
        instructions: instructions(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
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

/// The file of recorded rows.
fn history() -> PathBuf {
    shell::root().join("bench/history.ndjson")
}

fn record(row: &Row) -> Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(history())?;
    writeln!(file, "{}", serde_json::to_string(row)?)?;
    Ok(())
}

/// Returns the median: the middle run, or the mean of the two in the middle.
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

/// Converts bytes and a duration to MB/s (10^6 bytes).
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

/// Refuses a loaded machine. If the load average cannot be read, the machine counts as idle.
fn check_load(loadavg: &str) -> Result<()> {
    let load = loadavg.split(' ').next().and_then(|minute| minute.parse::<f64>().ok());
    match load {
        Some(load) if load > LOAD_MAX => bail!(
            "the load is {load}, and rows are recorded up to {LOAD_MAX}: wait, or pass --loaded"
        ),
        Some(_) | None => Ok(()),
    }
}

/// Describes a processor's caches, as the kernel reports them.
fn caches(folder: &Path) -> String {
    let caches = (0..8).filter_map(|index| {
        let read = |what: &str| {
            let text = std::fs::read_to_string(folder.join(format!("index{index}/{what}")));
            text.ok().map(|text| text.trim().to_owned())
        };
        let (level, kind, size) = (read("level")?, read("type")?, read("size")?);
        (kind != "Instruction").then(|| format!("L{level} {size}"))
    });
    caches.collect::<Vec<_>>().join(", ")
}

/// Returns the vector instructions among the processor's flags.
fn instructions(cpuinfo: &str) -> String {
    const KNOWN: [&str; 7] =
        ["avx2", "gfni", "vpclmulqdq", "avx512f", "avx512bw", "avx512_vbmi", "asimd"];
    let is_list = |line: &&str| line.starts_with("flags") || line.starts_with("Features");
    let line = cpuinfo.lines().find(is_list).unwrap_or_default();
    let has = |name: &&str| {
        line.split_whitespace().any(|flag| flag.replace('_', "") == name.replace('_', ""))
    };
    KNOWN.into_iter().filter(has).collect::<Vec<_>>().join(" ")
}

fn commit() -> Result<String> {
    let commit = shell::read(shell::program("git").args(["rev-parse", "--short=12", "HEAD"]))?;
    let mut status = shell::program("git");
    let changed = shell::read(status.args(["status", "--porcelain", "--untracked-files=no"]))?;
    Ok(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot empty {folder:?}"))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {folder:?}"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{
        Bench, Measurement, OTHER_BUILD, alternating, caches, check_load, finish, instructions,
        median, megabytes_per_second,
    };

    #[test]
    fn loaded_machine_records_nothing() {
        assert!(check_load("0.31 2.00 3.00 1/99 1234").is_ok());
        assert!(check_load("").is_ok(), "an unknown load counts as idle");
        let refused = check_load("0.71 0.10 0.10 1/99 1234").unwrap_err().to_string();
        assert!(refused.contains("the load is 0.71") && refused.contains("--loaded"), "{refused}");
    }

    #[test]
    fn row_describes_its_machine() {
        let cpuinfo = "model name : X\nflags\t: fpu avx2 gfni avx512f avx512vbmi\nflags\t: none";
        assert_eq!(instructions(cpuinfo), "avx2 gfni avx512f avx512_vbmi");
        assert_eq!(instructions(""), "");
        let folder = tempfile::tempdir().unwrap();
        for (index, kind, size) in
            [(0, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "1M")]
        {
            let cache = folder.path().join(format!("index{index}"));
            std::fs::create_dir(&cache).unwrap();
            let level = if index == 2 { "2\n" } else { "1\n" };
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                std::fs::write(cache.join(name), text).unwrap();
            }
        }
        assert_eq!(caches(folder.path()), "L1 48K, L2 1M");
    }

    #[test]
    fn median_ignores_order_and_outliers() {
        assert!((median(vec![900.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 900.0]) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn alternating_builds_share_a_row() {
        let folder = tempfile::tempdir().unwrap();
        let bench = |binary: &str| Bench {
            binary: binary.into(),
            fill_catalog: PathBuf::new(),
            folder: folder.path().join("bench"),
            objects: None,
        };
        let work = |bench: &Bench| {
            let ours = vec![if bench.binary.ends_with("new") { 3.0 } else { 2.0 }];
            let (row, unit, target) = ("row", "MB/s", "none");
            Ok(vec![Measurement { row, ours, peer: None, unit, target, input: String::new() }])
        };
        let rows = alternating(&bench("new"), &bench("old"), work).unwrap();
        let row = finish("seal", rows.into_iter().next().unwrap(), "machine", "commit");
        assert_eq!((row.ours, row.peer, row.ratio), (3.0, Some(2.0), Some(1.5)));
        assert_eq!(row.peer_name, Some(OTHER_BUILD));
        let missing = bench("new").with_release(folder.path()).unwrap_err();
        assert!(missing.to_string().contains("build with cargo"), "{missing}");
    }

    #[test]
    fn rates_are_in_megabytes_per_second() {
        let rate = megabytes_per_second(5_000_000, std::time::Duration::from_millis(500));
        assert!((rate - 10.0).abs() < 1e-9);
    }
}
