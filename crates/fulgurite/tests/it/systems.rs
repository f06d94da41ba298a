//! The twin's other systems from the command line: a queue, racks, tomes and sites, and the claims
//! of their papers.

use std::fs;
use std::path::Path;

use expect_test::expect;

use crate::process::fulgurite;
use crate::twin::{check, lines};

const QUEUE: &str =
    "system = \"queue\"\nservers = 2\nload = 0.5\nservice = \"1s\"\ncustomers = 20000\n";

/// The same commands for another system: the file names its system.
#[test]
fn queue_scenario_runs_and_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("queue.toml"), QUEUE).unwrap();
    check(
        folder,
        &["twin", "run", "queue.toml", "--set", "servers=1", "--report", "out"],
        expect![[r#"
                                        median         min         max   seeds           1
            wait mean                   933 ms      933 ms      933 ms              933 ms
            mean in theory               1.0 s       1.0 s       1.0 s               1.0 s
            wait p99                     7.6 s       7.6 s       7.6 s               7.6 s
            p99 in theory                7.8 s       7.8 s       7.8 s               7.8 s
            servers busy               49.41 %     49.41 %     49.41 %             49.41 %
            customers                   20,000      20,000      20,000              20,000
            queue max                       11          11          11                  11
            makespan                   11.09 h     11.09 h     11.09 h             11.09 h
            events                      40,000      40,000      40,000              40,000
            hash                  5cdf379b49a5a14e
            constraints           none
            err: fulgurite: the report is "out/run.html"
            exit: 0
        "#]],
    );
    let page = fs::read_to_string(folder.join("out/run.html")).unwrap();
    assert!(page.contains("<title>Simulated run of queue.toml</title>"));
    assert!(page.contains("<b>Customers waiting</b>"));
    check(
        folder,
        &["twin", "sweep", "queue.toml", "--over", "load=0.3,0.9", "--seeds", "1"],
        expect![[r#"
            wait.mean, s, simulated, seed 1
              load
              0.3    0.0933
              0.9    3.19

            wait.p99, s, simulated, seed 1
              load
              0.3    1.72
              0.9    13.7

            2 runs
            exit: 0
        "#]],
    );
}

#[test]
fn queue_scenario_errors_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("queue.toml"), QUEUE).unwrap();
    check(
        folder,
        &["twin", "run", "queue.toml", "--log", "run.log"],
        expect![[r#"
        err: fulgurite: --log: only scenarios of glass have a log
        exit: 2
    "#]],
    );
    check(
        folder,
        &["twin", "run", "queue.toml", "--set", "load=1"],
        expect![[r#"
        err: fulgurite: "queue.toml" with --set load=1: load is 1, but must be above 0
            and below 1
        exit: 3
    "#]],
    );
    fs::write(folder.join("pelican.toml"), QUEUE.replace("queue", "pelican")).unwrap();
    check(
        folder,
        &["twin", "run", "pelican.toml"],
        expect![[r#"
        err: fulgurite: "pelican.toml" is wrong: TOML parse error at line 1, column 10
        err:   |
        err: 1 | system = "pelican"
        err:   |          ^^^^^^^^^
        err: unknown variant `pelican`, expected one of `glass`, `rack`, `tome`, `geo`,
            `queue`
        exit: 3
    "#]],
    );
    check(
        folder,
        &["twin", "sweep", "pelican.toml", "--over", "load=0.3"],
        expect![[r#"
        err: fulgurite: "pelican.toml" is wrong: TOML parse error at line 1, column 10
        err:   |
        err: 1 | system = "pelican"
        err:   |          ^^^^^^^^^
        err: unknown variant `pelican`, expected one of `glass`, `rack`, `tome`, `geo`,
            `queue`
        exit: 3
    "#]],
    );
}

/// The paper may be named; without a name it is Silica's.
#[test]
fn paper_defaults_to_silica() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = lines(&root, &["--json", "twin", "paper", "silica", "L2", "--seeds", "1"]);
    assert!(named.len() > 2 && named[0]["id"].as_str().unwrap().starts_with("L2."));
    assert_eq!(named, lines(&root, &["--json", "twin", "paper", "L2", "--seeds", "1"]));
    check(
        &root,
        &["twin", "paper", "colossus"],
        expect![[r#"
        err: fulgurite: no file contains statement colossus, and no paper has that
            name: silica, pelican, pergamum, giza
        exit: 3
    "#]],
    );
    check(
        folder.path(),
        &["twin", "paper", "silica"],
        expect![[r#"
            err: fulgurite: cannot open folder "experiments/silica" with the statements:
                run from the root of the repository, or name the folder with --experiments: No
                such file or directory (os error 2)
            exit: 4
        "#]],
    );
}

/// A rack of cold disks for an hour.
const RACK: &str = "system = \"rack\"\nwarm_up = \"10m\"\nwindow = \"1h\"\n\
    workload = { arrivals = { poisson = { rate = 1.0 } } }\n";

fn folder_with_rack_scenario() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rack.toml"), RACK).unwrap();
    folder
}

#[test]
fn rack_scenario_runs() {
    let folder = folder_with_rack_scenario();
    let folder = folder.path();
    check(
        folder,
        &["twin", "run", "rack.toml", "--seeds", "2", "--report", "out"],
        expect![[r#"
                                        median         min         max   seeds           1 
                         2
            first byte mean             96.4 s      93.9 s      96.4 s              96.4 s 
                    93.9 s
            first byte p95             2.9 min     2.8 min     2.9 min             2.9 min 
                   2.8 min
            first byte p99             3.1 min     3.0 min     3.1 min             3.1 min 
                   3.0 min
            first byte max             3.4 min     3.4 min     3.4 min             3.4 min 
                   3.4 min
            service mean                 4.0 s       3.9 s       4.0 s               3.9 s 
                     4.0 s
            completion mean             97.0 s      94.6 s      97.0 s              97.0 s 
                    94.6 s
            completion p99             3.2 min     3.0 min     3.2 min             3.2 min 
                   3.0 min
            reads                        3,746       3,548       3,746               3,746 
                     3,548
            rejected                    0.00 %      0.00 %      0.00 %              0.00 % 
                    0.00 %
            Gbit/s                        8.33        7.96        8.33                8.33 
                      7.96
            kW                            3.21        3.20        3.21                3.20 
                      3.21
            kW max                        3.71        3.71        3.71                3.71 
                      3.71
            spin-ups of a disk         159,979     158,335     159,979             158,335 
                   159,979
            TB of a disk                 34.22       32.72       34.22               34.22 
                     32.72
            waiting max                     44          40          44                  40 
                        44
            makespan                  72.5 min    72.5 min    72.5 min            72.5 min 
                  72.5 min
            events                      18,235      17,787      18,235              18,235 
                    17,787
            hash                  7049c98ffaa3e81b 40665368459170a7
            constraints           none
            err: fulgurite: the report is "out/run.html"
            exit: 0
        "#]],
    );
    let page = fs::read_to_string(folder.join("out/run.html")).unwrap();
    assert!(page.contains("Groups that can be read"));
}

#[test]
fn rack_scenario_sweeps() {
    let folder = folder_with_rack_scenario();
    check(
        folder.path(),
        &[
            "twin",
            "sweep",
            "rack.toml",
            "--seeds",
            "1",
            "--over",
            "rate=0.5,4",
            "--over",
            "configuration=driven,provisioned",
            "--metric",
            "throughput_gbps",
            "--metric",
            "power_kw",
        ],
        expect![[r#"
            throughput_gbps, simulated, seed 1
              rate \ configuration   driven   provisioned
              0.5                    3.98     3.98
              4                      31       31.7

            power_kw, simulated, seed 1
              rate \ configuration   driven   provisioned
              0.5                    3.27     10.9
              4                      2.76     10.9

            4 runs
            exit: 0
        "#]],
    );
}

#[test]
fn invalid_rack_options_are_rejected() {
    let folder = folder_with_rack_scenario();
    let folder = folder.path();
    check(
        folder,
        &["twin", "run", "rack.toml", "--log", "rack.log"],
        expect![[r#"
        err: fulgurite: --log: only scenarios of glass have a log
        exit: 2
    "#]],
    );
    check(
        folder,
        &["twin", "run", "rack.toml", "--set", "disks.awake=20"],
        expect![[r#"
        err: fulgurite: "rack.toml" with --set disks.awake=20: disks.awake is 20, but
            must be at least disks.read_stacks + 6
        exit: 3
    "#]],
    );
}

/// Statements that need no run are compared with the paper.
#[test]
fn pelican_paper_statements_hold() {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/pelican");
    let experiments = experiments.to_str().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let args = ["--json", "twin", "paper", "pelican", "L1", "--experiments", &experiments];
    for row in lines(folder.path(), &args) {
        assert_eq!(row["verdict"], "hit", "{row}");
    }
}

#[test]
fn pergamum_paper_statements_hold_and_scenario_runs() {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/pergamum");
    let experiments = experiments.to_str().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let args = ["--json", "twin", "paper", "pergamum", "L1", "--experiments", &experiments];
    let rows = lines(folder.path(), &args);
    assert_eq!(rows.len(), 5);
    for row in rows {
        assert_eq!(row["verdict"], "hit", "{row}");
    }
    let scenario = "system = \"tome\"\nuntil = \"2d\"\n\
        ingest = { clients = 60, session = \"10GiB\" }\n";
    fs::write(folder.path().join("tomes.toml"), scenario).unwrap();
    let run = |set: &[&str]| {
        let sets = set.iter().flat_map(|set| ["--set", *set]);
        let args: Vec<&str> =
            ["--json", "twin", "run", "tomes.toml"].into_iter().chain(sets).collect();
        lines(folder.path(), &args)[0]["run"].clone()
    };
    let analytic = run(&["model=analytic"]);
    let spins = (&analytic["spinning_max"], &analytic["tokens"]);
    assert_eq!(spins, (&50.into(), &50.into()), "{analytic}");
    let driven = run(&["tomes=60", "until=10m", "ingest.clients=4", "ingest.session=48MiB"]);
    let spins = (&driven["spinning_max"], &driven["tokens"]);
    assert_eq!(spins, (&3.into(), &3.into()), "{driven}");
    check(
        folder.path(),
        &["twin", "run", "tomes.toml"],
        expect![[r#"
        err: fulgurite: scenario: ingest.session is 10GiB, but must be from one
            driven.object to what is free on a tome of driven.segments
        exit: 3
    "#]],
    );
}

#[test]
fn giza_paper_statements_hold_and_scenario_runs() {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/giza");
    let experiments = experiments.to_str().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let args = ["--json", "twin", "paper", "giza", "E7", "--seeds", "1"];
    let rows = lines(folder.path(), &[&args[..], &["--experiments", &experiments]].concat());
    assert_eq!(rows.len(), 16);
    for row in rows {
        assert_eq!(row["verdict"], "hit", "{row}");
    }
    fs::write(folder.path().join("sites.toml"), "system = \"geo\"\n").unwrap();
    let args = ["--json", "twin", "run", "sites.toml", "--set", "design=serial-classic"];
    let run = &lines(folder.path(), &args)[0]["run"];
    assert_eq!((&run["puts"], &run["failed"]), (&200.into(), &0.into()), "{run}");
    assert_eq!(run["put_rounds"], 2.0, "{run}");
    check(
        folder.path(),
        &["twin", "run", "sites.toml", "--set", "data=3"],
        expect![[r#"
        err: fulgurite: "sites.toml" with --set data=3: data + parity is 3 + 1, but
            must be the number of sites that hold fragments
        exit: 3
    "#]],
    );
}

/// Returns the scenarios of docs/twin.md that are for `twin plan`, by system, and its commands.
fn plans_of_docs() -> (Vec<(String, String)>, Vec<String>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/twin.md");
    let (mut scenarios, mut block, mut commands) = (Vec::new(), String::new(), Vec::new());
    for line in fs::read_to_string(path).unwrap().lines() {
        let code = line.strip_prefix("    ");
        if let Some(command) = code.filter(|code| code.starts_with("fulgurite twin plan ")) {
            let system = block.split('"').nth(1).unwrap().to_owned();
            scenarios.push((system, std::mem::take(&mut block)));
            commands.push(command.to_owned());
        }
        match code {
            Some(code) => block.extend([code, "\n"]),
            None if line.is_empty() => block.push('\n'),
            None => block.clear(),
        }
        block = block.trim_start().to_owned();
    }
    (scenarios, commands)
}

#[test]
fn plans_of_the_documentation_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (scenarios, commands) = plans_of_docs();
    for (system, scenario) in &scenarios {
        fs::write(folder.join(format!("{system}.toml")), scenario).unwrap();
    }
    assert_eq!(
        scenarios.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        ["glass", "rack", "geo"]
    );
    // The same plans in fewer runs.
    let less: [&[&str]; 3] = [
        &["--runs", "3", "--set", "demand.scale=0.1", "--set", "space.libraries=[1, 1]"],
        &["--set", "space.racks_max=2", "--set", "window=2h", "--set", "warm_up=15m"],
        &[],
    ];
    for (command, less) in commands.iter().zip(less) {
        let mut args: Vec<&str> = command.split(' ').skip(1).collect();
        args.extend(["--seeds", "1", "--json"]);
        args.extend(less);
        let plan = &lines(folder, &args)[0];
        for key in ["best", "runner_up", "basis", "seeds", "runs", "candidates", "currency"] {
            assert!(!plan[key].is_null(), "{command}: {key} in {plan}");
        }
        for trial in plan["tried"].as_array().unwrap() {
            assert!(trial["cost"].as_f64().unwrap() > 0.0, "{trial}");
            assert!(
                trial["is_enough"].is_boolean() && trial["objective_share"].is_f64(),
                "{trial}"
            );
        }
        assert!(folder.join("plan/plan.svg").exists());
        fs::remove_dir_all(folder.join("plan")).unwrap();
    }
}

#[test]
fn plan_rejects_what_its_system_does_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (scenarios, _) = plans_of_docs();
    for (system, scenario) in &scenarios {
        fs::write(folder.join(format!("{system}.toml")), scenario).unwrap();
    }
    let sites = fs::read_to_string(folder.join("geo.toml")).unwrap();
    fs::write(folder.join("wrong.toml"), sites.replace("\"b\"]", "\"x\"]")).unwrap();
    check(
        folder,
        &["twin", "plan", "wrong.toml"],
        expect![[r#"
        err: fulgurite: "wrong.toml": line 9: demand.from is a, x, but must be names of
            sites, at least one
        exit: 3
    "#]],
    );
    let refused = |args: &[&str], code: i32, word: &str| {
        let mut command = fulgurite(&[&["twin", "plan"], args].concat());
        let output = command.current_dir(folder).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(word), "{args:?}: {error} has no {word}");
    };
    fs::write(folder.join("tomes.toml"), "system = \"tome\"").unwrap();
    let trace = "fulgurite-trace 1\ntime_ns,size,key\n0,4096,17\n";
    fs::write(folder.join("reads.trace"), trace).unwrap();
    refused(&["glass.toml", "--set", "rate=1.0"], 2, "rate: unknown field");
    refused(&["rack.toml", "--set", "demand.scale=2"], 2, "demand.scale: unknown field");
    refused(&["geo.toml", "--set", "space.racks_max=2"], 2, "space.racks_max: unknown field");
    refused(&["rack.toml", "--trace", "reads.trace"], 2, "--trace");
    refused(&["rack.toml", "--rate", "1"], 2, "--rate");
    refused(&["rack.toml", "--set", "rate=0.0"], 3, "rate is 0");
    refused(&["rack.toml", "--set", "costs.disk=-1.0"], 3, "cost table: disk");
    refused(&["tomes.toml"], 3, "glass, rack and geo only");
    refused(&["none.toml"], 4, "none.toml");
}
