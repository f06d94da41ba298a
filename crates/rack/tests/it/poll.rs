//! Disks in standby are polled: external spin-ups are recorded and reversed, an unplugged disk is
//! lost at once, and subscribers see everything that happened.

use std::sync::Arc;

use fulgurite_disks::{Backend as _, Cause, CauseKind, Fault, Observed, PlaceId, Simulated, Times};
use fulgurite_rack::{Notification, RackOptions, RackStore, Snapshot};
use fulgurite_units::{Duration, Ratio, Seed};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::shelf::{Shelf, noise, shape};

const PLACE: PlaceId = PlaceId::new(5);
const POLL: Duration = Duration::from_secs(60);

/// Waits until the snapshot meets a condition.
async fn until(rack: &RackStore, condition: impl Fn(&Snapshot) -> bool) -> Snapshot {
    loop {
        let status = rack.status().await.unwrap();
        if condition(&status) {
            return status;
        }
        tokio::task::yield_now().await;
    }
}

fn external_spin_ups(status: &Snapshot) -> u64 {
    let groups = status.groups.iter().flat_map(|group| &group.spin_ups_by);
    groups.filter(|(kind, _)| *kind == CauseKind::External).map(|(_, count)| count).sum()
}

fn failure(status: &Snapshot) -> Option<String> {
    let mut disks = status.groups.iter().flat_map(|group| &group.disks);
    disks.find(|disk| disk.place == PLACE).unwrap().failure.clone()
}

#[tokio::test]
async fn external_spin_up_is_recorded_once_and_reversed() {
    let shelf = Shelf::new();
    shelf.init().await.stop();
    // Left spinning by a crash: not an external spin-up.
    shelf.disks.inject(PLACE, Fault::ExternalSpinUp).unwrap();
    let rack = shelf.open();
    let is_down = || shelf.disks.observe(PLACE).unwrap() == Observed::Standby;
    until(&rack, |_| is_down()).await;
    let before = rack.ledger().await.unwrap().len();
    assert_eq!(external_spin_ups(&rack.status().await.unwrap()), 0);

    for times in 1..=3 {
        shelf.disks.inject(PLACE, Fault::ExternalSpinUp).unwrap();
        assert!(!is_down());
        shelf.clock.advance(POLL);
        until(&rack, |status| external_spin_ups(status) == times && is_down()).await;
    }
    let spin_ups = rack.ledger().await.unwrap();
    assert_eq!(spin_ups.len(), before + 3);
    assert!(
        spin_ups[..3]
            .iter()
            .all(|spin_up| spin_up.cause == Cause::External && spin_up.places == [PLACE])
    );
    assert_eq!(failure(&rack.status().await.unwrap()), None);
    // The rack uses it as before.
    let key = Path::from("a");
    rack.put(&key, noise(1, 100_000).into()).await.unwrap();
    assert_eq!(rack.get(&key).await.unwrap().bytes().await.unwrap(), noise(1, 100_000));
}

#[tokio::test]
async fn unplugged_standby_disk_is_lost_until_it_is_back() {
    let shelf = Shelf::new();
    shelf.init().await.stop();
    let rack = shelf.open();
    until(&rack, |status| failure(status).is_none()).await;
    shelf.disks.inject(PLACE, Fault::Pulled).unwrap();
    shelf.clock.advance(POLL);
    let status = until(&rack, |status| failure(status).is_some()).await;
    assert_eq!(failure(&status).unwrap(), "no disk is in its place");
    assert_eq!(external_spin_ups(&status), 0);
    shelf.disks.inject(PLACE, Fault::Repaired).unwrap();
    shelf.clock.advance(POLL);
    until(&rack, |status| failure(status).is_none()).await;
    let before = rack.ledger().await.unwrap().len();
    // It spins with its group again, at the next verification.
    shelf.clock.advance(Duration::from_secs(30 * 86_400));
    loop {
        let spin_ups = rack.ledger().await.unwrap();
        let spin_ups = &spin_ups[..spin_ups.len() - before];
        if spin_ups.iter().any(|spin_up| spin_up.places.contains(&PLACE)) {
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// Returns the spin-ups of the disk.
fn spin_ups(status: &Snapshot) -> u64 {
    let mut disks = status.groups.iter().flat_map(|group| &group.disks);
    disks.find(|disk| disk.place == PLACE).unwrap().spin_ups
}

#[tokio::test]
async fn dead_disk_is_probed_only_a_few_times() {
    let shelf = Shelf::new();
    shelf.init().await.stop();
    // Before the start, which may spin it up before anything else does.
    shelf.disks.inject(PLACE, Fault::Dead).unwrap();
    let rack = shelf.open();
    rack.scrub().await.unwrap();
    until(&rack, |status| failure(status).is_some()).await;
    let before = spin_ups(&rack.status().await.unwrap());
    for _ in 0..1000 {
        shelf.clock.advance(POLL);
        rack.status().await.unwrap();
    }
    let status = rack.status().await.unwrap();
    let tried = spin_ups(&status) - before;
    assert!(tried <= 12, "{tried} spin-ups are more than four turns of three tries");
    assert!(failure(&status).is_some());
}

#[tokio::test]
async fn totals_and_space_of_a_group_survive_restarts() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let lies = |status: &Snapshot| {
        let groups = status.groups.iter();
        groups
            .map(|group| (group.blobs, group.bytes))
            .fold((0, 0), |(b, s), (blobs, bytes)| (b + blobs, s + bytes))
    };
    for number in 0..7 {
        rack.put(&Path::from(format!("{number}")), noise(number, 9000).into()).await.unwrap();
    }
    rack.put(&Path::from("small"), "few".into()).await.unwrap();
    assert_eq!(lies(&rack.status().await.unwrap()), (7, 63_000), "small objects are inlined");
    rack.put(&Path::from("3"), noise(9, 8000).into()).await.unwrap();
    rack.delete(&Path::from("4")).await.unwrap();
    let status = rack.status().await.unwrap();
    assert_eq!(lies(&status), (6, 53_000));
    rack.stop();
    drop(rack);

    let rack = shelf.open();
    let again = rack.status().await.unwrap();
    assert_eq!(lies(&again), (6, 53_000));
    // All groups were spun up to be initialized, so the space of each is known.
    assert!(again.groups.iter().all(|group| group.room.is_some_and(|room| room.free < room.total)));
    rack.stop();
    drop(rack);
}

#[tokio::test]
async fn subscribers_get_a_snapshot_and_every_later_step() {
    let shelf = Shelf::new();
    let rack = shelf.init().await;
    let (mut all, mut few) = (rack.watch().await.unwrap(), rack.watch().await.unwrap());
    let leaving = rack.watch().await.unwrap();
    for number in 0..5 {
        rack.put(&Path::from(format!("{number}")), noise(number, 9000).into()).await.unwrap();
    }
    drop(leaving);
    rack.put(&Path::from("5"), noise(5, 9000).into()).await.unwrap();
    rack.stop();
    let mut steps = [Vec::new(), Vec::new()];
    for (watch, list) in [&mut all, &mut few].into_iter().zip(&mut steps) {
        while let Some(seen) = watch.next().await {
            match seen.unwrap() {
                Notification::Snapshot { step, rack, .. } => {
                    assert!(list.is_empty() && !rack.groups.is_empty());
                    list.push(step);
                }
                Notification::Step { step, .. } => list.push(step),
                Notification::Unrepaired { detail, .. } => panic!("{detail}"),
            }
        }
    }
    let [all, few] = steps;
    // The rack may have had a step between the two subscriptions.
    assert!(all.ends_with(&few), "{all:?} {few:?}");
    assert!(few.len() > 10, "{few:?}");
    for list in [all, few] {
        assert!(list.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{list:?}");
    }
}

#[tokio::test]
async fn worn_disk_is_reported() {
    let shelf = Shelf::new();
    let open = || {
        let rated_spin_ups = Some(3);
        RackStore::open(RackOptions { rated_spin_ups, ..shelf.options() }).unwrap()
    };
    let worn = |status: &Snapshot| -> Vec<PlaceId> {
        let worn = status.groups.iter().flat_map(|group| status.worn(group));
        worn.map(|disk| disk.place).collect()
    };
    shelf.init().await.stop();
    let rack = open();
    rack.put(&Path::from("one"), noise(1, 50_000).into()).await.unwrap();
    let status = rack.status().await.unwrap();
    assert_eq!((status.rated_spin_ups, worn(&status).len()), (Some(3), 0));
    rack.stop();
    drop(rack);
    let rack = open();
    rack.get(&Path::from("one")).await.unwrap().bytes().await.unwrap();
    let status = rack.status().await.unwrap();
    let awake: Vec<PlaceId> = status.groups[0].disks.iter().map(|disk| disk.place).collect();
    assert_eq!(worn(&status), awake, "initialized, written and read");
    // A new disk starts with no spin-ups.
    let other = awake[2];
    std::fs::remove_dir_all(shelf.root(other)).unwrap();
    rack.replace(other).await.unwrap();
    let status = rack.status().await.unwrap();
    assert!(!worn(&status).contains(&other), "{status:?}");
}

#[tokio::test]
async fn disk_is_replaced_while_its_group_spins() {
    let shelf = Shelf::new();
    shelf.init().await.stop();
    let ten_times = Ratio::new(0.1).unwrap();
    let disks = Simulated::new(shape().places(), Times::PELICAN, ten_times, Seed::new(1));
    let backend = Arc::new(disks) as Arc<dyn fulgurite_disks::Backend>;
    let rack = RackStore::open(RackOptions { backend, ..shelf.options() }).unwrap();
    let writes = rack.clone();
    let put = tokio::spawn(async move {
        writes.put(&Path::from("one"), noise(1, 50_000).into()).await.unwrap();
    });
    pass(&rack, &shelf, || put.is_finished()).await;
    let group = &rack.status().await.unwrap().groups[0];
    assert_eq!(group.blobs, 1, "the group spins");
    let place = group.disks[2].place;
    std::fs::remove_dir_all(shelf.root(place)).unwrap();
    let rebuilds = rack.clone();
    let rebuilt = tokio::spawn(async move { rebuilds.rebuild(place).await.unwrap() });
    pass(&rack, &shelf, || rebuilt.is_finished()).await;
    let replaces = rack.clone();
    let replaced = tokio::spawn(async move { replaces.replace(place).await });
    pass(&rack, &shelf, || replaced.is_finished()).await;
    let report = replaced.await.unwrap().unwrap();
    assert_eq!(report.problems, [] as [&str; 0]);
}

/// Advances the clock until a condition holds.
async fn pass(rack: &RackStore, shelf: &Shelf, condition: impl Fn() -> bool) {
    while !condition() {
        rack.status().await.unwrap();
        shelf.clock.advance(Duration::from_nanos(10_000_000));
        tokio::task::yield_now().await;
    }
}
