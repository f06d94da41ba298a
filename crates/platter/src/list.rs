//! The file list: which bytes of which bodies are where on a platter. It is user data of the
//! platter, after the last body, so every code protects it.
//!
//! ```text
//! list     head (64) | entry | entry | ... | BLAKE3 of all before (32)
//!
//! head      0        8   10 12        16        24             32                  64
//!          +--------+---+--+---------+---------+--------------+-------------------+
//!          | magic  |ver|0 | entries | bytes   | 0            | platter, 0        |
//!          +--------+---+--+---------+---------+--------------+-------------------+
//! entry     0           16       24       32       40       48           52   56   64
//!          +-----------+--------+--------+--------+--------+------------+----+----+--------+
//!          | object    | offset | length | body   | body   | sealed     |crc | 0  | sealed |
//!          |           |        |        | offset | bytes  | bytes      |    |    | entry  |
//!          +-----------+--------+--------+--------+--------+------------+----+----+--------+
//! ```
//!
//! `offset` and `length` are user bytes of this platter; `body offset` is their place in the body,
//! `body bytes` the length of the whole body. The sealed entry (the object's name and metadata,
//! encrypted) is repeated with every shard of a body. `bytes` is the length of the list, `crc` the
//! CRC32C of the entry with the crc field as zeros. Writer and reader work incrementally, so a list
//! of any length needs little memory.

use fulgurite_codes::{CHECKSUM_BYTES, RunningChecksum, crc32c};
use fulgurite_units::{ObjectId, PlatterId};

use crate::PlatterError;
use crate::limits::SEALED_ENTRY_BYTES_MAX;
use crate::sector::{array_at, u16_at, u32_at, u64_at};

/// Version of the list itself; the same in all platter formats so far.
const LIST_VERSION: u16 = 1;
const LIST_MAGIC: [u8; 8] = *b"FGFILELS";
const HEAD_BYTES: usize = 64;
const ENTRY_BYTES: usize = 64;
const CRC_OFFSET: usize = 52;

/// Returns the size of an entry whose sealed part has `sealed` bytes.
#[must_use]
pub const fn list_entry_bytes(sealed: u32) -> u64 {
    ENTRY_BYTES as u64 + sealed as u64
}

/// Returns the size of a list whose entries have `entries` bytes in total.
#[must_use]
pub const fn list_bytes(entries: u64) -> u64 {
    HEAD_BYTES as u64 + entries + CHECKSUM_BYTES as u64
}

/// One shard of a body on this platter; most bodies have only one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// The body.
    pub object: ObjectId,
    /// First user byte of the shard on this platter.
    pub offset: u64,
    /// Bytes of the shard.
    pub length: u64,
    /// First byte of the shard in the body.
    pub body_offset: u64,
    /// Bytes of the whole body.
    pub body_bytes: u64,
    /// Name and metadata, encrypted; at most 64 KiB.
    pub sealed: Vec<u8>,
}

impl ListEntry {
    /// Whether the body ends on this platter.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.body_offset + self.length == self.body_bytes
    }
}

/// Builds a file list incrementally.
#[derive(Debug)]
pub struct ListWriter {
    digest: RunningChecksum,
    entries_left: u32,
    bytes_left: u64,
}

impl ListWriter {
    /// Begins a list of `entries` entries of `entry_bytes` bytes in total; appends its head to
    /// `out`.
    pub fn new(platter: PlatterId, entries: u32, entry_bytes: u64, out: &mut Vec<u8>) -> Self {
        let mut head = [0; HEAD_BYTES];
        head[0..8].copy_from_slice(&LIST_MAGIC);
        head[8..10].copy_from_slice(&LIST_VERSION.to_le_bytes());
        head[12..16].copy_from_slice(&entries.to_le_bytes());
        head[16..24].copy_from_slice(&list_bytes(entry_bytes).to_le_bytes());
        head[32..48].copy_from_slice(&platter.to_bytes());
        let mut digest = RunningChecksum::new();
        digest.update(&head);
        out.extend_from_slice(&head);
        Self { digest, entries_left: entries, bytes_left: entry_bytes }
    }

    /// Appends the next entry to `out`.
    ///
    /// # Panics
    /// When the entries are more, or longer, than announced.
    pub fn push(&mut self, entry: &ListEntry, out: &mut Vec<u8>) {
        let sealed = u32::try_from(entry.sealed.len()).unwrap_or(u32::MAX);
        assert!(sealed <= SEALED_ENTRY_BYTES_MAX, "a sealed entry of {sealed} bytes is too long");
        assert!(self.entries_left > 0, "more entries than announced");
        let bytes = list_entry_bytes(sealed);
        assert!(bytes <= self.bytes_left, "longer entries than announced");
        let start = out.len();
        out.extend_from_slice(&entry.object.to_bytes());
        for number in [entry.offset, entry.length, entry.body_offset, entry.body_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&sealed.to_le_bytes());
        out.extend_from_slice(&[0; ENTRY_BYTES - CRC_OFFSET]);
        out.extend_from_slice(&entry.sealed);
        let crc = crc32c(&out[start..]);
        out[start + CRC_OFFSET..][..4].copy_from_slice(&crc.to_le_bytes());
        self.digest.update(&out[start..]);
        self.entries_left -= 1;
        self.bytes_left -= bytes;
    }

    /// Ends the list: appends its digest to `out`.
    ///
    /// # Panics
    /// When entries are missing.
    pub fn finish(self, out: &mut Vec<u8>) {
        assert_eq!((self.entries_left, self.bytes_left), (0, 0), "fewer entries than announced");
        out.extend_from_slice(&self.digest.finish());
    }
}

/// Parses a file list that arrives in pieces.
///
/// ```text
/// push(piece), then next_entry() until None, and again; finish() when all pieces were pushed
/// ```
#[derive(Debug)]
pub struct ListReader {
    platter: PlatterId,
    digest: RunningChecksum,
    /// Bytes pushed; those not yet parsed begin at `parsed`.
    pending: Vec<u8>,
    parsed: usize,
    /// Offset in the list of the next byte to parse.
    offset: u64,
    head: Option<Head>,
    entries: u32,
}

#[derive(Clone, Copy, Debug)]
struct Head {
    entries: u32,
    bytes: u64,
}

impl ListReader {
    /// Creates a reader for the list of this platter.
    #[must_use]
    pub fn new(platter: PlatterId) -> Self {
        Self {
            platter,
            digest: RunningChecksum::new(),
            pending: Vec::new(),
            parsed: 0,
            offset: 0,
            head: None,
            entries: 0,
        }
    }

    /// Adds the next piece of the list.
    pub fn push(&mut self, piece: &[u8]) {
        self.pending.drain(..self.parsed);
        self.parsed = 0;
        self.pending.extend_from_slice(piece);
    }

    /// Returns the next entry, or `None` when more bytes are needed or all entries were returned.
    ///
    /// # Errors
    /// [`PlatterError::List`] with the position of the damage.
    pub fn next_entry(&mut self) -> Result<Option<ListEntry>, PlatterError> {
        let head = match self.head {
            Some(head) => head,
            None => match self.parse_head()? {
                Some(head) => *self.head.insert(head),
                None => return Ok(None),
            },
        };
        if self.entries == head.entries {
            return Ok(None);
        }
        let rest = &self.pending[self.parsed..];
        if rest.len() < ENTRY_BYTES {
            return Ok(None);
        }
        let sealed = u32_at(rest, 48);
        if sealed > SEALED_ENTRY_BYTES_MAX {
            return Err(self.list_error("a sealed entry is too long"));
        }
        let length = ENTRY_BYTES + sealed as usize;
        if rest.len() < length {
            return Ok(None);
        }
        let entry =
            parse_entry(&rest[..length]).ok_or_else(|| self.list_error("an entry is wrong"))?;
        self.take(length);
        self.entries += 1;
        Ok(Some(entry))
    }

    /// Checks the end of the list after all its entries. Returns the number of entries.
    ///
    /// # Errors
    /// [`PlatterError::List`] when the list is truncated, its digest is wrong, or bytes follow it.
    pub fn finish(self) -> Result<u32, PlatterError> {
        let Some(head) = self.head else {
            return Err(self.list_error("the list is cut off"));
        };
        let rest = &self.pending[self.parsed..];
        if self.entries != head.entries || rest.len() != CHECKSUM_BYTES {
            return Err(self.list_error("the list is cut off or too long"));
        }
        if self.digest.finish() != rest || self.offset + rest.len() as u64 != head.bytes {
            return Err(self.list_error("the digest is wrong"));
        }
        Ok(self.entries)
    }

    fn parse_head(&mut self) -> Result<Option<Head>, PlatterError> {
        let rest = &self.pending[self.parsed..];
        if rest.len() < HEAD_BYTES {
            return Ok(None);
        }
        if rest[..8] != LIST_MAGIC || u16_at(rest, 8) != LIST_VERSION {
            return Err(self.list_error("this is no file list of a known version"));
        }
        if PlatterId::from_bytes(array_at(rest, 32)) != self.platter {
            return Err(self.list_error("this is the list of another platter"));
        }
        let head = Head { entries: u32_at(rest, 12), bytes: u64_at(rest, 16) };
        self.take(HEAD_BYTES);
        Ok(Some(head))
    }

    fn take(&mut self, bytes: usize) {
        self.digest.update(&self.pending[self.parsed..self.parsed + bytes]);
        self.parsed += bytes;
        self.offset += bytes as u64;
    }

    fn list_error(&self, reason: &'static str) -> PlatterError {
        PlatterError::List { offset: self.offset, reason }
    }
}

fn parse_entry(bytes: &[u8]) -> Option<ListEntry> {
    let crc = u32_at(bytes, CRC_OFFSET);
    let mut fixed: [u8; ENTRY_BYTES] = array_at(bytes, 0);
    fixed[CRC_OFFSET..CRC_OFFSET + 4].fill(0);
    let sealed = &bytes[ENTRY_BYTES..];
    let entry = ListEntry {
        object: ObjectId::from_bytes(array_at(bytes, 0)),
        offset: u64_at(bytes, 16),
        length: u64_at(bytes, 24),
        body_offset: u64_at(bytes, 32),
        body_bytes: u64_at(bytes, 40),
        sealed: sealed.to_vec(),
    };
    let end = entry.body_offset.checked_add(entry.length)?;
    let valid = crc32c_concat(&fixed, sealed) == crc
        && end <= entry.body_bytes
        && entry.offset.checked_add(entry.length).is_some();
    valid.then_some(entry)
}

/// Returns the CRC32C of two consecutive pieces.
fn crc32c_concat(first: &[u8], second: &[u8]) -> u32 {
    fulgurite_codes::crc32c_append(crc32c(first), second)
}
