//! Unavailable tiers: clear errors, no losses, and everything continues when they are back.

use std::path::PathBuf;

use fulgurite_archive::config::{Home, TierName, TierOptions};
use fulgurite_archive::limits::TIER_BACKOFF;
use fulgurite_archive::status::{JobState, Status};
use fulgurite_archive::{Archive, ArchiveError, BucketName, ManualClock, StorageClass};
use fulgurite_units::{Duration, UnixTime};

use crate::harness::{Client, config, noise};

/// A class for each tier.
const TIERS: [(&str, StorageClass); 2] =
    [("cold", StorageClass::Standard), ("warm", StorageClass::GlacierIr)];

/// An archive with a manual clock and two directories as tiers.
struct Fixture {
    client: Client,
    clock: ManualClock,
    folders: [PathBuf; 2],
    _dirs: [tempfile::TempDir; 2],
}

impl Fixture {
    async fn open() -> Self {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut config = config(dirs[0].path());
        let folders = TIERS.map(|(name, _)| dirs[1].path().join(name));
        for ((name, class), folder) in TIERS.into_iter().zip(&folders) {
            let name = TierName::new(name).unwrap();
            config.classes.assign(class, Home::Tier(name.clone()), None).unwrap();
            let url = format!("file://{}", folder.display());
            config.tiers.insert(name, TierOptions { url, ..TierOptions::default() });
        }
        let clock = ManualClock::at(UnixTime::from_millis(1_767_609_000_250));
        let archive = Archive::open_with_clock(config, clock.clock()).await.unwrap();
        let bucket = BucketName::new("vault").unwrap();
        archive.create_bucket(&bucket).await.unwrap();
        Self { client: Client { archive, bucket }, clock, folders, _dirs: dirs }
    }

    /// Puts an object for each tier.
    async fn put(&self, name: &str) {
        for (tier, class) in TIERS {
            self.client.put(&format!("{name} {tier}"), class, &noise(7, 70_000)).await.unwrap();
        }
    }

    /// Reads an object of each tier and returns the results.
    async fn get(&self, name: &str) -> [Result<(), ArchiveError>; 2] {
        let mut outcomes = [Ok(()), Ok(())];
        for ((tier, _), outcome) in TIERS.into_iter().zip(&mut outcomes) {
            let read = self.client.get(&format!("{name} {tier}"), None).await;
            *outcome = read.map(|bytes| assert!(bytes == noise(7, 70_000), "other bytes"));
        }
        outcomes
    }

    /// Waits until this many objects are staged and in tiers, and each job has this state, seconds
    /// of backoff left, and failures.
    async fn until(&self, counts: (u64, u64), jobs: [(JobState, Option<u64>, u64); 2]) -> Status {
        let found = |status: &Status| {
            let jobs = TIERS.map(|(tier, _)| {
                let name = format!("moving-{tier}");
                let job = status.jobs.iter().find(|job| job.name == name).unwrap();
                (job.state, job.retry_seconds, job.failures)
            });
            ((status.objects_staged, status.objects_in_tiers), jobs)
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let status = self.client.archive.status().await.unwrap();
            if found(&status) == (counts, jobs) {
                return status;
            }
            assert!(std::time::Instant::now() < deadline, "{:?}", found(&status));
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Moves the folder of a tier away, or back.
    fn move_folder(&self, which: usize, is_away: bool) {
        let (here, away) = (&self.folders[which], self.folders[which].with_extension("away"));
        let (from, to) = if is_away { (here, &away) } else { (&away, here) };
        std::fs::rename(from, to).unwrap();
    }
}

const IDLE: (JobState, Option<u64>, u64) = (JobState::Idle, None, 0);

#[tokio::test]
async fn unavailable_tiers_recover_independently() {
    let fixture = Fixture::open().await;
    fixture.put("first").await;
    fixture.until((0, 2), [IDLE, IDLE]).await;

    // Both become unavailable under the running archive; one leaves the empty mount point of an
    // unmounted disk.
    fixture.move_folder(0, true);
    fixture.move_folder(1, true);
    std::fs::create_dir(&fixture.folders[1]).unwrap();
    fixture.put("second").await;
    let rest = TIER_BACKOFF.as_nanos() / 1_000_000_000;
    let backing_off = |seconds, failures| (JobState::Resting, Some(seconds), failures);
    fixture.until((2, 2), [backing_off(rest, 1), backing_off(rest, 1)]).await;
    let degraded = fixture.client.archive.degraded();
    for (tier, _) in TIERS {
        let line = degraded.iter().find(|line| line.contains(&format!("tier \"{tier}\"")));
        assert!(line.unwrap().contains("is its disk mounted?"), "{degraded:?}");
    }
    for outcome in fixture.get("first").await {
        assert!(matches!(outcome, Err(ArchiveError::TierUnavailable { .. })), "{outcome:?}");
    }
    for outcome in fixture.get("second").await {
        outcome.unwrap();
    }
    let verified = fixture.client.archive.verify(None, &std::sync::Arc::default()).await.unwrap();
    let found = verified.tiers.iter().map(|tier| (tier.bodies, tier.bodies_damaged));
    assert_eq!(found.collect::<Vec<_>>(), [(0, 0), (0, 0)], "an unavailable tier is not damaged");
    assert!(verified.tiers.iter().all(|tier| tier.error.is_some()), "{verified:?}");
    assert!(!fixture.folders[0].exists(), "no folder is created in place of a tier");
    assert_eq!(std::fs::read_dir(&fixture.folders[1]).unwrap().count(), 0);

    // One is back: it is retried after its backoff, and the other does not delay it.
    fixture.move_folder(0, false);
    fixture.clock.advance(Duration::from_nanos(TIER_BACKOFF.as_nanos() - 1));
    fixture.until((2, 2), [backing_off(0, 1), backing_off(0, 1)]).await;
    fixture.clock.advance(Duration::from_nanos(1));
    let came_back = (JobState::Idle, None, 1);
    fixture.until((1, 3), [came_back, backing_off(2 * rest, 2)]).await;
    let [cold, warm] = fixture.get("first").await;
    cold.unwrap();
    assert!(matches!(warm, Err(ArchiveError::TierUnavailable { .. })), "{warm:?}");

    std::fs::remove_dir(&fixture.folders[1]).unwrap();
    fixture.move_folder(1, false);
    fixture.clock.advance(TIER_BACKOFF + TIER_BACKOFF);
    fixture.until((0, 4), [came_back, (JobState::Idle, None, 2)]).await;
    assert_eq!(fixture.client.archive.degraded(), Vec::<String>::new());
    for name in ["first", "second"] {
        for outcome in fixture.get(name).await {
            outcome.unwrap();
        }
    }
    fixture.client.archive.stop().await.unwrap();
}
