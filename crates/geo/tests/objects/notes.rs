//! Objects with notes: put once the note is ready, found, and listed from any name on.

use std::time::Duration;

use bytes::Bytes;
use fulgurite_geo::objects::limits::CHUNK_BYTES_MIN;
use fulgurite_geo::objects::{GeoError, GeoStore, Mode, Result};
use fulgurite_units::ByteCount;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::shelf::Shelf;
use crate::site_failures::bytes;

const CHUNK: u64 = CHUNK_BYTES_MIN;

async fn three_sites() -> (Shelf, GeoStore) {
    let mut shelf = Shelf::new(3, 2, 1);
    shelf.map.chunk = ByteCount::new(CHUNK);
    let store = shelf.init().await;
    (shelf, store)
}

/// Puts bytes in pieces, after stating this size.
async fn put(
    store: &GeoStore,
    key: &str,
    (stated, body): (u64, Bytes),
    note: Option<&str>,
    mode: Mode,
) -> Result<u64> {
    let pieces: Vec<_> = body.chunks(10_000).map(|it| Ok(body.slice_ref(it))).collect();
    let note = std::future::ready(note.map(str::to_owned));
    let put = store
        .put_with_note(key, (stated, stream::iter(pieces).boxed()), Box::pin(note), mode)
        .await;
    put.map(|version| version.0)
}

#[tokio::test(start_paused = true)]
async fn notes_round_trip() {
    let (_, store) = three_sites().await;
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 9 * CHUNK + 5] {
        let key = format!("folder/{length}");
        let body = bytes(1, usize::try_from(length).unwrap());
        let version =
            put(&store, &key, (length, body.clone()), Some("a note"), Mode::Create).await.unwrap();
        let found = store.find_with_note(&key).await.unwrap().unwrap();
        assert_eq!((found.version, found.size), (version, length));
        assert_eq!(found.note.as_deref(), Some("a note"));
        for range in [0..u64::MAX, 0..1, length / 2..length + 7, length..length + 1] {
            let (same, read) = store.get_with_note(&key, range.clone()).await.unwrap().unwrap();
            assert_eq!(same, found);
            let read: Vec<Bytes> = read.try_collect().await.unwrap();
            let offset = |value: u64| usize::try_from(value.min(length)).unwrap();
            assert_eq!(
                read.concat(),
                body[offset(range.start)..offset(range.end)],
                "{length} {range:?}"
            );
        }
        let one = || (1, Bytes::from_static(b"x"));
        let again = put(&store, &key, one(), Some("x"), Mode::Create).await;
        assert!(matches!(again, Err(GeoError::Exists { .. })));
        let stale = put(&store, &key, one(), Some("x"), Mode::Update(version + 1)).await;
        assert!(matches!(stale, Err(GeoError::Changed { .. })));
        put(&store, &key, one(), Some("x"), Mode::Update(version)).await.unwrap();
        assert!(store.delete_if_exists(&key).await.unwrap());
        assert!(!store.delete_if_exists(&key).await.unwrap());
        assert_eq!(store.find_with_note(&key).await.unwrap(), None);
        assert!(store.get_with_note(&key, 0..9).await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn put_without_note_or_with_wrong_size_writes_nothing() {
    let (shelf, store) = three_sites().await;
    for length in [100, CHUNK, 9 * CHUNK + 5] {
        let body = bytes(1, usize::try_from(length).unwrap());
        for (stated, note) in [(length, None), (length - 1, Some("n")), (length + 1, Some("n"))] {
            let failed = put(&store, "key", (stated, body.clone()), note, Mode::Overwrite).await;
            assert!(matches!(failed, Err(GeoError::Invalid { .. })), "{failed:?}");
        }
    }
    assert_eq!(store.find_with_note("key").await.unwrap(), None);
    tokio::time::sleep(Duration::from_secs(120)).await;
    for site in 0..3 {
        assert_eq!(shelf.blob_keys(site).await, [], "written fragments are erased");
    }
}

#[tokio::test(start_paused = true)]
async fn listing_starts_after_any_name() {
    let (_, store) = three_sites().await;
    let names = ["a/1", "a/12", "a/2", "a/b/c", "b/1"];
    for name in names {
        put(&store, name, (3, Bytes::from_static(b"777")), Some(name), Mode::Create).await.unwrap();
    }
    store.delete_if_exists("a/2").await.unwrap();
    for after in [None, Some("a/0"), Some("a/1"), Some("a/11"), Some("a/b/c"), Some("a/zzz")] {
        let listed: Vec<_> = store.list_with_notes("a", after).try_collect().await.unwrap();
        let expected = ["a/1", "a/12", "a/b/c"].into_iter();
        let expected: Vec<_> =
            expected.filter(|name| after.is_none_or(|after| *name > after)).collect();
        let found: Vec<_> = listed.iter().map(|object| object.key.as_str()).collect();
        assert_eq!(found, expected, "{after:?}");
        assert!(listed.iter().all(|object| object.note.as_ref() == Some(&object.key)));
    }
    assert_eq!(store.list_with_notes("c", None).count().await, 0);
}

/// Within the grace period, and though the retained versions would fill the row many times.
#[tokio::test(start_paused = true)]
async fn frequently_overwritten_object_accepts_writes() {
    overwrite_often(None).await;
}

#[tokio::test(start_paused = true)]
async fn frequent_overwrites_succeed_with_a_site_down() {
    overwrite_often(Some("site-2")).await;
}

async fn overwrite_often(down: Option<&str>) {
    let (shelf, store) = three_sites().await;
    down.iter().for_each(|site| shelf.fail(site));
    let note = "n".repeat(2_000);
    for turn in 0..200_u64 {
        let body = Bytes::from(vec![7; usize::try_from(turn).unwrap() * 50]);
        let put = put(&store, "key", (turn * 50, body), Some(&note), Mode::Overwrite).await;
        assert_eq!(put.unwrap(), turn + 1);
        let found = store.find_with_note("key").await.unwrap().unwrap();
        assert_eq!((found.version, found.size), (turn + 1, turn * 50));
    }
}
