//! Salvages rows from a damaged store, without opening or changing it.
//!
//! ```text
//!   spaces, or keyspaces/0      which keyspace is which space
//!   keyspaces/N/vM              which tables are in use; if it is lost, all that are there
//!   tables  --+
//!   journals -+-- merged by key: the newest readable version, deletions too --> the caller
//! ```
//!
//! A journal may be far behind the tables or ahead of them; versions decide. Where the newest
//! version of a row is lost, an older one is returned: the caller must know from elsewhere what is
//! true. Deleted rows may come back in the same way, and also from tables that were already merged
//! into others if the list of tables is lost.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::errors::file;
use super::table::Table;
use super::{journal, layout, table_list, verify};
use crate::{CatalogError, Space};

/// Bytes of a table read at a time for its checksum.
const CHECKSUM_BUFFER_BYTES: usize = 1 << 20;

/// A part of the directory that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// What is damaged, and the consequence for its rows.
    pub problem: String,
}

/// Result of a salvage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Rows passed to the caller.
    pub rows: u64,
    /// What could not be read, or had to be repaired. Empty for an undamaged store.
    pub damages: Vec<Damage>,
    /// Why a newer program is needed, if the store is of a newer version.
    pub newer: Option<String>,
}

/// Called with the space, key and value of each row.
pub type SalvageVisitor<'a> = dyn FnMut(Space, &[u8], &[u8]) + 'a;

/// What a version of a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Value,
    Deletion,
}

impl Kind {
    /// Returns the kind that the backend encodes as `code`; none for kinds that this program never
    /// writes.
    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Value),
            1 | 2 => Some(Self::Deletion),
            _ => None,
        }
    }
}

/// One version of a row; none as value means deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) key: Vec<u8>,
    pub(super) version: u64,
    pub(super) value: Option<Vec<u8>>,
}

/// Reads the store at `path`, which must not be open, and calls `visit` with the newest readable
/// version of each row, by space and key. Does not change the directory.
pub(super) fn salvage(
    path: &Path,
    spaces: &[Space],
    visit: &mut SalvageVisitor<'_>,
) -> Result<SalvageReport, CatalogError> {
    let read = |error| file("read the damaged store", error);
    let mut report = SalvageReport::default();
    let mut reading = Salvager { path, damages: &mut report.damages, newer: &mut report.newer };
    reading.check_marker().map_err(read)?;
    let names = reading.names().map_err(read)?;
    let mut journaled = reading.journals(&names).map_err(read)?;
    for (number, name) in names {
        let Some(&space) = spaces.iter().find(|space| space.name() == name) else { continue };
        let tables = reading.tables(number).map_err(read)?;
        let journal = journaled.remove(&number).unwrap_or_default();
        report.rows += merge(tables, journal, reading.damages, &mut |key, value| {
            visit(space, key, value);
        })
        .map_err(read)?;
    }
    Ok(report)
}

type JournalRows = BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>;

struct Salvager<'a> {
    path: &'a Path,
    damages: &'a mut Vec<Damage>,
    newer: &'a mut Option<String>,
}

impl Salvager<'_> {
    fn damage(&mut self, path: PathBuf, problem: impl Into<String>) {
        self.damages.push(Damage { path, problem: problem.into() });
    }

    fn check_marker(&mut self) -> io::Result<()> {
        let path = self.path.join("version");
        if read_present(&path)?.as_deref() != Some(layout::MARKER) {
            self.damage(path, "is not the marker of a store");
        }
        Ok(())
    }

    /// Returns the number and name of every keyspace: from the backend's own list, completed by the
    /// file `spaces`.
    fn names(&mut self) -> io::Result<BTreeMap<u64, String>> {
        let mut names = BTreeMap::new();
        for table in self.tables(layout::KEYSPACE_LIST)? {
            let mut table = table;
            while let Some(row) = table.next(self.damages)? {
                // Key: 'n', then the number, big-endian. Value: the name.
                if let (Some((b'n', number)), Some(name)) = (row.key.split_first(), row.value)
                    && let (Ok(number), Ok(name)) =
                        (<[u8; 8]>::try_from(number), String::from_utf8(name))
                {
                    names.insert(number.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)), name);
                }
            }
        }
        match layout::read_spaces(self.path) {
            Ok(listed) if !names.is_empty() => {
                for (name, number) in &listed {
                    if names.get(number).is_some_and(|other| other != name) {
                        self.damage(self.path.join("spaces"), "differs from the list of keyspaces");
                    }
                    names.entry(*number).or_insert_with(|| name.clone());
                }
                if listed.len() < names.len() {
                    self.damage(self.path.join("spaces"), "lacks a space");
                }
            }
            Ok(listed) => names = listed.into_iter().map(|(name, number)| (number, name)).collect(),
            Err(CatalogError::Version { found: Some(found), expected, .. }) if found > expected => {
                *self.newer = Some(format!(
                    "the catalog has format version {found}, and this program knows up to \
                     {expected}"
                ));
            }
            Err(error) => self.damage(self.path.join("spaces"), error.to_string()),
        }
        Ok(names)
    }

    /// Returns the tables of a keyspace that are in use.
    fn tables(&mut self, number: u64) -> io::Result<Vec<Table>> {
        let folder = self.path.join("keyspaces").join(number.to_string());
        let listed = match table_list::read(&folder) {
            Ok(listed) => Some(listed),
            Err(error) => {
                let repair = table_list::repair(&folder);
                let outcome =
                    if repair.is_some() { "it had a flipped bit" } else { "all tables are read" };
                self.damage(folder.clone(), format!("the list of its tables: {error}; {outcome}"));
                repair
            }
        };
        let present = numbers_in(&folder.join("tables"))?;
        let mut tables = Vec::new();
        let mut buffer = vec![0; CHECKSUM_BUFFER_BYTES];
        let wanted: BTreeSet<u64> = match &listed {
            Some(listed) => listed.iter().map(|table| table.number).collect(),
            None => present.clone(),
        };
        for number in wanted {
            let path = folder.join("tables").join(number.to_string());
            if !present.contains(&number) {
                self.damage(path, "is missing");
                continue;
            }
            let in_list = listed.iter().flatten().find(|table| table.number == number);
            if let Some(in_list) = in_list
                && verify::checksum_of(&path, &mut buffer)? != in_list.checksum
            {
                self.damage(path.clone(), "does not match its checksum");
            }
            // Without the list, bulk-loaded rows count as older than all others. This assumes that
            // a space is filled before anything else is written to it.
            let added_version = in_list.map_or(0, |in_list| in_list.added_version);
            tables.push(Table::open(&path, added_version)?);
        }
        Ok(tables)
    }

    /// Returns the newest version of each row in the journals.
    fn journals(
        &mut self,
        names: &BTreeMap<u64, String>,
    ) -> io::Result<BTreeMap<u64, JournalRows>> {
        let journals = match layout::journals(self.path) {
            Ok(journals) => journals,
            Err(error) => {
                self.damage(self.path.to_owned(), error.to_string());
                Vec::new()
            }
        };
        let mut rows: BTreeMap<u64, JournalRows> = BTreeMap::new();
        let mut floor = 0;
        for path in journals {
            let content = journal::read_written(&path)?;
            self.read_journal(&path, &content, &mut floor, &mut rows);
        }
        rows.retain(|number, _| names.contains_key(number));
        Ok(rows)
    }

    fn read_journal(
        &mut self,
        path: &Path,
        content: &[u8],
        floor: &mut u64,
        rows: &mut BTreeMap<u64, JournalRows>,
    ) {
        let mut at = 0;
        while at < content.len() {
            let rest = &content[at..];
            let whole = journal::parse(rest);
            if let Some(batch) = whole.filter(|batch| batch.version >= *floor) {
                *floor = batch.version.saturating_add(1);
                merge_rows(batch, batch.version, rows);
                at += batch.bytes;
                continue;
            }
            let next = whole.map_or_else(|| journal::next_batch(rest), |batch| batch.bytes);
            let repair =
                if whole.is_none() { journal::repair(&rest[..next], *floor) } else { None };
            let batch = repair.as_deref().and_then(journal::parse).or(whole);
            let problem = match batch {
                Some(batch) => {
                    // A batch with an altered version comes after the previous one.
                    let version = batch.version.max(*floor);
                    merge_rows(batch, version, rows);
                    if repair.is_some() {
                        *floor = version.saturating_add(1);
                    }
                    "is a batch with a flipped bit; its rows are recovered"
                }
                None => "is not a complete batch; its rows are skipped",
            };
            self.damage(path.to_owned(), format!("the record at byte {at} {problem}"));
            at += next;
        }
    }
}

fn merge_rows(batch: journal::RawBatch<'_>, version: u64, rows: &mut BTreeMap<u64, JournalRows>) {
    for row in batch.rows() {
        let value = match (Kind::from_code(row.kind), row.compression) {
            (Some(Kind::Deletion), _) => None,
            (Some(Kind::Value), 0) => Some(row.stored.to_vec()),
            (Some(Kind::Value), 1) => {
                match lz4_flex::block::decompress(row.stored, row.value_bytes) {
                    Ok(value) => Some(value),
                    Err(_) => continue,
                }
            }
            _ => continue,
        };
        match rows.entry(row.keyspace).or_default().entry(row.key.to_vec()) {
            Entry::Vacant(entry) => {
                entry.insert((version, value));
            }
            Entry::Occupied(mut entry) if entry.get().0 <= version => {
                entry.insert((version, value));
            }
            Entry::Occupied(_) => {}
        }
    }
}

/// The next row of a source, ordered so that the maximum is the first key in its newest version.
#[derive(PartialEq, Eq)]
struct SourceRow {
    row: (std::cmp::Reverse<Vec<u8>>, u64),
    value: Option<Vec<u8>>,
    source: usize,
}

impl Ord for SourceRow {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.row.cmp(&other.row).then(self.source.cmp(&other.source))
    }
}

impl PartialOrd for SourceRow {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Calls `visit` with the newest version of each row, unless it is a deletion. Returns the count.
fn merge(
    mut tables: Vec<Table>,
    journal: JournalRows,
    damages: &mut Vec<Damage>,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> io::Result<u64> {
    let journal_source = tables.len();
    let mut journal =
        journal.into_iter().map(|(key, (version, value))| Version { key, version, value });
    let mut next = |source: usize, damages: &mut Vec<Damage>| -> io::Result<Option<SourceRow>> {
        let row = match tables.get_mut(source) {
            Some(table) => table.next(damages)?,
            None => journal.next(),
        };
        Ok(row.map(|Version { key, version, value }| SourceRow {
            row: (std::cmp::Reverse(key), version),
            value,
            source,
        }))
    };
    let mut heads = BinaryHeap::new();
    for source in 0..=journal_source {
        heads.extend(next(source, damages)?);
    }
    let mut rows = 0;
    let mut last: Option<Vec<u8>> = None;
    while let Some(SourceRow { row: (std::cmp::Reverse(key), _), value, source }) = heads.pop() {
        heads.extend(next(source, damages)?);
        if last.as_ref() == Some(&key) {
            continue;
        }
        if let Some(value) = value {
            visit(&key, &value);
            rows += 1;
        }
        last = Some(key);
    }
    Ok(rows)
}

/// Reads a file; none if it does not exist.
fn read_present(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the files of a folder whose names are numbers.
fn numbers_in(folder: &Path) -> io::Result<BTreeSet<u64>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    let mut numbers = BTreeSet::new();
    for entry in entries {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    Ok(numbers)
}
