//! How runs of a glass library are shown.

use serde_json::{Value, json};

use super::Glass;
use super::constraints::Constraints;
use super::result::{RestoreResult, RunResult};
use super::scenario::Scenario;
use super::timeline::{Recorder, Timeline};
use crate::constraints::Summary;
use crate::presentation::{Number, NumberFormat, Picture, ReportedSystem};

impl ReportedSystem for Glass {
    type Recorder = Recorder;
    type Timeline = Timeline;
    const HIGHLIGHTS: &'static [&'static str] =
        &["completion median", "completion p99.9", "queue max", "unverified max", "drives idle"];
    const DEFAULT_METRICS: &'static [&'static str] =
        &["completion.p999", "completion.p50", "unverified_age_max"];

    fn recorder(scenario: &Scenario, seed: u64) -> Recorder {
        Recorder::new(scenario, seed)
    }

    fn timeline(recorder: Recorder) -> Timeline {
        recorder.finish()
    }

    fn pictures<'a>(scenario: &Scenario, timelines: &'a [Timeline]) -> Vec<Picture<'a>> {
        Timeline::pictures(scenario, timelines)
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
        rows.into_iter().map(|(name, format, value)| Number { name, format, value }).collect()
    }

    fn constraints(scenario: &Scenario) -> Value {
        json!(Constraints::for_scenario(scenario))
    }

    fn findings(scenario: &Scenario, run: &RunResult) -> Value {
        json!(Constraints::for_scenario(scenario).findings(run))
    }

    fn summary(scenario: &Scenario, runs: &[RunResult]) -> Summary {
        Constraints::for_scenario(scenario).summary(runs)
    }
}

type Row = (&'static str, NumberFormat, fn(&RunResult) -> f64);

#[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
const ROWS: [Row; 27] = [
    ("completion median", NumberFormat::Time, |r| r.completion.p50),
    ("completion p99", NumberFormat::Time, |r| r.completion.p99),
    ("completion p99.9", NumberFormat::Time, |r| r.completion.p999),
    ("completion max", NumberFormat::Time, |r| r.completion.max),
    ("drives read", NumberFormat::Share, |r| r.drive_time.read),
    ("drives verify", NumberFormat::Share, |r| r.drive_time.verify),
    ("drives switch", NumberFormat::Share, |r| r.drive_time.switch),
    ("drives idle", NumberFormat::Share, |r| r.drive_time.idle),
    ("travel mean", NumberFormat::Time, |r| r.travel.mean),
    ("travel p99.9", NumberFormat::Time, |r| r.travel.p999),
    ("congestion", NumberFormat::Share, |r| r.congestion),
    ("give-ways", NumberFormat::Count, |r| r.give_ways as f64),
    ("fetches", NumberFormat::Count, |r| r.fetches as f64),
    ("steals", NumberFormat::Count, |r| r.steals as f64),
    ("platter operations", NumberFormat::Count, |r| r.platter_operations as f64),
    ("starts per operation", NumberFormat::Decimal, |r| per_operation(r, r.starts as f64)),
    ("meters per operation", NumberFormat::Decimal, |r| per_operation(r, r.meters)),
    ("crabs per operation", NumberFormat::Decimal, |r| per_operation(r, r.crabs as f64)),
    ("reads", NumberFormat::Count, |r| r.reads as f64),
    ("reads failed", NumberFormat::Count, |r| r.failed as f64),
    ("queue max", NumberFormat::Count, |r| r.queue_max as f64),
    ("eject bay max", NumberFormat::Count, |r| r.eject_bay_max as f64),
    ("age max", NumberFormat::Time, |r| r.age_max),
    ("unverified max", NumberFormat::Time, |r| r.unverified_age_max),
    ("verified TB", NumberFormat::Decimal, |r| r.verified_bytes as f64 / 1e12),
    ("makespan", NumberFormat::Time, |r| r.makespan),
    ("events", NumberFormat::Count, |r| r.events as f64),
];

/// Additional rows where shuttles run on batteries.
#[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
const BATTERY_ROWS: [Row; 3] = [
    ("charges", NumberFormat::Count, |r| r.charges as f64),
    ("batteries flat", NumberFormat::Count, |r| r.flat as f64),
    ("battery min", NumberFormat::Share, |r| r.battery_min as f64 / 100.0),
];

/// Additional rows where reads are restores.
#[expect(clippy::cast_precision_loss, reason = "counts are shown with few digits")]
const RESTORE_ROWS: [Row; 9] = [
    ("Expedited median", NumberFormat::Time, |r| restores(r).expedited.p50),
    ("Expedited p99", NumberFormat::Time, |r| restores(r).expedited.p99),
    ("Standard median", NumberFormat::Time, |r| restores(r).standard.p50),
    ("Standard p99", NumberFormat::Time, |r| restores(r).standard.p99),
    ("Bulk median", NumberFormat::Time, |r| restores(r).bulk.p50),
    ("Bulk p99", NumberFormat::Time, |r| restores(r).bulk.p99),
    ("visits", NumberFormat::Count, |r| restores(r).visits as f64),
    ("drives busy", NumberFormat::Share, |r| restores(r).busy),
    ("shuttles busy", NumberFormat::Share, |r| restores(r).shuttles_busy),
];

fn restores(result: &RunResult) -> RestoreResult {
    result.restores.unwrap_or_default()
}

/// Additional row where new platters arrive at an interval and for two days.
#[expect(clippy::cast_precision_loss, reason = "a ratio is shown with two digits")]
const SHORTFALL: Row = ("shortfall TB", NumberFormat::Decimal, |r| {
    r.verify_shortfall_bytes.unwrap_or_default() as f64 / 1e12
});

#[expect(clippy::cast_precision_loss, reason = "a ratio is shown with two digits")]
fn per_operation(result: &RunResult, value: f64) -> f64 {
    value / (result.platter_operations.max(1) as f64)
}
