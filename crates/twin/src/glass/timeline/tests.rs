//! A recorded run is the same run, and the recording agrees with the engine's own sums.

use fulgurite_glass_core::control::Policy;
use fulgurite_units::Duration;

use super::{Recorder, Timeline};
use crate::glass::result::RunResult;
use crate::glass::scenario::Scenario;
use crate::glass::tests::scenario;
use crate::glass::{run, run_observed};

fn recorded(scenario: &Scenario, seed: u64) -> (RunResult, Timeline) {
    let mut recorder = Recorder::new(scenario, seed);
    let result = run_observed(scenario, seed, &mut recorder).unwrap();
    (result, recorder.finish())
}

/// Measures everything, so that the engine's sums cover the whole run.
fn measured_whole(policy: &str) -> Scenario {
    let mut scenario = scenario(Policy::named(policy).unwrap());
    scenario.measure_from = Duration::ZERO;
    scenario.measure_until = Duration::from_secs(1_000_000);
    scenario
}

#[test]
fn recording_does_not_change_the_run() {
    for name in fulgurite_glass_core::control::POLICY_NAMES {
        let scenario = scenario(Policy::named(name).unwrap());
        let (result, timeline) = recorded(&scenario, 5);
        assert_eq!(result, run(&scenario, 5).unwrap(), "{name}");
        assert_eq!(timeline, recorded(&scenario, 5).1, "{name}");
    }
}

#[test]
fn recording_agrees_with_engine_sums() {
    for name in fulgurite_glass_core::control::POLICY_NAMES {
        let scenario = measured_whole(name);
        let (result, timeline) = recorded(&scenario, 3);
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        #[expect(clippy::cast_precision_loss, reason = "few reads wait")]
        let queue_max = result.queue_max as f64;
        assert!((most(&timeline.requests.max) - queue_max).abs() < 0.5, "{name}");
        assert!((most(&timeline.oldest_unverified_s) - result.unverified_age_max).abs() < 1e-6);
        assert!(result.completion.max <= most(&timeline.oldest_request_s) + 1.0, "{name}");
        // The engine omits drive time of commands that are not finished at the end.
        let last = timeline.end_s - timeline.column_s * columns_before_last(&timeline);
        let seconds = |shares: &[f64]| {
            let (end, whole) = shares.split_last().unwrap();
            whole.iter().sum::<f64>() * timeline.column_s + end * last
        };
        let all = |of: fn(&super::DriveTimeline) -> &Vec<f64>| -> f64 {
            timeline.drives.iter().map(|drive| seconds(of(drive))).sum()
        };
        assert_eq!(timeline.drives.len(), 4, "{name}: as many as the smallest library has");
        let share = |seconds: f64| seconds / 4.0 / 1_000_000.0;
        assert!((share(all(|drive| &drive.read)) - result.drive_time.read).abs() < 1e-5);
        assert!((share(all(|drive| &drive.switch)) - result.drive_time.switch).abs() < 1e-5);
    }
}

#[expect(clippy::cast_precision_loss, reason = "few columns")]
fn columns_before_last(timeline: &Timeline) -> f64 {
    (timeline.oldest_request_s.len() - 1) as f64
}

#[test]
fn columns_never_exceed_their_length() {
    for name in fulgurite_glass_core::control::POLICY_NAMES {
        let (_, timeline) = recorded(&measured_whole(name), 2);
        let columns = timeline.requests.mean.len();
        assert!((10..=240).contains(&columns), "{name}: {columns} columns");
        for drive in &timeline.drives {
            for (column, share) in
                drive.read.iter().zip(&drive.verify).zip(&drive.switch).enumerate()
            {
                let busy = share.0.0 + share.0.1 + share.1;
                assert!((0.0..=1.0 + 1e-9).contains(&busy), "{name}, column {column}: {busy}");
            }
        }
        let shuttles = timeline.shuttles.iter().flat_map(|shuttle| &shuttle.work);
        assert!(shuttles.clone().all(|share| (0.0..=1.0 + 1e-9).contains(share)), "{name}");
        let worked = shuttles.sum::<f64>() > 0.0;
        assert_eq!(worked, name != "no-shuttles", "{name}");
        for curve in [&timeline.requests, &timeline.backlog_bytes, &timeline.unverified] {
            for column in 0..columns {
                let (mean, min, max) = (curve.mean[column], curve.min[column], curve.max[column]);
                assert!(min <= mean + 1e-6 && mean <= max + 1e-6, "{name}: {min} {mean} {max}");
            }
        }
    }
}

#[test]
fn long_run_has_wide_columns() {
    let mut scenario = measured_whole("silica");
    scenario.workload.envelope.window = Duration::from_secs(6 * 3600);
    let (_, timeline) = recorded(&scenario, 1);
    assert!(timeline.column_s >= 120.0, "{} s", timeline.column_s);
    assert!((121..=240).contains(&timeline.requests.mean.len()));
}
