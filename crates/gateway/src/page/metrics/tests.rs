//! The status of an archive is on the page, under the documented names.

use fulgurite_archive::status::JobStatus;
use fulgurite_units::UnixTime;

use super::*;

const SERVER: ServerStatus =
    ServerStatus { connections: 1, connections_max: 2, connections_ended_idle: 3 };

fn status() -> Status {
    Status {
        orphaned_segments: 3,
        orphaned_bytes: 4096,
        reserve_bytes: 64,
        free_bytes: 1000,
        free_bytes_min: 100,
        panics: 2,
        copies_dropped: 6,
        keys_lost: 8,
        restores_failed: 4,
        bodies_unconfirmed: 9,
        catalog_refusal: Some("no room".to_owned()),
        catalog_damage: Some("a block".to_owned()),
        jobs: vec![JobStatus {
            name: "expiring".to_owned(),
            state: JobState::Resting,
            runs: 12,
            failures: 13,
            last_run: Some(UnixTime::from_millis(14_500)),
            ..JobStatus::default()
        }],
        ..Status::default()
    }
}

#[test]
fn status_counters_are_exported() {
    let page = Metrics::default().page(0, &SERVER, Some(&status()));
    for line in [
        "fulgurite_orphaned_segments 3",
        "fulgurite_orphaned_bytes 4096",
        "fulgurite_reserve_bytes 64",
        "fulgurite_free_bytes 1000",
        "fulgurite_free_bytes_min 100",
        "fulgurite_panics_total 2",
        "fulgurite_copies_dropped_total 6",
        "fulgurite_keys_lost 8",
        "fulgurite_restores_failed 4",
        "fulgurite_catalog_damaged 1",
        "fulgurite_bodies_unconfirmed 9",
        "fulgurite_catalog_writable 0",
        "fulgurite_job_state{job=\"expiring\",state=\"resting\"} 1",
        "fulgurite_job_state{job=\"expiring\",state=\"idle\"} 0",
        "fulgurite_job_runs_total{job=\"expiring\"} 12",
        "fulgurite_job_failures_total{job=\"expiring\"} 13",
        "fulgurite_job_last_run_seconds{job=\"expiring\"} 14",
    ] {
        assert!(page.lines().any(|have| have == line), "{line} is not in\n{page}");
    }
}

#[test]
fn every_metric_has_one_help_line() {
    let page = Metrics::default().page(1, &SERVER, Some(&status()));
    let described: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# HELP ")).collect();
    let mut names: Vec<&str> =
        described.iter().filter_map(|entry| entry.split(' ').next()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count, "{page}");
    let mut samples = page.lines().filter(|line| !line.starts_with('#'));
    assert!(samples.all(|line| names.iter().any(|name| line.starts_with(name))), "{page}");
}
