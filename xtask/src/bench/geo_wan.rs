//! Several distant sites: how much longer a put and a get take than transferring their bytes alone.
//!
//! Ours is the example `geo_wan` of the crate `geo`: three network namespaces, each with a
//! `fulgurite geo node` over a directory, and a switch that delays packets. Distances are emulated;
//! packets, TCP, TLS, nodes and disks are real. Compared operations alternate within a round. If
//! the machine does not allow it, a line says so, and there are no rows.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Bench, Measurement};
use crate::shell;

/// Rounds; a row is their median.
const ROUNDS: u64 = 31;
/// Rounds over rough links, where a round takes most of a minute.
const ROUGH_ROUNDS: u64 = 9;
/// Puts per median, for comparing puts with few conflicts.
const MET_ROUNDS: u64 = 400;

/// Rough links: the largest jitter as a share of a packet's delay, and the packet loss.
const ROUGH: [&str; 2] = ["0.1", "0.001"];

/// Distances and objects.
struct Setting {
    bytes: u64,
    /// Round trip times between the first and the second site, the first and the third, the other
    /// two.
    trips: [&'static str; 3],
    words: &'static str,
    /// Names of rows for each site.
    rows: [Rows; 3],
    put_target: &'static str,
}

/// Names of the rows of a site.
struct Rows {
    put: &'static str,
    fast: &'static str,
    classic: &'static str,
    get: &'static str,
    get_series: &'static str,
    get_again: &'static str,
    sent: &'static str,
    rounds: &'static str,
    rough: [&'static str; 4],
}

macro_rules! rows {
    ($what:literal) => {
        Rows {
            put: concat!($what, ", put"),
            fast: concat!($what, ", put in series"),
            classic: concat!($what, ", put in series, promises first"),
            get: concat!($what, ", get"),
            get_series: concat!($what, ", get in series"),
            get_again: concat!($what, ", get again with a cache"),
            sent: concat!($what, ", bytes of fragments to other sites"),
            rounds: concat!($what, ", rounds of a put"),
            rough: [
                concat!($what, ", rough, put"),
                concat!($what, ", rough, nine of ten puts"),
                concat!($what, ", rough, get"),
                concat!($what, ", rough, nine of ten gets"),
            ],
        }
    };
}

const FAR: Setting = Setting {
    bytes: 4 << 20,
    trips: ["90", "150", "240"],
    words: "4 MiB, round trips of 90, 150 and 240 ms",
    rows: [rows!("far, from 1"), rows!("far, from 2"), rows!("far, from 3")],
    put_target: "<= 1.05 x",
};

const NEAR: Setting = Setting {
    bytes: 128 << 10,
    trips: ["23", "36", "46"],
    words: "128 KiB, round trips of 23, 36 and 46 ms",
    rows: [rows!("near, from 1"), rows!("near, from 2"), rows!("near, from 3")],
    put_target: "<= 1.05 x, < 100 ms",
};

/// Runs all measurements.
pub(super) fn geo_wan(bench: &Bench) -> Result<Vec<Measurement>> {
    let ours = built()?;
    let may = lines(&ours, &["may"])?;
    if let [may, ..] = &*may
        && let Some(why) = may["why"].as_str()
    {
        eprintln!("left out: networks that are far from each other ({why})");
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for setting in [FAR, NEAR] {
        let found = measure(&ours, bench, "puts", (&setting, ROUNDS))?;
        for (line, names) in found.iter().zip(&setting.rows) {
            rows.extend(from_site(line, names, &setting)?);
        }
    }
    for setting in [FAR, NEAR] {
        let found = measure(&ours, bench, "rough", (&setting, ROUGH_ROUNDS))?;
        for (line, names) in found.iter().zip(&setting.rows) {
            rows.extend(rough(line, names, &setting)?);
        }
    }
    rows.extend(with_site_down(&measure(&ours, bench, "down", (&FAR, ROUNDS))?)?);
    rows.extend(with_conflicts(&measure(&ours, bench, "met", (&NEAR, MET_ROUNDS))?)?);
    Ok(rows)
}

/// Builds the measuring program, and the one that runs the nodes.
fn built() -> Result<std::path::PathBuf> {
    let mut command = shell::cargo();
    shell::run(command.args(["build", "--release", "--package", "fulgurite", "--bins"]))?;
    let mut command = shell::cargo();
    let words = ["build", "--release", "--package", "fulgurite-geo", "--example", "geo_wan"];
    shell::run(command.args(words))?;
    Ok(shell::target().join("release/examples/geo_wan"))
}

fn measure(
    ours: &Path,
    bench: &Bench,
    what: &str,
    (setting, rounds): (&Setting, u64),
) -> Result<Vec<Value>> {
    let folder = bench.folder.join(format!("{what}-{}", setting.bytes));
    let (binary, folder) = (bench.binary.display().to_string(), folder.display().to_string());
    let (bytes, rounds) = (setting.bytes.to_string(), rounds.to_string());
    let rough = if what == "rough" { &ROUGH[..] } else { &[] };
    let words = [&[what, &binary, &folder, &bytes, &rounds], &setting.trips[..], rough].concat();
    lines(ours, &words)
}

fn lines(program: &Path, words: &[&str]) -> Result<Vec<Value>> {
    let text = shell::read(shell::program(program).args(words))?;
    text.lines()
        .map(|line| serde_json::from_str(line).context("geo_wan printed invalid JSON"))
        .collect()
}

fn number(line: &Value, name: &str) -> Result<f64> {
    line[name].as_f64().with_context(|| format!("geo_wan printed no {name:?}"))
}

fn row(
    row: &'static str,
    ours: f64,
    peer: Option<(&'static str, f64)>,
    (unit, target): (&'static str, &'static str),
    input: &str,
) -> Measurement {
    let (peer, input) = (peer.map(|(name, value)| (name, vec![value])), input.to_owned());
    Measurement { row, ours: vec![ours], peer, unit, target, input }
}

/// Returns the rows of puts and gets at a site.
fn from_site(line: &Value, names: &Rows, setting: &Setting) -> Result<Vec<Measurement>> {
    let input = format!(
        "{}, emulated; 2+1, nodes over directories, connections warm, median of {ROUNDS}",
        setting.words
    );
    let of = |name| number(line, name);
    let (put, get) = (of("put")?, of("get")?);
    let alone = ("the bytes alone", of("alone")?);
    let get_alone = ("the bytes alone", of("get alone")?);
    #[expect(clippy::cast_precision_loss, reason = "some MiB")]
    let sent = of("put bytes")? / setting.bytes as f64;
    let row = |name, ours, peer, of| row(name, ours, peer, of, &input);
    Ok(vec![
        row(names.put, put, Some(alone), ("ms", setting.put_target)),
        row(names.fast, of("fast")?, Some(("put", put)), ("ms", ">= 1.5 x")),
        row(names.classic, of("classic")?, Some(("put", put)), ("ms", ">= 1.8 x")),
        row(names.get, get, Some(get_alone), ("ms", "<= 1.15 x")),
        row(names.get_series, of("get series")?, Some(("get", get)), ("ms", ">= 1.35 x")),
        row(names.get_again, of("get again")?, Some(("get", get)), ("ms", "none")),
        row(names.sent, sent, None, ("x", "<= 1.02")),
        row(names.rounds, of("put rounds")?, None, ("rounds", "1")),
    ])
}

/// Returns the rows of puts and gets at a site over rough links, compared with the bytes alone over
/// the same links.
fn rough(line: &Value, names: &Rows, setting: &Setting) -> Result<Vec<Measurement>> {
    let [jitter, loss] = ROUGH;
    let input = format!(
        "{}, emulated, each packet up to {jitter} of its way later and {loss} of all lost; 2+1, \
         nodes over directories, of {ROUGH_ROUNDS}",
        setting.words
    );
    let of = |name| number(line, name);
    let (put, get) = (("the bytes alone", of("alone")?), ("the bytes alone", of("get alone")?));
    let [put_name, puts_name, get_name, gets_name] = names.rough;
    let row = |name, ours, peer| row(name, ours, peer, ("ms", "none"), &input);
    Ok(vec![
        row(put_name, of("put")?, Some(put)),
        row(puts_name, of("put of ten")?, None),
        row(get_name, of("get")?, Some(get)),
        row(gets_name, of("get of ten")?, None),
    ])
}

/// Returns the rows with the farthest site cut off.
fn with_site_down(found: &[Value]) -> Result<Vec<Measurement>> {
    let line = found.first().context("geo_wan printed nothing")?;
    let input = format!(
        "{}, emulated; from 1, 3 is cut off and known to be; median of {ROUNDS}",
        FAR.words
    );
    let of = |name| number(line, name);
    let row = |name, ours, of| row(name, ours, None, of, &input);
    Ok(vec![
        row("a site down, put", of("put")?, ("ms", "none")),
        row("a site down, get", of("get")?, ("ms", "none")),
        row("a site down, rounds of a put at most", of("rounds at most")?, ("rounds", "<= 2")),
        row("a site down, until it is known", of("known ms")?, ("ms", "none")),
    ])
}

/// Returns the row of puts with few conflicts.
fn with_conflicts(found: &[Value]) -> Result<Vec<Measurement>> {
    let line = found.first().context("geo_wan printed nothing")?;
    let input = format!(
        "{}, emulated; of every 200 puts one meets another's of the same object, beside as many \
         that meet none, in turn; median of {MET_ROUNDS}",
        NEAR.words
    );
    let calm = Some(("puts that meet none", number(line, "calm")?));
    Ok(vec![row(
        "puts of which 0.5 % are met",
        number(line, "met")?,
        calm,
        ("ms", "1.02 x"),
        &input,
    )])
}
