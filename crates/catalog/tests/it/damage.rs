//! Directories that are not what was written: every one is refused with a kind, or read right;
//! none is repaired by removing something, and none makes the program panic.

use std::fs;
use std::path::{Path, PathBuf};

use fulgurite_catalog::{
    Batch, CatalogError, ErrorKind, FjallConfig, FjallStore, KeyRange, KeyValue, Order, ReadView,
    Space,
};
use fulgurite_units::{ByteCount, Seed};
use tempfile::TempDir;

const LEFT: Space = Space::new("left");
const RIGHT: Space = Space::new("right");
const SPACES: [Space; 2] = [LEFT, RIGHT];
const ROWS: u32 = 400;

const CONFIG: FjallConfig = FjallConfig {
    block_cache: ByteCount::mib(1),
    write_buffer: ByteCount::kib(32),
    worker_count: 1,
};

fn open(path: &Path) -> Result<FjallStore, CatalogError> {
    FjallStore::open(path, &SPACES, &CONFIG)
}

fn batch(row: u32) -> Batch {
    let mut batch = Batch::new();
    let value = [row.to_le_bytes().as_slice(), &[b'v'; 200]].concat();
    batch.put(LEFT, row.to_le_bytes(), value.clone()).unwrap();
    batch.put(RIGHT, row.to_le_bytes(), value).unwrap();
    batch
}

/// A store with some rows, closed.
fn closed() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("catalog");
    let store = open(&path).unwrap();
    (0..ROWS).for_each(|row| store.apply(batch(row)).unwrap());
    drop(store);
    (parent, path)
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// The rows of a space, if they can be read.
fn count(store: &FjallStore, space: Space) -> Result<u32, CatalogError> {
    let rows = store.range(space, &KeyRange::all(), Order::Ascending, usize::MAX)?;
    for (key, value) in &rows {
        assert_eq!(key, &value[..4], "a row is right or an error");
    }
    Ok(u32::try_from(rows.len()).unwrap())
}

#[test]
fn a_store_in_use_is_locked() {
    let (_parent, path) = closed();
    let held = open(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    drop(held);
    open(&path).unwrap();
}

#[test]
fn an_open_snapshot_keeps_the_store_and_its_lock() {
    let (_parent, path) = closed();
    let store = open(&path).unwrap();
    let snapshot = store.snapshot();
    drop(store);
    assert_eq!(open(&path).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(snapshot.get(LEFT, &7_u32.to_le_bytes()).unwrap().is_some());
    drop(snapshot);
    open(&path).unwrap();
}

#[test]
fn other_versions_are_refused() {
    let (_parent, path) = closed();
    let check = |file: &str, content: &[u8], expected: &str| {
        let whole = fs::read(path.join(file)).unwrap();
        fs::write(path.join(file), content).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().ends_with(expected), "{error}");
        fs::write(path.join(file), whole).unwrap();
    };
    check("version", b"FJL\x02", "has format version Some(2), this program reads 3");
    check("version", b"FJL\x63", "has format version None, this program reads 3");
    check("version", b"", "has format version None, this program reads 3");
    let spaces = b"fulgurite catalog 2\n1 left\n2 right\n";
    check("spaces", spaces, "has format version Some(2), this program reads 1");
    assert_eq!(count(&open(&path).unwrap(), LEFT).unwrap(), ROWS);
}

#[test]
fn a_missing_part_is_damage_and_nothing_is_removed() {
    let (parent, whole) = closed();
    let journal = files(&whole).into_iter().find(|path| path.extension() == Some("jnl".as_ref()));
    let journal = journal.unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let parts = [
        "version",
        "spaces",
        &journal,
        "keyspaces",
        "keyspaces/0",
        "keyspaces/0/current",
        "keyspaces/1",
        "keyspaces/1/current",
        "keyspaces/2/tables",
    ];
    for part in parts {
        let path = parent.path().join("damaged");
        copy(&whole, &path);
        if path.join(part).is_dir() {
            fs::remove_dir_all(path.join(part)).unwrap();
        } else {
            fs::remove_file(path.join(part)).unwrap();
        }
        let before = files(&path);
        let error = open(&path).expect_err(part);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{part}: {error}");
        let after = files(&path);
        assert!(before.iter().all(|file| after.contains(file)), "{part}: nothing is removed");
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn strangers_in_the_directory_are_damage() {
    let (parent, whole) = closed();
    for stranger in ["keyspaces/stranger", "9.jnl", "stranger.jnl"] {
        let path = parent.path().join("damaged");
        copy(&whole, &path);
        fs::create_dir(path.join(stranger)).unwrap();
        let error = open(&path).expect_err(stranger);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{stranger}: {error}");
        fs::remove_dir_all(&path).unwrap();
    }
    let file = parent.path().join("file");
    fs::write(&file, "text").unwrap();
    assert_eq!(open(&file).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn an_unfinished_creation_is_begun_again() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("catalog");
    let part = parent.path().join("catalog.part");
    fs::create_dir_all(part.join("keyspaces")).unwrap();
    fs::write(part.join("0.jnl"), "torn").unwrap();
    fs::create_dir(&path).unwrap();
    let store = open(&path).unwrap();
    store.apply(batch(1)).unwrap();
    assert!(!part.exists());
}

/// What a crash leaves: the directory of a store that took `ROWS` batches and was not closed,
/// its journal, and where the last batch begins and ends in it.
fn crashed() -> (TempDir, PathBuf, String, usize, usize) {
    let parent = tempfile::tempdir().unwrap();
    let (path, left) = (parent.path().join("catalog"), parent.path().join("left"));
    let config = FjallConfig { write_buffer: ByteCount::mib(16), ..CONFIG };
    let store = FjallStore::open(&path, &SPACES, &config).unwrap();
    let journal = "0.jnl".to_owned();
    let end = || {
        let content = fs::read(path.join(&journal)).unwrap();
        content.iter().rposition(|&byte| byte != 0).unwrap() + 1
    };
    (1..ROWS).for_each(|row| store.apply(batch(row)).unwrap());
    let start = end();
    store.apply(batch(0)).unwrap();
    let end = end();
    // Every batch was synced, so the files as they are now are what a power cut leaves.
    copy(&path, &left);
    (parent, left, journal, start, end)
}

#[test]
fn a_torn_last_batch_is_cut_off() {
    let (parent, whole, journal, start, end) = crashed();
    for seed in 0..40 {
        let mut random = Seed::new(seed).stream();
        let mut within = |from: usize, to: usize| {
            from + usize::try_from(random.below((to - from) as u64)).unwrap()
        };
        let path = parent.path().join("torn");
        copy(&whole, &path);
        let mut content = fs::read(path.join(&journal)).unwrap();
        // Pages that did not reach the disk are zeros, or the file is shorter.
        let from = within(start, end);
        if seed % 2 == 0 {
            let to = within(from, end) + 1;
            content[from..to].fill(0);
        } else {
            content.truncate(from);
        }
        fs::write(path.join(&journal), content).unwrap();
        for _ in 0..2 {
            let store = open(&path).unwrap();
            let rows = (count(&store, LEFT).unwrap(), count(&store, RIGHT).unwrap());
            assert_eq!(rows, (ROWS - 1, ROWS - 1), "seed {seed}");
        }
        let store = open(&path).unwrap();
        store.apply(batch(0)).unwrap();
        assert_eq!(count(&store, LEFT).unwrap(), ROWS, "seed {seed}");
        drop(store);
        assert_eq!(count(&open(&path).unwrap(), LEFT).unwrap(), ROWS, "seed {seed}");
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn a_damaged_batch_before_the_last_is_refused_and_kept() {
    let (parent, whole, journal, start, _) = crashed();
    let mut refused = 0;
    for seed in 0..40 {
        let mut random = Seed::new(seed).stream();
        let path = parent.path().join("damaged");
        copy(&whole, &path);
        let mut content = fs::read(path.join(&journal)).unwrap();
        let at = usize::try_from(random.below(start as u64 - 3)).unwrap();
        content[at..at + 3].iter_mut().for_each(|byte| *byte ^= 0x55);
        fs::write(path.join(&journal), &content).unwrap();
        match open(&path) {
            // The version of a batch has no checksum.
            Ok(store) => assert_eq!(count(&store, LEFT).unwrap(), ROWS, "seed {seed}"),
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Corrupt, "seed {seed}: {error}");
                assert_eq!(fs::read(path.join(&journal)).unwrap(), content, "nothing is removed");
            }
        }
        fs::remove_dir_all(&path).unwrap();
    }
    assert!(refused > 30, "{refused} of 40 refused");
}

/// How many flips to try; the environment may ask for more.
fn flip_count() -> u64 {
    std::env::var("FULGURITE_FLIP_COUNT").map_or(60, |count| count.parse().unwrap())
}

#[test]
fn a_flipped_byte_is_an_error_or_harmless() {
    let (parent, whole) = closed();
    let mut refused = 0;
    for seed in 0..flip_count() {
        let mut random = Seed::new(seed).stream();
        let path = parent.path().join("damaged");
        copy(&whole, &path);
        let files = files(&path);
        let file = &files[usize::try_from(random.below(files.len() as u64)).unwrap()];
        let mut content = fs::read(file).unwrap();
        if !content.is_empty() {
            let written = content.iter().rposition(|&byte| byte != 0).unwrap_or(0) as u64;
            let at = usize::try_from(random.below(written + 1)).unwrap();
            content[at] ^= 1 << random.below(8);
            fs::write(file, content).unwrap();
        }
        let counted =
            open(&path).and_then(|store| Ok((count(&store, LEFT)?, count(&store, RIGHT)?)));
        match counted {
            Ok(rows) => assert_eq!(rows, (ROWS, ROWS), "seed {seed}: {}", file.display()),
            Err(error) => {
                refused += 1;
                let kind = error.kind();
                let expected = matches!(kind, ErrorKind::Corrupt | ErrorKind::Invalid);
                assert!(expected, "seed {seed}: {error}, {kind:?}");
            }
        }
        fs::remove_dir_all(&path).unwrap();
    }
    assert!(refused > 0, "some flips met something that matters");
}
