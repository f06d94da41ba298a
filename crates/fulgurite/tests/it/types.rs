//! Every line that a command prints with `--json` is an object with a `type`, which
//! docs/operating.md names.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::fulgurite;
use crate::twin::scenario;

/// Runs a command with `--json` and checks the types of its lines.
#[track_caller]
fn check(folder: &Path, args: &str, types: &[&str]) {
    let command: Vec<&str> = ["--json"].into_iter().chain(args.split(' ')).collect();
    let output = fulgurite(&command).current_dir(folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating.md");
    let document = fs::read_to_string(path).unwrap();
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let name = line["type"].as_str().unwrap_or_else(|| panic!("{args}: {line}")).to_owned();
        let is_short = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(is_short && document.contains(&format!("`{name}`")), "{args}: {name}");
        if !found.contains(&name) {
            found.push(name);
        }
    }
    assert_eq!(found, types, "{args}: {error}");
}

#[test]
fn lines_of_the_twin_have_a_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    check(folder, "twin scenario iops", &["scenario"]);
    check(folder, "twin run small.toml --log run.log", &["run", "medians", "constraints"]);
    check(folder, "twin sweep small.toml --seeds 1 --over throughput=60,90", &["point"]);
    check(folder, "twin replay run.log --at 8m", &["state", "replay"]);
    check(folder, "twin replay run.log --step", &["step", "replay"]);
    check(folder, "twin served run.log", &["served"]);
    check(folder, "twin tape typical", &["tape"]);
    check(folder, "twin trace generate typical --out reads.trace", &["trace"]);
    fs::write(folder.join("reads.csv"), "time,size,key\n1,10,1\n2,20,2\n").unwrap();
    let import =
        "twin trace import reads.csv --format csv --time-format unix-seconds --out b.trace";
    check(folder, import, &["trace"]);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    check(Path::new(root), "twin paper giza E7 --seeds 1", &["check"]);
    let rack =
        "system = \"rack\"\ningest_per_day = \"20TB\"\nrate = 0.5\nseeds = 1\nruns_max = 1\n";
    fs::write(folder.join("rack.toml"), rack).unwrap();
    check(folder, "twin plan rack.toml", &["twin_plan"]);
}

#[test]
fn lines_of_tiers_have_a_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rack = |verb: &str, types: &[&str]| {
        check(folder, &format!("tier {verb} cold --data data --tier cold=rack:laptop"), types);
    };
    rack("init", &["rack_init"]);
    rack("status", &["tier_status"]);
    rack("ledger", &["spin_up"]);
    rack("scrub", &["tier_report"]);
    check(folder, "tier list --data data --tier cold=rack:laptop", &["tier"]);
    let tome = |verb: &str, types: &[&str]| {
        check(folder, &format!("tier {verb} many --data other --tier many=tome:8"), types);
    };
    tome("init", &["tome_init"]);
    tome("add", &["tome_add"]);
    tome("status", &["tier_status"]);
    tome("verify", &["tier_report"]);
    let site = |name: &str| {
        let place = format!("dir://{}/{name}", folder.display());
        format!("[[sites]]\nname = \"{name}\"\ntable = \"{place}\"\nblobs = \"{place}\"\n")
    };
    let sites = ["a", "b", "c"].map(site).concat();
    let map = format!("name = \"records\"\ndata = 2\nparity = 1\n{sites}");
    fs::write(folder.join("map.toml"), map).unwrap();
    check(folder, "geo doctor --map map.toml", &["examined_store"]);
    for (verb, name) in [
        ("init", "geo_init"),
        ("status", "tier_status"),
        ("verify", "tier_report"),
        ("scrub", "tier_report"),
        ("collect", "tier_report"),
    ] {
        let command = format!("tier {verb} sites --data third --tier sites=geo:map.toml");
        check(folder, &command, &[name]);
    }
}

#[test]
fn lines_of_tools_have_a_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    check(folder, "config show", &["config"]);
    check(folder, "durability", &["durability"]);
    check(folder, "completions bash", &["completions"]);
    check(folder, "man pages", &["man"]);
}
