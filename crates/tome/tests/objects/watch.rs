//! Subscribers of a set: one that reads in time, and one that does not.

use fulgurite_tome::TomeEvent;
use fulgurite_tome::objects::{PutGuarantee, TomeStore, TomesWatch, WatchItem};
use futures::StreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::shelf::{Shelf, noise, remove};

/// Puts of one test: each causes several events, so that they exceed the ring.
const MANY: u64 = 700;

async fn put(store: &TomeStore, number: u64) {
    let body = noise(number, 100);
    store.put(&Path::from(format!("{number}")), body.into()).await.unwrap();
}

/// Returns the items up to a wanted one, including that.
async fn until(watch: &mut TomesWatch, is_wanted: impl Fn(&WatchItem) -> bool) -> Vec<WatchItem> {
    let mut seen = Vec::new();
    loop {
        let next = watch.next().await.unwrap();
        let is_last = is_wanted(&next);
        seen.push(next);
        if is_last {
            return seen;
        }
    }
}

fn is_snapshot(seen: &WatchItem) -> bool {
    matches!(seen, WatchItem::Snapshot(..))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriber_sees_a_put_until_it_is_protected() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Protected);
    let mut watch = store.watch();
    let snapshot = watch.next().await.unwrap();
    assert!(is_snapshot(&snapshot), "{snapshot:?}");
    put(&store, 1).await;
    // Every parity has it, so nothing of its own tome is unprotected.
    let is_end = |seen: &WatchItem| {
        let WatchItem::Step(_, event) = seen else { return false };
        matches!(event.what, TomeEvent::Unprotected { bytes: 0, .. })
    };
    let seen = until(&mut watch, is_end).await;
    let steps: Vec<&TomeEvent> = seen
        .iter()
        .filter_map(|seen| match seen {
            WatchItem::Step(_, event) => Some(&event.what),
            WatchItem::Snapshot(..) | WatchItem::SnapshotDiff(..) | WatchItem::Missed(..) => None,
        })
        .collect();
    let at = |wanted: &dyn Fn(&TomeEvent) -> bool| {
        steps.iter().position(|step| wanted(step)).unwrap_or_else(|| panic!("{steps:?}"))
    };
    let granted = at(&|step| matches!(step, TomeEvent::Token { tome: Some(_), .. }));
    let spun_up = at(&|step| matches!(step, TomeEvent::Power { cause: Some(_), .. }));
    let local = at(&|step| matches!(step, TomeEvent::Local { bytes, .. } if *bytes >= 100));
    assert!(granted < spun_up && spun_up < local, "{steps:?}");
    tokio::task::spawn_blocking(move || store.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_subscriber_gets_missed_count_and_new_snapshot() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    let (mut late, mut prompt) = (store.watch(), store.watch());
    assert!(is_snapshot(&late.next().await.unwrap()) && is_snapshot(&prompt.next().await.unwrap()));
    let reader = tokio::spawn(async move {
        let is_end = |seen: &WatchItem| {
            let WatchItem::SnapshotDiff(_, diff) = seen else { return false };
            diff.tomes.objects == MANY
        };
        until(&mut prompt, is_end).await
    });
    let puts = futures::stream::iter(0..MANY).map(|number| put(&store, number));
    puts.buffer_unordered(16).collect::<Vec<_>>().await;
    let seen = reader.await.unwrap();
    assert!(!seen.iter().any(|seen| matches!(seen, WatchItem::Missed(..))), "it reads promptly");
    let Some(WatchItem::Missed(step, missed)) = late.next().await else {
        panic!("it read nothing")
    };
    assert_eq!((step, missed > 0), (missed, true));
    let again = late.next().await.unwrap();
    let WatchItem::Snapshot(after, snapshot) = again else { panic!("{again:?}") };
    assert_eq!((after, snapshot.objects), (step, MANY));
    let next = until(&mut late, |seen| matches!(seen, WatchItem::Step(..))).await;
    let Some(WatchItem::Step(number, _)) = next.last() else { panic!("{next:?}") };
    // On a slow machine the subscriber may fall behind once more.
    let snapshot = |seen: &WatchItem| {
        if let WatchItem::Snapshot(after, _) = seen { Some(*after) } else { None }
    };
    let after = next.iter().rev().find_map(snapshot).unwrap_or(step);
    assert_eq!(*number, after + 1, "the events behind it follow");
    tokio::task::spawn_blocking(move || store.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_tome_raises_an_alarm() {
    let shelf = Shelf::new();
    let store = shelf.store(PutGuarantee::Local);
    let mut watch = store.watch();
    assert!(is_snapshot(&watch.next().await.unwrap()));
    for tome in store.set().powers().into_iter().map(|(tome, _)| tome) {
        remove(&shelf.root(tome));
    }
    // Its disk is no longer its own; another tome is tried, and all fail.
    assert!(store.put(&Path::from("x"), noise(1, 100).into()).await.is_err());
    let is_given_up = |seen: &WatchItem| {
        let WatchItem::Step(_, event) = seen else { return false };
        matches!(event.what, TomeEvent::GivenUp { .. })
    };
    until(&mut watch, is_given_up).await;
    let is_raised = |seen: &WatchItem| {
        let WatchItem::SnapshotDiff(_, diff) = seen else { return false };
        diff.raised.iter().any(|why| why.contains("given up"))
    };
    until(&mut watch, is_raised).await;
    tokio::task::spawn_blocking(move || store.stop()).await.unwrap();
}
