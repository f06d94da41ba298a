//! The journals of the store, checked before the backend replays them.
//!
//! ```text
//!   batch   01 | count u32 | version u64      then `count` rows, then the end
//!   row     02 | kind u8 | compression u8 | keyspace u64
//!              | key length u16 | value length u32 | stored length u32 | key | stored value
//!   clear   04 | keyspace u64
//!   end     03 | XXH3-64 of the rows u64 | "FJL" 03
//! ```
//!
//! All integers are little-endian; behind the last batch a journal is zeros. Each batch is synced
//! before the next is written. So an unreadable record with no whole batch after it, in the
//! journal that was being written, is a batch that was never acknowledged: power failed while it
//! was written. It is cut off, which fjall itself does for some of them and refuses to open for
//! others. Any other unreadable record is damage, which fjall takes for the end of the journal.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::errors::{damaged, file};
use crate::CatalogError;
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

const START: u8 = 1;
const ROW: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const END_MAGIC: [u8; 4] = *b"FJL\x03";

/// The start of a batch: tag, count and version.
const START_BYTES: usize = 13;

/// A compressed value may be longer than the value, by the worst case of LZ4.
const STORED_BYTES_MAX: usize = VALUE_BYTES_MAX + VALUE_BYTES_MAX / 255 + 16;

const BUFFER_BYTES: usize = 1 << 20;

/// Checks `journals`, of which the last was being written, and cuts off its torn end.
pub(super) fn check(journals: &[PathBuf]) -> Result<(), CatalogError> {
    for (index, path) in journals.iter().enumerate() {
        let (end, rest) = read_batches(path).map_err(|error| file("read a journal", error))?;
        if rest.is_empty() {
            continue;
        }
        if index + 1 < journals.len() || holds_a_batch(&rest) {
            return Err(damaged(path, format!("the record at byte {end} is unreadable")));
        }
        tracing::warn!(?path, at = end, bytes = rest.len(), "cutting a torn batch off the journal");
        cut(path, end).map_err(|error| file("cut a torn batch off a journal", error))?;
    }
    Ok(())
}

/// Whether any of `journals`, which were checked, holds a batch.
pub(super) fn hold_batches(journals: &[PathBuf]) -> Result<bool, CatalogError> {
    for path in journals {
        let mut first = Vec::with_capacity(1);
        let read = File::open(path).and_then(|journal| journal.take(1).read_to_end(&mut first));
        read.map_err(|error| file("read a journal", error))?;
        if first == [START] {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads whole batches; returns where they end and what follows up to the zeros.
fn read_batches(path: &Path) -> io::Result<(u64, Vec<u8>)> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    let mut scratch = Vec::new();
    let mut end = 0;
    while let Some(bytes) = read_batch(&mut reader, &mut scratch)? {
        end += bytes;
    }
    let mut file = reader.into_inner();
    file.seek(SeekFrom::Start(end))?;
    let written = written_bytes(&mut file)?;
    file.seek(SeekFrom::Start(end))?;
    let mut rest = Vec::new();
    file.take(written).read_to_end(&mut rest)?;
    Ok((end, rest))
}

/// How many bytes there are up to the last that is not zero.
fn written_bytes(file: &mut File) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut read, mut written) = (0, 0);
    loop {
        let bytes = file.read(&mut buffer)?;
        if bytes == 0 {
            return Ok(written);
        }
        if let Some(last) = buffer[..bytes].iter().rposition(|&byte| byte != 0) {
            written = read + last as u64 + 1;
        }
        read += bytes as u64;
    }
}

/// Whether a whole batch lies anywhere in `rest` but at its start, where one is unreadable.
fn holds_a_batch(rest: &[u8]) -> bool {
    let mut scratch = Vec::new();
    (1..rest.len()).any(|at| {
        let mut tail = &rest[at..];
        let starts = tail[0] == START && matches!(tail.get(START_BYTES), Some(&(ROW | CLEAR)));
        starts && read_batch(&mut tail, &mut scratch).is_ok_and(|batch| batch.is_some())
    })
}

fn cut(path: &Path, end: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(end)?;
    file.sync_all()
}

/// Reads one batch and returns its length; none if the bytes are not a whole batch.
fn read_batch(reader: &mut impl Read, scratch: &mut Vec<u8>) -> io::Result<Option<u64>> {
    match try_read_batch(reader, scratch) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        result => result,
    }
}

fn try_read_batch(reader: &mut impl Read, scratch: &mut Vec<u8>) -> io::Result<Option<u64>> {
    if read::<1>(reader)? != [START] {
        return Ok(None);
    }
    let count = u32::from_le_bytes(read(reader)?);
    let _version = read::<8>(reader)?;
    let mut bytes = START_BYTES as u64;
    let mut checksum = Xxh3::new();
    for _ in 0..count {
        scratch.clear();
        if !read_row(reader, scratch)? {
            return Ok(None);
        }
        checksum.update(scratch);
        bytes += scratch.len() as u64;
    }
    let end = read::<1>(reader)? == [END];
    let sum = u64::from_le_bytes(read(reader)?);
    let whole = end && sum == checksum.digest() && read(reader)? == END_MAGIC;
    Ok(whole.then_some(bytes + 1 + 8 + END_MAGIC.len() as u64))
}

/// Reads one row into `row`; false if it is none.
fn read_row(reader: &mut impl Read, row: &mut Vec<u8>) -> io::Result<bool> {
    let tag = read::<1>(reader)?;
    row.extend(tag);
    if tag == [CLEAR] {
        row.extend(read::<8>(reader)?);
        return Ok(true);
    }
    if tag != [ROW] {
        return Ok(false);
    }
    row.extend(read::<10>(reader)?);
    let key_len = read::<2>(reader)?;
    let value_len = read::<4>(reader)?;
    let stored_len = read::<4>(reader)?;
    row.extend(key_len);
    row.extend(value_len);
    row.extend(stored_len);
    let key_len = usize::from(u16::from_le_bytes(key_len));
    let Ok(stored_len) = usize::try_from(u32::from_le_bytes(stored_len)) else { return Ok(false) };
    if key_len > KEY_BYTES_MAX || stored_len > STORED_BYTES_MAX {
        return Ok(false);
    }
    let start = row.len();
    row.resize(start + key_len + stored_len, 0);
    reader.read_exact(&mut row[start..])?;
    Ok(true)
}

fn read<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}
