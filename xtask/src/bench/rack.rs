//! The rack: blobs on one disk compared with plain files, memory of a stream, the index, the
//! controller, and the twin.
//!
//! Ours are the examples `rack_speed` of the crate `rack`, `events` of `rack-core` and `speed` of
//! `twin`. Plain files are written and read by the same program, alternating with ours. The disks
//! of the rack are simulated and take no time; the one below their directories is real. Cold means
//! evicted from this system's page cache; a layer below it, such as the host of a virtual machine,
//! may still cache the data.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Bench, Measurement};
use crate::shell;

/// Rounds for a blob and plain files.
const ROUNDS: usize = 5;
/// Size of the blob in MiB.
const MIB: &str = "1024";
/// Objects in the index, unless the command says how many.
const OBJECTS: [u32; 2] = [100_000, 1_000_000];

/// Runs all measurements.
pub(super) fn rack(bench: &Bench) -> Result<Vec<Measurement>> {
    let [bytes, events, twin] = [
        example("fulgurite-rack", "rack_speed")?,
        example("fulgurite-rack-core", "events")?,
        example("fulgurite-twin", "speed")?,
    ];
    let mut rows = coding(&bytes)?;
    rows.extend(blobs(&bytes, &bench.folder)?);
    rows.extend(memory(&bytes, &bench.folder)?);
    match bench.objects {
        Some(count) => rows.extend(index(&bytes, &bench.folder, count)?),
        None => {
            for count in OBJECTS {
                rows.extend(index(&bytes, &bench.folder, count)?);
            }
        }
    }
    rows.extend(controller(&events)?);
    rows.extend(simulated(&twin)?);
    Ok(rows)
}

/// Measures the CPU's work for a blob.
fn coding(ours: &Path) -> Result<Vec<Measurement>> {
    /// Names of the figure and of its row, target, and description.
    const ROWS: [[&str; 4]; 4] = [
        ["encode_cold", "15+3 encode", ">= 5", "from memory, GB/s of information"],
        ["sums", "sums of fragments", "none", "CRC-64/NVME, GB/s of all fragments"],
        ["written", "blob to nowhere", "none", "copied, summed, coded, summed; GB/s of a blob"],
        ["checked", "blob from memory", "none", "18 stacks copied and checked; GB/s of a blob"],
    ];
    let mut runs = vec![Vec::new(); ROWS.len()];
    for _ in 0..ROUNDS {
        let line = lines(ours, &["coding"])?.pop().context("rack_speed printed nothing")?;
        for (runs, [name, ..]) in runs.iter_mut().zip(ROWS) {
            runs.push(number(&line, name)?);
        }
    }
    let rows = ROWS.into_iter().zip(runs).map(|([_, row, target, what], ours)| {
        let input = format!("{what}; one thread, processor time, {ROUNDS} rounds");
        plain(row, ours, "GB/s", target, input)
    });
    Ok(rows.collect())
}

/// Measures a blob put and got, compared with plain files.
fn blobs(ours: &Path, folder: &Path) -> Result<Vec<Measurement>> {
    /// Row, target, our figure, the peer's figure, the peer's name, and description.
    const ROWS: [[&str; 6]; 5] = [
        ["put", ">= 0.85 x", "put", "write", "18 plain files, synced", "read back and told"],
        ["written and synced", "none", "lay", "write", "18 plain files, synced", "not read back"],
        ["get, cold", ">= 0.9 x", "get_cold", "read_cold", "15 plain files", "18 stacks checked"],
        ["get of 15, cold", "none", "few_cold", "read_cold", "15 plain files", "15 stacks checked"],
        ["get, warm", "none", "get_warm", "read_warm", "15 plain files", "18 stacks checked"],
    ];
    let rounds = ROUNDS.to_string();
    let folder = folder.display().to_string();
    let found = lines(ours, &["bytes", &folder, MIB, &rounds])?;
    let blob = MIB.parse::<f64>()? * f64::from(1u32 << 20) / 1e6;
    let mut rows = Vec::new();
    for [row, target, own, peer, peer_name, what] in ROWS {
        let runs = |name: &str, of: &str| -> Result<Vec<f64>> {
            found.iter().map(|line| number(line, &format!("{name}{of}"))).collect()
        };
        let rates = |name: &str| -> Result<Vec<f64>> {
            Ok(runs(name, "_s")?.into_iter().map(|seconds| blob / seconds).collect())
        };
        let processor =
            |name: &str| Ok::<_, anyhow::Error>(super::median(runs(name, "_processor_s")?));
        let input = format!(
            "{MIB} MiB, {what}, in turn, {ROUNDS} rounds, MB/s of the blob by the clock; processor \
             time {:.2} s, plain {:.2} s",
            processor(own)?,
            processor(peer)?
        );
        let (ours, peer) = (rates(own)?, Some((peer_name, rates(peer)?)));
        rows.push(Measurement { row, ours, peer, unit: "MB/s", target, input });
    }
    Ok(rows)
}

/// Measures the memory of a stream.
fn memory(ours: &Path, folder: &Path) -> Result<Vec<Measurement>> {
    let folder = folder.display().to_string();
    let line =
        lines(ours, &["memory", &folder, MIB])?.pop().context("rack_speed printed nothing")?;
    let mebibytes = |name| Ok::<_, anyhow::Error>(number(&line, name)? / f64::from(1 << 20));
    let stripe = mebibytes("stripe")?;
    let rows = [("memory of a put", "put_first", "put"), ("memory of a get", "get_first", "get")];
    let row = |(row, first, again)| {
        let input = format!(
            "{MIB} MiB, the most beyond what the rack had before, {:.1} MiB when done again; a \
             stripe is {stripe:.2} MiB, and 2 may wait for a client",
            mebibytes(again)?
        );
        Ok(plain(row, vec![mebibytes(first)?], "MiB", "<= a stripe and its buffers", input))
    };
    rows.into_iter().map(row).collect()
}

/// Measures the bytes per object in the index, and lookups.
fn index(ours: &Path, folder: &Path, count: u32) -> Result<Vec<Measurement>> {
    let text = count.to_string();
    let folder = folder.display().to_string();
    let line =
        lines(ours, &["index", &folder, &text])?.pop().context("rack_speed printed nothing")?;
    let at =
        |name: &str, at: usize| line[name][at].as_f64().with_context(|| format!("{name}: {line}"));
    let input = format!(
        "{count} blobs in 18 stacks, keys of 41 bytes; rows with keys {:.0} and {:.0} bytes",
        number(&line, "object_row")?,
        number(&line, "blob_row")?
    );
    let looks = format!(
        "{count} blobs, {} looks at objects anywhere after the index was put out of memory: half \
         within {:.0} us, all within {:.0} us; as many again 99 of 100 within {:.0} us",
        number(&line, "looks")?,
        at("head_us", 0)?,
        at("head_us", 2)?,
        at("head_again_us", 1)?
    );
    Ok(vec![
        plain("index, bytes of a blob", vec![number(&line, "bytes_each")?], "B", "<= 200", input),
        plain("index, head p99", vec![at("head_us", 1)?], "us", "<= 1000", looks),
    ])
}

/// Measures events a second of the controller, with a day of reads.
fn controller(ours: &Path) -> Result<Vec<Measurement>> {
    let mut runs = Vec::new();
    for _ in 0..ROUNDS {
        runs.push(lines(ours, &["--json"])?);
    }
    let rows = [("controller, 0.5 reads/s", 0), ("controller, 8 reads/s", 2)];
    let row = |(row, at): (_, usize)| {
        let rates = runs.iter().map(|lines| {
            let line = lines.get(at).context("too few lines of events")?;
            Ok(number(line, "events")? / 1e6 / number(line, "processor_s")?)
        });
        let input = format!(
            "a day of Pelican's rack, with the agenda around it, processor time, {ROUNDS} rounds"
        );
        Ok(plain(row, rates.collect::<Result<_>>()?, "M events/s", ">= 2", input))
    };
    rows.into_iter().map(row).collect()
}

/// Measures the twin of the rack: a day, a year, and the paper.
fn simulated(ours: &Path) -> Result<Vec<Measurement>> {
    /// The row, the row of its wall time, target, and arguments of the example.
    type Run<'a> = (&'static str, &'static str, &'static str, &'a [&'a str]);
    let folder = shell::root().join("experiments/pelican").display().to_string();
    let runs: [Run<'_>; 3] = [
        ("a day at 8/s", "a day at 8/s, wall time", "<= 2", &["rack", "8", "24"]),
        ("a year at 0.5/s", "a year at 0.5/s, wall time", "<= 60", &["rack", "0.5", "8766"]),
        (
            "the paper, seven seeds",
            "the paper, seven seeds, wall time",
            "<= 120 on 2 cores",
            &["rack-paper", &folder],
        ),
    ];
    let mut rows = Vec::new();
    for (row, row_wall, target, words) in runs {
        let line = lines(ours, words)?.pop().context("speed printed nothing")?;
        let input = match line.get("jobs") {
            Some(jobs) => format!("{jobs} runs, 2 threads, {} checks", number(&line, "checks")?),
            None => format!("{:.1} M events, one core", number(&line, "events")? / 1e6),
        };
        for (row, name, time) in
            [(row, "processor_s", "processor time"), (row_wall, "wall_s", "by the clock")]
        {
            let found = vec![number(&line, name)?];
            rows.push(plain(row, found, "s", target, format!("{input}, {time}")));
        }
    }
    Ok(rows)
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
