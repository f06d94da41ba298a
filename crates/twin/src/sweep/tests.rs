//! A sweep has every combination, including corners, and rejects invalid ones before anything runs.

use expect_test::{Expect, expect};
use fulgurite_glass_core::control::Policy;
use toml::{Table, Value};

use super::{InvalidSweep, POINTS_MAX, Sweep, SweepAxis, check_metrics};
use crate::glass::Glass;
use crate::glass::result::RunResult;
use crate::glass::run;
use crate::glass::tests::scenario;

fn base() -> Table {
    Table::try_from(scenario(Policy::silica())).unwrap()
}

fn over<const N: usize>(field: &str, values: [impl Into<Value>; N]) -> SweepAxis {
    SweepAxis { field: field.to_owned(), values: values.into_iter().map(Into::into).collect() }
}

#[test]
fn sweep_runs_all_combinations_in_order() {
    let two = vec![over("shuttles", [2, 4]), over("throughput", [30, 60, 210])];
    let sweep = Sweep::<Glass>::new(&base(), &Table::new(), two).unwrap();
    let labels: Vec<String> = sweep.points().iter().map(|point| point.labels.join(" ")).collect();
    assert_eq!(labels, ["2 30", "2 60", "2 210", "4 30", "4 60", "4 210"]);
    let seeds = [3, 4];
    let jobs = sweep.jobs(&seeds);
    let results: Vec<_> = jobs.iter().map(|job| run(&job.scenario, job.seed).unwrap()).collect();
    let names = ["completion.p999".to_owned(), "seed".to_owned()];
    let result = sweep.result(&names, &seeds, &results).unwrap();
    assert_eq!(result.hashes.len(), 12);
    // The corner of 4 shuttles and 210 MB/s, run on its own.
    let mut alone = scenario(Policy::silica());
    alone.library.shuttles_per_panel = 4;
    alone.throughput = serde_json::from_str("210").unwrap();
    let corner = &result.metrics[0].cells[5];
    assert_eq!(corner.values[1].to_bits(), run(&alone, 4).unwrap().completion.p999.to_bits());
    assert!(corner.min <= corner.median && corner.median <= corner.max);
    for cell in &result.metrics[1].cells {
        assert_eq!(cell.values, [3.0, 4.0], "each run has its seed");
    }
}

#[test]
fn invalid_sweep_is_rejected_before_any_run() {
    let refused = |over: Vec<SweepAxis>, expect: Expect| {
        let InvalidSweep { at, problem } =
            Sweep::<Glass>::new(&base(), &Table::new(), over).unwrap_err();
        // Without the list of valid fields.
        let problem = problem.split(", expected").next().unwrap();
        let at = if at.is_empty() { at } else { format!("{at}:\n") };
        expect.assert_eq(&format!("{at}{problem}"));
    };
    refused(vec![], expect!["a sweep has 1 to 2 fields, not 0"]);
    let platters = || over("platters", [100, 200]);
    refused(vec![platters(), platters()], expect!["platters: the field is given twice"]);
    refused(vec![over("platters", [7, 8, 7])], expect!["platters: the value 7 is given twice"]);
    // Only the last corner is impossible: more platters than the smaller library has slots.
    refused(
        vec![over("library.storage_racks", [7, 1]), over("platters", [300, 2000])],
        expect![[r#"
            library.storage_racks=1 and platters=2000:
            platters is 2000, but must be at most 990, the number of home slots"#]],
    );
    refused(
        vec![over("library.storage_racks", [7]), over("library.shutles", [1])],
        expect![[r#"
            library.storage_racks=7 and library.shutles=1:
            unknown field `shutles`"#]],
    );
    let many: Vec<Value> = (0..=i64::try_from(POINTS_MAX).unwrap()).map(Value::Integer).collect();
    refused(
        vec![SweepAxis { field: "platters".to_owned(), values: many }],
        expect!["401 combinations; the limit is 1 to 400"],
    );
}

#[test]
fn policy_is_set_before_its_fields() {
    let mut set = Table::new();
    set.insert("policy.customer_slots".to_owned(), 2.into());
    let policies = over("policy", ["silica", "fulgurite"]);
    let sweep = Sweep::<Glass>::new(&base(), &set, vec![policies]).unwrap();
    for point in sweep.points() {
        assert_eq!(point.scenario.policy.customer_slots, 2, "{:?}", point.labels);
    }
    assert_ne!(sweep.points()[0].scenario.policy, sweep.points()[1].scenario.policy);
}

#[test]
fn metrics_are_found_by_name() {
    assert_eq!(
        check_metrics::<RunResult>(&["completion.p999".to_owned(), "utilization".to_owned()]),
        Ok(())
    );
    let refused = check_metrics::<RunResult>(&["tail".to_owned()]).unwrap_err();
    assert!(refused.starts_with("no metric tail: it is one of "), "{refused}");
    assert!(refused.contains(", completion.p999, "), "{refused}");
}
