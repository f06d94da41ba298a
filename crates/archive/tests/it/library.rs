//! The library under a live archive: its decisions can be replayed, and platters that it cannot
//! bring are reconstructed from others of the set.

use std::path::Path;

use fulgurite_archive::StorageClass;
use fulgurite_glass_core::control::log::{End, Ending, Replay, replay};
use fulgurite_glass_core::control::{LibraryShape, Machine, PanelIndex, Policy, RailPosition};
use fulgurite_units::SlotIndex;

use crate::harness::{Client, config, key, noise};

fn played(path: &Path) -> Replay {
    replay(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap()
}

async fn put(client: &Client, count: u64) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for number in 0..count {
        let (name, body) = (format!("file {number}"), noise(number, 90_000));
        client.put(&name, StorageClass::DeepArchive, &body).await.unwrap();
        files.push((name, body));
    }
    files
}

async fn restore(client: &Client, files: &[(String, Vec<u8>)]) {
    for (name, _) in files {
        client.restore(name).await.unwrap();
    }
    for (name, body) in files {
        client.restored(name).await.unwrap();
        assert!(client.get(name, None).await.unwrap() == *body, "{name} differs");
    }
}

#[tokio::test]
async fn library_log_replays_to_the_same_decisions() {
    for name in ["fulgurite", "silica", "shortest-paths"] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("library.log");
        let mut config = config(&dir.path().join("data"));
        config.glass.library.time_scale = 1e-4;
        config.glass.library.policy = Policy::named(name).unwrap();
        config.glass.library.log = Some(log.clone());
        let client = Client::open(config.clone()).await;
        let files = put(&client, 8).await;
        client.archive.seal().await.unwrap();
        client.archive.stop().await.unwrap();
        drop(client);

        let client = Client::open(config).await;
        restore(&client, &files).await;
        client.archive.stop().await.unwrap();
        for path in [dir.path().join("library.log.1"), log] {
            let played = played(&path);
            assert_eq!(played.divergence, None, "{name}");
            assert_eq!(played.ending, Some(Ending::End(End::Stopped)), "{name}");
            assert!(played.events > 20 && played.outputs > 20, "{name}: {played:?}");
        }
    }
}

#[tokio::test]
async fn unreachable_platter_is_read_from_its_set() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::open(config(dir.path())).await;
    let files = put(&client, 3).await;
    client.archive.seal().await.unwrap();
    let places = client.archive.locate(&client.bucket, &key("file 0")).await.unwrap();
    let slot = SlotIndex::new(places[0].slot.unwrap());
    let at = LibraryShape::small().address(slot).unwrap();
    let rail = Machine::Rail {
        panel: PanelIndex::new(0),
        shelf: at.shelf,
        from: RailPosition::new(0),
        to: RailPosition::new(100_000_000),
    };
    client.archive.break_machine(rail).unwrap();
    restore(&client, &files).await;
    let status = client.archive.status().await.unwrap();
    assert!(status.repaired_by_set > 0, "{status:?}");
    client.archive.repair_machine(rail).unwrap();
    client.archive.stop().await.unwrap();
}
