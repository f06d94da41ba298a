//! Reads the tables of a keyspace row by row without the backend, skipping what is damaged.
//!
//! ```text
//!   table   block | block | ...                  sections: data, then index, filter, others
//!           | contents, as `table_list` has them
//!   block   "LSM" 03 | kind u8 | XXH3-128 of what is stored | stored length u32 | length u32
//!           | low half of a word of the XXH3-128 of all that u32 | stored bytes
//!   data    row ... | FF | an index that is not needed here
//!   row     kind u8 | version | key length | key, or at all but every sixteenth row
//!           | bytes shared with the last sixteenth row's key | length of the rest | rest
//!           | value length | value, unless it is a deletion
//! ```
//!
//! Fixed integers are little-endian, the others LEB128. The stored bytes are the block, or its LZ4.
//! The contents say where the data blocks end; without them, the first index block does.
//!
//! A block that does not match its checksum is tried with each of its bits flipped. One that cannot
//! be repaired is skipped and reported.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use super::salvage::{Damage, Kind, Version};
use super::{bit_repair, table_list};

const MAGIC: [u8; 4] = *b"LSM\x03";
const HEADER_BYTES: usize = 33;
const HEADER_SUMMED_BYTES: usize = 29;
const KIND_DATA: u8 = 0;
/// Maximum bytes of the contents of a table. They are a few lines; this is ample.
const CONTENTS_BYTES_MAX: u64 = 4 << 10;
/// Length of the trailer of a data block, which begins with the number of rows per full key.
const BLOCK_TRAILER_BYTES: usize = 31;
const ROWS_END: u8 = 0xFF;
/// Maximum bytes of a block. It is cut once it holds 4 KiB, so it exceeds the longest row by at
/// most that.
const BLOCK_BYTES_MAX: usize =
    crate::limits::VALUE_BYTES_MAX + crate::limits::KEY_BYTES_MAX + (1 << 20);
/// Bytes read at a time when searching for a block.
const WINDOW_BYTES: usize = 1 << 20;

/// A table that is read from start to end.
pub(super) struct Table {
    path: PathBuf,
    file: File,
    at: u64,
    /// Where the data blocks end.
    end: u64,
    /// Whether the contents say so; otherwise `end` is the end of the file.
    is_end_known: bool,
    rows: VecDeque<Version>,
    /// Added to the versions of its rows.
    added_version: u64,
}

/// The header of a block.
#[derive(Clone, Copy)]
struct Header {
    kind: u8,
    checksum: u128,
    stored_bytes: usize,
    bytes: usize,
}

impl Table {
    pub(super) fn open(path: &Path, added_version: u64) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let end = data_end(&file, length)?;
        let (is_end_known, end) = (end.is_some(), end.unwrap_or(length));
        let (path, rows) = (path.to_owned(), VecDeque::new());
        Ok(Self { path, file, at: 0, end, is_end_known, rows, added_version })
    }

    /// Returns the next row that can be read; adds what cannot be to `damages`.
    pub(super) fn next(&mut self, damages: &mut Vec<Damage>) -> io::Result<Option<Version>> {
        while self.rows.is_empty() && self.at < self.end {
            self.read_block(damages)?;
        }
        let row = self.rows.pop_front();
        Ok(row
            .map(|row| Version { version: row.version.saturating_add(self.added_version), ..row }))
    }

    fn read_block(&mut self, damages: &mut Vec<Damage>) -> io::Result<()> {
        let begin = self.at;
        let mut damage = |problem: String| {
            let path = self.path.clone();
            damages.push(Damage { path, problem: format!("the block at byte {begin} {problem}") });
        };
        let Some(header) = self.header(begin, &mut damage)? else {
            self.at = self.find_block(begin + 1)?;
            return Ok(());
        };
        let stored_at = begin + HEADER_BYTES as u64;
        self.at = stored_at + header.stored_bytes as u64;
        if header.kind != KIND_DATA {
            self.at = self.end;
            return Ok(());
        }
        let mut stored = vec![0; header.stored_bytes];
        if !read_whole(&self.file, &mut stored, stored_at)? {
            damage("is cut off".to_owned());
            return Ok(());
        }
        if xxh3_128(&stored) != header.checksum {
            match bit_repair::correct_bit_flip(&stored, |bytes| xxh3_128(bytes) == header.checksum)
            {
                Some(repaired) => {
                    damage("had a flipped bit; all its rows are recovered".to_owned());
                    stored = repaired;
                }
                None => {
                    damage("does not match its checksum; its rows are skipped".to_owned());
                    return Ok(());
                }
            }
        }
        match unpack(&stored, header.bytes).as_deref().and_then(parse_rows) {
            Some(rows) => self.rows = rows,
            None => damage("is not a data block".to_owned()),
        }
        Ok(())
    }

    /// Reads the header at `at`, corrected if one bit of it was flipped.
    fn header(&self, at: u64, damage: &mut dyn FnMut(String)) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER_BYTES];
        if !read_whole(&self.file, &mut bytes, at)? {
            damage("is cut off".to_owned());
            return Ok(None);
        }
        if let Some(header) = parse_header(&bytes) {
            return Ok(Some(header));
        }
        let repaired = bit_repair::correct_bit_flip(&bytes, |bytes| {
            <&[u8; HEADER_BYTES]>::try_from(bytes).is_ok_and(|b| parse_header(b).is_some())
        });
        let header = repaired.and_then(|bytes| parse_header(bytes.as_slice().try_into().ok()?));
        damage(match header {
            Some(_) => "had a flipped bit in its header".to_owned(),
            None => "is not a block; its rows are skipped".to_owned(),
        });
        Ok(header)
    }

    /// Returns the next block at or after `from` that begins a chain of whole blocks to the end. A
    /// single valid block is not enough, since a value may contain the bytes of a block.
    fn find_block(&self, from: u64) -> io::Result<u64> {
        let mut window = vec![0; WINDOW_BYTES];
        let mut start = from;
        while start < self.end {
            let bytes = read_up_to(&self.file, &mut window, start)?;
            for at in 0..bytes.saturating_sub(HEADER_BYTES - 1) {
                let found = window[at..].first_chunk().and_then(parse_header).is_some();
                if found && self.can_reach_end(start + at as u64)? {
                    return Ok(start + at as u64);
                }
            }
            if bytes < WINDOW_BYTES {
                break;
            }
            start += (WINDOW_BYTES - HEADER_BYTES) as u64;
        }
        Ok(self.end)
    }

    fn can_reach_end(&self, mut at: u64) -> io::Result<bool> {
        let mut bytes = [0; HEADER_BYTES];
        while at < self.end && read_whole(&self.file, &mut bytes, at)? {
            let Some(header) = parse_header(&bytes) else { return Ok(false) };
            if header.kind != KIND_DATA {
                return Ok(!self.is_end_known);
            }
            at += (HEADER_BYTES + header.stored_bytes) as u64;
        }
        Ok(at == self.end)
    }
}

/// Returns where the data blocks of a table end, if its contents say so.
fn data_end(file: &File, length: u64) -> io::Result<Option<u64>> {
    let begin = length.saturating_sub(CONTENTS_BYTES_MAX);
    let mut tail = vec![0; usize::try_from(length - begin).unwrap_or_default()];
    if !read_whole(file, &mut tail, begin)? {
        return Ok(None);
    }
    let data = table_list::section(&tail, begin, b"data");
    Ok(data.map(|data| data.end).filter(|&end| end <= length))
}

fn parse_header(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
    if bytes[..4] != MAGIC {
        return None;
    }
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let sum = xxh3_128(&bytes[..HEADER_SUMMED_BYTES]).to_le_bytes();
    if sum[..4] != bytes[HEADER_SUMMED_BYTES..] {
        return None;
    }
    let length = |at| usize::try_from(u32_at(at)).ok().filter(|&bytes| bytes <= BLOCK_BYTES_MAX);
    Some(Header {
        kind: bytes[4],
        checksum: u128::from_le_bytes(std::array::from_fn(|i| bytes[5 + i])),
        stored_bytes: length(21)?,
        bytes: length(25)?,
    })
}

/// Unpacks a block of `bytes` bytes: stored as it is, or as LZ4 if that is shorter. If both lengths
/// are equal, it is uncompressed if it parses as rows.
fn unpack(stored: &[u8], bytes: usize) -> Option<Vec<u8>> {
    if stored.len() == bytes && parse_rows(stored).is_some() {
        return Some(stored.to_vec());
    }
    lz4_flex::block::decompress(stored, bytes).ok().filter(|whole| whole.len() == bytes)
}

/// Parses the rows of a data block; none if it is not one.
fn parse_rows(block: &[u8]) -> Option<VecDeque<Version>> {
    let trailer = block.len().checked_sub(BLOCK_TRAILER_BYTES)?;
    let interval = usize::from(block[trailer]).max(1);
    let count = u32::from_le_bytes(*block.last_chunk()?);
    let mut rest = &block[..trailer];
    let mut head: &[u8] = &[];
    let mut rows = VecDeque::new();
    for index in 0..usize::try_from(count).ok()? {
        let kind = Kind::from_code(take(&mut rest, 1)?[0])?;
        let version = varint(&mut rest)?;
        let shared = if index % interval == 0 { 0 } else { length(&mut rest)? };
        let key_bytes = length(&mut rest)?;
        let tail = take(&mut rest, key_bytes)?;
        let key = [head.get(..shared)?, tail].concat();
        if index % interval == 0 {
            head = tail;
        }
        let value = match kind {
            Kind::Value => {
                let bytes = length(&mut rest)?;
                Some(take(&mut rest, bytes)?.to_vec())
            }
            Kind::Deletion => None,
        };
        rows.push_back(Version { key, version, value });
    }
    (rest.first() == Some(&ROWS_END)).then_some(rows)
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    rest.split_off(..bytes)
}

fn length(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(varint(rest)?).ok()
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Fills `buffer`. Returns false if the file ends before.
fn read_whole(file: &File, buffer: &mut [u8], at: u64) -> io::Result<bool> {
    Ok(read_up_to(file, buffer, at)? == buffer.len())
}

fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at + done as u64) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
