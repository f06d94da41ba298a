//! Restores that cannot succeed: they end, are reported, and start again on a new request.

use fulgurite_archive::{
    Archive, ArchiveError, BucketName, ManualClock, RestoreOutcome, RestoreState, StorageClass,
};
use fulgurite_units::{Duration, UnixTime};

use crate::harness::{Client, key, noise};
use crate::tiers::{Place, moved, wait};

/// Puts an object into a tier with reads after a restore; returns the file of its body.
async fn archived(place: &Place, clock: &ManualClock) -> (Client, std::path::PathBuf) {
    let archive = Archive::open_with_clock(place.config(), clock.clock()).await.unwrap();
    let bucket = BucketName::new("vault").unwrap();
    archive.create_bucket(&bucket).await.unwrap();
    let client = Client { archive, bucket };
    client.put("one", StorageClass::Glacier, &noise(1, 200_000)).await.unwrap();
    moved(&client).await;
    let body = place.bodies().into_iter().find(|path| path.extension().is_none()).unwrap();
    (client, body)
}

async fn restore_state(client: &Client) -> Option<RestoreState> {
    client.archive.head(&client.bucket, &key("one")).await.unwrap().restore
}

#[tokio::test]
async fn restore_of_damaged_bytes_is_given_up_and_reported() {
    let place = Place::new();
    let clock = ManualClock::at(UnixTime::from_millis(1_767_609_000_250));
    let (client, file) = archived(&place, &clock).await;
    let original = std::fs::read(&file).unwrap();
    let mut flipped = original.clone();
    flipped[100_000] ^= 1;
    std::fs::write(&file, &flipped).unwrap();
    let mut watch = client.archive.watch_restores();
    assert_eq!(client.restore("one").await.unwrap(), RestoreOutcome::Accepted);
    let again = client.restore("one").await.unwrap_err();
    assert!(matches!(again, ArchiveError::RestoreAlreadyInProgress), "{again}");
    wait("the restore to be given up", async || {
        clock.advance(Duration::from_secs(5));
        restore_state(&client).await.is_none().then_some(())
    })
    .await;
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.restores_waiting, status.restores_failed), (0, 1));
    let failed = &status.failed_restores[0];
    assert_eq!(watch.next().await.as_ref(), Some(failed), "a subscriber gets the same");
    assert!(failed.is_given_up && failed.key == "one" && failed.failures >= 4, "{failed:?}");
    assert!(failed.error.contains("in tier \"cold\", is not what was ingested"), "{failed:?}");
    let degraded = client.archive.degraded();
    assert_eq!(degraded, ["restores: 1 failed; the status names them"]);
    let refused = client.get("one", None).await.unwrap_err();
    assert!(matches!(refused, ArchiveError::NotRestored { .. }), "{refused}");

    // It is retried on a new request, and not before.
    std::fs::write(&file, &original).unwrap();
    clock.advance(Duration::from_secs(7200));
    assert_eq!(restore_state(&client).await, None);
    assert_eq!(client.restore("one").await.unwrap(), RestoreOutcome::Accepted);
    wait("the restore", async || {
        clock.advance(Duration::from_secs(1));
        let state = restore_state(&client).await;
        matches!(state, Some(RestoreState::Restored { .. })).then_some(())
    })
    .await;
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.restores_waiting, status.restores_failed), (0, 0));
    assert!(status.failed_restores.is_empty(), "{:?}", status.failed_restores);
    assert!(client.archive.degraded().is_empty());
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn failed_restore_is_recorded_until_its_object_is_deleted() {
    let place = Place::new();
    let clock = ManualClock::at(UnixTime::from_millis(1_767_609_000_250));
    let (client, file) = archived(&place, &clock).await;
    let mut content = std::fs::read(&file).unwrap();
    content[100_000] ^= 1;
    std::fs::write(&file, &content).unwrap();
    client.restore("one").await.unwrap();
    wait("the restore to be given up", async || {
        clock.advance(Duration::from_secs(5));
        restore_state(&client).await.is_none().then_some(())
    })
    .await;
    client.archive.stop().await.unwrap();
    drop(client);
    let client = place.open().await;
    assert_eq!(restore_state(&client).await, None);
    assert_eq!(client.archive.status().await.unwrap().failed_restores.len(), 1);
    client.archive.delete(&client.bucket, &key("one")).await.unwrap();
    let status = client.archive.status().await.unwrap();
    assert_eq!((status.restores_failed, status.failed_restores.len()), (0, 0));
    client.archive.stop().await.unwrap();
}
