//! Sites that do not answer, are lost, and are replaced.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use fulgurite_geo::objects::limits::{BATCHED_MAX, CHUNK_BYTES_MIN, KEY_BYTES_MAX};
use fulgurite_geo::objects::{GeoEvent, GeoStore, GeoUpdate, SiteEntry};
use fulgurite_units::{ByteCount, Duration};
use futures::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload};

use crate::shelf::Shelf;

/// Returns bytes that differ for each number, too long for a row.
pub(crate) fn bytes(number: u64, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    fulgurite_units::Seed::new(number).stream().fill(&mut bytes);
    Bytes::from(bytes)
}

pub(crate) async fn read(store: &GeoStore, key: &str) -> object_store::Result<Bytes> {
    store.get(&Path::from(key)).await?.bytes().await
}

pub(crate) async fn put(store: &GeoStore, key: &str, bytes: &Bytes) -> object_store::Result<()> {
    store.put(&Path::from(key), PutPayload::from(bytes.clone())).await.map(drop)
}

#[tokio::test]
async fn one_site_may_fail_and_is_repaired_on_return() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    let (before, during) = (bytes(1, 100_000), bytes(2, 9_000_000));
    put(&store, "before", &before).await.unwrap();
    shelf.fail("site-1");
    put(&store, "during", &during).await.unwrap();
    put(&store, "before", &during).await.unwrap();
    assert_eq!(read(&store, "during").await.unwrap(), during);
    assert_eq!(read(&store, "before").await.unwrap(), during);
    assert!(store.snapshot().hints > 0, "{:?}", store.snapshot());
    shelf.repair("site-1");
    let report = store.process_hints().await.unwrap();
    assert!(report.rebuilt > 0 && report.missing == 0 && report.lost.is_empty(), "{report:?}");
    assert_eq!(store.snapshot().hints, 0);
    // Whole means that any other site may fail now.
    for other in ["site-0", "site-2", "site-1"] {
        shelf.fail(other);
        assert_eq!(read(&store, "during").await.unwrap(), during, "without {other}");
        assert_eq!(read(&store, "before").await.unwrap(), during, "without {other}");
        shelf.repair(other);
    }
}

#[tokio::test]
async fn subscriber_sees_site_failure_and_hints() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    let mut watch = store.watch();
    let GeoUpdate::Snapshot(snapshot) = watch.next().await else {
        panic!("the snapshot comes first")
    };
    assert_eq!((snapshot.sites.len(), snapshot.hints), (3, 0));
    shelf.fail("site-1");
    put(&store, "one", &bytes(1, 100_000)).await.unwrap();
    let mut wanted = vec![GeoEvent::SlowWrites { writes: 1 }, GeoEvent::Hints { hints: 1 }];
    let mut count = 0;
    while !wanted.is_empty() {
        let GeoUpdate::Step(step, event) = watch.next().await else { panic!("a second snapshot") };
        count += 1;
        assert_eq!(step, count);
        wanted.retain(|wanted| *wanted != event);
    }
    shelf.repair("site-1");
    store.process_hints().await.unwrap();
    let mut wanted = vec![GeoEvent::Hints { hints: 0 }];
    while !wanted.is_empty() {
        let GeoUpdate::Step(_, event) = watch.next().await else { panic!("a second snapshot") };
        wanted.retain(|wanted| *wanted != event);
    }
}

#[tokio::test]
async fn two_sites_down_fail_clearly_and_recover() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    let one = bytes(1, 50_000);
    put(&store, "one", &one).await.unwrap();
    shelf.fail("site-0");
    shelf.fail("site-1");
    let failed = read(&store, "one").await.unwrap_err();
    assert!(failed.to_string().contains("too few sites answer"), "{failed}");
    let failed = put(&store, "two", &one).await.unwrap_err();
    assert!(failed.to_string().contains("too few"), "{failed}");
    shelf.repair("site-0");
    shelf.repair("site-1");
    assert_eq!(read(&store, "one").await.unwrap(), one);
    put(&store, "two", &one).await.unwrap();
}

#[tokio::test]
async fn programs_see_each_others_writes_at_once() {
    let shelf = Shelf::new(3, 2, 1);
    let (one, other) = (shelf.init().await, GeoStore::open(shelf.options()).await.unwrap());
    for number in 0..20 {
        let bytes = bytes(number, 10_000);
        put(&one, "shared", &bytes).await.unwrap();
        assert_eq!(read(&other, "shared").await.unwrap(), bytes);
        let listed: Vec<_> = other.list(None).try_collect().await.unwrap();
        assert_eq!(listed.len(), 1);
        other.delete(&Path::from("shared")).await.unwrap();
        assert!(read(&one, "shared").await.is_err());
        let listed: Vec<_> = one.list(None).try_collect().await.unwrap();
        assert_eq!(listed, []);
    }
}

#[tokio::test]
async fn site_down_at_open_is_opened_on_return() {
    let shelf = Shelf::new(3, 2, 1);
    let one = bytes(1, 50_000);
    put(&shelf.init().await, "one", &one).await.unwrap();
    shelf.fail("site-1");
    let store = GeoStore::open(shelf.options()).await.unwrap();
    let up = |store: &GeoStore| -> Vec<bool> {
        let sites = store.snapshot().sites;
        assert!(sites.iter().all(|site| site.votes && site.holds), "{sites:?}");
        sites.iter().map(|site| site.up).collect()
    };
    assert_eq!(up(&store), [true, false, true]);
    assert_eq!(read(&store, "one").await.unwrap(), one);
    shelf.repair("site-1");
    // It is polled within a third of the lease, which is 4 s here.
    let limit = std::time::Duration::from_secs(30);
    let back = async {
        while up(&store) != [true; 3] {
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(limit, back).await.unwrap();
    shelf.fail("site-0");
    assert_eq!(read(&store, "one").await.unwrap(), one);
}

#[tokio::test]
async fn site_down_at_open_completes_a_quorum_later() {
    let shelf = Shelf::new(3, 2, 1);
    let one = bytes(1, 50_000);
    put(&shelf.init().await, "one", &one).await.unwrap();
    shelf.fail("site-1");
    let store = GeoStore::open(shelf.options()).await.unwrap();
    shelf.fail("site-0");
    assert!(read(&store, "one").await.is_err());
    shelf.repair("site-1");
    // The map cannot be confirmed before the missing site is opened.
    let limit = std::time::Duration::from_secs(60);
    let back = async {
        while read(&store, "one").await.ok().as_ref() != Some(&one) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(limit, back).await.unwrap();
}

#[tokio::test]
async fn indeterminate_put_is_not_reported_absent() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    let one = bytes(1, 50_000);
    for site in ["site-0", "site-1"] {
        shelf.lose_answers(site);
    }
    let failed = put(&store, "one", &one).await.unwrap_err();
    assert!(failed.to_string().contains("the write may be, or become, version 1"), "{failed}");
    assert_eq!(read(&store, "one").await.unwrap(), one);
    for site in ["site-0", "site-1"] {
        shelf.repair(site);
    }
    assert!(store.process_hints().await.unwrap().missing == 0);
    assert_eq!(read(&store, "one").await.unwrap(), one);
}

#[tokio::test]
async fn one_of_many_concurrent_creates_succeeds() {
    let shelf = Shelf::new(3, 2, 1);
    let one = shelf.init().await;
    let other = GeoStore::open(shelf.options()).await.unwrap();
    for round in 0..5 {
        let key = Path::from(format!("race/{round}"));
        let tries = (0..8).map(|number| {
            let store = if number % 2 == 0 { one.clone() } else { other.clone() };
            let key = key.clone();
            async move {
                let payload = PutPayload::from(bytes(number, 5_000));
                store.put_opts(&key, payload, PutMode::Create.into()).await
            }
        });
        let ended = futures::future::join_all(tries).await;
        let won: Vec<_> = ended.iter().filter(|ended| ended.is_ok()).collect();
        assert_eq!(won.len(), 1, "{ended:?}");
        let refused = |ended: &&object_store::Result<_>| {
            matches!(ended, Err(object_store::Error::AlreadyExists { .. }))
        };
        assert_eq!(ended.iter().filter(refused).count(), 7, "{ended:?}");
    }
}

#[tokio::test]
async fn lost_site_is_replaced_and_rebuilt() {
    let mut shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    let all: Vec<_> =
        (0..12).map(|number| (format!("o/{number}"), bytes(number, 40_000))).collect();
    for (key, bytes) in &all {
        put(&store, key, bytes).await.unwrap();
    }
    shelf.fail("site-2");
    put(&store, "during", &all[0].1).await.unwrap();
    // The old place stays lost; its name now refers to another place.
    shelf.repair("site-2");
    let report = store.replace_site("site-2", new_place(), &|_, _| {}).await.unwrap();
    assert_eq!((report.problems.clone(), report.lost.clone()), (vec![], vec![]), "{report:?}");
    assert_eq!(report.restored, 14, "{report:?}");
    let map = store.map();
    assert_eq!((map.epoch, map.sites[2].table.as_deref()), (3, Some("mem://elsewhere")));
    // A program with the old map discovers the new one.
    let late = GeoStore::open(shelf.options()).await.unwrap();
    assert_eq!(late.map(), map);
    shelf.map = map;
    for other in ["site-0", "site-1"] {
        shelf.fail(other);
        for (key, bytes) in &all {
            assert_eq!(read(&late, key).await.unwrap(), *bytes, "without {other}");
        }
        assert_eq!(read(&store, "during").await.unwrap(), all[0].1);
        put(&store, "after", &all[1].1).await.unwrap();
        shelf.repair(other);
    }
}

/// Another place for a lost site.
fn new_place() -> SiteEntry {
    let place = Some("mem://elsewhere".to_owned());
    SiteEntry { name: String::new(), table: place.clone(), blobs: place, rebuilding: false }
}

/// Puts so many objects that every choice of sites holds fragments of one.
async fn put_many(store: &GeoStore) {
    for number in 0..30 {
        put(store, &format!("o/{number}"), &bytes(number, 9_000)).await.unwrap();
    }
}

/// Replaces site 2 while a fault of a site prevents its fragments from being rebuilt, and again
/// once that is fixed.
async fn replace_twice(shelf: &Shelf, store: &GeoStore, failed: &str) {
    let report = store.replace_site("site-2", new_place(), &|_, _| {}).await.unwrap();
    assert!(report.missing > 0 && report.lost.is_empty(), "{report:?}");
    let [problem] = &*report.problems else { panic!("{report:?}") };
    assert!(problem.starts_with("site \"site-2\" is not rebuilt: "), "{problem}");
    assert!(store.map().sites[2].rebuilding, "the map marks it as rebuilding");
    shelf.repair(failed);
    let report = store.replace_site("site-2", new_place(), &|_, _| {}).await.unwrap();
    assert_eq!((report.missing, report.problems.clone()), (0, vec![]), "{report:?}");
    assert!(!store.map().sites[2].rebuilding);
    // All that it held exists.
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!((report.whole, report.rebuilt), (report.objects, 0), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn rebuild_waits_for_enough_fragments_elsewhere() {
    let shelf = Shelf::new(5, 2, 1);
    let store = shelf.init().await;
    put_many(&store).await;
    shelf.fail("site-1");
    replace_twice(&shelf, &store, "site-1").await;
}

#[tokio::test(start_paused = true)]
async fn rebuild_waits_until_its_fragments_are_written() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    put_many(&store).await;
    shelf.lose_answers("site-2");
    replace_twice(&shelf, &store, "site-2").await;
}

#[tokio::test(start_paused = true)]
async fn rebuild_succeeds_though_another_site_lacks_fragments() {
    let shelf = Shelf::new(5, 2, 2);
    let store = shelf.init().await;
    put_many(&store).await;
    shelf.fail("site-1");
    let report = store.replace_site("site-2", new_place(), &|_, _| {}).await.unwrap();
    // What site-1 has is unknown: that is reported, but does not matter here.
    assert!(report.missing > 0, "{report:?}");
    assert_eq!((report.problems.clone(), report.lost.clone()), (vec![], vec![]), "{report:?}");
    assert!(!store.map().sites[2].rebuilding);
    shelf.repair("site-1");
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!((report.whole, report.rebuilt), (report.objects, 0), "{report:?}");
}

/// Interrupts a replacement of site 2 after so many leases.
async fn interrupt_replacement(store: &GeoStore, leases: f64) {
    let lease = std::time::Duration::from_nanos(store.map().lease.as_nanos());
    let replaced = store.replace_site("site-2", new_place(), &|_, _| {});
    let result = tokio::time::timeout(lease.mul_f64(leases), replaced).await;
    assert!(result.is_err(), "the replacement ended too early");
}

#[tokio::test(start_paused = true)]
async fn interrupted_replacement_waits_for_the_lease_again() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    put_many(&store).await;
    let lease = std::time::Duration::from_nanos(store.map().lease.as_nanos());
    interrupt_replacement(&store, 0.5).await;
    assert!(store.map().sites[2].rebuilding, "the sites have the new map");
    let began = tokio::time::Instant::now();
    let report = store.replace_site("site-2", new_place(), &|_, _| {}).await.unwrap();
    assert_eq!((report.missing, report.problems.clone()), (0, vec![]), "{report:?}");
    assert!(began.elapsed() >= lease * 2, "{:?} of {lease:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn replacement_interrupted_in_its_last_wait_resumes() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    put_many(&store).await;
    interrupt_replacement(&store, 1.5).await;
    assert!(!store.map().sites[2].rebuilding, "it was rebuilt");
    let report = store.replace_site("site-2", new_place(), &|_, _| {}).await.unwrap();
    assert_eq!((report.whole, report.problems.clone()), (report.objects, vec![]), "{report:?}");
    for other in ["site-0", "site-1"] {
        shelf.fail(other);
        for number in 0..30 {
            assert_eq!(read(&store, &format!("o/{number}")).await.unwrap(), bytes(number, 9_000));
        }
        shelf.repair(other);
    }
}

#[tokio::test]
async fn unreachable_versions_are_collected_after_the_grace() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    for number in 0..4 {
        put(&store, "often", &bytes(number, 30_000)).await.unwrap();
    }
    put(&store, "gone", &bytes(9, 30_000)).await.unwrap();
    store.delete(&Path::from("gone")).await.unwrap();
    let report = store.collect(&|_| {}).await.unwrap();
    assert_eq!((report.collected, report.left), (0, 0), "the grace period is not over: {report:?}");
    assert_eq!(shelf.blob_keys(0).await.len(), 5);
    shelf.now.fetch_add(2 * 3_600_000, Ordering::Relaxed);
    let report = store.collect(&|_| {}).await.unwrap();
    assert_eq!((report.collected, report.left), (4, 0), "{report:?}");
    // A delete goes once everything it covers is gone.
    let report = store.collect(&|_| {}).await.unwrap();
    assert_eq!((report.collected, report.left), (1, 0), "{report:?}");
    for site in 0..3 {
        assert_eq!(shelf.blob_keys(site).await.len(), 1, "at site {site}");
    }
    assert_eq!(read(&store, "often").await.unwrap(), bytes(3, 30_000));
    assert!(read(&store, "gone").await.is_err());
}

#[tokio::test]
async fn version_collected_during_a_read_is_not_lost() {
    let mut shelf = Shelf::new(3, 2, 1);
    shelf.map.chunk = ByteCount::new(CHUNK_BYTES_MIN);
    let store = shelf.init().await;
    let long = usize::try_from(CHUNK_BYTES_MIN).unwrap() * 8;
    put(&store, "replaced", &bytes(1, long)).await.unwrap();
    put(&store, "lost", &bytes(2, long)).await.unwrap();
    let begun = store.get(&Path::from("replaced")).await.unwrap();
    let begun_of_lost = store.get(&Path::from("lost")).await.unwrap();
    put(&store, "replaced", &bytes(3, 300)).await.unwrap();
    collect_all(&shelf, &store).await;
    for site in 0..3 {
        for key in shelf.blob_keys(site).await {
            shelf.blobs_of(site).await.delete(&key).await.unwrap();
        }
    }
    let replaced = begun.bytes().await.unwrap_err().to_string();
    assert!(replaced.contains("was replaced or removed while it was read"), "{replaced}");
    assert_eq!(read(&store, "replaced").await.unwrap(), bytes(3, 300));
    let lost = begun_of_lost.bytes().await.unwrap_err().to_string();
    assert!(lost.contains("was acknowledged, and too few of its fragments are left"), "{lost}");
}

#[tokio::test]
async fn orphan_sweep_removes_only_orphans() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    let expected = bytes(1, 30_000);
    put(&store, "kept", &expected).await.unwrap();
    // An upload that is never completed.
    let mut upload = store.put_multipart(&Path::from("never")).await.unwrap();
    upload.put_part(PutPayload::from(bytes(2, 30_000))).await.unwrap();
    drop(upload);
    assert_eq!(shelf.blob_keys(1).await.len(), 2);
    let error = store.sweep(Duration::from_secs(1), &|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("an age of at least"), "{error}");
    // Stores date their blobs by their own clocks; this one uses the machine's.
    let now = std::fs::metadata("/proc/self").unwrap().modified().unwrap();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() * 1000;
    shelf.now.store(now + 86_400_000, Ordering::Relaxed);
    let report = store.sweep(Duration::from_secs(3600), &|_| {}).await.unwrap();
    assert_eq!(
        (report.swept, report.fragments, report.problems.clone()),
        (3, 6, vec![]),
        "{report:?}"
    );
    assert_eq!(read(&store, "kept").await.unwrap(), expected);
    assert_eq!(shelf.blob_keys(1).await.len(), 1);
}

/// Collects garbage after the grace period, as many times as a stripe takes: its objects, itself,
/// its fragments.
async fn collect_all(shelf: &Shelf, store: &GeoStore) {
    for _ in 0..3 {
        shelf.now.fetch_add(2 * 3_600_000, Ordering::Relaxed);
        let report = store.collect(&|_| {}).await.unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
    }
}

#[tokio::test]
async fn stripe_is_collected_with_its_last_object() {
    let mut shelf = Shelf::new(3, 2, 1);
    shelf.map.batch = Duration::from_millis(20);
    let store = shelf.init().await;
    let all: Vec<_> = (0..40).map(|number| (format!("s/{number}"), bytes(number, 5_000))).collect();
    futures::future::try_join_all(all.iter().map(|(key, bytes)| put(&store, key, bytes)))
        .await
        .unwrap();
    let blobs = shelf.blob_keys(0).await.len();
    assert!(blobs <= 4, "{blobs} blobs at a site for 40 objects put at once");
    shelf.fail("site-1");
    for (key, bytes) in &all {
        assert_eq!(read(&store, key).await.unwrap(), *bytes);
    }
    shelf.repair("site-1");
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 40, "stripes are not listed as objects");
    // A fragment of a stripe is rebuilt with the stripe.
    let key = shelf.blob_keys(2).await.remove(0);
    shelf.blobs_of(2).await.delete(&key).await.unwrap();
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!((report.rebuilt, report.missing, report.lost.len()), (1, 0, 0), "{report:?}");
    for (key, _) in all.iter().skip(1) {
        store.delete(&Path::from(key.as_str())).await.unwrap();
    }
    collect_all(&shelf, &store).await;
    assert_eq!(read(&store, "s/0").await.unwrap(), all[0].1);
    assert_eq!(shelf.blob_keys(0).await.len(), 1, "the stripe of the remaining object");
    store.delete(&Path::from("s/0")).await.unwrap();
    collect_all(&shelf, &store).await;
    assert_eq!(shelf.blob_keys(0).await, []);
}

#[tokio::test(start_paused = true)]
async fn stripe_with_a_long_key_list_is_collected() {
    let mut shelf = Shelf::new(3, 2, 1);
    // The batch is full before that.
    shelf.map.batch = Duration::from_secs(3600);
    shelf.map.chunk = ByteCount::new(CHUNK_BYTES_MIN);
    shelf.map.inline = ByteCount::new(0);
    let store = shelf.init().await;
    // Keys of the maximum length, in segments of at most 200.
    let key = |number| format!("{number:0>199}/{number:0>199}/{number:0>200}");
    assert_eq!(key(0).len(), KEY_BYTES_MAX);
    let all = (0..BATCHED_MAX as u64).map(|number| (key(number), bytes(number, 9)));
    let all: Vec<_> = all.collect();
    assert!((BATCHED_MAX * KEY_BYTES_MAX) as u64 > 2 * CHUNK_BYTES_MIN, "the list is in 3 chunks");
    let puts = all.iter().map(|(key, bytes)| put(&store, key, bytes));
    futures::future::try_join_all(puts).await.unwrap();
    assert_eq!(shelf.blob_keys(0).await.len(), 3, "chunks of one stripe");
    for (key, bytes) in &all {
        assert_eq!(read(&store, key).await.unwrap(), *bytes);
    }
    let (last, others) = all.split_last().unwrap();
    for (key, _) in others {
        store.delete(&Path::from(key.as_str())).await.unwrap();
    }
    collect_all(&shelf, &store).await;
    assert_eq!(read(&store, &last.0).await.unwrap(), last.1);
    assert_eq!(shelf.blob_keys(0).await.len(), 3, "the stripe of the remaining object");
    store.delete(&Path::from(last.0.as_str())).await.unwrap();
    collect_all(&shelf, &store).await;
    assert_eq!(shelf.blob_keys(0).await, []);
}

#[tokio::test]
async fn damaged_and_missing_fragments_are_rebuilt() {
    let shelf = Shelf::new(3, 2, 1);
    let store = shelf.init().await;
    let one = bytes(1, 300_000);
    put(&store, "one", &one).await.unwrap();
    for site in 0..3 {
        let key = shelf.blob_keys(site).await.remove(0);
        let blobs = shelf.blobs_of(site).await;
        let good = blobs.get(&key, None).await.unwrap();
        let mut bad = good.to_vec();
        bad[70_000] ^= 1;
        let swaps = [Some(Bytes::from(bad)), Some(good.slice(0..good.len() / 2)), None];
        for swap in swaps {
            blobs.delete(&key).await.unwrap();
            if let Some(swap) = swap {
                blobs.create(&key, swap).await.unwrap();
            }
            assert_eq!(read(&store, "one").await.unwrap(), one);
        }
        let report = store.heal(&|_| {}).await.unwrap();
        assert_eq!((report.rebuilt, report.missing, report.lost.len()), (1, 0, 0), "{report:?}");
        // Damaged, but of the right length: only a full read notices.
        blobs.delete(&key).await.unwrap();
        let mut bad = good.to_vec();
        bad[70_000] ^= 1;
        blobs.create(&key, Bytes::from(bad)).await.unwrap();
        assert_eq!(store.heal(&|_| {}).await.unwrap().rebuilt, 0);
        let report = store.scrub(&|_| {}).await.unwrap();
        assert_eq!((report.rebuilt, report.missing, report.lost.len()), (1, 0, 0), "{report:?}");
        assert_eq!(blobs.get(&key, None).await.unwrap(), good);
    }
    // One more than parity: reported as lost, and never the bytes of another version.
    for site in 0..2 {
        let key = shelf.blob_keys(site).await.remove(0);
        shelf.blobs_of(site).await.delete(&key).await.unwrap();
    }
    let lost = read(&store, "one").await.unwrap_err();
    assert!(lost.to_string().contains("too few of its fragments are left"), "{lost}");
    let report = store.heal(&|_| {}).await.unwrap();
    assert_eq!(report.lost, ["one version 1"]);
}
