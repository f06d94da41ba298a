//! How runs of a glass library are shown.

use serde_json::{Value, json};

use super::Glass;
use super::constraints::Constraints;
use super::course::{Course, Recorder};
use super::result::{RestoreResult, RunResult};
use super::scenario::Scenario;
use crate::constraints::Summary;
use crate::reported::{Number, Picture, Reported, Shown};

impl Reported for Glass {
    type Recorder = Recorder;
    type Course = Course;
    const TOTALS: &'static [&'static str] =
        &["completion median", "completion p99.9", "queue max", "unverified max", "drives idle"];
    const SWEPT: &'static [&'static str] =
        &["completion.p999", "completion.p50", "unverified_age_max"];

    fn recorder(scenario: &Scenario, seed: u64) -> Recorder {
        Recorder::new(scenario, seed)
    }

    fn course(recorder: Recorder) -> Course {
        recorder.finish()
    }

    fn pictures<'a>(scenario: &Scenario, courses: &'a [Course]) -> Vec<Picture<'a>> {
        Course::pictures(scenario, courses)
    }

    fn rows(scenario: &Scenario, runs: &[RunResult]) -> Vec<Number<RunResult>> {
        let mut rows: Vec<Row> = ROWS.to_vec();
        if scenario.battery.is_some() {
            rows.extend(BATTERY_ROWS);
        }
        if scenario.restores.is_some() {
            rows.extend(RESTORE_ROWS);
        }
        if runs.iter().all(|run| run.verify_shortfall_bytes.is_some()) {
            rows.push(SHORTFALL);
        }
        rows.into_iter().map(|(name, shown, of)| Number { name, shown, of }).collect()
    }

    fn constraints(scenario: &Scenario) -> Value {
        json!(Constraints::of(scenario))
    }

    fn findings(scenario: &Scenario, run: &RunResult) -> Value {
        json!(Constraints::of(scenario).findings(run))
    }

    fn summary(scenario: &Scenario, runs: &[RunResult]) -> Summary {
        Constraints::of(scenario).summary(runs)
    }
}

type Row = (&'static str, Shown, fn(&RunResult) -> f64);

#[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
const ROWS: [Row; 27] = [
    ("completion median", Shown::Time, |r| r.completion.p50),
    ("completion p99", Shown::Time, |r| r.completion.p99),
    ("completion p99.9", Shown::Time, |r| r.completion.p999),
    ("completion max", Shown::Time, |r| r.completion.max),
    ("drives read", Shown::Share, |r| r.drive_time.read),
    ("drives verify", Shown::Share, |r| r.drive_time.verify),
    ("drives switch", Shown::Share, |r| r.drive_time.switch),
    ("drives idle", Shown::Share, |r| r.drive_time.idle),
    ("travel mean", Shown::Time, |r| r.travel.mean),
    ("travel p99.9", Shown::Time, |r| r.travel.p999),
    ("congestion", Shown::Share, |r| r.congestion),
    ("give-ways", Shown::Count, |r| r.give_ways as f64),
    ("fetches", Shown::Count, |r| r.fetches as f64),
    ("steals", Shown::Count, |r| r.steals as f64),
    ("platter operations", Shown::Count, |r| r.platter_operations as f64),
    ("starts per operation", Shown::Decimal, |r| per_operation(r, r.starts as f64)),
    ("meters per operation", Shown::Decimal, |r| per_operation(r, r.meters)),
    ("crabs per operation", Shown::Decimal, |r| per_operation(r, r.crabs as f64)),
    ("reads", Shown::Count, |r| r.reads as f64),
    ("reads failed", Shown::Count, |r| r.failed as f64),
    ("queue max", Shown::Count, |r| r.queue_max as f64),
    ("eject bay max", Shown::Count, |r| r.eject_bay_max as f64),
    ("age max", Shown::Time, |r| r.age_max),
    ("unverified max", Shown::Time, |r| r.unverified_age_max),
    ("verified TB", Shown::Decimal, |r| r.verified_bytes as f64 / 1e12),
    ("makespan", Shown::Time, |r| r.makespan),
    ("events", Shown::Count, |r| r.events as f64),
];

/// Additional rows where shuttles run on batteries.
#[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
const BATTERY_ROWS: [Row; 3] = [
    ("charges", Shown::Count, |r| r.charges as f64),
    ("batteries flat", Shown::Count, |r| r.flat as f64),
    ("battery min", Shown::Share, |r| r.battery_min as f64 / 100.0),
];

/// Additional rows where reads are restores.
#[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
const RESTORE_ROWS: [Row; 9] = [
    ("Expedited median", Shown::Time, |r| restores(r).expedited.p50),
    ("Expedited p99", Shown::Time, |r| restores(r).expedited.p99),
    ("Standard median", Shown::Time, |r| restores(r).standard.p50),
    ("Standard p99", Shown::Time, |r| restores(r).standard.p99),
    ("Bulk median", Shown::Time, |r| restores(r).bulk.p50),
    ("Bulk p99", Shown::Time, |r| restores(r).bulk.p99),
    ("visits", Shown::Count, |r| restores(r).visits as f64),
    ("drives busy", Shown::Share, |r| restores(r).busy),
    ("shuttles busy", Shown::Share, |r| restores(r).shuttles_busy),
];

fn restores(result: &RunResult) -> RestoreResult {
    result.restores.unwrap_or_default()
}

/// Additional row where new platters arrive at an interval and for two days.
#[expect(clippy::cast_precision_loss, reason = "a ratio is shown with two digits")]
const SHORTFALL: Row = ("shortfall TB", Shown::Decimal, |r| {
    r.verify_shortfall_bytes.unwrap_or_default() as f64 / 1e12
});

#[expect(clippy::cast_precision_loss, reason = "a ratio is shown with two digits")]
fn per_operation(result: &RunResult, value: f64) -> f64 {
    value / (result.platter_operations.max(1) as f64)
}
