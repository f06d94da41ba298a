//! The twin from the command line: a scenario is run, its log is replayed, and errors are named.

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::process::{fold, fulgurite, transcript};

/// Writes a scenario of a small library for a quarter of an hour.
pub(crate) fn scenario(folder: &Path) {
    let output = fulgurite(&["twin", "scenario", "typical"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text
        .replace("warm_up = \"6h\"", "warm_up = \"5m\"")
        .replace("window = \"12h\"", "window = \"10m\"")
        .replace("cool_down = \"12h\"", "cool_down = \"5m\"")
        .replace("measure_from = \"6h\"", "measure_from = \"5m\"")
        .replace("measure_until = \"18h\"", "measure_until = \"15m\"");
    fs::write(folder.join("small.toml"), text).unwrap();
}

#[track_caller]
pub(crate) fn check(folder: &Path, args: &[&str], expect: Expect) {
    let mut command = fulgurite(args);
    let text = fold(&transcript(command.current_dir(folder)));
    expect.assert_eq(&text.replace(",\"reports\"", ",\n            \"reports\""));
}

pub(crate) fn lines(folder: &Path, args: &[&str]) -> Vec<Value> {
    let output = fulgurite(args).current_dir(folder).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn scenario_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    check(
        folder,
        &["twin", "run", "small.toml", "--seeds", "2", "--log", "run.log"],
        expect![[r#"
                                        median         min         max   seeds           1 
                         2
            completion median          6.2 min     2.4 min     6.2 min             6.2 min 
                   2.4 min
            completion p99            15.6 min     6.0 min    15.6 min            15.6 min 
                   6.0 min
            completion p99.9          17.1 min     6.1 min    17.1 min            17.1 min 
                   6.1 min
            completion max            17.1 min     6.1 min    17.1 min            17.1 min 
                   6.1 min
            drives read                 5.90 %      3.70 %      5.90 %              5.90 % 
                    3.70 %
            drives verify              94.22 %     91.44 %     94.22 %             91.44 % 
                   94.22 %
            drives switch               2.66 %      2.08 %      2.66 %              2.66 % 
                    2.08 %
            drives idle                 0.00 %      0.00 %      0.00 %              0.00 % 
                    0.00 %
            travel mean                 26.4 s      20.7 s      26.4 s              20.7 s 
                    26.4 s
            travel p99.9               2.2 min     2.1 min     2.2 min             2.1 min 
                   2.2 min
            congestion                 31.52 %     21.69 %     31.52 %             21.69 % 
                   31.52 %
            give-ways                      115          92         115                  92 
                       115
            fetches                        443         255         443                 443 
                       255
            steals                          70          58          70                  58 
                        70
            platter operations           1,804       1,057       1,804               1,804 
                     1,057
            starts per operation          0.84        0.79        0.84                0.79 
                      0.84
            meters per operation          2.29        1.85        2.29                1.85 
                      2.29
            crabs per operation           1.19        0.60        1.19                0.60 
                      1.19
            reads                          361         125         361                 361 
                       125
            reads failed                     0           0           0                   0 
                         0
            queue max                      272          56         272                 272 
                        56
            eject bay max                   11          11          11                  11 
                        11
            age max                   17.1 min     7.2 min    17.1 min            17.1 min 
                   7.2 min
            unverified max            15.0 min    15.0 min    15.0 min            15.0 min 
                  15.0 min
            verified TB                   0.71        0.64        0.71                0.71 
                      0.64
            makespan                  30.2 min    23.4 min    30.2 min            30.2 min 
                  23.4 min
            events                       8,354       5,648       8,354               8,354 
                     5,648
            hash                  794a949e11037816 384d8f7b30c6cd82
            constraints           met; verification not checked: a new platter always waits
            exit: 0
        "#]],
    );
}

#[test]
fn results_do_not_depend_on_threads() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    let one = lines(folder, &["twin", "run", "small.toml", "--json", "--threads", "1"]);
    let types: Vec<&str> = one.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["run", "medians", "constraints"]);
    assert_eq!(one, lines(folder, &["twin", "run", "small.toml", "--json"]));
}

#[test]
fn seed_and_set_flags_are_applied() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    let run =
        |args: &[&str]| lines(folder, &[&["twin", "run", "small.toml", "--json"], args].concat());
    let both = run(&["--seeds", "2"]);
    assert_eq!(run(&["--first-seed", "2"])[0], both[1]);
    let quick = run(&["--set", "policy=silica", "--set", "throughput=210"]);
    assert_ne!(quick[0]["run"]["hash"], both[0]["run"]["hash"]);
    assert_eq!(quick, run(&["--set", "throughput = 210", "--set", "policy=\"silica\""]));
    let wrong = |change: &str, expect: Expect| {
        check(folder, &["twin", "run", "small.toml", "--set", change], expect);
    };
    wrong(
        "policy.candidats=3",
        expect![[r#"
        err: fulgurite: "small.toml" with --set policy.candidats=3: unknown field
            `candidats`, expected one of `movement`, `customer_slots`, `pairs`,
            `candidates`, `age_bound`, `steal_tracks`, `help_platters`, `rebalance`,
            `hold`, `verify_within`, `right_of_way`, `charge_below`, `charge_until` in
            `policy`
        exit: 3
    "#]],
    );
    wrong(
        "libary.panels=1",
        expect![[r#"
        err: fulgurite: "small.toml" with --set libary.panels=1: libary.panels: there
            is no table libary
        exit: 3
    "#]],
    );
    wrong(
        "library.panels=3",
        expect![[r#"
        err: fulgurite: "small.toml" with --set library.panels=3: panels is 3, but must
            be from 1 to 2
        exit: 3
    "#]],
    );
    wrong(
        "policy=gold",
        expect![[r#"
        err: fulgurite: "small.toml" with --set policy="gold": no policy "gold"; use
            one of fulgurite, thrifty, silica, shortest-paths, no-shuttles
        exit: 3
    "#]],
    );
    wrong(
        "panels",
        expect![[r#"
        err: error: invalid value 'panels' for '--set <FIELD=VALUE>': expected
            FIELD=VALUE
        err: 
        err: For more information, try '--help'.
        exit: 2
    "#]],
    );
}

/// Creates a folder with the log of a run.
fn folder_with_log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    scenario(folder.path());
    let run = ["twin", "run", "small.toml", "--seeds", "2", "--log", "run.log", "--json"];
    assert_eq!(lines(folder.path(), &run).len(), 4);
    folder
}

#[test]
fn log_replay_is_deterministic() {
    let folder = folder_with_log();
    let folder = folder.path();
    check(
        folder,
        &["twin", "replay", "run.log"],
        expect![[r#"
            8,354 events and 9,800 decisions in 30.2 min: all the same
            end: the library was stopped
            exit: 0
        "#]],
    );
    let state = lines(folder, &["twin", "replay", "run.log", "--at", "8m", "--json"]);
    assert_eq!(state[0]["state"]["shuttles"].as_array().unwrap().len(), 20);
    assert_eq!(state[1]["replay"]["divergence"], Value::Null);

    let log = fs::read_to_string(folder.join("run.log")).unwrap();
    let short: Vec<&str> = log.lines().take(8).collect();
    fs::write(folder.join("short.log"), short.join("\n") + "\n").unwrap();
    check(
        folder,
        &["twin", "replay", "short.log", "--step"],
        expect![[r#"
        0.000000 s  Verify { request: RequestId(1099511627776), platter:
            PlatterId(01000000-0000-0000-0000-000000000000), panel: PanelIndex(0), tracks:
            TrackSpan { first: TrackIndex(0), track_count: 100000 } }
            Do(Command { id: CommandId(0), action: Move { shuttle: ShuttleIndex(0),
            from: RailPosition(6000000), to: RailPosition(600000), reports: true } })
        0.000000 s  Verify { request: RequestId(1099511627777), platter:
            PlatterId(01000000-0000-0000-0000-000000000001), panel: PanelIndex(0), tracks:
            TrackSpan { first: TrackIndex(0), track_count: 100000 } }
            Do(Command { id: CommandId(4097), action: Move { shuttle: ShuttleIndex(1),
            from: RailPosition(6000000), to: RailPosition(600000), reports: true } })
        0.000000 s  Verify { request: RequestId(1099511627778), platter:
            PlatterId(01000000-0000-0000-0000-000000000002), panel: PanelIndex(0), tracks:
            TrackSpan { first: TrackIndex(0), track_count: 100000 } }
            Do(Command { id: CommandId(8194), action: Move { shuttle: ShuttleIndex(2),
            from: RailPosition(6000000), to: RailPosition(600000), reports: true } })
        0.000000 s  Verify { request: RequestId(1099511627779), platter:
            PlatterId(01000000-0000-0000-0000-000000000003), panel: PanelIndex(0), tracks:
            TrackSpan { first: TrackIndex(0), track_count: 100000 } }
            Do(Command { id: CommandId(12291), action: Move { shuttle: ShuttleIndex(3),
            from: RailPosition(6000000), to: RailPosition(600000), reports: true } })
        4 events and 3 decisions in 0 ms: all the same
        1 decisions are lost with the end of the log
        end: no end was written
        exit: 0
    "#]],
    );
}

#[test]
fn replay_detects_a_modified_log() {
    let folder = folder_with_log();
    let folder = folder.path();
    let log = fs::read_to_string(folder.join("run.log")).unwrap();
    let changed = log.replacen("\"to\":", "\"to\":1", 1);
    fs::write(folder.join("changed.log"), changed).unwrap();
    check(
        folder,
        &["twin", "replay", "changed.log"],
        expect![[r#"
            err: fulgurite: "changed.log", line 3: another decision
            err:   in the log:
                {"do":{"id":0,"action":{"move":{"shuttle":0,"from":6000000,"to":1600000,
                        "reports":true}}}}
            err:   now:       
                {"do":{"id":0,"action":{"move":{"shuttle":0,"from":6000000,"to":600000,
                        "reports":true}}}}
            exit: 1
        "#]],
    );
    fs::write(folder.join("broken.log"), log.replacen("\"output\"", "\"outptu\"", 1)).unwrap();
    check(
        folder,
        &["twin", "replay", "broken.log"],
        expect![[r#"
        err: fulgurite: "broken.log": line 3: unknown field `outptu`, expected one of
            `t`, `event`, `output`, `end`, column 15
        exit: 8
    "#]],
    );
}

#[test]
fn traces_are_generated_imported_and_run_on_tape() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let generate = ["twin", "trace", "generate", "typical", "--seed", "3", "--out", "t.trace"];
    check(
        folder,
        &generate,
        expect![[r#"
        31,726 reads of 3,232,766,841,009 bytes
        exit: 0
    "#]],
    );
    check(
        folder,
        &["twin", "tape", "t.trace", "--drives", "4"],
        expect![[r#"
            reads measured                  31,726
            completion median              11.67 h
            completion p99                 24.11 h
            completion p99.9               24.53 h
            completion max                 24.67 h
            drives read                     1.10 %
            drives locate                  44.29 %
            drives load                     5.37 %
            drives unmount                 41.19 %
            drives wait for robots          7.96 %
            drives idle                     0.09 %
            robots busy                    15.80 %
            mounts                           2,329
            reads per mount                  13.62
            queue max                       13,141
            makespan                       51.17 h
            exit: 0
        "#]],
    );
    let csv = "time,size,key\n2026-01-01T00:00:00Z,4MiB,a\n2026-01-01T00:00:02Z,10,b\n";
    fs::write(folder.join("reads.csv"), csv).unwrap();
    let import = ["twin", "trace", "import", "reads.csv", "--format", "csv", "--out", "r.trace"];
    check(
        folder,
        &import,
        expect![[r#"
        2 reads from 3 lines
        exit: 0
    "#]],
    );
    fs::write(folder.join("reads.csv"), csv.replace("4MiB", "4MiX")).unwrap();
    check(
        folder,
        &import,
        expect![[r#"
        err: fulgurite: "reads.csv": line 2, field size: "4MiX" has an unknown unit
        exit: 8
    "#]],
    );
}

#[test]
fn errors_name_file_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    let text = fs::read_to_string(folder.join("small.toml")).unwrap();
    fs::write(folder.join("key.toml"), text.replace("platters =", "plates =")).unwrap();
    check(
        folder,
        &["twin", "run", "key.toml"],
        expect![[r#"
            err: fulgurite: "key.toml" is wrong: TOML parse error at line 4, column 1
            err:   |
            err: 4 | plates = 2000
            err:   | ^^^^^^
            err: unknown field `plates`, expected one of `system`, `library`, `policy`,
                `mechanics`, `throughput`, `track_size`, `platters`, `shard_size`,
                `unavailable`, `recovery_reads`, `recovery`, `workload`, `writes`, `faults`,
                `restores`, `battery`, `measure_from`, `measure_until`
            exit: 3
        "#]],
    );
    fs::write(folder.join("value.toml"), text.replace("panels = 2", "panels = 3")).unwrap();
    check(
        folder,
        &["twin", "run", "value.toml"],
        expect![[r#"
            err: fulgurite: "value.toml": line 14: panels is 3, but must be from 1 to 2
            exit: 3
        "#]],
    );
    check(
        folder,
        &["twin", "run", "none.toml"],
        expect![[r#"
        err: fulgurite: cannot read "none.toml": No such file or directory (os error 2)
        exit: 4
    "#]],
    );
    check(
        folder,
        &["twin", "replay", "small.toml"],
        expect![[r#"
            err: fulgurite: "small.toml": line 1: expected a fulgurite-library-log, found
                "system = \"glass\""
            exit: 8
        "#]],
    );
    check(
        folder,
        &["twin", "tape", "sometimes"],
        expect![[r#"
        err: fulgurite: "sometimes" is neither a file nor a workload: typical, iops,
            volume, six-months, full-library
        exit: 4
    "#]],
    );
    check(
        folder,
        &["twin", "paper", "--experiments", "."],
        expect![[r#"
            err: fulgurite: ./key.toml:9: unknown field `faults`, expected one of `id`,
                `title`, `setting`, `section`, `paper`, `own`, `fitted`, `explanation`,
                `contradiction`, `seeds`, `run`, `derived`, `check`, `figure`
            exit: 3
        "#]],
    );
}

#[test]
fn report_does_not_change_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    let run = ["twin", "run", "small.toml", "--seeds", "2", "--json"];
    let plain = lines(folder, &run);
    assert_eq!(lines(folder, &[&run[..], &["--report", "out/run"]].concat()), plain);
    let page = fs::read_to_string(folder.join("out/run/run.html")).unwrap();
    assert!(page.contains("<title>Simulated run of small.toml</title>"));
    assert!(page.contains("<dd>1 to 2</dd>"), "the seeds");
    assert!(
        page.contains("<dd>fulgurite twin run small.toml --seeds 2 --json --report out/run</dd>")
    );
    let numbers: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("out/run/run.json")).unwrap())
            .unwrap();
    assert_eq!(numbers["runs"][1], plain[1]["run"]);
    assert_eq!(numbers["courses"][1]["seed"], 2);
    assert_eq!(numbers["courses"][1]["drives"].as_array().unwrap().len(), 20);
    // With a log as well, both are complete.
    let both = ["--log", "run.log", "--report", "both"];
    assert_eq!(lines(folder, &[&run[..], &both].concat()), plain);
    let replayed = fulgurite(&["twin", "replay", "run.log"]).current_dir(folder).output().unwrap();
    assert!(replayed.status.success());
}

#[test]
fn sweep_of_two_fields_ignores_thread_count() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    let sweep = [
        &["twin", "sweep", "small.toml", "--set", "policy=silica", "--seeds", "2"][..],
        &["--over", "shuttles=8,20", "--over", "throughput=30,210"],
    ]
    .concat();
    check(
        folder,
        &sweep,
        expect![[r#"
        completion.p999, min, simulated, medians of 2 seeds (min to max)
          shuttles \ throughput   30                    210
          8                       42.1 (26.1 to 58.1)   42.5 (25.8 to 59.2)
          20                      12.8 (7.19 to 18.3)   12.1 (6.7 to 17.6)

        completion.p50, min, simulated, medians of 2 seeds (min to max)
          shuttles \ throughput   30                    210
          8                       19.8 (12.8 to 26.8)   19.8 (13.1 to 26.5)
          20                      3.59 (1.14 to 6.04)   3.35 (1.13 to 5.58)

        unverified_age_max, min, simulated, medians of 2 seeds (min to max)
          shuttles \ throughput   30   210
          8                       15   15
          20                      15   15

        8 runs
        exit: 0
    "#]],
    );
    let json = [&sweep[..], &["--json", "--report", "out"]].concat();
    let many = lines(folder, &json);
    assert_eq!(many, lines(folder, &[&json[..], &["--threads", "1"]].concat()));
    assert_eq!(many.len(), 4);
    // The last corner equals the output of `run`.
    let alone = [
        &["twin", "run", "small.toml", "--json", "--seeds", "2", "--set", "policy=silica"][..],
        &["--set", "library.shuttles_per_panel=10", "--set", "throughput=210"],
    ]
    .concat();
    let alone = lines(folder, &alone);
    assert_eq!(many[3]["at"], serde_json::json!({ "shuttles": "20", "throughput": "210" }));
    assert_eq!(many[3]["hashes"][1], alone[1]["run"]["hash"]);
    let tail = &many[3]["metrics"]["completion.p999"];
    assert_eq!(tail["values"][0], alone[0]["run"]["completion"]["p999"]);
    let page = fs::read_to_string(folder.join("out/sweep.html")).unwrap();
    assert!(page.contains("<title>Simulated sweep of small.toml over shuttles and throughput<"));
    assert!(folder.join("out/sweep.json").exists());
}

#[test]
fn sweep_errors_name_the_failing_point() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    let sweep = |args: &[&str], expect: Expect| {
        check(folder, &[&["twin", "sweep", "small.toml"], args].concat(), expect);
    };
    sweep(
        &["--over", "library.panels=1,2", "--over", "shuttles=5,10"],
        expect![[r#"
        err: fulgurite: "small.toml" with library.panels=2 and shuttles=5: 5 shuttles
            cannot be shared by 2 panels
        exit: 3
    "#]],
    );
    sweep(
        &["--over", "platters=100,100000"],
        expect![[r#"
            err: fulgurite: "small.toml" with platters=100000: platters is 100000, but must
                be at most 12460, the number of home slots
            exit: 3
        "#]],
    );
    sweep(
        &["--over", "platters=,5"],
        expect![[r#"
        err: error: invalid value 'platters=,5' for '--over <FIELD=VALUE,...>':
            expected FIELD=VALUE,VALUE,...
        err: 
        err: For more information, try '--help'.
        exit: 2
    "#]],
    );
    sweep(
        &["--over", "throughput=30,60", "--set", "throughput=90"],
        expect![[r#"
        err: fulgurite: --over throughput: --set changes the same field
        exit: 2
    "#]],
    );
    let metric = ["twin", "sweep", "small.toml", "--over", "throughput=30,60", "--metric", "tail"];
    let output = fulgurite(&metric).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.starts_with("fulgurite: --metric: no metric tail: it is one of age_max, "),
        "{errors}"
    );
    let text = fs::read_to_string(folder.join("small.toml")).unwrap();
    fs::write(folder.join("small.toml"), text.replace("panels = 2", "panels = 3")).unwrap();
    sweep(
        &["--over", "throughput=30,60"],
        expect![[r#"
            err: fulgurite: "small.toml": line 14 with throughput=30: panels is 3, but must
                be from 1 to 2
            exit: 3
        "#]],
    );
}

/// The requests of a log are served again by simulated machines: the same seed gives the same
/// result.
#[test]
fn served_log_is_simulated_by_the_twin() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    scenario(folder);
    fulgurite(&["twin", "run", "small.toml", "--log", "run.log"])
        .current_dir(folder)
        .output()
        .unwrap();
    let served = lines(folder, &["--json", "twin", "served", "run.log", "--seeds", "2"]);
    let reads = |line: &Value, side: &str| line["served"]["reads"][side].clone();
    assert!(reads(&served[0], "served")["count"].as_u64().unwrap() > 10, "{served:?}");
    assert_eq!(reads(&served[0], "served"), reads(&served[0], "twin"));
    assert_ne!(reads(&served[1], "served"), reads(&served[1], "twin"));
    assert_eq!(served[1]["served"]["ended_otherwise"], 0);

    let within = ["twin", "served", "run.log", "--time-scale", "0.5", "--within", "10"];
    let output = fulgurite(&within).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let scale = ["twin", "served", "run.log", "--time-scale", "0"];
    let output = fulgurite(&scale).current_dir(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
}

/// Runs a scenario of `experiments/restores` with one seed and these changes; returns what its
/// restores measured.
fn restores(scenario: &str, set: &[&str]) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/restores");
    let mut args = vec!["--json", "twin", "run", scenario];
    set.iter().for_each(|change| args.extend(["--set", *change]));
    let lines = lines(&folder, &args);
    assert_eq!(lines[0]["run"]["failed"], 0, "{lines:?}");
    lines[0]["run"]["restores"].clone()
}

/// The controllers keep all drives busy with one large object and a thousand small ones, as far as
/// shuttles allow: if shuttles bring the platters, the shuttles are the bottleneck.
#[test]
fn restores_saturate_drives_or_shuttles() {
    let found = restores("large.toml", &["policy=no-shuttles"]);
    assert_eq!(found["standard"]["count"], 1001, "{found}");
    assert!(found["busy"].as_f64().unwrap() >= 0.9, "{found}");
    let found = restores("large.toml", &[]);
    assert_eq!(found["standard"]["count"], 1001, "{found}");
    assert!(found["shuttles_busy"].as_f64().unwrap() >= 0.9, "{found}");
}

/// An Expedited restore among ten thousand Bulk takes no more than twice as long as on an idle
/// library, in simulated time.
#[test]
fn expedited_restore_is_not_delayed_by_bulk() {
    let alone = "restores.batches=[{at=\"1m\",every=\"1m\",count=500,size=\"1MiB\",\
                 retrieval=\"Expedited\"}]";
    let (among, alone) = (restores("urgent.toml", &[]), restores("urgent.toml", &[alone]));
    assert_eq!((&among["bulk"]["count"], &alone["bulk"]["count"]), (&10_000.into(), &0.into()));
    let p99 = |found: &Value| found["expedited"]["p99"].as_f64().unwrap();
    assert!(p99(&among) <= 2.0 * p99(&alone), "{among}, alone {alone}");
}
