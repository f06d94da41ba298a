//! A start with the stores of two tiers swapped is refused by name, and nothing is changed.

use std::sync::Arc;

use fulgurite_archive::config::{ArchiveConfig, Home, TierName, TierOptions};
use fulgurite_archive::{Archive, ArchiveError, StorageClass};
use object_store::memory::InMemory;

use crate::harness::{Client, config as config_of, content, noise};
use crate::tiers::{moved, recovered};

const TIERS: [(&str, StorageClass); 2] =
    [("cold", StorageClass::Standard), ("warm", StorageClass::GlacierIr)];

fn config(data: &tempfile::TempDir, stores: [&(String, Arc<InMemory>); 2]) -> ArchiveConfig {
    let mut config = config_of(data.path());
    for ((name, class), (id, store)) in TIERS.into_iter().zip(stores) {
        let name = TierName::new(name).unwrap();
        config.classes.assign(class, Home::Tier(name.clone()), None).unwrap();
        let (url, store_id) = (id.clone(), Some(id.clone()));
        let store = Some(Arc::clone(store) as _);
        config.tiers.insert(name, TierOptions { url, store, store_id, ..TierOptions::default() });
    }
    config
}

#[tokio::test]
async fn swapped_stores_are_refused_by_name() {
    let data = tempfile::tempdir().unwrap();
    let [a, b] = ["drawer:1", "drawer:2"].map(|id| (id.to_owned(), Arc::default()));
    let client = Client::open(config(&data, [&a, &b])).await;
    for (name, class) in TIERS {
        client.put(name, class, &noise(1, 1000)).await.unwrap();
    }
    moved(&client).await;
    client.archive.stop().await.unwrap();
    drop(client);
    // A rebuilt catalog knows them as well.
    for is_rebuilt in [false, true] {
        if is_rebuilt {
            std::fs::remove_dir_all(data.path().join("catalog")).unwrap();
            recovered(config(&data, [&a, &b])).await.unwrap();
        }
        let before = content(data.path());
        let refused = Archive::open(config(&data, [&b, &a])).await.unwrap_err();
        assert!(matches!(refused, ArchiveError::Unusable { .. }), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("tier \"cold\" has the store of tier \"warm\" (drawer:2)"), "{text}");
        assert!(content(data.path()) == before, "a file was changed");
    }
    let client = Client::open(config(&data, [&a, &b])).await;
    for (name, _) in TIERS {
        assert_eq!(client.get(name, None).await.unwrap(), noise(1, 1000));
    }
    client.archive.stop().await.unwrap();
}
