//! Verifies every table in use against the checksum of its whole file in the list of tables.
//!
//! fjall checks a block only when it reads it. Damage that is not found at open would show up at
//! any time later: in a listing, in a restore, or in a compaction, which then fails forever. So all
//! tables are read once at open, several in parallel, and a store with a damaged one is refused.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use xxhash_rust::xxh3::Xxh3;

use super::errors::{damaged, file};
use super::table_list;
use crate::CatalogError;
use crate::limits::TABLE_CHECKS_MAX;

/// Bytes of a table read at a time.
const READ_BYTES: usize = 1 << 20;

/// A table in use: its file and its checksum.
type TableFile = (PathBuf, u128);

/// Returns the tables in use of the keyspaces in these directories of the store at `path`, from
/// lists that match their own checksums.
pub(super) fn listed<'a>(
    path: &Path,
    directories: impl Iterator<Item = &'a u64>,
) -> Result<Vec<TableFile>, CatalogError> {
    let mut tables = Vec::new();
    for number in directories {
        let keyspace = path.join("keyspaces").join(number.to_string());
        for table in table_list::read(&keyspace)? {
            let file = keyspace.join("tables").join(table.number.to_string());
            tables.push((file, table.checksum));
        }
    }
    Ok(tables)
}

/// Reads and verifies every table.
pub(super) fn check(tables: &[TableFile]) -> Result<(), CatalogError> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(TABLE_CHECKS_MAX).min(tables.len());
    let next = AtomicUsize::new(0);
    let check_remaining = || -> Result<(), CatalogError> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((table, checksum)) = tables.get(at) else { return Ok(()) };
            check_one(table, *checksum, &mut buffer)?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(check_remaining)).collect();
        let mut result = check_remaining();
        for worker in workers {
            let checked = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(checked);
        }
        result
    })
}

fn check_one(table: &Path, checksum: u128, buffer: &mut [u8]) -> Result<(), CatalogError> {
    match checksum_of(table, buffer) {
        Ok(found) if found == checksum => Ok(()),
        Ok(_) => Err(damaged(table, "the table does not match its checksum")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(damaged(table, "the table is missing"))
        }
        Err(error) => Err(file("read a table", error)),
    }
}

/// Returns the XXH3-128 of a file, read through `buffer`.
pub(super) fn checksum_of(path: &Path, buffer: &mut [u8]) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut checksum = Xxh3::new();
    loop {
        match file.read(buffer) {
            Ok(0) => return Ok(checksum.digest128()),
            Ok(bytes) => checksum.update(&buffer[..bytes]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
