//! Spaces that were bulk-loaded in key order are read, reopened, changed and salvaged like others.

use std::path::Path;

use fulgurite_catalog::{
    Batch, CatalogError, Direction, FjallConfig, FjallStore, KeyRange, KeyValue as _,
    ReadView as _, Space,
};
use tempfile::TempDir;

const FULL: Space = Space::new("full");
const OTHER: Space = Space::new("other");
const SPACES: [Space; 2] = [FULL, OTHER];
const ROWS: u32 = 20_000;

type Row = Result<(Vec<u8>, Vec<u8>), CatalogError>;

fn open(path: &Path) -> FjallStore {
    FjallStore::open(path, &SPACES, &FjallConfig::default()).unwrap()
}

fn row(number: u32) -> (Vec<u8>, Vec<u8>) {
    let value = [number.to_le_bytes().as_slice(), &[b'v'; 150]].concat();
    (format!("{number:08}").into_bytes(), value)
}

fn rows() -> impl Iterator<Item = Row> {
    (0..ROWS).map(|number| Ok(row(number)))
}

fn content(store: &FjallStore, space: Space) -> Vec<(Vec<u8>, Vec<u8>)> {
    store.range(space, &KeyRange::all(), Direction::Ascending, usize::MAX).unwrap()
}

fn salvaged(path: &Path, space: Space) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    let report = FjallStore::salvage(path, &SPACES, &mut |row_space, key, value| {
        if row_space == space {
            rows.push((key.to_vec(), value.to_vec()));
        }
    });
    assert_eq!(report.unwrap().damages, Vec::new());
    rows
}

fn parent() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn bulk_loaded_space_survives_reopen_and_salvage() {
    let parent = parent();
    let path = parent.path().join("catalog");
    let store = open(&path);
    let expected: Vec<_> = (0..ROWS).map(row).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| store.load(OTHER, rows()).unwrap());
        store.load(FULL, rows()).unwrap();
    });
    assert_eq!(
        (content(&store, FULL), content(&store, OTHER)),
        (expected.clone(), expected.clone())
    );
    drop(store);
    assert_eq!(salvaged(&path, FULL), expected);
    let store = open(&path);
    assert_eq!(content(&store, FULL), expected);
    assert_eq!(store.get(OTHER, &row(7).0).unwrap(), Some(row(7).1));
}

#[test]
fn bulk_load_overrides_earlier_and_yields_to_later_writes() {
    let parent = parent();
    let path = parent.path().join("catalog");
    let store = open(&path);
    // Deletions that are newer than version 0 and stay in a table of their own.
    let (mut puts, mut deletions) = (Batch::new(), Batch::new());
    for number in 0..ROWS {
        puts.put(FULL, row(number).0, b"before".as_slice()).unwrap();
        deletions.delete(FULL, row(number).0).unwrap();
    }
    store.apply(puts).unwrap();
    store.apply(deletions).unwrap();
    store.load(FULL, rows()).unwrap();
    assert_eq!(content(&store, FULL).len(), ROWS as usize);
    let mut after = Batch::new();
    after.put(FULL, row(1).0, b"after".as_slice()).unwrap();
    after.delete(FULL, row(2).0).unwrap();
    store.apply(after).unwrap();
    let mut expected: Vec<_> = (0..ROWS).map(row).collect();
    expected[1].1 = b"after".to_vec();
    expected.remove(2);
    assert_eq!(content(&store, FULL), expected);
    drop(store);
    assert_eq!(salvaged(&path, FULL), expected);
    assert_eq!(content(&open(&path), FULL), expected);
}

#[test]
fn failed_bulk_load_stores_no_rows() {
    let parent = parent();
    let path = parent.path().join("catalog");
    let store = open(&path);
    let failing = rows().chain([Err(CatalogError::Stopped)]);
    assert!(matches!(store.load(FULL, failing), Err(CatalogError::Stopped)));
    let long = rows().chain([Ok((vec![0xFF; 9000], Vec::new()))]);
    assert!(matches!(store.load(FULL, long), Err(CatalogError::KeyLength { .. })));
    assert_eq!(content(&store, FULL), Vec::new());
    drop(store);
    assert_eq!(content(&open(&path), FULL), Vec::new());
    assert_eq!(salvaged(&path, FULL), Vec::new());
}
