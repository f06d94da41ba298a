//! Mismatches: tomes with the same number, of another set or swapped, regions that are claimed
//! twice, clocks that go back, stores that are full, and tokens that never come. They are reported,
//! what was acknowledged is kept, and nothing of others is overwritten.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fulgurite_disks::{Backend as _, Observed, PlaceId};
use fulgurite_tome::limits::PUT_BYTES_MAX;
use fulgurite_tome::{
    Entropy, FaultInjector, InjectedFault, MetadataStore, Network, SetOptions, StandaloneOptions,
    StandaloneTome, TomeSet, TomesError,
};
use fulgurite_tome::{FAIL_POINTS, FailPoints};
use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::metadata::Row;
use fulgurite_tome_core::token::{FromTokenManager, ToTokenManager};
use fulgurite_tome_core::{GroupId, TomeId};
use fulgurite_units::{ByteCount, Duration, ErrorKind, ManualClock, UnixTime};

use crate::shelf::{BLOCK, Shelf, TOMES, metadata, noise, root, tomes};

fn content(name: &str) -> Vec<u8> {
    noise(name, 2 * BLOCK + name.len())
}

/// Puts objects, and returns when all are protected.
async fn fill(shelf: &Shelf, set: &TomeSet, names: &[&str]) {
    for name in names {
        shelf.wait(set.put(name, content(name))).await.unwrap();
        shelf.wait(set.protected(name)).await.unwrap();
        shelf.settle(set).await;
    }
}

async fn all_there(shelf: &Shelf, set: &TomeSet, names: &[&str]) {
    for name in names {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name), "{name}");
    }
    shelf.settle(set).await;
}

fn close(set: TomeSet) {
    set.stop();
    drop(set);
}

/// Returns the content of a tome's disk.
fn blocks(shelf: &Shelf, tome: TomeId) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(root(&shelf.folder, tome)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Swaps two folders.
fn swap(one: &PathBuf, other: &PathBuf) {
    let aside = one.with_extension("aside");
    std::fs::rename(one, &aside).unwrap();
    std::fs::rename(other, one).unwrap();
    std::fs::rename(aside, other).unwrap();
}

#[tokio::test]
async fn gaps_in_tome_numbers_are_rejected_before_creation() {
    let shelf = Shelf::new();
    for (gone, added) in [(3, 8), (0, 9), (7, 1_000_000)] {
        let mut options = shelf.options();
        let root = options.roots.remove(&TomeId::new(gone)).unwrap();
        options.roots.insert(TomeId::new(added), root);
        let error = TomeSet::init(options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("without gaps or duplicates"), "{error}");
        assert_eq!(std::fs::read_dir(&shelf.folder).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn swapped_tomes_are_reported_and_not_written() {
    let shelf = Shelf::new();
    let set = shelf.init();
    fill(&shelf, &set, &["one", "two", "three"]).await;
    let (one, two) = (set.tome_of("one").unwrap(), set.tome_of("two").unwrap());
    assert_ne!(one, two);
    close(set);
    let places = [root(&shelf.folder, one), metadata(&shelf.folder, one)];
    let others = [root(&shelf.folder, two), metadata(&shelf.folder, two)];
    places.iter().zip(&others).for_each(|(place, other)| swap(place, other));
    let before = [blocks(&shelf, one), blocks(&shelf, two)];
    let set = shelf.open();
    let reported = set.status().await.reasons;
    assert_eq!(reported.len(), 2, "{reported:?}");
    for (tome, other) in [(one, two), (two, one)] {
        let expected = format!("it belongs to tome {other}, not to tome {tome}");
        assert!(reported.iter().any(|why| why.contains(&expected)), "{reported:?}");
    }
    assert_eq!(shelf.wait(set.get("one")).await.unwrap(), content("one"), "read from its group");
    close(set);
    assert!(before == [blocks(&shelf, one), blocks(&shelf, two)]);
    places.iter().zip(&others).for_each(|(place, other)| swap(place, other));
    let set = shelf.open();
    all_there(&shelf, &set, &["one", "two", "three"]).await;
    close(set);
}

#[tokio::test]
async fn tome_of_another_set_is_reported_and_not_written() {
    let (shelf, other) = (Shelf::new(), Shelf::new());
    let set = shelf.init();
    fill(&shelf, &set, &["one", "two"]).await;
    let (tome, own) = (set.tome_of("one").unwrap(), set.id());
    close(set);
    let set = other.init();
    fill(&other, &set, &["theirs"]).await;
    let theirs = set.id();
    close(set);
    for place in [root, metadata] {
        swap(&place(&shelf.folder, tome), &place(&other.folder, tome));
    }
    let before = [blocks(&shelf, tome), blocks(&other, tome)];
    for (shelf, own, theirs) in [(&shelf, own, theirs), (&other, theirs, own)] {
        let set = shelf.open();
        let reported = set.status().await.reasons;
        let expected = format!("it belongs to set {theirs}, not to set {own}");
        assert!(reported.len() == 1 && reported[0].contains(&expected), "{reported:?}");
        close(set);
    }
    assert!(before == [blocks(&shelf, tome), blocks(&other, tome)]);
    for place in [root, metadata] {
        swap(&place(&shelf.folder, tome), &place(&other.folder, tome));
    }
    let set = shelf.open();
    all_there(&shelf, &set, &["one", "two"]).await;
    close(set);
}

#[tokio::test]
async fn region_claimed_twice_affects_only_its_tome() {
    let shelf = Shelf::new();
    let set = shelf.init();
    fill(&shelf, &set, &["one", "two", "three"]).await;
    let tome = set.tome_of("one").unwrap();
    close(set);
    let place = metadata(&shelf.folder, tome);
    {
        let (store, identity) = MetadataStore::open_any(&place).unwrap();
        let known = store.load(&identity).unwrap();
        // A region without objects, so that nothing else is wrong with it.
        let used = |index| known.objects().any(|(_, object)| object.blocks[0].0 == index);
        let (region, known_region) = known.regions().find(|(index, _)| !used(*index)).unwrap();
        let slots = known_region.group().slots().to_vec();
        let group = Group::new(GroupId::new(77), known_region.group().split(), slots).unwrap();
        let rows = [Row::Dropped { region }, Row::MemberSlot { region, group }];
        store.commit(&rows, &FailPoints::unarmed(&FAIL_POINTS)).unwrap();
    }
    let before = blocks(&shelf, tome);
    let set = shelf.open();
    let reported = set.status().await.reasons;
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].starts_with(&format!("tome {tome}: given up: region")), "{reported:?}");
    assert_eq!(shelf.wait(set.get("one")).await.unwrap(), content("one"), "read from its group");
    let others = ["two", "three"].map(|name| (name, set.tome_of(name).unwrap()));
    for (name, _) in others.iter().filter(|(_, holder)| *holder != tome) {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), content(name));
    }
    assert!(before == blocks(&shelf, tome));
    close(set);
    // It is rebuilt like any lost one.
    shelf.add();
    let set = shelf.init();
    set.rebuild(tome).await.unwrap();
    assert!(shelf.moved(&set).await.is_well());
    all_there(&shelf, &set, &["one", "two", "three"]).await;
    close(set);
}

#[tokio::test]
async fn wall_clock_jumps_between_starts_are_harmless() {
    let shelf = Shelf::new();
    let set = shelf.init();
    fill(&shelf, &set, &["now"]).await;
    // In flight to its parities when the clock is set.
    tomes().for_each(|tome| shelf.faults.inject(tome, InjectedFault::Send));
    shelf.wait(set.put("late", content("late"))).await.unwrap();
    close(set);
    tomes().for_each(|tome| shelf.faults.mend(tome));
    let now = shelf.clock.clock().now().as_millis();
    let day = 24 * 3600 * 1000;
    let mut names = vec!["now", "late"];
    for (name, wall) in [("back", now - 400 * day), ("ahead", now + 400 * day), ("1970", 0)] {
        let clock = ManualClock::at(UnixTime::from_millis(wall));
        let mut shelf = Shelf::in_folder(&shelf.folder);
        shelf.clock = clock;
        let set = shelf.open();
        fill(&shelf, &set, &[name]).await;
        names.push(name);
        all_there(&shelf, &set, &names).await;
        shelf.wait(set.protected("late")).await.unwrap();
        let status = set.status().await;
        assert!(status.is_well(), "{name}: {:?}", status.reasons);
        close(set);
    }
}

#[tokio::test]
async fn parities_that_cannot_commit_protect_nothing() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let tome = shelf.wait(set.put("one", content("one"))).await.unwrap();
    for other in tomes().filter(|other| *other != tome) {
        shelf.faults.inject(other, InjectedFault::Commit);
    }
    let hour = shelf.clock.clock().passed() + Duration::from_secs(3600);
    let clock = shelf.clock.clock();
    let passed = async {
        while clock.passed() < hour {
            tokio::task::yield_now().await;
        }
    };
    let protected = async {
        tokio::select! {
            protected = set.protected("one") => Some(protected),
            () = passed => None,
        }
    };
    let protected = shelf.wait(protected).await;
    assert!(protected.is_none(), "{protected:?}");
    let status = set.status().await;
    let own = status.tomes.iter().find(|status| status.tome == tome).unwrap();
    assert!(own.unprotected.bytes > ByteCount::ZERO, "and that is reported");
    assert!(status.reasons.len() >= 2, "its parities are given up: {:?}", status.reasons);
    assert_eq!(shelf.wait(set.get("one")).await.unwrap(), content("one"));
    close(set);
    tomes().for_each(|tome| shelf.faults.mend(tome));
    let set = shelf.open();
    shelf.wait(set.protected("one")).await.unwrap();
    all_there(&shelf, &set, &["one"]).await;
    close(set);
}

/// A network that drops everything.
#[derive(Debug)]
struct DroppingNetwork;

impl Network for DroppingNetwork {
    fn send(&self, _: TomeId, _: TomeId, _: Message) {}

    fn send_to_token_manager(&self, _: TomeId, _: ToTokenManager) {}

    fn send_to_holder(&self, _: TomeId, _: FromTokenManager) {}
}

#[tokio::test]
async fn request_without_token_spins_no_disk_and_fails_on_stop() {
    let shelf = Shelf::new();
    let set = shelf.init();
    fill(&shelf, &set, &["one"]).await;
    let tome = set.tome_of("one").unwrap();
    let SetOptions { set: _, directory, clock, backend, .. } = shelf.options();
    let options = StandaloneOptions {
        set: set.id(),
        tome,
        directory,
        root: root(&shelf.folder, tome),
        backend,
        spin_ups_a_day: None,
        idle: fulgurite_tome_core::limits::IDLE,
        network: Arc::new(DroppingNetwork),
        clock,
        entropy: Entropy::new(|| [7; 16]),
        fail: FailPoints::unarmed(&FAIL_POINTS),
        faults: FaultInjector::default(),
    };
    close(set);
    let standalone = StandaloneTome::open(options, None).unwrap();
    let day = shelf.clock.clock().passed() + Duration::from_secs(24 * 3600);
    {
        let mut get = std::pin::pin!(standalone.get("one".to_owned(), false));
        while shelf.clock.clock().passed() < day {
            tokio::select! {
                biased;
                got = &mut get => panic!("without a token: {got:?}"),
                status = standalone.status() => {
                    let status = status.unwrap();
                    assert!(!status.power.is_spinning() && status.failure.is_none(), "{status:?}");
                }
            }
            let standing = shelf.disks.observe(PlaceId::new(tome.get())).unwrap();
            assert_eq!(standing, Observed::Standby);
            shelf.clock.advance(Duration::from_secs(60));
        }
        // What finds no memory does not wait.
        let all = standalone.room(PUT_BYTES_MAX.get()).unwrap();
        let busy = standalone.room(1).unwrap_err();
        assert!(matches!(busy, TomesError::Busy { .. }), "{busy}");
        drop(all);
        assert!(standalone.room(1).is_ok());
        standalone.stop();
        assert_eq!(get.await.unwrap_err().kind(), ErrorKind::Unavailable);
    }
    drop(standalone);
    let set = shelf.open();
    assert_eq!(set.powers().len(), TOMES as usize);
    all_there(&shelf, &set, &["one"]).await;
    close(set);
}
