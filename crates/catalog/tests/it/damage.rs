//! Directories that are not as they were written: each is either refused with an error kind or read
//! correctly. None is repaired by removing something, and none makes the program panic. What can be
//! read of them is salvaged.

use std::fs;
use std::path::{Path, PathBuf};

use fulgurite_catalog::{
    Batch, CatalogError, Damage, Direction, ErrorKind, FjallConfig, FjallStore, KeyRange, KeyValue,
    ReadView, Space,
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
    batch_of(row, 200)
}

fn batch_of(row: u32, value_bytes: usize) -> Batch {
    let mut batch = Batch::new();
    let value = [row.to_le_bytes().as_slice(), &vec![b'v'; value_bytes]].concat();
    batch.put(LEFT, row.to_le_bytes(), value.clone()).unwrap();
    batch.put(RIGHT, row.to_le_bytes(), value).unwrap();
    batch
}

/// Creates a store with some rows, and closes it.
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

/// Counts the rows of a space, if they can be read.
fn count(store: &FjallStore, space: Space) -> Result<u32, CatalogError> {
    let rows = store.range(space, &KeyRange::all(), Direction::Ascending, usize::MAX)?;
    for (key, value) in &rows {
        assert_eq!(key, &value[..4], "a row is correct or an error");
    }
    Ok(u32::try_from(rows.len()).unwrap())
}

#[test]
fn open_store_is_locked() {
    let (_parent, path) = closed();
    let opened = open(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    drop(opened);
    open(&path).unwrap();
}

#[test]
fn open_snapshot_keeps_the_store_locked() {
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
    check("version", b"FJL\x02", "has format version 2, this program reads 3");
    check("version", b"FJL\x63", "has no known format version, this program reads 3");
    check("version", b"", "has no known format version, this program reads 3");
    let spaces = b"fulgurite catalog 2\n1 left\n2 right\n";
    check("spaces", spaces, "has format version 2, this program reads 1");
    assert_eq!(count(&open(&path).unwrap(), LEFT).unwrap(), ROWS);
}

#[test]
fn truncated_or_altered_space_list_is_refused() {
    let (_parent, path) = closed();
    let list = path.join("spaces");
    let whole = fs::read(&list).unwrap();
    let cut = (0..whole.len()).map(|bytes| whole[..bytes].to_vec());
    let altered = (0..whole.len()).map(|at| {
        let mut altered = whole.clone();
        altered[at] ^= 0x01;
        altered
    });
    for damaged in cut.chain(altered) {
        fs::write(&list, &damaged).unwrap();
        let error = open(&path).unwrap_err();
        let is_refused = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid);
        assert!(is_refused, "{error}: {damaged:?}");
        assert_eq!(fs::read(&list).unwrap(), damaged, "the file is not overwritten");
    }
    fs::write(&list, &whole).unwrap();
    assert_eq!(count(&open(&path).unwrap(), LEFT).unwrap(), ROWS);
}

#[test]
fn missing_file_is_damage_and_nothing_is_removed() {
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
fn unknown_files_in_the_directory_are_damage() {
    let (parent, whole) = closed();
    for unknown in ["keyspaces/stranger", "9.jnl", "stranger.jnl"] {
        let path = parent.path().join("damaged");
        copy(&whole, &path);
        fs::create_dir(path.join(unknown)).unwrap();
        let error = open(&path).expect_err(unknown);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{unknown}: {error}");
        fs::remove_dir_all(&path).unwrap();
    }
    let file = parent.path().join("file");
    fs::write(&file, "text").unwrap();
    assert_eq!(open(&file).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn unfinished_creation_is_restarted() {
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

/// Long enough that the last batch spans several sectors.
const LAST_VALUE_BYTES: usize = 700;
const SECTOR_BYTES: usize = 512;

/// Returns what a crash leaves: the directory of a store that took `ROWS` batches and was not
/// closed, its journal, and where the last batch begins and ends in it.
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
    store.apply(batch_of(0, LAST_VALUE_BYTES)).unwrap();
    let end = end();
    // Every batch was synced, so the current files are what a power cut leaves.
    copy(&path, &left);
    (parent, left, journal, start, end)
}

#[test]
fn torn_last_batch_is_cut_off_and_saved() {
    let (parent, whole, journal, start, end) = crashed();
    let sectors = start.div_ceil(SECTOR_BYTES)..end.div_ceil(SECTOR_BYTES);
    assert!(sectors.len() > 2, "the last batch fills {sectors:?}");
    for seed in 0..20 {
        let mut random = Seed::new(seed).stream();
        let mut within = |from: usize, to: usize| {
            from + usize::try_from(random.below((to - from) as u64)).unwrap()
        };
        let path = parent.path().join("torn");
        copy(&whole, &path);
        let mut content = fs::read(path.join(&journal)).unwrap();
        // Sectors that did not reach the disk are zeros, or the file is shorter.
        if seed % 2 == 0 {
            let lost = within(sectors.start, sectors.end) * SECTOR_BYTES;
            let sector_end = end.min(lost + SECTOR_BYTES);
            content[lost..sector_end].fill(0);
        } else {
            content.truncate(within(start, end));
        }
        let rest = content.iter().rposition(|&byte| byte != 0).unwrap() + 1 - start;
        fs::write(path.join(&journal), &content).unwrap();
        let store = open(&path).unwrap();
        if rest > 0 {
            let cut = store.cut_batch().expect("the batch was cut off");
            assert_eq!((cut.offset, cut.bytes), (start as u64, rest as u64), "seed {seed}");
            let kept = fs::read(cut.kept.as_ref().unwrap()).unwrap();
            assert_eq!(kept, content[start..start + rest], "seed {seed}");
        }
        drop(store);
        let store = open(&path).unwrap();
        assert_eq!(store.cut_batch(), None, "nothing else is cut off");
        let rows = (count(&store, LEFT).unwrap(), count(&store, RIGHT).unwrap());
        assert_eq!(rows, (ROWS - 1, ROWS - 1), "seed {seed}");
        store.apply(batch(0)).unwrap();
        assert_eq!(count(&store, LEFT).unwrap(), ROWS, "seed {seed}");
        drop(store);
        assert_eq!(count(&open(&path).unwrap(), LEFT).unwrap(), ROWS, "seed {seed}");
        fs::remove_dir_all(&path).unwrap();
    }
    let kept = fs::read_dir(parent.path().join("torn.cut")).unwrap().count();
    assert!(kept <= fulgurite_catalog::limits::CUT_BATCHES_MAX, "{kept} are kept");
}

/// With one flipped bit in the last batch: it was acknowledged, so it must not be cut off.
#[test]
fn flipped_bit_in_last_batch_is_refused_and_salvaged() {
    let (parent, whole, journal, start, end) = crashed();
    for seed in 0..10 {
        let mut random = Seed::new(seed).stream();
        let path = parent.path().join("flipped");
        copy(&whole, &path);
        let mut content = fs::read(path.join(&journal)).unwrap();
        let mut at = start + usize::try_from(random.below((end - start) as u64)).unwrap();
        if (start + 5..start + 13).contains(&at) {
            // The version has no checksum, and no later version contradicts it.
            at += 8;
        }
        content[at] ^= 1 << random.below(8);
        fs::write(path.join(&journal), &content).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "seed {seed}: {error}");
        assert_eq!(fs::read(path.join(&journal)).unwrap(), content, "nothing is removed");
        let (rows, damages) = salvage(&path);
        assert_eq!(rows, 2 * ROWS as usize, "seed {seed}: {damages:?}");
        assert_eq!(damages.len(), 1, "seed {seed}: {damages:?}");
        fs::remove_dir_all(&path).unwrap();
    }
}

/// With several damaged bytes in the last batch, but its end and all sectors present: it is not
/// torn.
#[test]
fn damaged_but_complete_last_batch_is_not_torn() {
    let (_parent, path, journal, start, end) = crashed();
    let mut content = fs::read(path.join(&journal)).unwrap();
    content[usize::midpoint(start, end)..][..20].fill(b'x');
    fs::write(path.join(&journal), &content).unwrap();
    assert_eq!(open(&path).unwrap_err().kind(), ErrorKind::Corrupt);
    let (rows, damages) = salvage(&path);
    assert_eq!((rows, damages.len()), (2 * ROWS as usize - 2, 1), "{damages:?}");
}

/// Returns how many rows salvage finds, each of which must be correct, and the damage it reports.
fn salvage(path: &Path) -> (usize, Vec<Damage>) {
    let mut rows = std::collections::BTreeSet::new();
    let report = FjallStore::salvage(path, &SPACES, &mut |space, key, value| {
        assert_eq!(key, &value[..4], "a row is correct or missing");
        assert!(rows.insert((space, key.to_vec())), "each row is visited once");
    });
    let report = report.unwrap();
    assert_eq!(report.rows, rows.len() as u64);
    (rows.len(), report.damages)
}

#[test]
fn salvage_of_an_undamaged_store_finds_all_rows() {
    let (_parent, path) = closed();
    let before = files(&path);
    assert_eq!(salvage(&path), (2 * ROWS as usize, Vec::new()));
    assert_eq!(files(&path), before, "nothing is changed");
    let store = open(&path).unwrap();
    let mut deletions = Batch::new();
    (0..ROWS / 2).for_each(|row| deletions.delete(LEFT, row.to_le_bytes()).unwrap());
    store.apply(deletions).unwrap();
    drop(store);
    assert_eq!(salvage(&path), (3 * ROWS as usize / 2, Vec::new()));
    let (_parent, path, ..) = crashed();
    assert_eq!(salvage(&path), (2 * ROWS as usize, Vec::new()), "rows in journals are found");
}

/// A store of a newer version is no damaged one: its version is reported.
#[test]
fn salvage_names_a_newer_version() {
    let (_parent, path) = closed();
    let spaces = path.join("spaces");
    let text = fs::read_to_string(&spaces).unwrap();
    fs::write(&spaces, text.replacen("catalog 1", "catalog 2", 1)).unwrap();
    let report = FjallStore::salvage(&path, &SPACES, &mut |_, _, _| {}).unwrap();
    assert!(report.newer.is_some_and(|why| why.contains("format version 2")));
    assert_eq!(report.damages, []);
    let error = open(&path).map(drop).unwrap_err().to_string();
    assert!(error.contains("has format version 2, this program reads 1"), "{error}");
}

#[test]
fn salvage_skips_a_lost_page() {
    let (parent, whole) = closed();
    let tables: Vec<PathBuf> = files(&whole)
        .into_iter()
        .filter(|file| file.parent().unwrap().ends_with("tables"))
        .filter(|file| file.metadata().unwrap().len() > 12 << 10)
        .collect();
    assert!(!tables.is_empty(), "a table has some pages");
    for (seed, table) in (0..).zip(&tables) {
        let mut random = Seed::new(seed).stream();
        let path = parent.path().join("page");
        copy(&whole, &path);
        let table = path.join(table.strip_prefix(&whole).unwrap());
        let mut content = fs::read(&table).unwrap();
        let page = usize::try_from(random.below(content.len() as u64 / 4096)).unwrap() * 4096;
        content[page..page + 4096].fill(0);
        fs::write(&table, content).unwrap();
        let (rows, damages) = salvage(&path);
        let lost = 2 * ROWS as usize - rows;
        // A page holds 20 rows, and overlaps two blocks of as many.
        assert!(!damages.is_empty() && lost <= 45, "{lost} rows lost: {damages:?}");
        fs::remove_dir_all(&path).unwrap();
    }
}

/// With one flipped bit anywhere, opening is refused or reads correctly, and salvage finds every
/// row.
#[test]
fn flipped_bit_loses_no_row_in_salvage() {
    let (parent, whole) = closed();
    let (other, crashed, ..) = crashed();
    for seed in 0..flip_count() / 2 {
        let mut random = Seed::new(seed).stream();
        let path = parent.path().join("flipped");
        copy(if seed % 3 == 0 { &crashed } else { &whole }, &path);
        let files = files(&path);
        let file = &files[usize::try_from(random.below(files.len() as u64)).unwrap()];
        let mut content = fs::read(file).unwrap();
        let written = content.iter().rposition(|&byte| byte != 0);
        let written = written.unwrap_or(0);
        if content.is_empty() {
            content.push(0);
        }
        let at = usize::try_from(random.below(written as u64 + 1)).unwrap();
        content[at] ^= 1 << random.below(8);
        fs::write(file, content).unwrap();
        let (rows, damages) = salvage(&path);
        let context = format!("seed {seed}: byte {at} of {}: {damages:?}", file.display());
        assert_eq!(rows, 2 * ROWS as usize, "{context}");
        if let Ok(store) = open(&path) {
            let counted = count(&store, LEFT).and_then(|left| Ok((left, count(&store, RIGHT)?)));
            assert!(counted.is_err() || counted.unwrap() == (ROWS, ROWS), "{context}");
        } else {
            assert!(!damages.is_empty(), "{context}");
        }
        fs::remove_dir_all(&path).unwrap();
    }
    drop(other);
}

#[test]
fn damaged_earlier_batch_is_refused_and_kept() {
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
            // The version of a batch has no checksum; an altered one that still rises is not
            // detected.
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

/// Returns the tables in use of a store, by space.
fn tables(path: &Path) -> Vec<PathBuf> {
    let is_table = |file: &PathBuf| file.parent().unwrap().ends_with("tables");
    files(path).into_iter().filter(is_table).collect()
}

fn flip(file: &Path, at: usize) {
    let mut content = fs::read(file).unwrap();
    content[at] ^= 4;
    fs::write(file, content).unwrap();
}

/// Creates a store with several tables per space, most of whose blocks fjall does not read at open.
fn with_many_tables() -> (TempDir, PathBuf) {
    let (parent, path) = closed();
    for _ in 0..3 {
        let store = open(&path).unwrap();
        (0..ROWS).for_each(|row| store.apply(batch(row)).unwrap());
    }
    (parent, path)
}

/// With one flipped bit in any table, opening names the table and changes nothing.
#[test]
fn flipped_bit_in_any_table_is_refused_at_open() {
    let (parent, whole) = with_many_tables();
    let tables = tables(&whole);
    assert!(tables.len() > SPACES.len(), "{tables:?}");
    for table in &tables {
        let bytes = usize::try_from(table.metadata().unwrap().len()).unwrap();
        for at in [0, bytes / 3, bytes / 2, bytes - bytes / 5, bytes - 1] {
            let path = parent.path().join("flipped");
            copy(&whole, &path);
            let flipped = path.join(table.strip_prefix(&whole).unwrap());
            flip(&flipped, at);
            let before = files(&path);
            let error = open(&path).unwrap_err();
            let CatalogError::Damaged { path: named, .. } = &error else {
                panic!("byte {at}: {error}");
            };
            assert_eq!(*named, flipped, "byte {at}");
            assert_eq!(files(&path), before, "nothing is changed");
            let (rows, damages) = salvage(&path);
            assert_eq!(rows, 2 * ROWS as usize, "byte {at}: {damages:?}");
            assert!(!damages.is_empty(), "byte {at} of {}", table.display());
            fs::remove_dir_all(&path).unwrap();
        }
    }
}

/// A block that becomes damaged while the store is open: the reader gets an error, and the store
/// records it.
#[test]
fn damage_found_after_open_is_recorded() {
    let (_parent, path) = closed();
    // No block of it is in memory yet, except those that opening reads.
    let store = open(&path).unwrap();
    assert!(store.damage().is_none());
    for table in tables(&path).into_iter().filter(|table| !table.starts_with(keyspace(&path, 0))) {
        let end = usize::try_from(table.metadata().unwrap().len()).unwrap();
        (0..end / 2).step_by(1000).for_each(|at| flip(&table, at));
    }
    let error = count(&store, LEFT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(store.damage().unwrap().to_string(), error.to_string());
    assert!(store.snapshot().get(RIGHT, &7_u32.to_le_bytes()).is_err());
}

/// A compaction that runs into a damaged table fails every time: the store names the table, and is
/// not reopened forever.
#[test]
fn table_that_fails_compaction_is_named() {
    let (_parent, path) = closed();
    let store = open(&path).unwrap();
    for table in tables(&path) {
        let end = usize::try_from(table.metadata().unwrap().len()).unwrap();
        (0..end / 2).step_by(1000).for_each(|at| flip(&table, at));
    }
    let is_refused = |row| store.apply(batch(row % ROWS)).and_then(|()| store.check()).is_err();
    assert!((0..100 * ROWS).any(is_refused), "a compaction reads the damage");
    let error = store.reopen().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(matches!(store.damage(), Some(CatalogError::Damaged { .. })), "{:?}", store.damage());
    assert_eq!(store.reopen().unwrap_err().to_string(), error.to_string());
    assert!(store.apply(batch(0)).is_err());
}

fn keyspace(path: &Path, number: u32) -> PathBuf {
    path.join("keyspaces").join(number.to_string())
}

/// Returns how many flips to try; an environment variable may raise it.
fn flip_count() -> u64 {
    std::env::var("FULGURITE_FLIP_COUNT").map_or(60, |count| count.parse().unwrap())
}

#[test]
fn flipped_byte_is_an_error_or_harmless() {
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
    assert!(refused > 0, "some flips were detected");
}
