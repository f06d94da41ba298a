//! Recoveries without a tier that has objects: the tier is named, or its objects are counted, and
//! their keys are kept for a recovery with the tier.

use fulgurite_archive::config::{ArchiveConfig, TierName};
use fulgurite_archive::{ArchiveError, RecoverOptions, RecoverReport, StorageClass, recover};

use crate::harness::{Client, config as config_of, copy, is_same, noise};
use crate::tiers::{Place, moved, wait};

/// Makes an archive with an object in its tier and one in its staging log. They are of two runs, so
/// that the segment that the first was staged in is gone.
async fn filled() -> Place {
    let place = Place::new();
    let client = place.open().await;
    client.put("in the tier", StorageClass::GlacierIr, &noise(1, 200_000)).await.unwrap();
    moved(&client).await;
    client.archive.stop().await.unwrap();
    drop(client);
    let client = place.open().await;
    client.put("staged", StorageClass::DeepArchive, &noise(2, 1000)).await.unwrap();
    client.archive.stop().await.unwrap();
    place
}

async fn salvage(
    config: ArchiveConfig,
    left_out: &[&TierName],
) -> Result<RecoverReport, ArchiveError> {
    let without_tiers = left_out.iter().map(|&tier| tier.clone()).collect();
    let options = RecoverOptions { salvage: true, without_tiers, ..RecoverOptions::default() };
    let work = move || recover(config, options, &|_| {});
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Starts and stops without the tier, until the sweep of keys has ended.
async fn start(place: &Place) {
    let client = Client::open(config_of(place.data.path())).await;
    wait("the keys to be swept", async || {
        let jobs = client.archive.status().await.unwrap().jobs;
        jobs.iter().any(|job| job.name == "shredding" && job.runs > 0).then_some(())
    })
    .await;
    client.archive.stop().await.unwrap();
}

async fn check_tier(place: &Place) {
    salvage(place.config(), &[]).await.unwrap();
    let client = place.open().await;
    assert_eq!(client.get("in the tier", None).await.unwrap(), noise(1, 200_000));
    client.archive.stop().await.unwrap();
}

#[tokio::test]
async fn tier_of_the_old_catalog_is_named_before_anything_is_changed() {
    let place = filled().await;
    let before = tempfile::tempdir().unwrap();
    copy(place.data.path(), before.path());
    let refused = salvage(config_of(place.data.path()), &[]).await.unwrap_err();
    assert!(matches!(refused, ArchiveError::Unusable { .. }), "{refused}");
    assert!(refused.to_string().contains("pass --without-tier cold"), "{refused}");
    assert!(is_same(place.data.path(), before.path()).unwrap());

    let cold = TierName::new("cold").unwrap();
    let report = salvage(config_of(place.data.path()), &[&cold]).await.unwrap();
    assert_eq!((report.objects, report.incomplete), (1, 1), "{report:?}");
    assert!(report.lost[0].contains("in the tier"), "{report:?}");
    for _ in 0..2 {
        start(&place).await;
    }
    check_tier(&place).await;
}

#[tokio::test]
async fn keys_of_an_unknown_tier_are_counted_and_kept() {
    let place = filled().await;
    std::fs::remove_dir_all(place.data.path().join("catalog")).unwrap();
    let report = salvage(config_of(place.data.path()), &[]).await.unwrap();
    assert_eq!((report.objects, report.keys_unexplained), (1, 1), "{report:?}");
    for _ in 0..2 {
        start(&place).await;
    }
    check_tier(&place).await;
}
