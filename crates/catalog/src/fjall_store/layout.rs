//! The directory of the store, checked before the backend may touch it.
//!
//! fjall takes a missing part for one that was never created. Without its version marker it starts
//! an empty database, without the list of keyspaces or the manifest of one it *deletes* their
//! tables, and without a journal it starts an empty one. It writes a checksum of the list of tables
//! and one of each table, but verifies neither. Here a missing or altered part is damage, and
//! nothing is removed.
//!
//! ```text
//!   PATH/version           written last by fjall when it creates a database
//!   PATH/lock              held while it is open
//!   PATH/N.jnl             journals, at least one
//!   PATH/keyspaces/0       the list of keyspaces
//!   PATH/keyspaces/N       one keyspace; its tables are listed in the file `vM`, and the file
//!                          `current` holds M and the checksum of `vM`
//!   PATH/spaces            ours: a version line, for each space `N NAME`, and a checksum
//!   PATH/renewed.part      the empty journal that replaces another; discarded if found
//!   PATH.part              a store that is being created; discarded if found
//!   PATH.cut               torn batches that were cut off; see `cut_batch`
//! ```

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::errors::{damaged, file};
use super::{CutBatch, journal, verify};
use crate::CatalogError;

/// The spaces of a store by name, with the number of the directory of each.
pub(super) type Directories = BTreeMap<String, u64>;

/// First line of the file `spaces`. The number is the version of our own part of the directory.
const HEADER: &str = "fulgurite catalog ";
const VERSION: u8 = 1;
/// Last line of the file `spaces`, followed by the XXH3-64 of everything before it.
const CHECKSUM: &str = "xxh3 ";

/// The keyspace in which fjall lists the others.
pub(super) const KEYSPACE_LIST: u64 = 0;

/// Content of the file `version`: fjall's marker, and the version of its directory.
pub(super) const MARKER: &[u8] = b"FJL\x03";

/// Whether there is no store at `path`: no directory, or an empty one.
pub(super) fn is_absent(path: &Path) -> Result<bool, CatalogError> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(damaged(path, "it is not a directory"))
        }
        Err(error) => Err(file("list the store", error)),
    }
}

/// Whether tables are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tables {
    /// All of them are read and verified.
    Checked,
    /// None: they were verified a moment ago, or are only read as far as possible.
    Trusted,
}

/// Checks that the store at `path` is unlocked and that all its parts are there.
/// A torn batch at the end of the journals is cut off.
pub(super) fn check(
    path: &Path,
    tables: Tables,
) -> Result<(Directories, Option<CutBatch>), CatalogError> {
    check_unlocked(path)?;
    if !exists(&path.join("version"))? {
        return Err(damaged(path, "version is missing"));
    }
    let directories = read_spaces(path)?;
    let listed = verify::listed(path, directories.values().chain(&[KEYSPACE_LIST]))?;
    if tables == Tables::Checked {
        verify::check(&listed)?;
    }
    let cut = journal::check(&journals(path)?, &with_suffix(path, ".cut"))?;
    for entry in entries(&path.join("keyspaces"))? {
        check_keyspace(&entry)?;
    }
    Ok((directories, cut))
}

/// Reads and verifies every table of the store, which must not be written meanwhile.
pub(super) fn check_tables(path: &Path) -> Result<(), CatalogError> {
    let directories = read_spaces(path)?;
    verify::check(&verify::listed(path, directories.values().chain(&[KEYSPACE_LIST]))?)
}

/// Returns the journals of the store, the one being written last.
pub(super) fn journals(path: &Path) -> Result<Vec<PathBuf>, CatalogError> {
    let mut journals = BTreeMap::new();
    for entry in entries(path)? {
        let file = entry.path();
        if file.extension().is_none_or(|extension| extension != "jnl") {
            continue;
        }
        let number = file.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        let Some(number) = number.filter(|_| file.is_file()) else {
            return Err(damaged(&file, "it is not a journal"));
        };
        journals.insert(number, file);
    }
    if journals.is_empty() {
        return Err(damaged(path, "it has no journal"));
    }
    Ok(journals.into_values().collect())
}

/// Whether the journals of the store, which was already checked, hold batches.
pub(super) fn has_batches(path: &Path) -> Result<bool, CatalogError> {
    journal::has_batches(&journals(path)?)
}

/// Replaces all journals by an empty one. The store must be closed, with every row of its journals
/// in tables.
///
/// The last journal is replaced first, in one step. It is the only one that may have a page that
/// never reached the disk, and as long as it is the last, such a page is a torn end rather than
/// damage.
pub(super) fn renew_journal(path: &Path) -> Result<(), CatalogError> {
    let mut old = journals(path)?;
    let Some(last) = old.pop() else { return Err(damaged(path, "it has no journal")) };
    let part = path.join("renewed.part");
    let renewed = File::create(&part)
        .and_then(|journal| journal.sync_all())
        .and_then(|()| fs::rename(&part, &last));
    renewed.map_err(|error| file("renew the journal", error))?;
    sync_directory(path)?;
    for journal in old {
        fs::remove_file(&journal).map_err(|error| file("remove an old journal", error))?;
    }
    sync_directory(path)
}

/// Syncs the directories of the tables again, after a sync may have failed. The content of tables
/// was synced before they were named; only the names are uncertain, and the file system keeps those
/// in order.
pub(super) fn sync_table_directories(path: &Path) -> Result<(), CatalogError> {
    let keyspaces = path.join("keyspaces");
    for entry in entries(&keyspaces)? {
        if !is_kind(&entry, fs::FileType::is_dir)? {
            continue;
        }
        let space = entry.path();
        for inside in entries(&space)? {
            sync_directory(&inside.path())?;
        }
        sync_directory(&space)?;
    }
    sync_directory(&keyspaces)?;
    sync_directory(path)
}

fn check_keyspace(entry: &DirEntry) -> Result<(), CatalogError> {
    let path = entry.path();
    if !is_kind(entry, fs::FileType::is_dir)? {
        return Ok(());
    }
    if !is_number(&entry.file_name()) {
        return Err(damaged(&path, "it is not a keyspace"));
    }
    let tables = path.join("tables");
    let has_tables = exists(&tables)? && !entries(&tables)?.is_empty();
    if has_tables && !exists(&path.join("current"))? {
        return Err(damaged(&path, "current is missing"));
    }
    Ok(())
}

/// Parses the number of a keyspace from the name of its directory.
pub(super) fn directory_number(path: &Path) -> Result<u64, CatalogError> {
    let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
    number.ok_or_else(|| damaged(path, "it is not a keyspace"))
}

/// Returns `path` with `suffix` appended to its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the temporary path for creating a store, after removing leftovers.
pub(super) fn clear_part(path: &Path) -> Result<PathBuf, CatalogError> {
    let part = with_suffix(path, ".part");
    match fs::remove_dir_all(&part) {
        Ok(()) => Ok(part),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(part),
        Err(error) => Err(file("remove an unfinished store", error)),
    }
}

/// Renames a finished store to its path, durably.
pub(super) fn publish(part: &Path, path: &Path) -> Result<(), CatalogError> {
    sync_directory(part)?;
    fs::rename(part, path).map_err(|error| file("rename the new store", error))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(parent.unwrap_or_else(|| Path::new(".")))
}

/// Writes the list of spaces atomically and durably, after syncing the directories that it names:
/// fjall syncs what is in them, but not their own names.
pub(super) fn write_spaces(path: &Path, directories: &Directories) -> Result<(), CatalogError> {
    sync_directory(&path.join("keyspaces"))?;
    let mut text = format!("{HEADER}{VERSION}\n");
    for (name, number) in directories {
        text.push_str(&format!("{number} {name}\n"));
    }
    text.push_str(&checksum_line(&text));
    if fs::read(path.join("spaces")).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let part = path.join("spaces.part");
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path.join("spaces"))
    });
    written.map_err(|error| file("write the list of spaces", error))?;
    sync_directory(path)
}

pub(super) fn read_spaces(path: &Path) -> Result<Directories, CatalogError> {
    let text = String::from_utf8(read(&path.join("spaces"))?)
        .map_err(|_| damaged(path, "spaces is not text"))?;
    let no_list = || damaged(path, "spaces is not a list of spaces");
    let version = text.lines().next().and_then(|line| line.strip_prefix(HEADER));
    let version = version.filter(|_| text.ends_with('\n')).ok_or_else(no_list)?;
    let found = version.parse().ok();
    if found != Some(VERSION) {
        let path = path.to_owned();
        return Err(CatalogError::Version { path, found, expected: VERSION });
    }
    let lines = checked(&text)
        .ok_or_else(|| damaged(path, "the list of spaces does not match its checksum"))?;
    let space = |line: &str| {
        let (number, name) = line.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    let spaces: Option<Directories> = lines.lines().skip(1).map(space).collect();
    spaces.ok_or_else(no_list)
}

/// Returns the text before the checksum, if the checksum matches.
fn checked(text: &str) -> Option<&str> {
    let (lines, checksum) = text.split_at(text.rfind(CHECKSUM)?);
    (checksum == checksum_line(lines)).then_some(lines)
}

fn checksum_line(lines: &str) -> String {
    format!("{CHECKSUM}{:016x}\n", xxh3_64(lines.as_bytes()))
}

// The backend takes the lock itself. This check comes first, so that a store in use is not
// inspected while it changes.
fn check_unlocked(path: &Path) -> Result<(), CatalogError> {
    let mut options = OpenOptions::new();
    let lock = options.read(true).write(true).create(true).truncate(false).open(path.join("lock"));
    match lock.map_err(|error| file("open the lock of the store", error))?.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(CatalogError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(file("lock the store", error)),
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, CatalogError> {
    fs::read(path).map_err(|error| {
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) {
            return damaged(path, "it is missing");
        }
        file("read the store", error)
    })
}

fn entries(path: &Path) -> Result<Vec<DirEntry>, CatalogError> {
    let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<_, _>>);
    entries.map_err(|error| file("list the store", error))
}

fn exists(path: &Path) -> Result<bool, CatalogError> {
    path.try_exists().map_err(|error| file("inspect the store", error))
}

fn is_kind(entry: &DirEntry, kind: fn(&fs::FileType) -> bool) -> Result<bool, CatalogError> {
    entry.file_type().map(|found| kind(&found)).map_err(|error| file("inspect the store", error))
}

fn is_number(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.parse::<u64>().is_ok())
}

fn sync_directory(path: &Path) -> Result<(), CatalogError> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|error| file("sync a directory", error))
}
