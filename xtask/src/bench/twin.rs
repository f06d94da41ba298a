//! The speed of the digital twin: engine, controller, fleets, and SimPy for comparison.
//!
//! Ours is the example `speed` of the crate `twin`, one measurement per process. Times are CPU
//! times unless the row says so: on a shared machine wall time includes the others' work. SimPy
//! runs in an environment created here from `bench/peers/simpy/requirements.txt`; without Python or
//! a package index it is left out with a line that says so.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Bench, Measurement};
use crate::shell;

/// Rounds of the short measurements.
const ROUNDS: usize = 5;
/// The unit of rates; the input defines what an event is.
const EVENTS: &str = "M events/s";
/// Customers of the queue, ours and SimPy's.
const CUSTOMERS: [&str; 2] = ["2000000", "100000"];

/// Runs all measurements.
pub(super) fn twin(bench: &Bench) -> Result<Vec<Measurement>> {
    let ours = example()?;
    let mut rows = intervals(&ours)?;
    rows.extend(long(&ours)?);
    rows.extend(decisions(&ours)?);
    rows.extend(curve(&ours)?);
    rows.push(queue(&ours, bench)?);
    rows.push(paper()?);
    Ok(rows)
}

/// Measures `fulgurite twin paper`, which checks every statement of the paper.
fn paper() -> Result<Measurement> {
    let mut build = shell::cargo();
    shell::run(build.args(["build", "--release", "--package", "fulgurite"]))?;
    let begin = Instant::now();
    let mut command = shell::program(shell::target().join("release/fulgurite"));
    let text = shell::read(command.args(["twin", "paper", "--json"]))?;
    let wall = begin.elapsed().as_secs_f64();
    let lines = text.lines().filter(|line| line.starts_with('{')).count();
    let threads = std::thread::available_parallelism()?;
    let input = format!("all seeds, {threads} threads, {lines} statements");
    Ok(plain("paper, wall time", vec![wall], "s", "<= 150", input))
}

/// Measures events a second on one core.
fn intervals(ours: &Path) -> Result<Vec<Measurement>> {
    let rows = [
        ("events, IOPS", "events by the clock, IOPS", "silica", ">= 6"),
        ("events, IOPS, fulgurite", "events by the clock, IOPS, fulgurite", "fulgurite", ">= 4"),
        (
            "events, IOPS, shortest paths",
            "events by the clock, IOPS, shortest paths",
            "shortest-paths",
            ">= 4",
        ),
    ];
    let mut measured = Vec::new();
    for (row, row_wall, policy, target) in rows {
        let (mut processor, mut wall) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let line = run(ours, &["interval", "iops", policy])?;
            let millions = number(&line, "events")? / 1e6;
            processor.push(millions / number(&line, "processor_s")?);
            wall.push(millions / number(&line, "wall_s")?);
        }
        let input = |time| {
            format!(
                "IOPS, 20 drives, 20 shuttles, {policy}, verifying, {time}, {ROUNDS} rounds; an \
                 event is one step of the controller"
            )
        };
        measured.push(plain(row, processor, EVENTS, target, input("processor time")));
        measured.push(plain(row_wall, wall, EVENTS, "none", input("wall time")));
    }
    Ok(measured)
}

/// Measures half a year of one library, and a month of a hundred.
fn long(ours: &Path) -> Result<Vec<Measurement>> {
    let half = run(ours, &["six-months"])?;
    let fleet = run(ours, &["fleet", "100", "30"])?;
    let gib = number(&fleet, "peak_bytes")? / f64::from(1u32 << 30);
    let input = "Typical, rate by the hour, 1 library, 181 days, silica".to_owned();
    let of = |line: &Value| -> Result<String> {
        let millions = |name| Ok::<_, anyhow::Error>(number(line, name)? / 1e6);
        Ok(format!("{:.1} M reads, {:.1} M events", millions("reads")?, millions("events")?))
    };
    let many = format!(
        "Typical, rate by the hour, 100 libraries, 30 days, silica, {} threads: {}, {:.0} s of \
         processor time",
        number(&fleet, "threads")?,
        of(&fleet)?,
        number(&fleet, "processor_s")?
    );
    Ok(vec![
        plain(
            "six months, processor time",
            vec![number(&half, "processor_s")?],
            "s",
            "<= 6",
            format!("{input}: {}", of(&half)?),
        ),
        plain("six months, wall time", vec![number(&half, "wall_s")?], "s", "none", input),
        plain(
            "100 libraries, a month, wall time",
            vec![number(&fleet, "wall_s")?],
            "s",
            "<= 60",
            many.clone(),
        ),
        plain("100 libraries, a month, peak memory", vec![gib], "GiB", "<= 2", many),
    ])
}

/// Measures one step of the controller while 100,000 requests wait.
fn decisions(ours: &Path) -> Result<Vec<Measurement>> {
    const ROWS: [(&str, &str); 3] = [
        ("silica", "decision p99, silica"),
        ("fulgurite", "decision p99, fulgurite"),
        ("shortest-paths", "decision p99, shortest paths"),
    ];
    let mut found: [Vec<f64>; ROWS.len()] = Default::default();
    for _ in 0..ROUNDS {
        let text = shell::read(shell::program(ours).args(["decision", "100000"]))?;
        for (line, found) in text.lines().zip(&mut found) {
            found.push(number(&serde_json::from_str(line)?, "p99_ns")? / 1e3);
        }
    }
    let measured = ROWS.into_iter().zip(found).map(|((policy, row), found)| {
        let input = format!(
            "{policy}, 40 shuttles, 20 drives, 100,000 requests waiting, 1 M steps, {ROUNDS} rounds"
        );
        plain(row, found, "us", "<= 20", input)
    });
    Ok(measured.collect())
}

/// Measures the mean cost of an event against the length of the queue.
fn curve(ours: &Path) -> Result<Vec<Measurement>> {
    const ROWS: [(&str, &str); 4] = [
        ("1000", "event, 1e3 waiting"),
        ("10000", "event, 1e4 waiting"),
        ("100000", "event, 1e5 waiting"),
        ("1000000", "event, 1e6 waiting"),
    ];
    let picture = shell::root().join("docs/twin/cost-per-event.svg");
    let text = shell::read(shell::program(ours).arg("curve").arg(&picture))?;
    let mut measured = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        let queued = number(&line, "queued")?.to_string();
        if let Some((_, row)) = ROWS.iter().find(|(known, _)| *known == queued) {
            let mean = vec![number(&line, "mean_ns")?];
            let input = "fulgurite, 40 shuttles, mean of 1 M steps by the clock".to_owned();
            measured.push(plain(row, mean, "ns", "none", input));
        }
    }
    Ok(measured)
}

/// Measures M/M/20 on the engine's agenda, and in SimPy.
fn queue(ours: &Path, bench: &Bench) -> Result<Measurement> {
    let simpy = simpy(bench).inspect_err(|error| eprintln!("skipped: peer SimPy: {error:#}")).ok();
    let (mut own, mut peer) = (Vec::new(), Vec::new());
    let rate = |line: &Value| -> Result<f64> {
        Ok(number(line, "events")? / 1e6 / number(line, "processor_s")?)
    };
    for _ in 0..ROUNDS {
        own.push(rate(&run(ours, &["queue", CUSTOMERS[0]])?)?);
        if let Some(python) = &simpy {
            let program = shell::root().join("bench/peers/simpy/mm20.py");
            let mut command = shell::program(python);
            let text = shell::read(command.arg(program).arg(CUSTOMERS[1]))?;
            peer.push(rate(&serde_json::from_str(&text)?)?);
        }
    }
    let input = format!(
        "M/M/20 at 90 % load, processor time, {ROUNDS} rounds; an event of both is an arrival or \
         an end of service, for each of which SimPy steps through three of its own"
    );
    Ok(Measurement {
        row: "M/M/20 events",
        ours: own,
        peer: simpy.map(|_| ("SimPy 4.1.2", peer)),
        unit: EVENTS,
        target: ">= 10",
        input,
    })
}

/// Returns a Python with SimPy.
fn simpy(bench: &Bench) -> Result<PathBuf> {
    let folder = bench.folder.join("simpy");
    shell::read(shell::program("python3").args(["-m", "venv"]).arg(&folder))
        .context("needs Python with venv")?;
    let mut pip = shell::program(folder.join("bin/pip"));
    let wanted = shell::root().join("bench/peers/simpy/requirements.txt");
    shell::read(pip.args(["install", "--quiet", "--requirement"]).arg(wanted))
        .context("needs a package index")?;
    Ok(folder.join("bin/python"))
}

fn example() -> Result<PathBuf> {
    let mut command = shell::cargo();
    command.args(["build", "--release", "--package", "fulgurite-twin", "--example", "speed"]);
    shell::run(&mut command)?;
    Ok(shell::target().join("release/examples/speed"))
}

fn run(ours: &Path, words: &[&str]) -> Result<Value> {
    let text = shell::read(shell::program(ours).args(words))?;
    serde_json::from_str(&text).with_context(|| format!("speed printed {text:?}"))
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
