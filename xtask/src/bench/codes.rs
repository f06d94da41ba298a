//! Compares our codes with the best other programs, alternating, on one thread each.
//!
//! Ours is the example `bench_erasure` of the crate `codes`; peers are small programs in
//! `bench/peers` that take the same arguments, built here with the machine's compilers: Go for
//! klauspost/reedsolomon, C for ISA-L. A peer that cannot be built is left out with a line that
//! says why. Signatures are compared with a CRC by a separate example.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::{Bench, Measurement};
use crate::shell;

/// Rounds in which every program runs once.
const ROUNDS: usize = 5;

/// A measurement: the argument of all programs, and for encoding and decoding the name of the row
/// and the target ratio to the best peer.
struct Shape {
    argument: &'static str,
    encode: Option<(&'static str, &'static str)>,
    decode: Option<(&'static str, &'static str)>,
}

const SHAPES: [Shape; 12] = [
    Shape {
        argument: "16+3:131072:3:hot",
        encode: Some(("16+3 encode", "1.7 x")),
        decode: Some(("16+3 decode, 3 lost", "1.9 x")),
    },
    Shape {
        argument: "16+3:32768:3:hot",
        encode: Some(("16+3 of 32 KiB encode", "none")),
        decode: Some(("16+3 of 32 KiB decode, 3 lost", "none")),
    },
    Shape {
        argument: "15+3:131072:3:hot",
        encode: Some(("15+3 encode", "1.7 x")),
        decode: Some(("15+3 decode, 3 lost", "1.9 x")),
    },
    Shape {
        argument: "16+3:131072:3:cold",
        encode: Some(("16+3 encode, cold", "1.15 x")),
        decode: Some(("16+3 decode, 3 lost, cold", "1.15 x")),
    },
    Shape {
        argument: "15+3:131072:3:cold",
        encode: Some(("15+3 encode, cold", "1.15 x")),
        decode: Some(("15+3 decode, 3 lost, cold", "1.15 x")),
    },
    Shape {
        argument: "100+8:102400:8:hot",
        encode: Some(("100+8 encode", "1.5 x")),
        decode: Some(("100+8 decode, 8 lost", "3.5 x")),
    },
    Shape {
        argument: "200+16:102400:16:hot",
        encode: Some(("200+16 encode", "1.0 x")),
        decode: Some(("200+16 decode, 16 lost", "2.5 x")),
    },
    Shape {
        argument: "6+1:4194304:1:hot",
        encode: Some(("6+1 encode", "0.95 x")),
        decode: Some(("6+1 decode, 1 lost", "0.95 x")),
    },
    Shape {
        argument: "20000+400:4096:400:hot",
        encode: Some(("20000+400 encode", "1.0 x")),
        decode: Some(("20000+400 decode, 400 lost", "4 x")),
    },
    Shape {
        argument: "20000+400:4096:50:hot",
        encode: None,
        decode: Some(("20000+400 decode, 50 lost", "6 x")),
    },
    Shape {
        argument: "32768+1024:4096:1024:hot",
        encode: Some(("32768+1024 encode", "1.0 x")),
        decode: Some(("32768+1024 decode, 1024 lost", "4 x")),
    },
    Shape {
        argument: "32768+1024:4096:50:hot",
        encode: None,
        decode: Some(("32768+1024 decode, 50 lost", "6 x")),
    },
];

/// A line of output of any of the programs.
#[derive(Debug, Deserialize)]
struct Line {
    mode: String,
    encode: f64,
    decode: f64,
}

/// A program that measures a code.
struct Program {
    path: PathBuf,
    /// Most shards of the codes that it can run.
    shards_max: usize,
}

/// Speeds of one mode, round by round.
#[derive(Clone, Debug, Default)]
struct Runs {
    encode: Vec<f64>,
    decode: Vec<f64>,
}

/// Speeds of each mode.
type Speeds = BTreeMap<String, Runs>;

/// Measures every shape with every program.
pub(super) fn codes(bench: &Bench) -> Result<Vec<Measurement>> {
    let ours = example("bench_erasure")?;
    let mut peers = Vec::new();
    for (name, built) in [("klauspost/reedsolomon", klauspost(bench)), ("ISA-L", isal(bench))] {
        match built {
            Ok(program) => peers.push(program),
            Err(error) => eprintln!("skipped: peer {name}: {error:#}"),
        }
    }
    let mut rows = Vec::new();
    for shape in &SHAPES {
        let (mut speeds, mut peer_speeds) = (Speeds::new(), Speeds::new());
        for _ in 0..ROUNDS {
            run(&ours, shape.argument, &mut speeds)?;
            for peer in peers.iter().filter(|peer| shards(shape.argument) <= peer.shards_max) {
                run(&peer.path, shape.argument, &mut peer_speeds)?;
            }
        }
        if let Some((row, target)) = shape.encode {
            rows.push(measured(row, target, shape.argument, &speeds, &peer_speeds, |runs| {
                &runs.encode
            }));
        }
        if let Some((row, target)) = shape.decode {
            rows.push(measured(row, target, shape.argument, &speeds, &peer_speeds, |runs| {
                &runs.decode
            }));
        }
    }
    Ok(rows)
}

/// Compares our best mode with the best mode of all peers, by medians.
fn measured(
    row: &'static str,
    target: &'static str,
    argument: &str,
    ours: &Speeds,
    peers: &Speeds,
    of: fn(&Runs) -> &Vec<f64>,
) -> Measurement {
    let best = |speeds: &Speeds| {
        let medians = speeds.iter().map(|(mode, runs)| (mode.clone(), of(runs).clone()));
        medians.max_by(|a, b| super::median(a.1.clone()).total_cmp(&super::median(b.1.clone())))
    };
    let (mode, runs) = best(ours).unwrap_or_default();
    let peer = best(peers).map(|(mode, runs)| (peer_name(&mode), runs));
    let input = format!("{argument}, {mode}, one thread, GB/s of information, {ROUNDS} rounds");
    Measurement { row, ours: runs, peer, unit: "GB/s", target, input }
}

/// Returns the peer's name as a static string.
fn peer_name(mode: &str) -> &'static str {
    match mode {
        "matrix" => "klauspost/reedsolomon 1.14.2",
        "leopard8" => "klauspost/reedsolomon 1.14.2 (Leopard GF(2^8))",
        "leopard16" => "klauspost/reedsolomon 1.14.2 (Leopard GF(2^16))",
        "isal xor_gen" => "ISA-L xor_gen",
        _ => "ISA-L",
    }
}

fn shards(argument: &str) -> usize {
    let shape = argument.split(':').next().unwrap_or_default();
    shape.split('+').filter_map(|count| count.parse::<usize>().ok()).sum()
}

fn run(program: &Path, argument: &str, speeds: &mut Speeds) -> Result<()> {
    let text = shell::read(shell::program(program).arg(argument))?;
    for line in text.lines() {
        let line: Line = serde_json::from_str(line)
            .with_context(|| format!("{} says {line:?}", program.display()))?;
        let runs = speeds.entry(line.mode).or_default();
        runs.encode.push(line.encode);
        runs.decode.push(line.decode);
    }
    Ok(())
}

/// Builds an example of the crate `codes` for release.
fn example(name: &str) -> Result<PathBuf> {
    let mut command = shell::cargo();
    command.args(["build", "--release", "--package", "fulgurite-codes", "--example", name]);
    shell::run(&mut command)?;
    Ok(shell::target().join("release/examples").join(name))
}

fn klauspost(bench: &Bench) -> Result<Program> {
    let path = bench.folder.join("klauspost");
    let mut command = shell::program("go");
    command.current_dir(shell::root().join("bench/peers/klauspost"));
    shell::read(command.args(["build", "-o"]).arg(&path).arg(".")).context("needs Go")?;
    Ok(Program { path, shards_max: usize::MAX })
}

fn isal(bench: &Bench) -> Result<Program> {
    let path = bench.folder.join("isal");
    let mut command = shell::program("cc");
    command.args(["-O2", "bench/peers/isal/isal.c", "-lisal", "-o"]).arg(&path);
    shell::read(&mut command).context("needs a C compiler and libisal-dev")?;
    Ok(Program { path, shards_max: 255 })
}

/// A line of the example that compares signatures.
#[derive(Debug, Deserialize)]
struct SignatureSpeed {
    place: String,
    ours: f64,
    crc: f64,
}

/// Compares signatures with the fastest 64-bit CRC.
pub(super) fn signature(_: &Bench) -> Result<Vec<Measurement>> {
    let path = example("bench_signature")?;
    let mut places: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for line in shell::read(shell::program(&path).arg("--json"))?.lines() {
            let line: SignatureSpeed =
                serde_json::from_str(line).context("a line of the example")?;
            let (ours, crc) = places.entry(line.place).or_default();
            ours.push(line.ours);
            crc.push(line.crc);
        }
    }
    ensure!(places.len() == 2, "the example measures in cache and from memory");
    Ok(places
        .into_iter()
        .map(|(place, (ours, crc))| Measurement {
            row: if place == "in cache" { "100 KiB in cache" } else { "100 KiB from memory" },
            target: if place == "in cache" { "1.5 x" } else { "0.95 x" },
            ours,
            peer: Some(("crc-fast CRC-64/NVME", crc)),
            unit: "GB/s",
            input: format!("one thread, medians of 101 slices, {ROUNDS} rounds"),
        })
        .collect())
}

/// Peaks of the example `roofline`: operation, memory level, and the name of the row.
const PEAKS: [(&str, &str, &str); 5] = [
    ("read", "memory", "read from memory"),
    ("copy", "memory", "copy in memory"),
    ("read", "second cache", "read in the second cache"),
    ("copy", "second cache", "copy in the second cache"),
    ("products", "first cache", "products in the first cache"),
];

/// A line of that example: a peak, or the settings it was measured with.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Peak {
    Rate { what: String, place: String, rate: f64 },
    Under { isa: String, second_cache_kib: u32 },
}

/// Measures this processor's peak performance: the rooflines of docs/codes.
pub(super) fn roofline(_: &Bench) -> Result<Vec<Measurement>> {
    let path = example("roofline")?;
    let (mut rates, mut under) = (vec![Vec::new(); PEAKS.len()], String::new());
    for _ in 0..ROUNDS {
        for line in shell::read(&mut shell::program(&path))?.lines() {
            match serde_json::from_str(line).context("a line of the example")? {
                Peak::Under { isa, second_cache_kib } => {
                    under = format!("{isa}, second cache {second_cache_kib} KiB");
                }
                Peak::Rate { what, place, rate } => {
                    let known = PEAKS.iter().position(|peak| peak.0 == what && peak.1 == place);
                    rates[known.with_context(|| format!("no peak {what}, {place}"))?].push(rate);
                }
            }
        }
    }
    PEAKS
        .into_iter()
        .zip(rates)
        .map(|((_, _, row), ours)| {
            ensure!(ours.len() == ROUNDS, "the example has no {row}");
            let input = format!("{under}, one thread, {ROUNDS} rounds");
            Ok(Measurement { row, ours, peer: None, unit: "GB/s", target: "none", input })
        })
        .collect()
}

/// Rows of LDPC: the code, the column of the example's table, name, unit and target.
const LDPC: [(&str, usize, &str, &str, &str); 5] = [
    ("16k-0.875", 3, "16k rate 0.875, 10 iterations", "Mbit/s", "2.5 x AFF3CT"),
    ("64k-0.875", 3, "64k rate 0.875, 10 iterations", "Mbit/s", "5 x AFF3CT"),
    ("64k-0.90", 5, "64k rate 0.90, early stop at SER 1e-2", "Mbit/s", ">= 1,500"),
    ("64k-0.90", 2, "64k rate 0.90, encode", "GB/s", ">= 3"),
    ("16k-0.90", 2, "16k rate 0.90, encode", "GB/s", ">= 3"),
];

/// Measures encoding and decoding of LDPC codes. AFF3CT, the peer, is in no package registry, so
/// nothing can alternate with ours.
pub(super) fn ldpc(_: &Bench) -> Result<Vec<Measurement>> {
    eprintln!("skipped: peer AFF3CT: it is in no package registry; build it by hand to compare");
    let path = example("ldpc_speed")?;
    let mut runs: Vec<Vec<f64>> = vec![Vec::new(); LDPC.len()];
    for _ in 0..ROUNDS {
        for rate in ["0.875", "0.90"] {
            let text = shell::read(shell::program(&path).arg(rate))?;
            let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
            // A code's last line is that of the best instruction set.
            for (run, (code, column, ..)) in runs.iter_mut().zip(LDPC) {
                let mut rows = text.lines().map(words).filter(|words| words[0] == code);
                if let Some(value) =
                    rows.next_back().and_then(|words| words.get(column)?.parse().ok())
                {
                    run.push(value);
                }
            }
        }
    }
    LDPC.into_iter()
        .zip(runs)
        .map(|((code, _, row, unit, target), ours)| {
            ensure!(ours.len() == ROUNDS, "ldpc_speed has no row for {code}");
            let input = format!("{code}, 3 bits a voxel, one thread, {ROUNDS} rounds");
            Ok(Measurement { row, ours, peer: None, unit, target, input })
        })
        .collect()
}
