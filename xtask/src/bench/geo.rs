//! Several sites on one machine: coding, small objects compared with bare conditional writes to the
//! same tables, and one large object.
//!
//! Ours is the example `geo_speed` of the crate `geo`. Sites are directories on one disk,
//! which each conditional write syncs twice. How long operations wait for rounds between far sites
//! is covered by tests (`crates/geo/tests/objects/wan.rs`) in simulated time, which does not
//! depend on the machine.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Bench, Measurement};
use crate::shell;

/// Rounds of coding.
const ROUNDS: &str = "31";
/// Small objects per round, and how many are put concurrently.
const SMALL: [&str; 2] = ["2000", "64"];
/// Size of the large object in MiB, and how often it is put and got.
const LARGE: [&str; 2] = ["256", "5"];

/// Runs all measurements.
pub(super) fn geo(bench: &Bench) -> Result<Vec<Measurement>> {
    let mut command = shell::cargo();
    let words = ["build", "--release", "--package", "fulgurite-geo", "--example", "geo_speed"];
    shell::run(command.args(words))?;
    let ours = shell::target().join("release/examples/geo_speed");
    let mut rows = coding(&ours)?;
    rows.extend(small(&ours, &bench.folder)?);
    rows.extend(large(&ours, &bench.folder)?);
    Ok(rows)
}

fn lines(program: &Path, words: &[&str], urls: &[String]) -> Result<Vec<Value>> {
    let text = shell::read(shell::program(program).args(words).args(urls))?;
    text.lines()
        .map(|line| serde_json::from_str(line).context("geo_speed printed invalid JSON"))
        .collect()
}

fn values(lines: &[Value], name: &str) -> Vec<f64> {
    lines.iter().filter_map(|line| line[name].as_f64()).collect()
}

fn coding(ours: &Path) -> Result<Vec<Measurement>> {
    const ROWS: [[&str; 2]; 4] = [
        ["4 MiB encoded, 2+1", "4 MiB decoded with a lost one, 2+1"],
        ["4 MiB encoded, 4+1", "4 MiB decoded with a lost one, 4+1"],
        ["4 MiB encoded, 6+1", "4 MiB decoded with a lost one, 6+1"],
        ["4 MiB encoded, 4+2", "4 MiB decoded with a lost one, 4+2"],
    ];
    let found = lines(ours, &["coding", ROUNDS], &[])?;
    let mut rows = Vec::new();
    for (line, [encode, decode]) in found.iter().zip(ROWS) {
        for (row, name, target) in [(encode, "encode_ms", "<= 0.5"), (decode, "decode_ms", "none")]
        {
            let input = format!("one thread, copies included, median of {ROUNDS}");
            let ours = vec![line[name].as_f64().with_context(|| format!("no {name}"))?];
            rows.push(Measurement { row, ours, peer: None, unit: "ms", target, input });
        }
    }
    Ok(rows)
}

/// Returns the addresses of three sites in a folder.
fn sites(folder: &Path, name: &str) -> Vec<String> {
    let site = |site: usize| format!("dir://{}", folder.join(format!("{name}-{site}")).display());
    (0..3).map(site).collect()
}

fn small(ours: &Path, folder: &Path) -> Result<Vec<Measurement>> {
    let [count, at_once] = SMALL;
    let found = lines(ours, &["small", count, at_once], &sites(folder, "small"))?;
    let input = format!(
        "{count} objects of 1 KiB, {at_once} at once, in three directories on one disk; beside the \
         calls that a put makes, alone: the nearest row read, three rows written twice; in turn"
    );
    let peer = Some(("bare conditional writes", values(&found, "bare_per_s")));
    let (row, unit, target) = ("small puts", "a second", ">= 0.8 x");
    Ok(vec![Measurement { row, ours: values(&found, "puts_per_s"), peer, unit, target, input }])
}

fn large(ours: &Path, folder: &Path) -> Result<Vec<Measurement>> {
    let [mib, rounds] = LARGE;
    let found = lines(ours, &["large", mib, rounds], &sites(folder, "large"))?;
    let input = format!("{mib} MiB over three directories on one disk, 2+1, {rounds} rounds");
    let size = mib.parse::<f64>()? * f64::from(1_u32 << 20);
    let stored = values(&found, "stored").into_iter().map(|stored| stored / size).collect();
    let one = |row, ours, unit, target| Measurement {
        row,
        ours,
        peer: None,
        unit,
        target,
        input: input.clone(),
    };
    Ok(vec![
        one("large put", values(&found, "put_mib_s"), "MiB/s", "none"),
        one("large get", values(&found, "get_mib_s"), "MiB/s", "none"),
        one("stored bytes of fragments", stored, "x", "<= 1.51"),
    ])
}
