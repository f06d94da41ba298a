//! How fast a lost catalog is rebuilt from logs and keys.
//!
//! The example `recover_staged` of the crate `archive` stages the objects, loses the catalog and
//! recovers, all in one process. Rates are by wall time, with both by CPU time: on a shared machine
//! wall time includes the others' work.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Bench, Measurement, REPEATS};
use crate::shell;

/// Objects, unless the command says how many.
const OBJECTS: u32 = 1_000_000;
const OBJECT_BYTES: u32 = 200;

/// The slow steps of a recovery: name of the row, and name in the report.
const STEPS: [(&str, &str); 4] = [
    ("keys", "keys"),
    ("logs, entries opened", "logs"),
    ("objects put together", "objects"),
    ("rows written", "rows"),
];

/// Recovers an archive with nothing but small staged objects.
pub(super) fn recover(bench: &Bench) -> Result<Vec<Measurement>> {
    let objects = bench.objects.unwrap_or(OBJECTS);
    let mut build = shell::cargo();
    build.args(["build", "--release", "--package", "fulgurite-archive"]);
    shell::run(build.args(["--example", "recover_staged"]))?;
    let example = shell::target().join("release/examples/recover_staged");
    let mut program = shell::program(example);
    program.arg(bench.folder.join("data"));
    program.args([objects, OBJECT_BYTES, u32::try_from(REPEATS)?].map(|n| n.to_string()));
    let output = shell::read(&mut program)?;
    let lines = output.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let input = format!("{objects} staged DEEP_ARCHIVE objects of {OBJECT_BYTES} B, no catalog");
    let row = |row, unit, target, value: &dyn Fn(&Value) -> Result<f64>| -> Result<Measurement> {
        let ours = lines.iter().map(value).collect::<Result<Vec<_>>>()?;
        Ok(Measurement { row, ours, peer: None, unit, target, input: input.clone() })
    };
    let count = f64::from(objects);
    let mut rows = vec![
        row("recover", "objects/s", ">= 200,000", &|line| {
            Ok(count / number(line, "/report/seconds")?)
        })?,
        row("recover, by processor time", "objects/s of a core", "none", &|line| {
            Ok(count / number(line, "/processor_seconds")?)
        })?,
        row("log scan", "records/s", ">= 1,000,000", &|line| {
            Ok(number(line, "/records")? / number(line, "/scan_seconds")?)
        })?,
    ];
    for (name, step) in STEPS {
        let place = format!("/report/steps/{step}");
        rows.push(row(name, "s", "none", &|line| number(line, &place))?);
    }
    Ok(rows)
}

fn number(line: &Value, place: &str) -> Result<f64> {
    let number = line.pointer(place).and_then(Value::as_f64);
    number.with_context(|| format!("recover_staged printed no {place}"))
}
