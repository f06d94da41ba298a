//! The headers that make a segment self-describing: docs/formats/log.md, in code.
//!
//! ```text
//! segment header | DATA header | ciphertext | pad | ENTRY header | sealed entry | pad | DATA ...
//! ```
//!
//! Every header has 64 bytes, begins at a multiple of 64, contains its own offset and ends with a
//! CRC-32C of itself, so that a scan finds the next one after anything. No client can forge a
//! header inside a body: bodies are ciphertext under keys that their owners never see.

use fulgurite_codes::crc32c;
use fulgurite_units::{ArchiveId, ObjectId, UnixTime};

use super::{Extent, LogKind};
use crate::limits::{ENTRY_RECORD_BYTES_MAX, SEGMENT_BYTES};

/// Size and alignment of every header.
pub(crate) const HEADER_BYTES: u64 = 64;
/// The same, for slices.
pub(crate) const HEADER_LEN: usize = 64;

const SEGMENT_MAGIC: &[u8; 8] = b"FGSEGMNT";
const RECORD_MAGIC: &[u8; 4] = b"FGLR";
const VERSION: u8 = 1;
const CRC_AT: usize = 60;

const _: () = assert!(HEADER_BYTES == HEADER_LEN as u64, "both constants have the same value");
const _: () = assert!(SEGMENT_BYTES.is_multiple_of(HEADER_BYTES), "a segment is whole headers");
const _: () = assert!(SEGMENT_BYTES / HEADER_BYTES <= u32::MAX as u64, "a place fits 32 bits");

/// Rounds up to a multiple of [`HEADER_BYTES`].
pub(crate) const fn align(bytes: u64) -> u64 {
    bytes.next_multiple_of(HEADER_BYTES)
}

/// The first 64 bytes of a segment: its archive, log and number, and the run that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) archive: ArchiveId,
    pub(crate) kind: LogKind,
    pub(crate) number: u32,
    pub(crate) run: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(SEGMENT_MAGIC);
        bytes[8] = VERSION;
        bytes[9] = self.kind.code();
        bytes[12..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.archive.to_bytes());
        bytes[32..40].copy_from_slice(&self.run.to_le_bytes());
        write_crc(&mut bytes);
        bytes
    }

    /// Parses a segment header; `None` for a missing or damaged one.
    pub(crate) fn parse(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let is_header =
            bytes.starts_with(SEGMENT_MAGIC) && bytes[8] == VERSION && has_valid_crc(bytes);
        is_header.then_some(())?;
        Some(Self {
            archive: ArchiveId::from_bytes(field(bytes, 16)),
            kind: LogKind::from_code(bytes[9])?,
            number: u32::from_le_bytes(field(bytes, 12)),
            run: u64::from_le_bytes(field(bytes, 32)),
        })
    }
}

/// What a sealed entry describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryForm {
    /// A part of a multipart upload that is not known to be complete.
    Part,
    /// A body of an object.
    Object,
}

/// What a header states about the bytes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// Ciphertext of the body, starting at this offset of it. `commits` is how many batches of the
    /// run were durable in the catalog when it was written.
    Data { body_offset: u64, commits: u32 },
    /// A sealed entry with this CRC-32C and time of writing.
    Entry { form: EntryForm, written: UnixTime, payload_crc: u32 },
}

/// The 64 bytes before each contiguous range of a body's ciphertext and before each sealed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) log: LogKind,
    pub(crate) segment: u32,
    /// Offset of this header in the segment.
    pub(crate) offset: u64,
    pub(crate) body: ObjectId,
    pub(crate) run: u64,
    /// Bytes after the header, without the padding.
    pub(crate) bytes: u64,
    pub(crate) kind: RecordKind,
}

impl RecordHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        assert!(self.offset.is_multiple_of(HEADER_BYTES), "headers begin at multiples of 64");
        assert!(self.end() <= SEGMENT_BYTES, "a record lies in its segment");
        let mut bytes = [0; HEADER_LEN];
        bytes[..4].copy_from_slice(RECORD_MAGIC);
        bytes[4] = VERSION;
        bytes[6] = self.log.code();
        bytes[8..24].copy_from_slice(&self.body.to_bytes());
        bytes[24..32].copy_from_slice(&self.run.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.bytes.to_le_bytes());
        let (code, form, word, half) = match self.kind {
            RecordKind::Data { body_offset, commits } => (1, 0, body_offset, commits),
            RecordKind::Entry { form, written, payload_crc } => {
                (2, if form == EntryForm::Object { 1 } else { 2 }, written.as_millis(), payload_crc)
            }
        };
        bytes[5] = code;
        bytes[7] = form;
        bytes[32..40].copy_from_slice(&word.to_le_bytes());
        bytes[48..52].copy_from_slice(&half.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.segment.to_le_bytes());
        #[expect(clippy::cast_possible_truncation, reason = "asserted for the largest segment")]
        let unit = (self.offset / HEADER_BYTES) as u32;
        bytes[56..60].copy_from_slice(&unit.to_le_bytes());
        write_crc(&mut bytes);
        bytes
    }

    /// Parses the header found at `offset`; `None` for anything else, and for a header that states
    /// another offset or reaches beyond its segment.
    pub(crate) fn parse(bytes: &[u8; HEADER_LEN], offset: u64) -> Option<Self> {
        if !(bytes.starts_with(RECORD_MAGIC) && bytes[4] == VERSION && has_valid_crc(bytes)) {
            return None;
        }
        let word = u64::from_le_bytes(field(bytes, 32));
        let half = u32::from_le_bytes(field(bytes, 48));
        let kind = match (bytes[5], bytes[7]) {
            (1, 0) => RecordKind::Data { body_offset: word, commits: half },
            (2, form @ 1..=2) => RecordKind::Entry {
                form: if form == 1 { EntryForm::Object } else { EntryForm::Part },
                written: UnixTime::from_millis(word),
                payload_crc: half,
            },
            _ => return None,
        };
        let header = Self {
            log: LogKind::from_code(bytes[6])?,
            segment: u32::from_le_bytes(field(bytes, 52)),
            offset: u64::from(u32::from_le_bytes(field(bytes, 56))) * HEADER_BYTES,
            body: ObjectId::from_bytes(field(bytes, 8)),
            run: u64::from_le_bytes(field(bytes, 24)),
            bytes: u64::from_le_bytes(field(bytes, 40)),
            kind,
        };
        let is_entry = matches!(header.kind, RecordKind::Entry { .. });
        let bytes_max = if is_entry { ENTRY_RECORD_BYTES_MAX as u64 } else { SEGMENT_BYTES };
        let is_sane =
            header.offset == offset && header.bytes <= bytes_max && header.end() <= SEGMENT_BYTES;
        is_sane.then_some(header)
    }

    /// Returns the first offset where the next header can be.
    pub(crate) const fn end(&self) -> u64 {
        align(self.offset + HEADER_BYTES + self.bytes)
    }

    /// Returns the extent of the bytes after the header.
    pub(crate) const fn content(&self) -> Extent {
        Extent { segment: self.segment, offset: self.offset + HEADER_BYTES, bytes: self.bytes }
    }
}

/// Returns the version in the header of a segment that a newer program wrote. Every version has
/// magic, version and CRC in the same places.
pub(super) fn newer_segment(bytes: &[u8; HEADER_LEN]) -> Option<u8> {
    let is_newer = bytes.starts_with(SEGMENT_MAGIC) && bytes[8] > VERSION && has_valid_crc(bytes);
    is_newer.then_some(bytes[8])
}

/// The same for the header of a record.
pub(super) fn newer_record(bytes: &[u8; HEADER_LEN]) -> Option<u8> {
    let is_newer = bytes.starts_with(RECORD_MAGIC) && bytes[4] > VERSION && has_valid_crc(bytes);
    is_newer.then_some(bytes[4])
}

/// Whether a header could begin here: a cheap check that a scan makes before it computes a CRC.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    bytes.starts_with(RECORD_MAGIC)
}

fn write_crc(bytes: &mut [u8; HEADER_LEN]) {
    let crc = crc32c(&bytes[..CRC_AT]);
    bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

fn has_valid_crc(bytes: &[u8; HEADER_LEN]) -> bool {
    crc32c(&bytes[..CRC_AT]) == u32::from_le_bytes(field(bytes, CRC_AT))
}

fn field<const N: usize>(bytes: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

#[cfg(test)]
mod tests;
