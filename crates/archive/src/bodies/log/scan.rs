//! Reads a segment without a catalog: its header, and every record in it by offset.
//!
//! ```text
//! |header|DATA ....|ENTRY|   hole   |torn...|DATA ......|ENTRY|
//!         `-------> `---> `--------> `------> `--------> `---> end of the file
//!          a record states where the next begins; after a hole or bytes that are no record the
//!          scan checks every 64th byte
//! ```
//!
//! The scan trusts a header's CRC and nothing else. It reads no ciphertext beyond what its buffer
//! happens to hold, and writes nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fulgurite_codes::crc32c;

use super::LogKind;
use super::record::{
    HEADER_BYTES, HEADER_LEN, RecordHeader, RecordKind, SegmentHeader, may_begin, newer_record,
    newer_segment,
};
use crate::limits::{ENTRY_RECORD_BYTES_MAX, SCAN_BUFFER_BYTES};
use crate::{ArchiveError, Result};

const _: () = assert!(SCAN_BUFFER_BYTES.is_multiple_of(HEADER_LEN), "a buffer is whole headers");
const _: () =
    assert!(SCAN_BUFFER_BYTES > ENTRY_RECORD_BYTES_MAX + HEADER_LEN, "an entry fits the buffer");

/// How much is skipped where a disk cannot read.
const PAGE_BYTES: u64 = 4096;

/// A record found by a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScannedRecord<'a> {
    /// Ciphertext of a body, complete in the file, at [`RecordHeader::content`].
    Data(RecordHeader),
    /// A sealed entry with a valid CRC.
    Entry(RecordHeader, &'a [u8]),
    /// The header is intact, but the entry's CRC does not match or the file ends early.
    Torn(RecordHeader),
}

impl ScannedRecord<'_> {
    /// Returns the record's header.
    pub(crate) const fn header(&self) -> &RecordHeader {
        match self {
            Self::Data(header) | Self::Entry(header, _) | Self::Torn(header) => header,
        }
    }
}

/// A scan of one segment file.
#[derive(Debug)]
pub(crate) struct SegmentScan {
    path: PathBuf,
    file: File,
    kind: LogKind,
    number: u32,
    header: Option<SegmentHeader>,
    file_bytes: u64,
    buffer: Vec<u8>,
    /// File offset of the buffer's first byte.
    buffer_at: u64,
    /// Offset from which the next header is searched.
    at: u64,
    unrecognized_bytes: u64,
    newer: Option<u8>,
}

fn newer(path: &Path, version: u8) -> ArchiveError {
    let what = format!("\"{}\" has records of version {version}", path.display());
    ArchiveError::Newer { what }
}

/// Reads the header of the segment at `path`; `None` when it is missing or damaged.
///
/// # Errors
/// `Newer` when a newer program wrote it.
pub(crate) fn read_segment_header(path: &Path) -> Result<Option<SegmentHeader>> {
    let file = File::open(path).map_err(ArchiveError::io("open", path))?;
    let mut bytes = [0; HEADER_LEN];
    // An unreadable header counts as missing.
    if file.read_exact_at(&mut bytes, 0).is_err() {
        return Ok(None);
    }
    match newer_segment(&bytes) {
        Some(version) => Err(newer(path, version)),
        None => Ok(SegmentHeader::parse(&bytes)),
    }
}

impl SegmentScan {
    /// Opens the segment at `path`, whose name says that it is number `number` of the log `kind`.
    pub(crate) fn open(path: &Path, kind: LogKind, number: u32) -> Result<Self> {
        let file = File::open(path).map_err(ArchiveError::io("open", path))?;
        let file_bytes = file.metadata().map_err(ArchiveError::io("measure", path))?.len();
        let mut scan = Self {
            path: path.to_owned(),
            file,
            kind,
            number,
            header: None,
            file_bytes,
            buffer: Vec::new(),
            buffer_at: 0,
            at: 0,
            unrecognized_bytes: 0,
            newer: None,
        };
        scan.header = scan.read_header()?;
        scan.at = HEADER_BYTES;
        Ok(scan)
    }

    /// Returns the segment's header; `None` if it is damaged. Records are found all the same.
    pub(crate) const fn header(&self) -> Option<SegmentHeader> {
        self.header
    }

    /// Length of the file, holes included.
    pub(crate) const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the bytes so far that are neither records nor zeros: torn or damaged.
    pub(crate) const fn unrecognized_bytes(&self) -> u64 {
        self.unrecognized_bytes
    }

    /// Refuses records of a newer program among those so far: it may have acknowledged their
    /// bodies.
    ///
    /// # Errors
    /// `Newer` with their version.
    pub(crate) fn refuse_newer(&self) -> Result<()> {
        self.newer.map_or(Ok(()), |version| Err(newer(&self.path, version)))
    }

    fn read_header(&mut self) -> Result<Option<SegmentHeader>> {
        self.fill()?;
        let header = self.buffer.first_chunk::<HEADER_LEN>().and_then(SegmentHeader::parse);
        Ok(header.filter(|header| (header.kind, header.number) == (self.kind, self.number)))
    }

    /// Skips ahead to the last `bytes` of the file.
    pub(crate) fn skip_to_last(&mut self, bytes: u64) {
        let from = self.file_bytes.saturating_sub(bytes);
        self.at = self.at.max(from - from % HEADER_BYTES);
    }

    /// Returns the next record, or `None` at the end of the file.
    pub(crate) fn next_record(&mut self) -> Result<Option<ScannedRecord<'_>>> {
        loop {
            if self.window().len() < HEADER_LEN && !self.fill()? {
                return Ok(None);
            }
            let Some(header) = self.find_in_window() else { continue };
            return self.take(header).map(Some);
        }
    }

    /// Returns the buffered bytes from `at` on.
    fn window(&self) -> &[u8] {
        let skip = usize::try_from(self.at - self.buffer_at).unwrap_or(usize::MAX);
        self.buffer.get(skip..).unwrap_or_default()
    }

    /// Finds the first header in the window; moves `at` to it, or past the window.
    fn find_in_window(&mut self) -> Option<RecordHeader> {
        let (mut at, mut unrecognized) = (self.at, 0);
        let (mut found, mut newer) = (None, None);
        for unit in self.window().as_chunks::<HEADER_LEN>().0 {
            if may_begin(unit) {
                if let Some(header) = RecordHeader::parse(unit, at)
                    && (header.log, header.segment) == (self.kind, self.number)
                {
                    found = Some(header);
                    break;
                }
                newer = newer.or_else(|| newer_record(unit));
            }
            at += HEADER_BYTES;
            unrecognized += if *unit == [0; HEADER_LEN] { 0 } else { HEADER_BYTES };
        }
        self.at = at;
        self.unrecognized_bytes += unrecognized;
        self.newer = self.newer.or(newer);
        found
    }

    fn take(&mut self, header: RecordHeader) -> Result<ScannedRecord<'_>> {
        let content = header.content();
        let is_cut = content.offset + content.bytes > self.file_bytes;
        let RecordKind::Entry { payload_crc, .. } = header.kind else {
            // Continues inside a torn record instead of after it: what follows its header may be
            // another record.
            self.at = if is_cut { content.offset } else { header.end() };
            return Ok(if is_cut {
                ScannedRecord::Torn(header)
            } else {
                ScannedRecord::Data(header)
            });
        };
        let bytes = usize::try_from(content.bytes).unwrap_or(usize::MAX);
        if !is_cut && self.window().len() < HEADER_LEN + bytes {
            self.fill()?;
        }
        let is_whole = self
            .window()
            .get(HEADER_LEN..HEADER_LEN + bytes)
            .is_some_and(|payload| crc32c(payload) == payload_crc);
        if !is_whole {
            self.at = content.offset;
            return Ok(ScannedRecord::Torn(header));
        }
        let start = usize::try_from(content.offset - self.buffer_at).unwrap_or(usize::MAX);
        self.at = header.end();
        Ok(ScannedRecord::Entry(header, &self.buffer[start..start + bytes]))
    }

    /// Fills the buffer from `at` on, after skipping a hole; returns `false` at the end.
    fn fill(&mut self) -> Result<bool> {
        if self.at + HEADER_BYTES > self.file_bytes {
            return Ok(false);
        }
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(self.at)) {
            Ok(data) => self.at = self.at.max(data - data % HEADER_BYTES),
            // Only a hole follows.
            Err(rustix::io::Errno::NXIO) => return Ok(false),
            // The file system does not support holes.
            Err(_) => {}
        }
        if self.read(SCAN_BUFFER_BYTES).is_ok() {
            return Ok(self.buffer.len() >= HEADER_LEN);
        }
        // Part of it is unreadable: read page by page and skip the bad pages.
        while self.at + HEADER_BYTES <= self.file_bytes {
            let page_left = PAGE_BYTES - self.at % PAGE_BYTES;
            match self.read(usize::try_from(page_left).unwrap_or(HEADER_LEN)) {
                Ok(()) => return Ok(self.buffer.len() >= HEADER_LEN),
                Err(error) => {
                    let path = self.path.display();
                    tracing::warn!(%path, at = self.at, %error, "stepped over");
                    self.at += page_left;
                    self.unrecognized_bytes += page_left;
                }
            }
        }
        Ok(false)
    }

    fn read(&mut self, bytes_max: usize) -> std::io::Result<()> {
        let left = usize::try_from(self.file_bytes - self.at).unwrap_or(usize::MAX);
        self.buffer.resize(left.min(bytes_max), 0);
        self.buffer_at = self.at;
        let outcome = self.file.read_exact_at(&mut self.buffer, self.at);
        if outcome.is_err() {
            self.buffer.clear();
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
