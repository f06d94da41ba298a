//! A store that cannot write for a while, is reopened in place, and purges what was deleted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fulgurite_catalog::{
    Batch, CatalogError, Committer, Direction, ErrorKind, FjallConfig, FjallStore, KeyRange,
    KeyValue, ReadView, Space,
};
use fulgurite_units::ByteCount;

use crate::damage::copy;

const NAMES: Space = Space::new("names");
const OTHER: Space = Space::new("other");

const CONFIG: FjallConfig = FjallConfig {
    block_cache: ByteCount::mib(1),
    write_buffer: ByteCount::mib(4),
    worker_count: 2,
};

fn open(path: &Path) -> FjallStore {
    FjallStore::open(path, &[NAMES, OTHER], &CONFIG).unwrap()
}

fn put(store: &FjallStore, space: Space, key: &str) -> Result<(), CatalogError> {
    let mut batch = Batch::new();
    batch.put(space, key, key.repeat(20)).unwrap();
    store.apply(batch)
}

fn delete(store: &FjallStore, key: &str) {
    let mut batch = Batch::new();
    batch.delete(NAMES, key).unwrap();
    store.apply(batch).unwrap();
}

fn keys(store: &FjallStore) -> Vec<String> {
    let rows = store.range(NAMES, &KeyRange::all(), Direction::Ascending, usize::MAX).unwrap();
    rows.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

/// Whether any file below `path` holds `text`.
fn holds(path: &Path, text: &str) -> bool {
    fs::read_dir(path).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let content = fs::read(&path).unwrap();
        content.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

/// Moves the table folder of the first space away, so that no flush succeeds.
fn without_tables(path: &Path) -> (PathBuf, PathBuf) {
    let tables = path.join("keyspaces/1/tables");
    let away = path.join("away");
    fs::rename(&tables, &away).unwrap();
    (tables, away)
}

#[test]
fn store_stays_readable_after_failed_flush_and_recovers() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("catalog");
    let store = open(&path);
    put(&store, NAMES, "before").unwrap();
    let (tables, away) = without_tables(&path);

    // Reopening flushes rows to tables, which fails; the rows stay readable.
    let error = store.reopen().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(store.check().unwrap_err().kind(), ErrorKind::Unavailable);
    let refused = put(&store, NAMES, "refused").unwrap_err();
    assert!(!refused.is_outcome_unknown(), "nothing was written: {refused}");
    assert_eq!(keys(&store), ["before"]);

    fs::rename(&away, &tables).unwrap();
    store.reopen().unwrap();
    store.check().unwrap();
    put(&store, NAMES, "later").unwrap();
    assert_eq!(keys(&store), ["before", "later"]);
    drop(store);
    assert_eq!(keys(&open(&path)), ["before", "later"]);
}

#[test]
fn missing_directory_is_reported_until_it_returns() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("catalog");
    let away = parent.path().join("away");
    let store = open(&path);
    put(&store, NAMES, "before").unwrap();
    fs::rename(&path, &away).unwrap();
    // The first attempt still has the open files.
    store.reopen().unwrap_err();
    store.reopen().unwrap_err();

    let refusals = [
        put(&store, NAMES, "refused").unwrap_err(),
        store.check().unwrap_err(),
        store.get(NAMES, b"before").unwrap_err(),
    ];
    for refused in refusals {
        assert!(matches!(refused, CatalogError::Closed { .. }), "{refused}");
        assert!(refused.to_string().contains("No such file or directory"), "{refused}");
    }

    fs::rename(&away, &path).unwrap();
    store.reopen().unwrap();
    assert_eq!(keys(&store), ["before"]);
}

#[test]
fn committer_reopens_its_store_by_itself() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("catalog");
    let store = Arc::new(open(&path));
    let may_reopen = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&may_reopen);
    let before = Box::new(move |_: &CatalogError| flag.load(Ordering::SeqCst));
    let kv = Arc::clone(&store) as Arc<dyn KeyValue>;
    let committer = Committer::start_with(kv, before).unwrap();
    let write =
        |key: &'static str| committer.commit_blocking(move |rows| rows.put(NAMES, key, key));
    write("before").unwrap();
    let (tables, away) = without_tables(&path);
    committer.reopen_blocking().unwrap_err();
    let refused: CatalogError = write("refused").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    assert!(committer.refusal().is_some());
    assert_eq!(keys(&store), ["before"]);

    fs::rename(&away, &tables).unwrap();
    may_reopen.store(true, Ordering::SeqCst);
    while let Err(error) = write("later") {
        let error: CatalogError = error;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        std::thread::yield_now();
    }
    assert_eq!(committer.refusal(), None);
    assert_eq!(keys(&store), ["before", "later"]);
}

#[test]
fn reopen_is_refused_while_a_reader_is_open() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(&parent.path().join("catalog"));
    put(&store, NAMES, "key").unwrap();
    let snapshot = store.snapshot();
    assert!(matches!(store.reopen(), Err(CatalogError::InUse)));
    put(&store, OTHER, "written as before").unwrap();
    assert!(matches!(store.compact(&[NAMES]), Err(CatalogError::InUse)));
    assert!(snapshot.get(NAMES, b"key").unwrap().is_some());
    drop(snapshot);
    store.reopen().unwrap();
    assert_eq!(keys(&store), ["key"]);
}

#[test]
fn deleted_and_replaced_rows_are_purged_from_files() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("catalog");
    let store = open(&path);
    (0..200).for_each(|row| put(&store, NAMES, &format!("stays-{row:03}")).unwrap());
    put(&store, NAMES, "secret-in-a-table").unwrap();
    put(&store, NAMES, "replaced").unwrap();
    store.reopen().unwrap();
    put(&store, NAMES, "secret-in-the-journal").unwrap();
    let mut batch = Batch::new();
    batch.put(NAMES, "replaced", "by something else").unwrap();
    store.apply(batch).unwrap();
    delete(&store, "secret-in-a-table");
    delete(&store, "secret-in-the-journal");
    let traces = ["secret-in-a-table", "secret-in-the-journal", "replacedreplaced"];
    assert!(traces.iter().any(|text| holds(&path, text)), "the engine alone purges nothing");

    put(&store, OTHER, "last").unwrap();
    assert!(store.compact(&[NAMES]).unwrap() > ByteCount::ZERO);
    store.reopen().unwrap();
    for text in traces {
        assert!(!holds(&path, text), "{text} is in a file");
    }
    let left = keys(&store);
    assert_eq!(left.len(), 201);
    assert_eq!(store.get(NAMES, b"replaced").unwrap().unwrap(), b"by something else");
    drop(store);
    assert_eq!(keys(&open(&path)), left);
}

#[test]
fn open_never_appends_to_an_existing_journal() {
    let parent = tempfile::tempdir().unwrap();
    let (path, left) = (parent.path().join("catalog"), parent.path().join("left"));
    let store = open(&path);
    (0..50).for_each(|row| put(&store, NAMES, &format!("row-{row}")).unwrap());
    // Every batch was synced, so the current files are what a crash leaves.
    copy(&path, &left);
    drop(store);
    let is_empty = |path: &Path| fs::read(path.join("0.jnl")).unwrap().iter().all(|&b| b == 0);
    assert!(is_empty(&path), "a closed store has an empty journal");
    assert!(!is_empty(&left), "a crashed store has a journal");
    let store = open(&left);
    assert!(is_empty(&left), "its rows go to tables first");
    assert_eq!(keys(&store).len(), 50);
    // Sequence numbers continue after those of the tables: a newer row wins.
    let mut batch = Batch::new();
    batch.put(NAMES, "row-7", "newer").unwrap();
    store.apply(batch).unwrap();
    drop(store);
    assert_eq!(open(&left).get(NAMES, b"row-7").unwrap().unwrap(), b"newer");
}

#[test]
fn store_that_is_not_accepted_stays_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("catalog");
    let store = open(&path);
    put(&store, NAMES, "a").unwrap();
    // As a kill leaves it: with batches in its journal.
    let killed = dir.path().join("killed");
    copy(&path, &killed);
    drop(store);
    let journal = fs::read(killed.join("0.jnl")).unwrap();
    let refused = FjallStore::open_if(&killed, &[NAMES, OTHER], &CONFIG, |view| {
        assert!(view.get(NAMES, b"a")?.is_some(), "rows in the journal are visible");
        Err(CatalogError::Stopped)
    });
    assert!(matches!(refused, Err(CatalogError::Stopped)));
    assert!(fs::read(killed.join("0.jnl")).unwrap() == journal);
    assert_eq!(keys(&open(&killed)), ["a"]);
}
