//! The speed of the glass on one core: the simulated channel, decoders, codewords, whole reads.
//!
//! Ours is the example `glass_speed` of the crate `decode`, one measurement per process, in CPU
//! time, because on a shared machine wall time includes the others' work. ONNX Runtime, the peer of
//! the built-in engine, is the library that `FULGURITE_ONNXRUNTIME` names, or that of the lab's
//! environment; without one its rows are left out with a line that says so. tract, the other engine
//! for float32 networks, is measured when xtask is built with the feature `tract`. No GPU is
//! measured.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Bench, Measurement};
use crate::shell;

/// Whether the measured decoder is built with tract.
const HAS_TRACT: bool = cfg!(feature = "tract");

/// Rounds in which everything runs once.
const ROUNDS: usize = 5;

/// The shipped networks.
const FLOAT: &str = "models/nominal-md.onnx";
const INT8: &str = "models/nominal-md-int8.onnx";

/// A decoder with a network: arguments of the example, names of rows, targets.
struct Network {
    engine: &'static str,
    model: &'static str,
    name: &'static str,
    decode: (&'static str, &'static str),
    pair: (&'static str, &'static str),
    read: (&'static str, &'static str),
    alone: (&'static str, &'static str),
    ladder: &'static str,
    /// Index of the ONNX Runtime network that it is compared with.
    peer: Option<usize>,
}

const NETWORKS: [Network; 4] = [
    Network {
        engine: "builtin",
        model: FLOAT,
        name: "tract, float32",
        decode: ("learned, tract", ">= 0.8"),
        pair: ("learned, tract, two processes", ">= 1.9 x one"),
        read: ("analog read, learned alone, tract", "none"),
        alone: ("network without front end, tract", "none"),
        ladder: "analog read, tract",
        peer: Some(1),
    },
    Network {
        engine: "onnxruntime",
        model: FLOAT,
        name: "ONNX Runtime, float32",
        decode: ("learned, ONNX Runtime", ">= 1.4"),
        pair: ("learned, ONNX Runtime, two processes", ">= 1.9 x one"),
        read: ("analog read, learned alone, ONNX Runtime", "none"),
        alone: ("network without front end, ONNX Runtime", "none"),
        ladder: "analog read, ONNX Runtime",
        peer: None,
    },
    Network {
        engine: "onnxruntime",
        model: INT8,
        name: "ONNX Runtime, int8",
        decode: ("learned, ONNX Runtime int8", ">= 3.4"),
        pair: ("learned, ONNX Runtime int8, two processes", ">= 1.9 x one"),
        read: ("analog read, learned alone, ONNX Runtime int8", "none"),
        alone: ("network without front end, ONNX Runtime int8", "none"),
        ladder: "analog read, ONNX Runtime int8",
        peer: None,
    },
    Network {
        engine: "builtin",
        model: INT8,
        name: "built in, int8",
        decode: ("learned, built in, int8", ">= 3.4"),
        pair: ("learned, built in, int8, two processes", ">= 1.9 x one"),
        read: ("analog read, learned alone, built in, int8", ">= 1.0"),
        alone: ("network without front end, built in, int8", ">= 2 x"),
        ladder: "analog read, built in, int8",
        peer: Some(2),
    },
];

/// Runs all measurements.
pub(super) fn glass(_: &Bench) -> Result<Vec<Measurement>> {
    let ours = Example { path: example()?, library: library() };
    let has_library = ours.library.is_some();
    if !has_library {
        eprintln!(
            "skipped: ONNX Runtime: no library is named by FULGURITE_ONNXRUNTIME, and the lab's \
             environment has none"
        );
    }
    eprintln!("not measured: CUDA: this benchmark runs on CPUs only");
    if !HAS_TRACT {
        eprintln!("skipped: tract: build xtask with `--features tract` to measure it");
    }
    let is_there = |network: &Network| match network.engine {
        "builtin" => network.model == INT8 || HAS_TRACT,
        _ => has_library,
    };
    let networks = || NETWORKS.iter().enumerate().filter(|(_, network)| is_there(network));
    let mut rows = plain(&ours)?;
    let mut runs = vec![Vec::new(); NETWORKS.len()];
    for _ in 0..ROUNDS {
        for (at, network) in networks() {
            runs[at].push(ours.rate(&["learned", network.engine, network.model], "voxels", "")?);
        }
    }
    for (at, network) in networks() {
        let (row, target) = network.decode;
        let peer = network.peer.filter(|_| has_library);
        let peer = peer.map(|peer| (NETWORKS[peer].name, runs[peer].clone()));
        let (ours, unit) = (runs[at].clone(), "M voxels/s");
        rows.push(Measurement {
            row,
            ours,
            peer,
            unit,
            target,
            input: input("images to probabilities"),
        });
    }
    for (_, network) in networks() {
        rows.push(pair(&ours, network)?);
    }
    let mut reads = NETWORKS.map(|_| Read::default());
    for _ in 0..ROUNDS {
        for (at, network) in networks() {
            reads[at].add(&ours.run(&["analog", network.engine, network.model])?)?;
        }
    }
    for (at, network) in networks() {
        rows.push(reads[at].measured(network));
        let (row, target) = network.alone;
        let peer = network.peer.filter(|_| has_library);
        let peer = peer.map(|peer| (NETWORKS[peer].name, reads[peer].networks.clone()));
        let input = input("registered images of sectors of 100 KiB to logits, tiles and all");
        let unit = "M voxels/s";
        rows.push(Measurement { row, ours: reads[at].networks.clone(), peer, unit, target, input });
    }
    for (_, network) in networks() {
        rows.push(ladder(&ours, network)?);
    }
    Ok(rows)
}

/// Measures everything that needs no network.
fn plain(ours: &Example) -> Result<Vec<Measurement>> {
    const MILLIONS: &str = "M voxels/s";
    /// Row name; argument, counter and timer of the example; unit; target; description.
    type Plain = (&'static str, [&'static str; 3], &'static str, &'static str, &'static str);
    const ROWS: [Plain; 6] = [
        (
            "channel simulation",
            ["channel", "voxels", ""],
            MILLIONS,
            ">= 1.5",
            "written and imaged, 3 layers of neighbors on each side",
        ),
        (
            "registration",
            ["registration", "voxels", ""],
            MILLIONS,
            "none",
            "images to displacement",
        ),
        (
            "registration and resampling",
            ["registration", "voxels", "registered_s"],
            MILLIONS,
            "none",
            "images to the images of a network",
        ),
        (
            "registration and linear decoder",
            ["linear", "voxels", ""],
            MILLIONS,
            ">= 2",
            "images to probabilities",
        ),
        (
            "fidelity soft",
            ["soft", "voxels", ""],
            MILLIONS,
            ">= 20",
            "bytes to soft bits to bytes, LDPC 64k of rate 0.90, sectors of 100 KiB",
        ),
        (
            "fidelity sector",
            ["sector", "bytes", ""],
            "GB/s",
            ">= 1",
            "tracks of the profile desk in memory, 1 sector of 1,000 lost, checked and repaired",
        ),
    ];
    let mut runs = vec![Vec::new(); ROWS.len()];
    for _ in 0..ROUNDS {
        for (runs, (_, [word, count, part], unit, ..)) in runs.iter_mut().zip(ROWS) {
            let millions = ours.rate(&[word], count, part)?;
            runs.push(if unit == "GB/s" { millions / 1e3 } else { millions });
        }
    }
    let measured = ROWS.into_iter().zip(runs).map(|((row, _, unit, target, what), ours)| {
        Measurement { row, ours, peer: None, unit, target, input: input(what) }
    });
    Ok(measured.collect())
}

/// Measures two concurrent processes: the sum of their speeds over the speed of one alone.
fn pair(ours: &Example, network: &Network) -> Result<Measurement> {
    let words = ["learned", network.engine, network.model];
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let one = ours.rate(&words, "voxels", "")?;
        let start = || {
            let mut command = ours.command(&words);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
        };
        let children = [start()?, start()?];
        let mut sum = 0.0;
        for child in children {
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "a process of two ended with {}", output.status);
            sum += rate(&String::from_utf8_lossy(&output.stdout), "voxels", "")?;
        }
        ratios.push(sum / one);
    }
    let (row, target) = network.pair;
    let input = format!("{}: by the processor time of each", input(network.name));
    Ok(Measurement { row, ours: ratios, peer: None, unit: "x", target, input })
}

/// Measurements of whole analog reads of sectors, and the network's share of them.
#[derive(Default)]
struct Read {
    /// Megabytes a second.
    rates: Vec<f64>,
    /// Millions of voxels a second of the network alone.
    networks: Vec<f64>,
    /// Share of the time, in percent.
    shares: Vec<f64>,
}

impl Read {
    fn add(&mut self, text: &str) -> Result<()> {
        self.rates.push(rate(text, "bytes", "")?);
        self.networks.push(rate(text, "voxels", "inference_s")?);
        let line: Value = serde_json::from_str(text)?;
        self.shares.push(100.0 * number(&line, "inference_s")? / number(&line, "processor_s")?);
        Ok(())
    }

    fn measured(&self, network: &Network) -> Measurement {
        let (row, target) = network.read;
        let input = format!(
            "{}: images of 100 KiB sectors to checked bytes; inference {:.1} %",
            input(network.name),
            super::median(self.shares.clone())
        );
        Measurement { row, ours: self.rates.clone(), peer: None, unit: "MB/s", target, input }
    }
}

/// Measures reads as an archive does them: the linear decoder first, the network where that fails.
fn ladder(ours: &Example, network: &Network) -> Result<Measurement> {
    let mut rates = Vec::new();
    let mut counts = [0.0; 3];
    for _ in 0..ROUNDS {
        let text = ours.run(&["ladder", network.engine, network.model])?;
        rates.push(rate(&text, "bytes", "")?);
        let line: Value = serde_json::from_str(&text)?;
        for (count, name) in counts.iter_mut().zip(["sectors", "decodes", "lost"]) {
            *count = number(&line, name)?;
        }
    }
    let [sectors, decodes, lost] = counts;
    let input = format!(
        "{}: images of {sectors:.0} sectors of 100 KiB, each of its own drive and platter, to \
         checked bytes; linear first, {:.0} went on to the network, {lost:.0} lost",
        input(network.name),
        decodes - sectors
    );
    Ok(Measurement {
        row: network.ladder,
        ours: rates,
        peer: None,
        unit: "MB/s",
        target: ">= 3",
        input,
    })
}

fn input(what: &str) -> String {
    format!("preset nominal, {what}, one core, processor time, {ROUNDS} rounds")
}

/// The measuring program, and the library that it may load.
struct Example {
    path: PathBuf,
    library: Option<PathBuf>,
}

impl Example {
    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = shell::program(&self.path);
        command.args(words);
        if let Some(library) = &self.library {
            command.env("FULGURITE_ONNXRUNTIME", library);
        }
        command
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        shell::read(&mut self.command(words))
    }

    /// Runs the example; returns millions a second.
    fn rate(&self, words: &[&str], count: &str, part: &str) -> Result<f64> {
        rate(&self.run(words)?, count, part)
    }
}

/// Returns millions a second of a counter, over the whole time or a part of it.
fn rate(text: &str, count: &str, part: &str) -> Result<f64> {
    let line: Value =
        serde_json::from_str(text).with_context(|| format!("glass_speed printed {text:?}"))?;
    let seconds = number(&line, if part.is_empty() { "processor_s" } else { part })?;
    Ok(number(&line, count)? / 1e6 / seconds)
}

fn number(line: &Value, name: &str) -> Result<f64> {
    line[name].as_f64().with_context(|| format!("{name} is not in {line}"))
}

fn example() -> Result<PathBuf> {
    let mut command = shell::cargo();
    command.args([
        "build",
        "--release",
        "--package",
        "fulgurite-decode",
        "--example",
        "glass_speed",
    ]);
    if HAS_TRACT {
        command.args(["--features", "tract"]);
    }
    shell::run(&mut command)?;
    Ok(shell::target().join("release/examples/glass_speed"))
}

/// Returns the library that the environment variable names, or the lab's.
fn library() -> Option<PathBuf> {
    let named =
        ["FULGURITE_ONNXRUNTIME", "ORT_DYLIB_PATH"].into_iter().filter_map(std::env::var_os);
    named.map(PathBuf::from).find(|path| path.is_file()).or_else(|| {
        let found = walkdir::WalkDir::new(shell::target().join("lab-venv")).sort_by_file_name();
        found.into_iter().flatten().map(walkdir::DirEntry::into_path).find(|path| is_library(path))
    })
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libonnxruntime.") && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn rate_is_the_count_over_the_selected_time() {
        let line = r#"{"voxels":3000000,"bytes":6000000,"processor_s":1.5,"part_s":0.5}"#;
        assert!((rate(line, "voxels", "").unwrap() - 2.0).abs() < 1e-9);
        assert!((rate(line, "bytes", "part_s").unwrap() - 12.0).abs() < 1e-9);
        assert!(rate(line, "voxels", "other_s").is_err());
        assert!(rate("no JSON", "voxels", "").is_err());
    }
}
