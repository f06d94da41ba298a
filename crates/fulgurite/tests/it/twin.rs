//! The twin from the command line: a scenario is run, its log is played, and what is wrong is named.

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::process::{fold, fulgurite, transcript};

/// A small library for a quarter of an hour.
fn scenario(folder: &Path) {
    let said = fulgurite(&["twin", "scenario", "typical"]).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let text = text
        .replace("warm_up = \"6h\"", "warm_up = \"5m\"")
        .replace("window = \"12h\"", "window = \"10m\"")
        .replace("cool_down = \"12h\"", "cool_down = \"5m\"")
        .replace("measure_from = \"6h\"", "measure_from = \"5m\"")
        .replace("measure_until = \"18h\"", "measure_until = \"15m\"");
    fs::write(folder.join("small.toml"), text).unwrap();
}

#[track_caller]
fn check(folder: &Path, args: &[&str], expect: Expect) {
    let mut command = fulgurite(args);
    expect.assert_eq(&fold(&transcript(command.current_dir(folder))));
}

fn lines(folder: &Path, args: &[&str]) -> Vec<Value> {
    let said = fulgurite(args).current_dir(folder).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_scenario_is_run_and_its_log_decides_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    check(
        folder,
        &["twin", "run", "small.toml", "--seeds", "2", "--log", "run.log"],
        expect![[""]],
    );
    let one = lines(folder, &["twin", "run", "small.toml", "--json", "--threads", "1"]);
    let types: Vec<&str> = one.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["run", "medians"]);
    assert_eq!(one, lines(folder, &["twin", "run", "small.toml", "--json"]));
    check(folder, &["twin", "replay", "run.log"], expect![[""]]);
    let state = lines(folder, &["twin", "replay", "run.log", "--at", "8m", "--json"]);
    assert_eq!(state[0]["state"]["shuttles"].as_array().unwrap().len(), 20);
    assert_eq!(state[1]["replay"]["divergence"], Value::Null);

    let log = fs::read_to_string(folder.join("run.log")).unwrap();
    let short: Vec<&str> = log.lines().take(8).collect();
    fs::write(folder.join("short.log"), short.join("\n") + "\n").unwrap();
    check(folder, &["twin", "replay", "short.log", "--step"], expect![[""]]);
    let changed = log.replacen("\"to\":", "\"to\":1", 1);
    fs::write(folder.join("changed.log"), changed).unwrap();
    check(folder, &["twin", "replay", "changed.log"], expect![[""]]);
    fs::write(folder.join("broken.log"), log.replacen("\"output\"", "\"outptu\"", 1)).unwrap();
    check(folder, &["twin", "replay", "broken.log"], expect![[""]]);
}

#[test]
fn traces_are_drawn_imported_and_served_by_tape() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let generate = ["twin", "trace", "generate", "typical", "--seed", "3", "--out", "t.trace"];
    check(folder, &generate, expect![[""]]);
    check(folder, &["twin", "tape", "t.trace", "--drives", "4"], expect![[""]]);
    let csv = "time,size,key\n2026-01-01T00:00:00Z,4MiB,a\n2026-01-01T00:00:02Z,10,b\n";
    fs::write(folder.join("reads.csv"), csv).unwrap();
    let import = ["twin", "trace", "import", "reads.csv", "--format", "csv", "--out", "r.trace"];
    check(folder, &import, expect![[""]]);
    fs::write(folder.join("reads.csv"), csv.replace("4MiB", "4MiX")).unwrap();
    check(folder, &import, expect![[""]]);
}

#[test]
fn what_is_wrong_is_named_with_file_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    let text = fs::read_to_string(folder.join("small.toml")).unwrap();
    fs::write(folder.join("key.toml"), text.replace("platters =", "plates =")).unwrap();
    check(folder, &["twin", "run", "key.toml"], expect![[""]]);
    fs::write(folder.join("value.toml"), text.replace("panels = 2", "panels = 3")).unwrap();
    check(folder, &["twin", "run", "value.toml"], expect![[""]]);
    check(folder, &["twin", "run", "none.toml"], expect![[""]]);
    check(folder, &["twin", "replay", "small.toml"], expect![[""]]);
    check(folder, &["twin", "tape", "sometimes"], expect![[""]]);
    check(folder, &["twin", "paper", "--experiments", "."], expect![[""]]);
}
