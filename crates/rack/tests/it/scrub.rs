//! Groups are verified once in each interval even if no client reads them.

use fulgurite_disks::CauseKind;
use fulgurite_rack::RackStore;
use fulgurite_units::Duration;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::shelf::{Shelf, noise};

const DAY: u64 = 86_400;

/// Waits until all groups were verified.
async fn verified(rack: &RackStore, at_least_ms: u64) {
    loop {
        let status = rack.status().await.unwrap();
        let is_over = |at: fulgurite_units::UnixTime| at.as_millis() >= at_least_ms;
        if status.verified_oldest.is_some_and(is_over) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn unread_damage_is_repaired_in_time_across_restarts() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    for number in 0..20 {
        rack.put(&Path::from(format!("{number}")), noise(number, 5000).into()).await.unwrap();
    }
    let stacks = shelf.stacks();
    let files: Vec<_> = [0, 33, 77].iter().map(|&at: &usize| stacks[at].1.clone()).collect();
    let whole: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    for file in &files {
        let mut damaged = std::fs::read(file).unwrap();
        damaged[4100] ^= 1;
        std::fs::write(file, damaged).unwrap();
    }
    let status = rack.status().await.unwrap();
    assert!(status.groups.iter().all(|group| group.verified.is_none() && !group.verifies));
    rack.stop();
    drop(rack);
    // Now no disk spins.
    let rack = shelf.open();
    let before = rack.ledger().await.unwrap().len();
    shelf.clock.advance(Duration::from_secs(30 * DAY));
    verified(&rack, 0).await;
    let now: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(now == whole, "repaired");
    let spin_ups = rack.ledger().await.unwrap();
    let groups = rack.status().await.unwrap().groups.len();
    assert_eq!(spin_ups.len() - before, groups, "each group is spun up once");
    assert!(spin_ups[..groups].iter().all(|spin_up| spin_up.cause.kind() == CauseKind::Scrub));
    let first = rack.status().await.unwrap().verified_oldest.unwrap();
    rack.stop();
    drop(rack);
    // A restart does not restart the verification.
    let rack = shelf.open();
    assert_eq!(rack.status().await.unwrap().verified_oldest, Some(first));
    shelf.clock.advance(Duration::from_secs(10 * DAY));
    assert_eq!(rack.status().await.unwrap().verified_oldest, Some(first));
    assert_eq!(rack.ledger().await.unwrap().len(), spin_ups.len());
    shelf.clock.advance(Duration::from_secs(20 * DAY));
    verified(&rack, first.as_millis() + 1).await;
}
