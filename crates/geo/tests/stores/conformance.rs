//! Conformance suite for every table and every blob store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use fulgurite_geo::stores::{
    Blob, BlobError, Certainty, Decision, Expect, Guess, Key, Row, RuntimeBackoff, Table,
    TableError, Tag, transact,
};
use fulgurite_units::UnixTime;
use futures::{StreamExt as _, TryStreamExt as _};

use crate::chance::{BadConnection, entropy};

fn new_key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// Runs the whole suite. Leaves nothing behind.
pub(crate) async fn suite(table: &Arc<dyn Table>, second: &Arc<dyn Table>) {
    conditions(&**table, &**second).await;
    removal(&**table).await;
    scans(&**table, &**second).await;
    guesses(&**table).await;
    ids_over_bad_connections(table, second).await;
}

/// Checks a conflict, and the row that it returns.
fn conflict(table: &dyn Table, answer: Result<Tag, TableError>, expected: Option<&[u8]>) {
    let error = answer.unwrap_err();
    assert_eq!(error.certainty(), Certainty::Refused);
    let TableError::Conflict(row) = error else { panic!("{error:?}") };
    let current = row.as_ref().map(|row| &*row.bytes);
    if table.caps().reply_on_conflict {
        assert_eq!(current, expected);
    } else {
        assert_eq!(current, None);
    }
}

async fn conditions(table: &dyn Table, second: &dyn Table) {
    let key = new_key("suite/row");
    assert_eq!(table.read(&key).await, Ok(None));
    let nothing = Tag::new(&b"7"[..]);
    conflict(table, table.cas(&key, Expect::Is(nothing), "x".into()).await, None);
    // Any bytes.
    let first = Bytes::from_static(b"\x00\xff first\n\"'\\");
    let tag = table.cas(&key, Expect::Absent, first.clone()).await.unwrap();
    let row = Row { bytes: first.clone(), tag: tag.clone() };
    assert_eq!(second.read(&key).await, Ok(Some(row)));
    conflict(table, second.cas(&key, Expect::Absent, "x".into()).await, Some(&first));
    let newer = second.cas(&key, Expect::Is(tag.clone()), "second".into()).await.unwrap();
    assert_ne!(newer, tag);
    conflict(table, table.cas(&key, Expect::Is(tag), "x".into()).await, Some(b"second"));
    let long = Bytes::from(vec![7; table.caps().max_row + 1]);
    let error = table.cas(&key, Expect::Is(newer.clone()), long).await.unwrap_err();
    assert!(matches!(error, TableError::TooLarge(_)), "{error:?}");
    // Keys that are prefixes of others are separate rows.
    let below = new_key("suite/row/below");
    table.cas(&below, Expect::Absent, "below".into()).await.unwrap();
    assert_eq!(table.read(&key).await.unwrap().unwrap().tag, newer);
    for key in [key, below] {
        table.erase(&key).await.unwrap();
        // A repeat is no error.
        table.erase(&key).await.unwrap();
        assert_eq!(second.read(&key).await, Ok(None));
    }
    let longest = format!("{}/{}", ["k"; 348].join("/"), "b".repeat(4));
    assert_eq!(longest.len(), 700);
    let longest = new_key(&longest);
    table.cas(&longest, Expect::Absent, "deep".into()).await.unwrap();
    assert_eq!(&*second.read(&longest).await.unwrap().unwrap().bytes, b"deep");
    table.erase(&longest).await.unwrap();
}

async fn removal(table: &dyn Table) {
    let key = new_key("suite/removed");
    let tag = table.cas(&key, Expect::Absent, "one".into()).await.unwrap();
    let removed = table.remove(&key, &tag).await;
    if table.caps().cond_delete {
        assert_eq!(removed, Ok(()));
        assert_eq!(table.read(&key).await, Ok(None));
        let error = table.remove(&key, &tag).await.unwrap_err();
        assert!(matches!(error, TableError::Conflict(None)), "{error:?}");
        // A row that is recreated under that key gets another tag.
        let again = table.cas(&key, Expect::Absent, "one".into()).await.unwrap();
        assert_ne!(again, tag);
        let error = table.remove(&key, &tag).await.unwrap_err();
        assert!(matches!(error, TableError::Conflict(_)), "{error:?}");
    } else {
        assert!(matches!(removed, Err(TableError::Unsupported(_))), "{removed:?}");
    }
    table.erase(&key).await.unwrap();
}

async fn scans(table: &dyn Table, second: &dyn Table) {
    let names = (0..75).map(|number| new_key(&format!("suite/scanned/{}/{number}", number % 7)));
    let expected: BTreeSet<Key> = names.collect();
    for key in &expected {
        table.cas(key, Expect::Absent, key.as_str().to_owned().into()).await.unwrap();
    }
    let beside =
        [new_key("suite/scanned"), new_key("suite/scanned.0"), new_key("suite/scanned-0/1")];
    for key in &beside {
        table.cas(key, Expect::Absent, "beside".into()).await.unwrap();
    }
    let prefix = new_key("suite/scanned");
    let scan = async |prefix, after| {
        let rows = second.scan(prefix, after).map_ok(|(key, row)| {
            if key.is_below(&new_key("suite/scanned")) {
                assert_eq!(&*row.bytes, key.as_str().as_bytes());
            }
            key
        });
        rows.try_collect::<Vec<Key>>().await.unwrap()
    };
    let sorted: Vec<Key> = expected.iter().cloned().collect();
    assert_eq!(scan(Some(&prefix), None).await, sorted);
    // After a row, after a missing key, before all and after all.
    assert_eq!(scan(Some(&prefix), Some(sorted[40].clone())).await, sorted[41..]);
    let between = sorted[40].join("x").unwrap();
    assert_eq!(scan(Some(&prefix), Some(between)).await, sorted[41..]);
    assert_eq!(scan(Some(&prefix), Some(new_key("a"))).await, sorted);
    assert_eq!(scan(Some(&prefix), Some(new_key("suite/z"))).await, Vec::<Key>::new());
    let nothing = new_key("suite/nothing");
    assert_eq!(scan(Some(&nothing), None).await, Vec::<Key>::new());
    let all: BTreeSet<Key> = expected.iter().chain(&beside).cloned().collect();
    assert_eq!(scan(None, None).await, all.iter().cloned().collect::<Vec<_>>());
    // A scan may be abandoned.
    assert_eq!(second.scan(Some(&prefix), None).take(3).count().await, 3);
    for key in &all {
        table.erase(key).await.unwrap();
    }
    assert_eq!(scan(None, None).await, Vec::<Key>::new());
}

/// A right guess saves calls; a wrong one changes nothing else.
async fn guesses(table: &dyn Table) {
    let backoff = RuntimeBackoff::new(entropy(17));
    let key = new_key("suite/guessed");
    let write = |text: &'static str| {
        move |current: Option<&[u8]>| match current {
            Some(row) if row == text.as_bytes() => Decision::Leave("left"),
            _ => Decision::Write(Bytes::from_static(text.as_bytes()), "written"),
        }
    };
    let done = transact(table, &key, Guess::Absent, &backoff, write("one")).await.unwrap();
    assert_eq!((done.result, done.calls), ("written", 1));
    let row = done.row.unwrap();
    let done =
        transact(table, &key, Guess::Row(row.clone()), &backoff, write("two")).await.unwrap();
    assert_eq!((done.result, done.calls), ("written", 1));
    // A wrong guess: the conflict returns the current row, or it is read.
    let more = if table.caps().reply_on_conflict { 2 } else { 3 };
    let done = transact(table, &key, Guess::Absent, &backoff, write("three")).await.unwrap();
    assert_eq!((done.result, done.calls), ("written", more));
    // Leaving it unchanged requires a read, whatever was guessed.
    let three = Guess::Row(Row { bytes: "three".into(), tag: row.tag });
    let done = transact(table, &key, three, &backoff, write("three")).await.unwrap();
    assert_eq!((done.result, done.calls), ("left", 1));
    assert_eq!(done.row.unwrap().bytes, "three");
    table.erase(&key).await.unwrap();
}

/// Eight writers put ids into one row over connections that lose requests and answers: each id is
/// in it once, unless its outcome is unknown.
async fn ids_over_bad_connections(table: &Arc<dyn Table>, second: &Arc<dyn Table>) {
    const WRITERS: u64 = 8;
    const IDS: u64 = 3;
    let key = new_key("suite/ids");
    let writers = (0..WRITERS).map(|writer| {
        let inner = Arc::clone(if writer % 2 == 0 { table } else { second });
        let key = key.clone();
        tokio::spawn(async move {
            let bad = BadConnection { inner, entropy: entropy(100 + writer) };
            let (backoff, nonces) =
                (RuntimeBackoff::new(entropy(200 + writer)), entropy(300 + writer));
            let mut unknown = Vec::new();
            for number in 0..IDS {
                let id = format!("{writer}-{number}");
                let put = |current: Option<&[u8]>| {
                    let text = String::from_utf8(current.unwrap_or_default().to_vec()).unwrap();
                    let ids = text.split(' ').next().unwrap_or_default();
                    // An existing id was written by an attempt whose answer was lost.
                    if ids.split(',').any(|known| known == id) {
                        return Decision::Leave(());
                    }
                    let nonce = u128::from_le_bytes(nonces.draw());
                    Decision::Write(format!("{ids},{id} {nonce}").into(), ())
                };
                if transact(&bad, &key, Guess::Nothing, &backoff, put).await.is_err() {
                    unknown.push(id);
                }
            }
            unknown
        })
    });
    let mut unknown = BTreeSet::new();
    for writer in futures::future::join_all(writers).await {
        unknown.extend(writer.unwrap());
    }
    let row = table.read(&key).await.unwrap().unwrap();
    let text = String::from_utf8(row.bytes.to_vec()).unwrap();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for id in text.split(' ').next().unwrap().split(',').filter(|id| !id.is_empty()) {
        *counts.entry(id.to_owned()).or_default() += 1;
    }
    for writer in 0..WRITERS {
        for number in 0..IDS {
            let id = format!("{writer}-{number}");
            match counts.get(&id) {
                Some(1) => {}
                None if unknown.contains(&id) => {}
                count => panic!("{id} occurs {count:?} times: {text}"),
            }
        }
    }
    table.erase(&key).await.unwrap();
}

/// Checks of blobs beyond those of the doctor.
pub(crate) async fn blobs(blobs: &dyn Blob, second: &dyn Blob) {
    let key = new_key("suite/blob");
    let body: Bytes = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    blobs.create(&key, body.clone()).await.unwrap();
    second.create(&key, body.clone()).await.unwrap();
    // Of the same length, and shorter.
    let mut other = body.to_vec();
    other[399_999] ^= 1;
    for other in [Bytes::from(other), body.slice(..10), Bytes::new()] {
        assert_eq!(second.create(&key, other).await, Err(BlobError::Exists));
    }
    assert_eq!(blobs.get(&key, None).await.unwrap(), body);
    let part = second.get(&key, Some(123_456..234_567)).await.unwrap();
    assert_eq!(part, body.slice(123_456..234_567));
    assert_eq!(blobs.get(&key, Some(5..5)).await.unwrap(), Bytes::new());
    let below = new_key("suite/blob/below");
    blobs.create(&below, Bytes::new()).await.unwrap();
    assert_eq!(second.head(&below).await.unwrap().bytes.get(), 0);
    let later = UnixTime::from_millis(u64::MAX);
    let listed = second.list(Some(&new_key("suite")), later).map_ok(|meta| meta.key);
    let listed: BTreeSet<Key> = listed.try_collect().await.unwrap();
    assert_eq!(listed, BTreeSet::from([key.clone(), below.clone()]));
    assert_eq!(second.head(&new_key("suite/nothing")).await, Err(BlobError::NotFound));
    for key in [key, below] {
        second.delete(&key).await.unwrap();
        assert_eq!(blobs.get(&key, Some(0..1)).await, Err(BlobError::NotFound));
    }
}
