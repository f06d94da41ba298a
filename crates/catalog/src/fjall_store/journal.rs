//! The journals of the store (its write-ahead log), checked before the backend replays them.
//!
//! ```text
//!   batch   01 | count u32 | version u64      then `count` rows, then the end
//!   row     02 | kind u8 | compression u8 | keyspace u64
//!              | key length u16 | value length u32 | stored length u32 | key | stored value
//!   clear   04 | keyspace u64
//!   end     03 | XXH3-64 of the rows u64 | "FJL" 03
//! ```
//!
//! All integers are little-endian. After the last batch a journal is all zeros, and versions rise
//! from batch to batch. Each batch is synced before the next is written. So an unreadable record
//! with no whole batch after it, in the journal that was being written, may be a batch that was
//! never acknowledged because power failed while it was written. fjall cuts some of these off and
//! refuses to open for others. Any other unreadable record is damage, which fjall takes for the end
//! of the journal.
//!
//! The last batch may also be damaged, and then it may have been acknowledged. [`Tail`] tells the
//! two apart: a torn batch lacks whole sectors, which read as zeros, or its end. A damaged one has
//! its end and all sectors, or becomes whole when one bit is changed. A damaged one is refused and
//! left for salvage. A torn one is kept aside and cut off.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::bit_repair;
use super::cut_batch::{CutBatch, save_cut_batch};
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

/// Maximum bytes of a stored value: LZ4 may expand incompressible data by this much.
const STORED_BYTES_MAX: usize = VALUE_BYTES_MAX + VALUE_BYTES_MAX / 255 + 16;

const BUFFER_BYTES: usize = 1 << 20;

/// The unit that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

/// Checks `journals`, the last of which was being written. A torn batch at its end is saved in the
/// folder `aside` and cut off.
pub(super) fn check(journals: &[PathBuf], aside: &Path) -> Result<Option<CutBatch>, CatalogError> {
    let mut floor = 0;
    for (index, path) in journals.iter().enumerate() {
        let content = read_written(path).map_err(|error| file("read a journal", error))?;
        let end = end_of_batches(&content, &mut floor);
        let rest = &content[end..];
        if rest.is_empty() {
            continue;
        }
        let tail = tail(rest, end, floor);
        if index + 1 < journals.len() || tail != Tail::Torn {
            let reason = format!("the record at byte {end} {}", tail.reason());
            return Err(damaged(path, reason));
        }
        let kept = save_cut_batch(aside, path, end, rest);
        tracing::warn!(
            ?path,
            at = end,
            bytes = rest.len(),
            ?kept,
            "cutting a torn batch off the journal"
        );
        cut(path, end as u64).map_err(|error| file("cut a torn batch off a journal", error))?;
        let (journal, offset, bytes) = (path.clone(), end as u64, rest.len() as u64);
        return Ok(Some(CutBatch { journal, offset, bytes, kept }));
    }
    Ok(None)
}

/// Whether any of `journals`, which were already checked, holds a batch.
pub(super) fn has_batches(journals: &[PathBuf]) -> Result<bool, CatalogError> {
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

/// What follows the last whole batch of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// A batch whose write was interrupted.
    Torn,
    /// A batch whose version is not above that of the batch before it.
    Unordered,
    /// An unreadable record that whole batches follow.
    Followed,
    /// A batch that is whole except for one flipped bit.
    Flipped,
    /// A batch that was written to its end and is damaged.
    Changed,
}

impl Tail {
    const fn reason(self) -> &'static str {
        match self {
            Self::Torn => "is truncated",
            Self::Unordered => "has a version that is not above the one before it",
            Self::Followed => "is unreadable, but batches follow it",
            Self::Flipped => "has one flipped bit",
            Self::Changed => "was written to its end, but is damaged",
        }
    }
}

/// Classifies `rest`, which begins at byte `start` of its journal without a valid batch.
fn tail(rest: &[u8], start: usize, floor: u64) -> Tail {
    if parse(rest).is_some() {
        Tail::Unordered
    } else if batch_starts(rest).any(|at| parse(&rest[at..]).is_some()) {
        Tail::Followed
    } else if repair(rest, floor).is_some() {
        Tail::Flipped
    } else if rest.ends_with(&END_MAGIC) && !has_blank_sector(rest, start) {
        Tail::Changed
    } else {
        Tail::Torn
    }
}

/// Whether some sector of `rest`, which begins at byte `start` of its journal, is blank.
fn has_blank_sector(rest: &[u8], start: usize) -> bool {
    let first = (start.next_multiple_of(SECTOR_BYTES) - start).min(rest.len());
    let (first, remaining) = rest.split_at(first);
    let is_blank = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    (!first.is_empty() && is_blank(first)) || remaining.chunks(SECTOR_BYTES).any(is_blank)
}

/// Reads the bytes of a journal up to the last that is not zero.
pub(super) fn read_written(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let written = written_bytes(&file)?;
    file.seek(SeekFrom::Start(0))?;
    let mut content = Vec::new();
    file.take(written).read_to_end(&mut content)?;
    Ok(content)
}

/// Returns the number of bytes up to the last that is not zero.
///
/// A journal is preallocated to its maximum length, so nearly all of it is a hole, which reads as
/// zeros. Holes are skipped: reading them took a fifth of the time it takes to open a small store.
fn written_bytes(file: &File) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut at, mut written) = (0, 0);
    loop {
        at = match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data,
            // Only a hole is left.
            Err(rustix::io::Errno::NXIO) => return Ok(written),
            Err(error) => return Err(error.into()),
        };
        let hole = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(at))?;
        while at < hole {
            let length = usize::try_from(hole - at).map_or(BUFFER_BYTES, |m| m.min(BUFFER_BYTES));
            let bytes = file.read_at(&mut buffer[..length], at)?;
            if bytes == 0 {
                return Ok(written);
            }
            if let Some(last) = buffer[..bytes].iter().rposition(|&byte| byte != 0) {
                written = at + last as u64 + 1;
            }
            at += bytes as u64;
        }
    }
}

/// Returns where the run of whole batches at the start of `content` ends. Versions must be at least
/// `floor`, which is raised to the minimum of the next one.
fn end_of_batches(content: &[u8], floor: &mut u64) -> usize {
    let mut end = 0;
    while let Some(batch) = parse(&content[end..]).filter(|batch| batch.version >= *floor) {
        *floor = batch.version.saturating_add(1);
        end += batch.bytes;
    }
    end
}

/// Returns offsets in `rest`, after its first byte, at which a batch may begin.
fn batch_starts(rest: &[u8]) -> impl Iterator<Item = usize> {
    (1..rest.len()).filter(|&at| {
        rest[at] == START && matches!(rest.get(at + START_BYTES), Some(&(ROW | CLEAR)))
    })
}

/// Returns where to continue after the unreadable batch at the start of `rest`: at its end, if its
/// lengths lead there, or where whole batches begin that continue to the end of `rest`. A single
/// valid batch is not enough, since a value may contain the bytes of a batch.
pub(super) fn next_batch(rest: &[u8]) -> usize {
    if let Some((batch, _)) = parse_frame(rest) {
        return batch.bytes;
    }
    let can_reach_end = |&at: &usize| {
        let tail = &rest[at..];
        let end = end_of_batches(tail, &mut 0);
        end == tail.len()
    };
    batch_starts(rest).find(can_reach_end).unwrap_or(rest.len())
}

/// Returns `bytes` with one flipped bit corrected, if that makes them exactly one whole batch.
pub(super) fn repair(bytes: &[u8], floor: u64) -> Option<Vec<u8>> {
    let is_whole = |bytes: &[u8]| {
        parse(bytes).is_some_and(|batch| batch.bytes == bytes.len() && batch.version >= floor)
    };
    bit_repair::correct_bit_flip(bytes, is_whole)
}

fn cut(path: &Path, end: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(end)?;
    file.sync_all()
}

/// A whole batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawBatch<'a> {
    pub(super) version: u64,
    rows: &'a [u8],
    /// Its length in bytes.
    pub(super) bytes: usize,
}

/// A row of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRow<'a> {
    pub(super) keyspace: u64,
    pub(super) kind: u8,
    pub(super) compression: u8,
    pub(super) key: &'a [u8],
    pub(super) stored: &'a [u8],
    pub(super) value_bytes: usize,
}

impl<'a> RawBatch<'a> {
    /// Iterates over the rows. Skips clears, which this program never writes.
    pub(super) fn rows(self) -> impl Iterator<Item = RawRow<'a>> {
        let mut rest = self.rows;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                if let Some(row) = take_row(&mut rest)? {
                    return Some(row);
                }
            }
            None
        })
    }
}

/// Parses the whole batch at the start of `bytes`, verifying its checksum.
pub(super) fn parse(bytes: &[u8]) -> Option<RawBatch<'_>> {
    let (batch, sum) = parse_frame(bytes)?;
    (sum == xxh3_64(batch.rows)).then_some(batch)
}

/// Parses the batch at the start of `bytes` by its lengths only. Returns it with the stored
/// checksum of its rows.
fn parse_frame(bytes: &[u8]) -> Option<(RawBatch<'_>, u64)> {
    let mut rest = bytes;
    if take::<1>(&mut rest)? != [START] {
        return None;
    }
    let count = u32::from_le_bytes(take(&mut rest)?);
    let version = u64::from_le_bytes(take(&mut rest)?);
    let rows = rest;
    for _ in 0..count {
        take_row(&mut rest)?;
    }
    let rows = &rows[..rows.len() - rest.len()];
    if take::<1>(&mut rest)? != [END] {
        return None;
    }
    let sum = u64::from_le_bytes(take(&mut rest)?);
    let is_ended = take(&mut rest)? == END_MAGIC;
    is_ended.then(|| (RawBatch { version, rows, bytes: bytes.len() - rest.len() }, sum))
}

/// Takes a row off `rest`: `Some(None)` for a clear, none if it is neither.
fn take_row<'a>(rest: &mut &'a [u8]) -> Option<Option<RawRow<'a>>> {
    let [tag] = take(rest)?;
    if tag == CLEAR {
        take::<8>(rest)?;
        return Some(None);
    }
    if tag != ROW {
        return None;
    }
    let [kind, compression] = take(rest)?;
    let keyspace = u64::from_le_bytes(take(rest)?);
    let key_len = usize::from(u16::from_le_bytes(take(rest)?));
    let value_bytes = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
    let stored_len = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
    if key_len > KEY_BYTES_MAX || stored_len > STORED_BYTES_MAX {
        return None;
    }
    let key = rest.split_off(..key_len)?;
    let stored = rest.split_off(..stored_len)?;
    Some(Some(RawRow { keyspace, kind, compression, key, stored, value_bytes }))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, remaining) = rest.split_first_chunk::<N>()?;
    *rest = remaining;
    Some(*first)
}
