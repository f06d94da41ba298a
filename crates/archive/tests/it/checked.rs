//! What a start refuses is refused before anything is created or changed.

use std::path::Path;
use std::sync::Arc;

use fulgurite_archive::config::{ArchiveConfig, Home, TierName, TierOptions};
use fulgurite_archive::{Archive, ArchiveError, StorageClass};
use object_store::memory::InMemory;

use crate::harness::{Client, config, copy, is_same, noise};
use crate::tiers::{Place, moved};

/// Opening refuses, and the data directory is not created.
async fn creates_nothing(change: impl FnOnce(&mut ArchiveConfig)) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut config = config(&data);
    change(&mut config);
    Archive::check(&config, true).unwrap_err();
    let refused = Archive::open(config).await.unwrap_err();
    assert!(!data.exists(), "{refused}");
}

#[tokio::test]
async fn wrong_configuration_creates_nothing() {
    let cold = || TierName::new("cold").unwrap();
    creates_nothing(|config| {
        config.classes.assign(StorageClass::Glacier, Home::Tier(cold()), None).unwrap();
    })
    .await;
    creates_nothing(|config| {
        let url = "ftp://host".to_owned();
        config.tiers.insert(cold(), TierOptions { url, ..TierOptions::default() });
    })
    .await;
    creates_nothing(|config| config.far_libraries.push(cold())).await;
    creates_nothing(|config| config.glass.far_redundancy = 1).await;
    creates_nothing(|config| config.fail_point = Some(("nowhere".to_owned(), 0))).await;
    creates_nothing(|config| config.key_tables = vec!["/k".into(), "/k".into()]).await;
}

async fn changes_nothing(data: &Path, config: ArchiveConfig) -> String {
    let before = tempfile::tempdir().unwrap();
    copy(data, before.path());
    let refused = Archive::check(&config, true).unwrap_err();
    assert!(is_same(data, before.path()).unwrap(), "{refused}");
    assert!(matches!(refused, ArchiveError::Unusable { .. }), "{refused}");
    refused.to_string()
}

#[tokio::test]
async fn unusable_directory_is_not_changed() {
    let data = tempfile::tempdir().unwrap();
    let client = Client::open(config(data.path())).await;
    client.put("kept", StorageClass::Standard, &noise(1, 3000)).await.unwrap();
    let locked = Archive::check(&config(data.path()), true).unwrap_err();
    assert!(matches!(locked, ArchiveError::Locked { .. }), "{locked}");
    client.archive.stop().await.unwrap();
    drop(client);
    Archive::check(&config(data.path()), true).unwrap();
    let (catalog, away) = (data.path().join("catalog"), data.path().join("away"));
    std::fs::rename(&catalog, &away).unwrap();
    let refused = changes_nothing(data.path(), config(data.path())).await;
    assert!(refused.contains("the catalog is missing"), "{refused}");
    std::fs::rename(&away, &catalog).unwrap();
    std::fs::remove_file(data.path().join("keys/master.key")).unwrap();
    let refused = changes_nothing(data.path(), config(data.path())).await;
    assert!(refused.contains("the master key is missing"), "{refused}");
}

#[tokio::test]
async fn renamed_tier_is_noticed_before_another_is_created() {
    let place = Place::new();
    let client = place.open().await;
    client.put("in the tier", StorageClass::GlacierIr, &noise(1, 1000)).await.unwrap();
    moved(&client).await;
    client.archive.stop().await.unwrap();
    drop(client);
    let mut renamed = config(place.data.path());
    let options = TierOptions { store: Some(Arc::new(InMemory::new())), ..TierOptions::default() };
    renamed.tiers.insert(TierName::new("colder").unwrap(), options);
    Archive::check(&renamed, false).unwrap();
    let refused = changes_nothing(place.data.path(), renamed).await;
    assert!(refused.contains("objects are in tier \"cold\""), "{refused}");
}
