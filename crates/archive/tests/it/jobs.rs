//! What jobs do and when, on a clock that the test advances.

use std::sync::Arc;

use fulgurite_archive::config::ArchiveConfig;
use fulgurite_archive::limits::JOB_TICK;
use fulgurite_archive::status::{JobState, JobStatus, Status};
use fulgurite_archive::{Archive, BucketName, ManualClock, StorageClass};
use fulgurite_units::{Duration, UnixTime};

use crate::harness::{Client, config, key, noise};

const BEGUN: u64 = 1_767_609_000_250;

/// Opens an archive with a manual clock.
async fn open(config: ArchiveConfig) -> (ManualClock, Client) {
    let clock = ManualClock::at(UnixTime::from_millis(BEGUN));
    let archive = Archive::open_with_clock(config, clock.clock()).await.unwrap();
    let bucket = BucketName::new("vault").unwrap();
    archive.create_bucket(&bucket).await.unwrap();
    (clock, Client { archive, bucket })
}

fn job(status: &Status, name: &str) -> JobStatus {
    status.jobs.iter().find(|job| job.name == name).unwrap().clone()
}

/// Waits until the status fulfills a condition.
async fn until(client: &Client, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let status = client.archive.status().await.unwrap();
        if is_so(&status) {
            return status;
        }
        assert!(std::time::Instant::now() < deadline, "{what}: {status:?}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

fn at(begun: u64, passed: Duration) -> Option<UnixTime> {
    Some(UnixTime::from_millis(begun + passed.as_nanos() / 1_000_000))
}

async fn restored(client: &Client, name: &str) {
    client.restore(name).await.unwrap();
    client.restored(name).await.unwrap();
}

#[tokio::test]
async fn status_shows_every_job_with_its_work() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, client) = open(config(dir.path())).await;
    for (name, seed) in [("a", 1), ("b", 2)] {
        client.put(name, StorageClass::DeepArchive, &noise(seed, 30_000)).await.unwrap();
    }
    clock.advance(JOB_TICK);
    client.archive.seal().await.unwrap();
    restored(&client, "a").await;
    let one = client.archive.locate(&client.bucket, &key("a")).await.unwrap()[0].platter;
    // Two simultaneous orders both get a reply.
    let progress = [Arc::default(), Arc::default()];
    let all = client.archive.verify(None, &progress[0]);
    let (all, one) = tokio::join!(all, client.archive.verify(one, &progress[1]));
    let (all, one) = (all.unwrap(), one.unwrap());
    assert_eq!((all.copies, one.copies, one.platters.len()), (1, 0, 1));
    assert!(all.platters.contains(&one.platters[0]), "{all:?}");

    let is_idle = |status: &Status| status.jobs.iter().all(|job| job.state == JobState::Idle);
    let status = until(&client, "all jobs are idle", is_idle).await;
    let names: Vec<&str> = status.jobs.iter().map(|job| job.name.as_str()).collect();
    let bench = (1..5).map(|number| format!("restore-bench-{number}"));
    let mut expected: Vec<String> = bench.collect();
    let others = ["expiring", "sealing", "restore-commit", "restoring", "shredding", "tending"];
    expected.push("reclassifying".to_owned());
    expected.extend(others.map(str::to_owned));
    expected.push("verifying".to_owned());
    expected.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected, "in the order {names:?}");
    for name in ["sealing", "restoring", "restore-commit"] {
        let shown = job(&status, name);
        assert_eq!((shown.runs, shown.last_run), (1, at(BEGUN, JOB_TICK)), "{name}");
    }
    // The copies, each platter, and the one that was requested alone.
    assert_eq!(job(&status, "verifying").runs, all.platters.len() as u64 + 2);
    assert_eq!(job(&status, "expiring").runs, 0);
    assert!(status.jobs.iter().all(|job| job.failure.is_none() && job.failures == 0));
    client.archive.stop().await.unwrap();
    let status = client.archive.status().await.unwrap();
    assert!(status.jobs.iter().all(|job| job.state == JobState::Stopped), "{status:?}");
}

#[tokio::test]
async fn copy_expires_at_its_expiry_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path());
    let day = config.day;
    let (clock, client) = open(config).await;
    client.put("a", StorageClass::DeepArchive, &noise(1, 3_000)).await.unwrap();
    restored(&client, "a").await;
    // Days end at midnight: the first full day after this moment ends here.
    let day_ms = day.as_nanos() / 1_000_000;
    let left = Duration::from_millis((BEGUN + day_ms).div_ceil(day_ms) * day_ms - BEGUN);
    let almost = Duration::from_nanos(left.as_nanos() - 1_000_000);
    clock.advance(almost);
    client.get("a", None).await.unwrap();
    clock.advance(Duration::from_millis(1));
    // It may still be running from the moment before; then it runs again at a later tick.
    let status = until(&client, "the copy is removed", |status| {
        let is_gone = status.restored_objects == 0;
        if !is_gone {
            clock.advance(JOB_TICK);
        }
        is_gone
    });
    let expiring = job(&status.await, "expiring");
    assert_eq!(expiring.runs, 1);
    assert!(expiring.last_run >= at(BEGUN, left), "not before: {expiring:?}");
    client.archive.stop().await.unwrap();
}
