//! The tomes: the CPU's work for a block, checks, memory, a live set compared with plain files on
//! one disk, and the twin.
//!
//! Ours are the examples `core_speed` of the crate `tome-core`, `tome_speed` and `recover_speed` of
//! `tome`, `bench_erasure` of `codes` and `speed` of `twin`. Plain files are written and read by
//! the same program, alternating with ours. The disks of the tomes are simulated and take no time;
//! the one below their directories is real. The protocol's delays are skipped, except in the rows
//! that say so.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Bench, Measurement};
use crate::shell;

/// Rounds of short measurements, and of those that alternate with plain files.
const ROUNDS: usize = 5;
/// MiB of user data that are put at once, and that are read.
const PUT_MIB: &str = "64";
const READ_MIB: &str = "256";
/// Blocks of each tome whose group is checked.
const CHECKED: &str = "1000000";
/// Blocks of the tomes whose memory is measured, unless the command says how many.
const BLOCKS: [u32; 2] = [1_000_000, 10_000_000];
/// Simulated cycles of a group.
const CYCLES: &str = "200000";
/// Mean time to data loss of a group, from another solver of the Markov chain: 1.402e10 h.
const TARGET_H: &str = "14,020 within 1 %";
/// Number of puts of a block.
const PUTS: &str = "200";
/// Objects whose index is recovered, unless the command says how many.
const RECOVERED: u32 = 100_000;

/// Runs all measurements.
pub(super) fn tomes(bench: &Bench) -> Result<Vec<Measurement>> {
    let core = example("fulgurite-tome-core", "core_speed")?;
    let codes = example("fulgurite-codes", "bench_erasure")?;
    let live = example("fulgurite-tome", "tome_speed")?;
    let twin = example("fulgurite-twin", "speed")?;
    let mut rows = coding(&core)?;
    rows.extend(parity(&codes)?);
    rows.extend(written(&live, &bench.folder)?);
    rows.extend(with_delays(&live, &bench.folder)?);
    rows.extend(read(&live, &bench.folder)?);
    rows.extend(synced(&live, &bench.folder)?);
    rows.extend(checks(&core)?);
    rows.extend(recovered(&bench.folder, bench.objects.unwrap_or(RECOVERED))?);
    rows.extend(lifetimes(&twin)?);
    rows.push(year(&twin)?);
    match bench.objects {
        Some(count) => rows.extend(memory(&core, count)?),
        None => {
            for count in BLOCKS {
                rows.extend(memory(&core, count)?);
            }
        }
    }
    Ok(rows)
}

/// Measures the CPU's work for a block.
fn coding(ours: &Path) -> Result<Vec<Measurement>> {
    /// Names of the figure and of its row, target, and description.
    const ROWS: [[&str; 4]; 8] = [
        ["signature_hot", "signature, in cache", ">= 5", "a block signed"],
        ["signature_cold", "signature, from memory", ">= 5", "a block signed"],
        ["xor_hot", "XOR fold, in cache", ">= 10", "a delta added to parity 0 of 13+3"],
        ["xor_cold", "XOR fold, from memory", ">= 10", "a delta added to parity 0 of 13+3"],
        ["product_hot", "product fold, in cache", "none", "a delta added to parity 1 of 13+3"],
        ["product_cold", "product fold, from memory", "none", "a delta added to parity 1 of 13+3"],
        ["put_hot", "62+2, a block a time, in cache", "none", "both parities follow a data block"],
        ["put_cold", "62+2, a block a time, from memory", "none", "both parities follow a block"],
    ];
    let mut runs = vec![Vec::new(); ROWS.len()];
    for _ in 0..ROUNDS {
        let line = last(ours, &["coding"])?;
        for (runs, [name, ..]) in runs.iter_mut().zip(ROWS) {
            runs.push(number(&line, name)?);
        }
    }
    let rows = ROWS.into_iter().zip(runs).map(|([_, row, target, what], ours)| {
        let input =
            format!("{what}, blocks of 128 KiB; one thread, processor time, {ROUNDS} rounds");
        plain(row, ours, "GB/s", target, input)
    });
    Ok(rows.collect())
}

/// Measures encoding all parity of a segment and of a group at once.
fn parity(ours: &Path) -> Result<Vec<Measurement>> {
    const ROWS: [[&str; 2]; 4] = [
        ["62+2:131072:2:hot", "62+2 encode, one stripe again and again"],
        ["62+2:131072:2:cold", "62+2 encode, from memory"],
        ["13+3:131072:3:hot", "13+3 encode, one stripe again and again"],
        ["13+3:131072:3:cold", "13+3 encode, from memory"],
    ];
    let mut runs = vec![Vec::new(); ROWS.len()];
    for _ in 0..ROUNDS {
        for (runs, [argument, _]) in runs.iter_mut().zip(ROWS) {
            runs.push(number(&last(ours, &[argument])?, "encode")?);
        }
    }
    let rows = ROWS.into_iter().zip(runs).map(|([argument, row], ours)| {
        let input =
            format!("{argument}, GB/s of information; one thread, processor time, {ROUNDS} rounds");
        plain(row, ours, "GB/s", ">= 4", input)
    });
    Ok(rows.collect())
}

/// Measures objects put and protected, compared with plain files of the same number of written
/// bytes.
fn written(ours: &Path, folder: &Path) -> Result<Vec<Measurement>> {
    let (rounds, folder) = (ROUNDS.to_string(), folder.display().to_string());
    let found = lines(ours, &["written", &folder, PUT_MIB, &rounds])?;
    let of =
        |name: &str| -> Result<Vec<f64>> { found.iter().map(|line| number(line, name)).collect() };
    let users = PUT_MIB.parse::<f64>()? * f64::from(1u32 << 20);
    let rates = |bytes: Vec<f64>, seconds: Vec<f64>| -> Vec<f64> {
        bytes.into_iter().zip(seconds).map(|(bytes, seconds)| bytes / 1e6 / seconds).collect()
    };
    let amplified: Vec<f64> = of("written")?.iter().map(|written| written / users).collect();
    let input = format!(
        "{PUT_MIB} MiB in objects of 8 MiB put at once to 16 tomes, 13+3 and 62+2, of which one \
         may turn, and as many bytes as that wrote in 16 plain files, synced; in turn, {ROUNDS} \
         rounds, by the clock; processor time {:.2} s, plain {:.2} s",
        super::median(of("processor_s")?),
        super::median(of("plain_processor_s")?)
    );
    let each = vec![users; found.len()];
    let (user, local) = (rates(each.clone(), of("protected_s")?), rates(each, of("local_s")?));
    let (all, peer) =
        (rates(of("written")?, of("protected_s")?), rates(of("plain_bytes")?, of("plain_s")?));
    let peer = Some(("16 plain files, synced", peer));
    let unit = "MB/s";
    let what = "bytes of users by the clock, until every parity has folded them";
    let (row, target) = ("protected write, all that is written", ">= 0.5 x");
    Ok(vec![
        Measurement { row, ours: all, peer, unit, target, input: input.clone() },
        plain("protected write, of users", user, unit, "none", format!("{what}; {input}")),
        plain("acknowledged write, of users", local, unit, "none", input.clone()),
        plain("write amplification", amplified, "x", "none", format!("counted by Linux; {input}")),
    ])
}

/// Measures the same once in real time, with all delays.
fn with_delays(ours: &Path, folder: &Path) -> Result<Vec<Measurement>> {
    let line = last(ours, &["rests", &folder.display().to_string(), PUT_MIB])?;
    let input = format!(
        "{PUT_MIB} MiB put at once, waits of the protocol included (a disk turns 2 s for nothing \
         before its token goes), one run"
    );
    let rows =
        [("acknowledged, with all waits", "local_s"), ("protected, with all waits", "protected_s")];
    let row = |(row, name)| Ok(plain(row, vec![number(&line, name)?], "s", "none", input.clone()));
    rows.into_iter().map(row).collect()
}

/// Measures objects got, compared with plain files.
fn read(ours: &Path, folder: &Path) -> Result<Vec<Measurement>> {
    let (rounds, folder) = (ROUNDS.to_string(), folder.display().to_string());
    let found = lines(ours, &["read", &folder, READ_MIB, &rounds])?;
    let bytes = READ_MIB.parse::<f64>()? * f64::from(1u32 << 20) / 1e6;
    let mut rows = Vec::new();
    for (row, place) in [("get, cold", "cold"), ("get, warm", "warm")] {
        let of = |who: &str, what: &str| -> Result<Vec<f64>> {
            found.iter().map(|line| number(line, &format!("{who}_{place}{what}"))).collect()
        };
        let rates = |who: &str| -> Result<Vec<f64>> {
            Ok(of(who, "_s")?.into_iter().map(|seconds| bytes / seconds).collect())
        };
        let input = format!(
            "{READ_MIB} MiB in objects of 8 MiB, one after the other from a tome that turns, and \
             as much in 16 plain files; in turn, {ROUNDS} rounds, by the clock; processor time \
             {:.2} s, plain {:.2} s",
            super::median(of("get", "_processor_s")?),
            super::median(of("plain", "_processor_s")?)
        );
        let (ours, peer) = (rates("get")?, Some(("16 plain files", rates("plain")?)));
        rows.push(Measurement { row, ours, peer, unit: "MB/s", target: ">= 0.9 x", input });
    }
    Ok(rows)
}

/// Measures how much an additional synced row would cost a put.
fn synced(ours: &Path, folder: &Path) -> Result<Vec<Measurement>> {
    let line = last(ours, &["rows", &folder.display().to_string(), PUTS])?;
    let input = |of: &str, most: f64| {
        format!("{of}, {PUTS} in turn with the other, one client, 9 of 10 within {most:.0} us")
    };
    let put = input(
        "an object of 128 KiB to a tome that turns, until acknowledged",
        number(&line, "put_9_of_10_us")?,
    );
    let row = input(
        "one row in a store as that of where objects lie, synced: one more of these is in a put",
        number(&line, "row_9_of_10_us")?,
    );
    Ok(vec![
        plain("put of a block", vec![number(&line, "put_us")?], "us", "none", put),
        plain("row that is synced", vec![number(&line, "row_us")?], "us", "none", row),
    ])
}

/// Measures a check of a group by 16 tomes.
fn checks(ours: &Path) -> Result<Vec<Measurement>> {
    /// Rows for each number of damaged blocks: time and bytes.
    const ROWS: [[&str; 2]; 3] = [
        ["check, all agree", "check, all agree, exchanged"],
        ["check, 1 block damaged", "check, 1 block damaged, exchanged"],
        ["check, 100 blocks damaged", "check, 100 blocks damaged, exchanged"],
    ];
    let found = lines(ours, &["check", CHECKED, &ROUNDS.to_string()])?;
    let mut rows = Vec::new();
    for (line, [time, bytes]) in found.iter().zip(ROWS) {
        let input = format!(
            "16 tomes of {CHECKED} blocks, group 13+3, {} messages with {} signatures, encoded and \
             decoded; one thread, by the clock, {ROUNDS} rounds; all damage is found and named",
            number(line, "messages")?,
            number(line, "signatures")?
        );
        let microseconds = vec![number(line, "seconds")? * 1e6];
        let kilobytes = vec![number(line, "bytes")? / 1e3];
        rows.push(plain(time, microseconds, "us", "<= 2 s", input.clone()));
        rows.push(plain(bytes, kilobytes, "KB", "<= 1000", input));
    }
    Ok(rows)
}

/// Measures the recovery of a lost index.
fn recovered(folder: &Path, objects: u32) -> Result<Vec<Measurement>> {
    let ours = example("fulgurite-tome", "recover_speed")?;
    let folder = folder.join("recovered").display().to_string();
    let line = last(&ours, &[&folder, &objects.to_string(), "200"])?;
    let input = format!(
        "{objects} objects of 200 B on 8 tomes, {:.0} MB of them unprotected; simulated disks take \
         no time",
        number(&line, "unprotected_bytes")? / 1e6
    );
    let rate = |seconds| -> Result<f64> { Ok(f64::from(objects) / number(&line, seconds)?) };
    let by_clock = vec![rate("seconds")?];
    let by_cpu = vec![rate("processor_seconds")?];
    let unit = "objects/s of a core";
    Ok(vec![
        plain("recover the index", by_clock, "objects/s", "none", input.clone()),
        plain("recover the index, by processor time", by_cpu, unit, "none", input),
    ])
}

/// Measures the mean time to data loss of a group.
fn lifetimes(ours: &Path) -> Result<Vec<Measurement>> {
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        found.push(last(ours, &["mttdl", CYCLES])?);
    }
    let of =
        |name: &str| -> Result<Vec<f64>> { found.iter().map(|line| number(line, name)).collect() };
    let in_millions = |name: &str| -> Result<Vec<f64>> {
        Ok(of(name)?.into_iter().map(|hours| hours / 1e6).collect())
    };
    let group = "16 disks, 3 parities, table 4 of the paper, one thread";
    let chain = format!("{group}, the chain");
    let interval = super::median(of("half_interval_h")?) / super::median(of("sampled_h")?) * 100.0;
    let sampled = format!(
        "{group}, {CYCLES} simulated cycles, processor time, {ROUNDS} rounds of one seed; 95 % of \
         all seeds are within {interval:.2} %"
    );
    let nanoseconds = of("chain_s")?.into_iter().map(|seconds| seconds * 1e9).collect();
    let sampled_ms = of("processor_s")?.into_iter().map(|seconds| seconds * 1e3).collect();
    let (rows, target) = (["life of a group, chain", "life of a group, simulated"], TARGET_H);
    Ok(vec![
        plain(rows[0], in_millions("chain_h")?, "M h", target, chain.clone()),
        plain("life of a group, chain, time", nanoseconds, "ns", "<= 1 s", chain),
        plain(rows[1], in_millions("sampled_h")?, "M h", target, sampled.clone()),
        plain("life of a group, simulated, time", sampled_ms, "ms", "<= 1 s", sampled),
    ])
}

/// Simulates a year of 1,000 tomes.
fn year(ours: &Path) -> Result<Measurement> {
    let mut runs = Vec::new();
    let mut input = String::new();
    for _ in 0..ROUNDS {
        let line = last(ours, &["tome-year"])?;
        runs.push(number(&line, "wall_s")? * 1e3);
        input = format!(
            "{} tomes, 50 clients that write all the time ({:.0} TB protected), {} failures, {} \
             events; one thread, by the clock, {ROUNDS} rounds",
            number(&line, "tomes")?,
            number(&line, "protected")? / 1e12,
            number(&line, "failures")?,
            number(&line, "events")?
        );
    }
    Ok(plain("a year of 1,000 tomes", runs, "ms", "<= 60 s", input))
}

/// Measures a tome's memory per block.
fn memory(ours: &Path, blocks: u32) -> Result<Vec<Measurement>> {
    let line = last(ours, &["memory", &blocks.to_string()])?;
    let input = format!(
        "{blocks} blocks that were all written, in regions of 10^6, without names; resident; \
         filled in {:.1} s, core started in {:.2} s",
        number(&line, "filled_s")?,
        number(&line, "started_s")?
    );
    let row = |row, name| -> Result<Measurement> {
        Ok(plain(row, vec![number(&line, name)?], "B", "<= 24", input.clone()))
    };
    Ok(vec![
        row("metadata store, bytes of a block", "awake")?,
        row("core of a tome, bytes of a block", "core")?,
    ])
}

fn example(package: &str, name: &str) -> Result<PathBuf> {
    let mut command = shell::cargo();
    shell::run(command.args(["build", "--release", "--package", package, "--example", name]))?;
    Ok(shell::target().join("release/examples").join(name))
}

fn lines(program: &Path, words: &[&str]) -> Result<Vec<Value>> {
    let text = shell::read(shell::program(program).args(words))?;
    let line = |line| {
        serde_json::from_str(line).with_context(|| format!("{} says {line:?}", program.display()))
    };
    text.lines().map(line).collect()
}

/// Returns the last line of a run.
fn last(program: &Path, words: &[&str]) -> Result<Value> {
    lines(program, words)?.pop().with_context(|| format!("{} printed nothing", program.display()))
}

fn number(line: &Value, name: &str) -> Result<f64> {
    line[name].as_f64().with_context(|| format!("{name} is not in {line}"))
}

fn plain(
    row: &'static str,
    ours: Vec<f64>,
    unit: &'static str,
    target: &'static str,
    input: String,
) -> Measurement {
    Measurement { row, ours, peer: None, unit, target, input }
}
