//! Reads that spin up only as many disks as are enough, and the others only on suspicion.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fulgurite_disks::{CauseKind, Fault, PlaceId};
use fulgurite_rack::{RackOptions, RackStore};
use fulgurite_rack_core::{Policy, SpinUps};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::shelf::{Shelf, noise, shape};

/// Spans several stripes.
const LENGTH: usize = 3_000_000;
/// Bytes of a stripe on one disk.
const FRAGMENT: usize = 128 * 1024;

fn key() -> Path {
    Path::from("bodies/1")
}

fn enough() -> usize {
    usize::try_from(shape().code().data).unwrap()
}

fn width() -> usize {
    usize::try_from(shape().code().width()).unwrap()
}

pub(crate) fn needed(spare: u32) -> Policy {
    Policy { spin_ups: SpinUps::Needed { spare }, ..Policy::default() }
}

fn open(shelf: &Shelf, spare: u32) -> RackStore {
    RackStore::open(RackOptions { policy: needed(spare), ..shelf.options() }).unwrap()
}

/// Creates a rack with one blob and stops it, so that every disk is spun down.
async fn one_blob(shelf: &Shelf) -> Vec<u8> {
    let rack = shelf.init().await;
    let bytes = noise(1, LENGTH);
    rack.put(&key(), bytes.clone().into()).await.unwrap();
    rack.stop();
    bytes
}

async fn read(rack: &RackStore) -> Vec<u8> {
    rack.get(&key()).await.unwrap().bytes().await.unwrap().to_vec()
}

/// Returns the spinning disks.
async fn spinning(rack: &RackStore) -> BTreeSet<PlaceId> {
    let groups = rack.status().await.unwrap().groups;
    let disks = groups.iter().flat_map(|group| &group.disks);
    disks.filter(|disk| disk.power.is_spinning()).map(|disk| disk.place).collect()
}

/// Returns the number of disks that were spun up for this cause.
async fn spun_up(rack: &RackStore, kind: CauseKind) -> usize {
    let spin_ups = rack.ledger().await.unwrap();
    let matching = spin_ups.iter().filter(|spin_up| spin_up.cause.kind() == kind);
    matching.map(|spin_up| spin_up.places.len()).sum()
}

type Stacks = Vec<(PlaceId, PathBuf)>;

/// Returns the stacks on spinning disks, and those on the others.
fn partition_stacks(shelf: &Shelf, spinning: &BTreeSet<PlaceId>) -> (Stacks, Stacks) {
    shelf.stacks().into_iter().partition(|(place, _)| spinning.contains(place))
}

fn flip(file: &PathBuf, at: usize) -> Vec<u8> {
    let whole = std::fs::read(file).unwrap();
    let mut damaged = whole.clone();
    damaged[at] ^= 4;
    std::fs::write(file, damaged).unwrap();
    whole
}

#[tokio::test]
async fn read_spins_up_enough_disks_and_loses_none() {
    let shelf = Shelf::new();
    let bytes = one_blob(&shelf).await;
    let rack = open(&shelf, 0);
    assert!(read(&rack).await == bytes);
    assert_eq!(spinning(&rack).await.len(), enough());
    assert_eq!(spun_up(&rack, CauseKind::Request).await, enough());
    // The group spins: no other disk is spun up, whatever part is read.
    for range in [0..1, 700_000..1_400_000, 2_999_999..3_000_000_u64] {
        let at = |at: u64| usize::try_from(at).unwrap();
        let part = rack.get_range(&key(), range.clone()).await.unwrap();
        assert!(part == bytes[at(range.start)..at(range.end)]);
    }
    assert_eq!(spun_up(&rack, CauseKind::Request).await, enough());
    assert_eq!(spun_up(&rack, CauseKind::Rebuild).await, 0, "nothing is missing");

    rack.stop();
    drop(rack);
    let rack = open(&shelf, 1);
    assert!(read(&rack).await == bytes);
    assert_eq!(spinning(&rack).await.len(), enough() + 1, "one spare disk");
}

#[tokio::test]
async fn verification_finds_damage_on_standby_disks() {
    let shelf = Shelf::new();
    let bytes = one_blob(&shelf).await;
    let rack = open(&shelf, 0);
    assert!(read(&rack).await == bytes);
    let (_, asleep) = partition_stacks(&shelf, &spinning(&rack).await);
    assert_eq!(asleep.len(), width() - enough());
    let whole: Vec<Vec<u8>> = asleep.iter().map(|(_, file)| flip(file, 5_000)).collect();
    assert!(read(&rack).await == bytes);
    assert_eq!(spinning(&rack).await.len(), enough(), "no damage is suspected");
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.lost, report.made), (2, 2), "{report:?}");
    for ((_, file), whole) in asleep.iter().zip(whole) {
        assert!(std::fs::read(file).unwrap() == whole);
    }
}

#[tokio::test]
async fn damage_on_spinning_disks_spins_up_the_others() {
    // In the header, in the first stripe, and in a stripe behind some that were already returned.
    for at in [10, 5_000, 4_096 + 3 * FRAGMENT + 77] {
        let shelf = Shelf::new();
        let bytes = one_blob(&shelf).await;
        let rack = open(&shelf, 0);
        let first = rack.get_range(&key(), 0..1).await.unwrap();
        assert!(first == bytes[..1]);
        let (awake, asleep) = partition_stacks(&shelf, &spinning(&rack).await);
        let whole = flip(&awake[1].1, at);
        assert!(read(&rack).await == bytes, "damaged at {at}");
        let all = spinning(&rack).await;
        assert!(asleep.iter().all(|(place, _)| all.contains(place)), "damaged at {at}");
        let report = rack.scrub().await.unwrap();
        assert_eq!(report.problems, [] as [&str; 0]);
        assert!(std::fs::read(&awake[1].1).unwrap() == whole, "damaged at {at}");
    }
}

#[tokio::test]
async fn loss_beyond_redundancy_names_every_stack() {
    let shelf = Shelf::new();
    one_blob(&shelf).await;
    let rack = open(&shelf, 0);
    let lost: Vec<_> = shelf.stacks().into_iter().take(width() - enough() + 1).collect();
    lost.iter().for_each(|(_, file)| std::fs::remove_file(file).unwrap());
    let error = rack.get(&key()).await.unwrap_err().to_string();
    for (place, _) in lost {
        assert!(error.contains(&format!("on disk {place}: missing")), "{error}");
    }
    assert!(!error.contains("asleep"), "{error}");
}

#[tokio::test]
async fn dead_disks_are_substituted_until_too_many() {
    let shelf = Shelf::new();
    let bytes = one_blob(&shelf).await;
    let places: Vec<PlaceId> = shelf.stacks().into_iter().map(|(place, _)| place).collect();
    let redundancy = width() - enough();
    for &place in &places[..redundancy] {
        shelf.disks.inject(place, Fault::Dead).unwrap();
    }
    let rack = open(&shelf, 0);
    assert!(read(&rack).await == bytes);
    rack.stop();
    drop(rack);
    shelf.disks.inject(places[redundancy], Fault::Dead).unwrap();
    let rack = open(&shelf, 0);
    let error = rack.get(&key()).await.unwrap_err().to_string();
    assert!(error.contains("has 4 usable stacks, but needs 5"), "{error}");
    for place in &places[..=redundancy] {
        assert!(error.contains(&format!("on disk {place}: ")), "{error}");
    }
}

#[tokio::test]
async fn write_spins_up_all_disks_after_a_partial_read() {
    let shelf = Shelf::new();
    let bytes = one_blob(&shelf).await;
    let rack = open(&shelf, 0);
    assert!(read(&rack).await == bytes);
    let other = Path::from("bodies/2");
    rack.put(&other, noise(2, LENGTH).into()).await.unwrap();
    assert_eq!(shelf.stacks().len(), 2 * width());
    assert_eq!(spinning(&rack).await.len(), 8, "the group has eight");
    let report = rack.scrub().await.unwrap();
    assert_eq!((report.blobs, report.lost), (2, 0));
}
