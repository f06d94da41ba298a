//! The twin's other systems from the command line: a queue, racks, tomes and sites, and the claims
//! of their papers.

use std::fs;
use std::path::Path;

use expect_test::expect;

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

/// Four sites that a plan chooses from.
const SITES: &str = r#"
rtt_ms = [[0, 20, 35, 90], [20, 0, 45, 100], [35, 45, 0, 80], [90, 100, 80, 0]]
seeds = 1

[demand]
stored = "10TiB"
object = "4MiB"
puts = 100000
gets = 200000
from = ["a", "b"]

[objective]
put = "600ms"
get = "600ms"
losses_a_year = 1e-3
rebuild_days = 7
sites_away = 1
"#;

#[test]
fn plan_geo_reads_a_plan_file() {
    let folder = tempfile::tempdir().unwrap();
    let site = |name: &str| {
        format!(
            "[[site]]\nname = \"{name}\"\ngb_month = 0.02\ngb_sent = 0.02\nwrites_1000 = 0.005\n\
             reads_1000 = 0.0004\nrow_updates_1000 = 0.001\nrow_reads_1000 = 0.0002\n\
             losses_a_year = 0.01\n"
        )
    };
    let file = format!("{SITES}{}", ["a", "b", "c", "d"].map(site).concat());
    fs::write(folder.path().join("plan.toml"), &file).unwrap();
    let args = ["--json", "twin", "plan-geo", "plan.toml", "--out", "plan"];
    let plan = &lines(folder.path(), &args)[0];
    assert_eq!(plan["best"]["candidate"]["data"], 3, "{plan}");
    assert_eq!(plan["best"]["goes_with_away"], 1, "{plan}");
    assert!(folder.path().join("plan/plan.svg").exists());
    fs::write(folder.path().join("plan.toml"), file.replace("\"b\"]", "\"x\"]")).unwrap();
    check(
        folder.path(),
        &["twin", "plan-geo", "plan.toml"],
        expect![[r#"
        err: fulgurite: "plan.toml": line 10: demand.from is a, x, but must be names of
            sites, at least one
        exit: 3
    "#]],
    );
}
