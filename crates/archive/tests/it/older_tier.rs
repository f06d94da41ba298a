//! An older copy of a tier's directory is reported, and nothing that it has is lost. The report
//! ends when the newer copy is restored, or with a verification once the lost objects are deleted.

use std::path::Path;

use fulgurite_archive::StorageClass;

use crate::harness::{Client, noise};
use crate::tiers::{Place, moved, wait};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn replace(place: &Path, with: &Path) {
    std::fs::remove_dir_all(place).unwrap();
    copy(with, place);
}

fn is_reported(client: &Client) -> bool {
    let kinds = client.archive.degraded_kinds();
    kinds.iter().any(|kind| kind.starts_with("tiers: one is an older copy"))
}

async fn stop(client: Client) {
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn older_tier_is_reported_until_the_newer_copy_returns() {
    let (place, copies) = (Place::new(), tempfile::tempdir().unwrap());
    let (older, newer) = (copies.path().join("older"), copies.path().join("newer"));
    let client = place.open().await;
    client.put("one", StorageClass::GlacierIr, &noise(1, 200_000)).await.unwrap();
    moved(&client).await;
    stop(client).await;
    copy(place.tier.path(), &older);
    let client = place.open().await;
    client.put("two", StorageClass::GlacierIr, &noise(2, 200_000)).await.unwrap();
    moved(&client).await;
    assert!(!is_reported(&client));
    stop(client).await;
    copy(place.tier.path(), &newer);

    replace(place.tier.path(), &older);
    for _ in 0..2 {
        let client = place.open().await;
        wait("the older copy to be reported", async || is_reported(&client).then_some(())).await;
        assert_eq!(client.get("one", None).await.unwrap(), noise(1, 200_000));
        client.get("two", None).await.unwrap_err();
        // No lost object is reported as intact.
        let report = client.archive.verify(None, &std::sync::Arc::default()).await.unwrap();
        assert_eq!(report.tiers[0].bodies_damaged, 1, "{report:?}");
        assert_eq!(report.tiers[0].damaged[0].key, "two");
        assert!(is_reported(&client));
        stop(client).await;
    }
    replace(place.tier.path(), &newer);
    let client = place.open().await;
    client.put("three", StorageClass::GlacierIr, &noise(3, 200_000)).await.unwrap();
    moved(&client).await;
    assert!(!is_reported(&client));
    for (name, seed) in [("one", 1), ("two", 2), ("three", 3)] {
        assert_eq!(client.get(name, None).await.unwrap(), noise(seed, 200_000), "{name}");
    }
    stop(client).await;
}

#[tokio::test]
async fn older_tier_with_all_named_bodies_is_accepted() {
    let (place, copies) = (Place::new(), tempfile::tempdir().unwrap());
    let client = place.open().await;
    client.put("one", StorageClass::GlacierIr, &noise(1, 200_000)).await.unwrap();
    moved(&client).await;
    stop(client).await;
    copy(place.tier.path(), copies.path());
    let client = place.open().await;
    client.put("two", StorageClass::GlacierIr, &noise(2, 200_000)).await.unwrap();
    moved(&client).await;
    stop(client).await;
    replace(place.tier.path(), copies.path());
    let client = place.open().await;
    wait("the older copy to be reported", async || is_reported(&client).then_some(())).await;
    client.archive.delete(&client.bucket, &crate::harness::key("two")).await.unwrap();
    let report = client.archive.verify(None, &std::sync::Arc::default()).await.unwrap();
    assert_eq!((report.tiers[0].bodies, report.tiers[0].bodies_damaged), (1, 0), "{report:?}");
    assert!(!is_reported(&client));
    stop(client).await;
    let client = place.open().await;
    client.put("three", StorageClass::GlacierIr, &noise(3, 200_000)).await.unwrap();
    moved(&client).await;
    assert!(!is_reported(&client));
    stop(client).await;
}
