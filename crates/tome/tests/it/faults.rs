//! Full disks, failed syncs, disks that do not spin up and foreign disks: they are reported, and
//! nothing that was acknowledged is lost.

use fulgurite_disks::{Fault, PlaceId, Power};
use fulgurite_tome::{InjectedFault, TOME_FILE, TOME_FILE_COPY, TomeEvent, TomeSet};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{Duration, ErrorKind};

use crate::shelf::{BLOCK, Shelf, metadata, noise, root};

async fn reasons(set: &TomeSet) -> Vec<String> {
    let status = set.status().await;
    assert_eq!(status.is_well(), status.reasons.is_empty());
    status.reasons
}

/// Failures of writes.
const FAILING: [InjectedFault; 4] =
    [InjectedFault::Write, InjectedFault::Room, InjectedFault::Sync, InjectedFault::Commit];

/// Injects a fault into every tome until one fails during a put; returns that tome.
async fn given_up(shelf: &Shelf, set: &TomeSet, fault: InjectedFault, name: &str) -> TomeId {
    for tome in crate::shelf::tomes() {
        shelf.faults.inject(tome, fault);
    }
    // Any of them may take it; the one that does is the first to spin up.
    let error = shelf.wait(set.put(name, noise(name, BLOCK))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{fault:?}: {error}");
    let tome = set.tome_of(name).unwrap();
    let reported = reasons(set).await;
    assert_eq!(reported.len(), 1, "{fault:?}: {reported:?}");
    assert!(reported[0].starts_with(&format!("tome {tome}: given up: ")), "{reported:?}");
    tome
}

/// Lets time pass until the set is healthy.
async fn well(shelf: &Shelf, set: &TomeSet) {
    let well = async {
        while !reasons(set).await.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    shelf.wait(well).await;
}

#[tokio::test]
async fn tome_recovers_from_transient_storage_failure() {
    for fault in FAILING {
        let shelf = Shelf::new();
        let set = shelf.init();
        let tome = shelf.wait(set.put("before", noise("before", 3 * BLOCK))).await.unwrap();
        shelf.wait(set.protected("before")).await.unwrap();
        shelf.settle(&set).await;
        let mut watching = set.watch();
        let failed = given_up(&shelf, &set, fault, "after").await;
        let again = shelf.wait(set.get("after")).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Unavailable, "the outcome is unknown");
        crate::shelf::tomes().for_each(|tome| shelf.faults.mend(tome));
        well(&shelf, &set).await;
        assert_eq!(set.tome_of("before").unwrap(), tome);
        let read = shelf.wait(set.get("before")).await.unwrap();
        assert_eq!(read, noise("before", 3 * BLOCK), "{fault:?}");
        // It was not acknowledged, and is not there: its name is free.
        assert_eq!(set.tome_of("after").unwrap_err().kind(), ErrorKind::NotFound, "{fault:?}");
        shelf.wait(set.put("after", noise("after", BLOCK))).await.unwrap();
        shelf.wait(set.protected("after")).await.unwrap();
        let mut events = Vec::new();
        while !matches!(events.last(), Some(TomeEvent::Resumed { .. })) {
            let event = watching.next().await.unwrap().unwrap().what;
            let is_own = matches!(event, TomeEvent::GivenUp { .. } | TomeEvent::Resumed { .. });
            events.extend(is_own.then_some(event));
        }
        assert!(
            matches!(&events[0], TomeEvent::GivenUp { tome, .. } if *tome == failed),
            "{events:?}"
        );
        assert_eq!(events.last(), Some(&TomeEvent::Resumed { tome: failed }), "{fault:?}");
        // The next start sees the same.
        set.stop();
        drop(set);
        let set = shelf.open();
        assert_eq!(reasons(&set).await, [] as [&str; 0]);
        for (name, blocks) in [("before", 3), ("after", 1)] {
            let read = shelf.wait(set.get(name)).await.unwrap();
            assert_eq!(read, noise(name, blocks * BLOCK), "{fault:?}");
        }
        agree(&set).await;
        set.stop();
    }
}

async fn agree(set: &TomeSet) {
    let mut groups = 0;
    let check = |checked: fulgurite_tome::GroupChecked| {
        assert!(checked.findings.is_empty() && checked.failure.is_none(), "{checked:?}");
        groups += 1;
    };
    set.verify(check).await.unwrap();
    assert!(groups > 0, "groups were compared");
}

#[tokio::test]
async fn permanent_storage_failure_is_retried_with_backoff() {
    for fault in [InjectedFault::Sync, InjectedFault::Commit] {
        let shelf = Shelf::new();
        let set = shelf.init();
        shelf.wait(set.put("before", noise("before", BLOCK))).await.unwrap();
        shelf.wait(set.protected("before")).await.unwrap();
        shelf.settle(&set).await;
        let failed = given_up(&shelf, &set, fault, "after").await;
        let others = crate::shelf::tomes().filter(|tome| *tome != failed);
        others.for_each(|tome| shelf.faults.mend(tome));
        let before = set.status().await.tomes[failed.get() as usize].spin_ups;
        for _ in 0..3 * 1800 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            shelf.clock.advance(Duration::from_secs(2));
        }
        let reported = reasons(&set).await;
        assert!(
            reported.iter().all(|why| why.starts_with(&format!("tome {failed}: "))),
            "{reported:?}"
        );
        assert!(reported[0].contains("retried"), "{reported:?}");
        let spin_ups = set.status().await.tomes[failed.get() as usize].spin_ups - before;
        if fault == InjectedFault::Sync {
            // The backoff ends at ten minutes.
            assert!((5..40).contains(&spin_ups), "{spin_ups} in three hours");
        } else {
            assert_eq!(spin_ups, 0, "a failed metadata store spins up no disk");
        }
        let other = shelf.wait(set.put("other", noise("other", BLOCK))).await.unwrap();
        assert_ne!(other, failed);
        assert_eq!(shelf.wait(set.get("other")).await.unwrap(), noise("other", BLOCK));
        // It recovers even now.
        shelf.faults.mend(failed);
        well(&shelf, &set).await;
        set.stop();
    }
}

#[tokio::test]
async fn delete_during_failure_holds_after_recovery() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let mut own = std::collections::BTreeMap::new();
    for number in 0..6 {
        let name = format!("{number}");
        let tome = shelf.wait(set.put(&name, noise(&name, BLOCK))).await.unwrap();
        shelf.wait(set.protected(&name)).await.unwrap();
        own.entry(tome).or_insert_with(Vec::new).push(name);
    }
    shelf.settle(&set).await;
    let failed = given_up(&shelf, &set, InjectedFault::Commit, "after").await;
    let Some(names) = own.remove(&failed) else { return set.stop() };
    shelf.wait(set.delete(&names[0])).await.unwrap();
    assert_eq!(set.tome_of(&names[0]).unwrap_err().kind(), ErrorKind::NotFound);
    crate::shelf::tomes().for_each(|tome| shelf.faults.mend(tome));
    well(&shelf, &set).await;
    for _ in 0..2 {
        assert_eq!(set.tome_of(&names[0]).unwrap_err().kind(), ErrorKind::NotFound);
        for name in &names[1..] {
            assert_eq!(shelf.wait(set.get(name)).await.unwrap(), noise(name, BLOCK));
        }
        shelf.settle(&set).await;
    }
    set.stop();
    drop(set);
    let set = shelf.open();
    assert_eq!(set.tome_of(&names[0]).unwrap_err().kind(), ErrorKind::NotFound);
    set.stop();
}

#[tokio::test]
async fn missing_directory_is_used_again_once_restored() {
    for is_metadata_store in [false, true] {
        let shelf = Shelf::new();
        let set = shelf.init();
        let tome = shelf.wait(set.put("one", noise("one", 2 * BLOCK))).await.unwrap();
        shelf.wait(set.protected("one")).await.unwrap();
        shelf.settle(&set).await;
        let folder = &shelf.folder;
        let place = if is_metadata_store { metadata(folder, tome) } else { root(folder, tome) };
        let away = folder.join("away");
        std::fs::rename(&place, &away).unwrap();
        // Whatever part of it cannot be used, nothing is created in its place.
        let read = shelf.wait(set.get("one")).await.unwrap();
        assert_eq!(read, noise("one", 2 * BLOCK), "read from its group");
        shelf.settle(&set).await;
        if !is_metadata_store {
            assert_eq!(reasons(&set).await.len(), 1, "{:?}", reasons(&set).await);
        }
        assert!(!place.exists(), "nothing is created in its place");
        std::fs::rename(&away, &place).unwrap();
        well(&shelf, &set).await;
        assert_eq!(shelf.wait(set.get("one")).await.unwrap(), noise("one", 2 * BLOCK));
        shelf.wait(set.put("two", noise("two", BLOCK))).await.unwrap();
        shelf.wait(set.protected("two")).await.unwrap();
        assert_eq!(reasons(&set).await, [] as [&str; 0]);
        agree(&set).await;
        set.stop();
    }
}

#[tokio::test]
async fn set_continues_without_a_disk_that_cannot_spin_up() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let tome = shelf.wait(set.put("first", noise("first", BLOCK))).await.unwrap();
    shelf.settle(&set).await;
    let place = PlaceId::new(tome.get());
    // A few failures are tolerated.
    shelf.disks.inject(place, Fault::SpinUpFails(2)).unwrap();
    assert_eq!(shelf.wait(set.get("first")).await.unwrap(), noise("first", BLOCK));
    shelf.settle(&set).await;
    assert_eq!(reasons(&set).await, [] as [&str; 0]);
    shelf.disks.inject(place, Fault::Dead).unwrap();
    assert_eq!(
        shelf.wait(set.get("first")).await.unwrap(),
        noise("first", BLOCK),
        "read from its group"
    );
    let reported = reasons(&set).await;
    assert!(reported.len() == 1 && reported[0].contains("given up"), "{reported:?}");
    let other = shelf.wait(set.put("second", noise("second", BLOCK))).await.unwrap();
    assert_ne!(other, tome, "it goes to another");
    assert_eq!(shelf.wait(set.get("second")).await.unwrap(), noise("second", BLOCK));
    assert_eq!(reasons(&set).await.len(), 1);
}

#[tokio::test]
async fn failed_tome_releases_its_token() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let mut tomes = std::collections::BTreeMap::new();
    for number in 0.. {
        let name = format!("{number}");
        let tome = shelf.wait(set.put(&name, noise(&name, BLOCK))).await.unwrap();
        tomes.insert(tome, name);
        shelf.settle(&set).await;
        if tomes.len() == 2 {
            break;
        }
    }
    let (lost, _) = tomes.pop_first().unwrap();
    let (_, other) = tomes.pop_first().unwrap();
    std::fs::remove_dir_all(root(&shelf.folder, lost)).unwrap();
    // The set's clock stands still from here on: no lease expires.
    let within = std::time::Duration::from_secs(60);
    let scrubbed = tokio::time::timeout(within, set.scrub(lost)).await.unwrap();
    assert_eq!(scrubbed.unwrap_err().kind(), ErrorKind::Unavailable);
    let read = tokio::time::timeout(within, set.get(&other)).await;
    assert_eq!(read.expect("the token is free").unwrap(), noise(&other, BLOCK));
    set.stop();
}

#[tokio::test]
async fn token_manager_grants_nothing_until_it_can_persist() {
    let shelf = Shelf::new();
    let set = shelf.init();
    shelf.wait(set.put("before", noise("before", BLOCK))).await.unwrap();
    shelf.wait(set.protected("before")).await.unwrap();
    shelf.settle(&set).await;
    let spin_ups = set.spin_ups().await.len();
    crate::shelf::tomes().for_each(|tome| shelf.faults.inject(tome, InjectedFault::Token));
    let mut put = std::pin::pin!(set.put("after", noise("after", BLOCK)));
    let reported = async {
        loop {
            let reported = reasons(&set).await;
            if !reported.is_empty() {
                break reported;
            }
            tokio::task::yield_now().await;
        }
    };
    let reported = tokio::select! {
        put = &mut put => panic!("no disk may spin: {put:?}"),
        reported = shelf.wait(reported) => reported,
    };
    assert!(reported[0].starts_with("no tokens are granted now: "), "{reported:?}");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(set.spin_ups().await.len(), spin_ups, "no disk spun up");
    crate::shelf::tomes().for_each(|tome| shelf.faults.mend(tome));
    shelf.wait(put).await.unwrap();
    shelf.wait(set.protected("after")).await.unwrap();
    assert_eq!(reasons(&set).await, [] as [&str; 0]);
    for name in ["before", "after"] {
        assert_eq!(shelf.wait(set.get(name)).await.unwrap(), noise(name, BLOCK));
    }
    set.stop();
}

#[tokio::test]
async fn read_fails_while_no_token_can_be_granted() {
    let shelf = Shelf::new();
    let set = shelf.init();
    shelf.wait(set.put("one", noise("one", BLOCK))).await.unwrap();
    shelf.wait(set.protected("one")).await.unwrap();
    shelf.settle(&set).await;
    crate::shelf::tomes().for_each(|tome| shelf.faults.inject(tome, InjectedFault::Token));
    let error = shelf.wait(set.get("one")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("no tokens are granted now: "), "{error}");
    crate::shelf::tomes().for_each(|tome| shelf.faults.mend(tome));
    well(&shelf, &set).await;
    assert_eq!(shelf.wait(set.get("one")).await.unwrap(), noise("one", BLOCK));
    set.stop();
}

#[tokio::test]
async fn unrecorded_object_location_is_recovered_at_next_start() {
    let shelf = Shelf::new();
    let set = shelf.init();
    crate::shelf::tomes().for_each(|tome| shelf.faults.inject(tome, InjectedFault::Piece));
    let error = shelf.wait(set.put("one", noise("one", BLOCK))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    crate::shelf::tomes().for_each(|tome| shelf.faults.mend(tome));
    // Its tome has it: it may be read, and its name is not free.
    assert_eq!(shelf.wait(set.get("one")).await.unwrap(), noise("one", BLOCK));
    let taken = shelf.wait(set.put("one", vec![1])).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict, "{taken}");
    shelf.wait(set.protected("one")).await.unwrap();
    let tome = set.tome_of("one").unwrap();
    set.stop();
    drop(set);
    let set = shelf.open();
    set.stop();
    drop(set);
    // It is known since that start, though its tome is lost now.
    crate::shelf::lose(&shelf.folder, tome);
    let set = shelf.open();
    assert_eq!(shelf.wait(set.get("one")).await.unwrap(), noise("one", BLOCK));
    shelf.wait(set.delete("one")).await.unwrap();
    set.stop();
}

#[tokio::test]
async fn disk_of_another_tome_is_reported_and_not_written() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let tome = shelf.wait(set.put("first", noise("first", BLOCK))).await.unwrap();
    shelf.settle(&set).await;
    let other = crate::shelf::tomes().find(|other| *other != tome).unwrap();
    let (own, others) = (root(&shelf.folder, tome), root(&shelf.folder, other));
    for name in [TOME_FILE, TOME_FILE_COPY] {
        std::fs::copy(others.join(name), own.join(name)).unwrap();
    }
    let before = std::fs::read(own.join("blocks-00000")).unwrap();
    assert_eq!(
        shelf.wait(set.get("first")).await.unwrap(),
        noise("first", BLOCK),
        "read from its group"
    );
    let (expected, reported) =
        (format!("it belongs to tome {other}, not to tome {tome}"), reasons(&set).await);
    assert!(reported.len() == 1 && reported[0].contains(&expected), "{reported:?}");
    // Later it may spin up again: a failed tome is tried from time to time.
    let status = shelf.settle(&set).await;
    assert_eq!(status.tomes[tome.get() as usize].power, Power::Standby);
    assert_eq!(std::fs::read(own.join("blocks-00000")).unwrap(), before);
    drop(set);
    assert_eq!(TomeSet::init(shelf.options()).unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn set_opens_without_a_tome_but_not_twice() {
    let shelf = Shelf::new();
    assert_eq!(TomeSet::open(shelf.options()).unwrap_err().kind(), ErrorKind::Invalid);
    let set = shelf.init();
    let tome = shelf.wait(set.put("first", noise("first", BLOCK))).await.unwrap();
    let twice = TomeSet::open(shelf.options()).unwrap_err();
    assert!(twice.to_string().contains("in use by another process"), "{twice}");
    let mut names = vec![];
    while names.len() < 3 {
        let name = format!("object {}", names.len());
        shelf.wait(set.put(&name, noise(&name, 4 * BLOCK))).await.unwrap();
        names.push(name);
        shelf.settle(&set).await;
    }
    let others: Vec<_> =
        names.into_iter().filter(|name| set.tome_of(name).unwrap() != tome).collect();
    assert!(!others.is_empty(), "more than one tome has objects");
    set.stop();
    drop(set);
    let mut options = shelf.options();
    options.split = "2+2".parse().unwrap();
    assert_eq!(TomeSet::open(options).unwrap_err().kind(), ErrorKind::Invalid);
    std::fs::remove_dir_all(metadata(&shelf.folder, tome)).unwrap();
    let set = shelf.open();
    let reported = reasons(&set).await;
    assert_eq!(reported.len(), 1);
    assert!(reported[0].contains("it is missing"), "{reported:?}");
    for name in others {
        assert_eq!(shelf.wait(set.get(&name)).await.unwrap(), noise(&name, 4 * BLOCK));
    }
    assert_eq!(set.tome_of("first").unwrap(), tome, "lost objects are known");
    assert_eq!(
        shelf.wait(set.get("first")).await.unwrap(),
        noise("first", BLOCK),
        "read from its group"
    );
}

#[tokio::test]
async fn missing_tome_is_lost_and_not_recreated() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let tome = shelf.wait(set.put("one", noise("one", BLOCK))).await.unwrap();
    shelf.wait(set.protected("one")).await.unwrap();
    set.stop();
    drop(set);
    std::fs::remove_dir_all(metadata(&shelf.folder, tome)).unwrap();
    std::fs::remove_dir_all(root(&shelf.folder, tome)).unwrap();
    // Creating the set again, because something is wrong with it, does no harm.
    let set = shelf.init();
    let reported = reasons(&set).await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].starts_with(&format!("tome {tome}: given up: ")), "{reported:?}");
    assert!(!metadata(&shelf.folder, tome).join("awake").exists(), "no empty one replaces it");
    set.stop();
}

#[tokio::test]
async fn init_tolerates_a_dead_disk_and_its_tome_is_rebuilt() {
    let shelf = Shelf::new();
    let set = shelf.init();
    let tome = shelf.wait(set.put("one", noise("one", BLOCK))).await.unwrap();
    shelf.wait(set.protected("one")).await.unwrap();
    set.stop();
    drop(set);
    // A few failures are tolerated.
    let place = PlaceId::new(tome.get());
    shelf.disks.inject(place, Fault::SpinUpFails(2)).unwrap();
    let set = shelf.init();
    assert_eq!(reasons(&set).await, [] as [&str; 0]);
    set.stop();
    drop(set);
    // Its metadata store is there, but of no use without its disk.
    shelf.disks.inject(place, Fault::Dead).unwrap();
    shelf.add();
    let set = shelf.init();
    let reported = reasons(&set).await;
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].starts_with(&format!("tome {tome}: given up: ")), "{reported:?}");
    assert_eq!(
        shelf.wait(set.get("one")).await.unwrap(),
        noise("one", BLOCK),
        "read from its group"
    );
    set.rebuild(tome).await.unwrap();
    assert!(shelf.moved(&set).await.is_well());
    assert_eq!(shelf.wait(set.get("one")).await.unwrap(), noise("one", BLOCK));
    set.stop();
}
