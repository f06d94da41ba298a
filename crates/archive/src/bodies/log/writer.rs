//! Writes bodies to a log, and entries for bodies that are already in one.
//!
//! ```text
//! small body   | DATA header | ciphertext | pad | ENTRY header | sealed entry | pad |   one write
//! longer body  | (reserved)  | ciphertext as it arrives ...           and at its end:
//!              | DATA header |   before each range, when its length is known
//!                                  | ENTRY header | sealed entry | pad |   wherever it fits
//! ```
//!
//! If a writer is dropped before a row names its extents, they are freed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fulgurite_codes::crc32c;
use fulgurite_units::{ObjectId, UnixTime};

use super::record::{EntryForm, HEADER_BYTES, HEADER_LEN, RecordHeader, RecordKind, align};
use super::{Extent, ReservedRange, SegmentLog, to_usize};
use crate::limits::{CHUNK_BYTES, ENTRY_RECORD_BYTES_MAX, SYNC_AHEAD_BYTES};
use crate::sync::SyncTarget;
use crate::{ArchiveError, Result};

/// The sealed entry of a body, ready for the log.
#[derive(Clone, Debug)]
pub(crate) struct SealedEntry {
    pub(crate) form: EntryForm,
    pub(crate) written: UnixTime,
    pub(crate) sealed: Vec<u8>,
}

impl SealedEntry {
    fn record_bytes(&self) -> Result<u64> {
        if self.sealed.len() > ENTRY_RECORD_BYTES_MAX {
            return Err(ArchiveError::MetadataTooLarge { bytes: self.sealed.len() });
        }
        Ok(align(HEADER_BYTES + self.sealed.len() as u64))
    }

    /// Appends the entry's record at `place`, with padding, to `out`.
    fn append(&self, log: &SegmentLog, body: ObjectId, place: Extent, out: &mut Vec<u8>) {
        let header = RecordHeader {
            log: log.kind,
            segment: place.segment,
            offset: place.offset,
            body,
            run: log.run,
            bytes: self.sealed.len() as u64,
            kind: RecordKind::Entry {
                form: self.form,
                written: self.written,
                payload_crc: crc32c(&self.sealed),
            },
        };
        let start = out.len();
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(&self.sealed);
        out.resize((out.len() - start).next_multiple_of(HEADER_LEN) + start, 0);
    }
}

/// Writes one body to a log. Dropping it without [`LogWriter::keep`] frees its space.
#[derive(Debug)]
pub(crate) struct LogWriter {
    log: Arc<SegmentLog>,
    body: ObjectId,
    room: Vec<ReservedRange>,
    room_bytes: u64,
    written: u64,
    /// Bytes written so far, in any order.
    bytes_written: AtomicU64,
    /// Extent of the entry's record.
    record: Option<(Extent, SyncTarget)>,
    is_kept: AtomicBool,
}

impl LogWriter {
    pub(super) fn new(log: Arc<SegmentLog>, body: ObjectId) -> Self {
        Self {
            log,
            body,
            room: Vec::new(),
            room_bytes: 0,
            written: 0,
            bytes_written: AtomicU64::new(0),
            record: None,
            is_kept: AtomicBool::new(false),
        }
    }

    pub(super) fn reserve(&mut self, bytes: u64) -> Result<()> {
        for range in self.log.reserve(bytes, self.room.last().map(ReservedRange::full_extent))? {
            self.room_bytes += range.room.bytes;
            match self.room.last_mut() {
                Some(last) if range.header.is_none() && last.follows(&range) => {
                    last.room.bytes += range.room.bytes;
                }
                _ => self.room.push(range),
            }
        }
        Ok(())
    }

    /// Whether a file of its reserved space has failed, so that further bytes need another place.
    pub(crate) fn is_failed(&self) -> bool {
        self.room.iter().any(|range| range.target.is_failed())
    }

    /// Makes the files of its reserved space fail.
    #[cfg(test)]
    pub(crate) fn fail(&self) {
        self.room.iter().for_each(|range| range.target.fail("a failing disk".to_owned()));
    }

    /// Appends `bytes`. May block on the disk.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let needed = self.written + bytes.len() as u64;
        if needed > self.room_bytes {
            self.reserve((needed - self.room_bytes).max(CHUNK_BYTES as u64))?;
        }
        self.write_at(self.written, bytes)?;
        self.written = needed;
        Ok(())
    }

    /// Writes bytes of the body at `offset`, which must lie in the reserved space. Any thread may
    /// write any part; [`Self::set_written`] is called when all parts are written.
    pub(crate) fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        for ReservedRange { room, target, .. } in &self.room {
            if bytes.is_empty() {
                break;
            }
            if offset >= room.bytes {
                offset -= room.bytes;
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(to_usize(room.bytes - offset)));
            target.write_at(now, room.offset + offset)?;
            self.sync_ahead(now.len() as u64, target);
            bytes = later;
            offset = 0;
        }
        assert!(bytes.is_empty(), "space is reserved for every byte");
        Ok(())
    }

    /// Starts a sync of the file that got these bytes, once in a while. Otherwise the disk would
    /// idle until the end and then have to write everything.
    fn sync_ahead(&self, bytes: u64, target: &SyncTarget) {
        let before = self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
        if before / SYNC_AHEAD_BYTES != (before + bytes) / SYNC_AHEAD_BYTES {
            self.log.sync.begin(vec![target.clone()]);
        }
    }

    /// Declares that the first `bytes` of the reserved space are written.
    pub(crate) fn set_written(&mut self, bytes: u64) {
        assert!(bytes <= self.room_bytes, "no more was written than reserved");
        self.written = bytes;
    }

    /// Writes a whole small body with its entry in one go. `buffer` holds the ciphertext, and
    /// afterwards everything that was written.
    pub(crate) fn write_small(&mut self, buffer: &mut Vec<u8>, entry: &SealedEntry) -> Result<()> {
        assert!(self.room.is_empty(), "a small body is written in one go");
        let bytes = buffer.len() as u64;
        let data_bytes = if bytes == 0 { 0 } else { HEADER_BYTES + align(bytes) };
        let entry_bytes = entry.record_bytes()?;
        let (place, target) = self.log.reserve_run(data_bytes + entry_bytes)?;
        // From here on a failure frees everything.
        let record = Extent { offset: place.offset + data_bytes, bytes: entry_bytes, ..place };
        self.record = Some((record, target.clone()));
        if bytes > 0 {
            let range = ReservedRange {
                header: Some(place.offset),
                room: Extent {
                    segment: place.segment,
                    offset: place.offset + HEADER_BYTES,
                    bytes: align(bytes),
                },
                target: target.clone(),
            };
            self.room_bytes = range.room.bytes;
            self.written = bytes;
            buffer.resize(to_usize(align(bytes)), 0);
            buffer.splice(0..0, self.data_header(&range, 0, bytes).encode());
            self.room.push(range);
        }
        entry.append(&self.log, self.body, record, buffer);
        target.write_at(buffer, place.offset)
    }

    /// Writes the data headers of a fully written body, and its entry.
    pub(crate) fn finish(&mut self, entry: &SealedEntry) -> Result<()> {
        let mut body_offset = 0;
        for (range, used) in self.used() {
            let header = self.data_header(range, body_offset, used);
            range.target.write_at(&header.encode(), header.offset)?;
            body_offset += used;
        }
        let (place, target) = self.log.reserve_run(entry.record_bytes()?)?;
        self.record = Some((place, target.clone()));
        let mut record = Vec::with_capacity(to_usize(place.bytes));
        entry.append(&self.log, self.body, place, &mut record);
        target.write_at(&record, place.offset)
    }

    fn data_header(&self, range: &ReservedRange, body_offset: u64, bytes: u64) -> RecordHeader {
        RecordHeader {
            log: self.log.kind,
            segment: range.room.segment,
            offset: range.room.offset - HEADER_BYTES,
            body: self.body,
            run: self.log.run,
            bytes,
            kind: RecordKind::Data { body_offset, commits: self.log.commits.saturating_u32() },
        }
    }

    /// Returns the ranges that were written, with their bytes used.
    fn used(&self) -> impl Iterator<Item = (&ReservedRange, u64)> {
        let mut left = self.written;
        self.room.iter().map_while(move |range| {
            let used = range.room.bytes.min(left);
            left -= used;
            (used > 0).then_some((range, used))
        })
    }

    fn targets(&self) -> BTreeMap<u64, SyncTarget> {
        self.used()
            .map(|(range, _)| &range.target)
            .chain(self.record.iter().map(|(_, target)| target))
            .map(|target| (target.number, target.clone()))
            .collect()
    }

    /// Waits until everything written by all of `writers` is durable.
    pub(crate) fn sync_many<'a>(writers: impl Iterator<Item = &'a Self>) -> Result<()> {
        let mut targets: BTreeMap<u64, SyncTarget> = BTreeMap::new();
        let mut log = None;
        for writer in writers {
            log = Some(&writer.log);
            targets.extend(writer.targets());
        }
        log.map_or(Ok(()), |log| log.sync.sync_blocking(targets.into_values().collect()))
    }

    /// Waits until everything written so far is durable.
    pub(crate) async fn sync(&self) -> Result<()> {
        let targets: Vec<SyncTarget> = self.targets().into_values().collect();
        if targets.is_empty() { Ok(()) } else { self.log.sync.sync(targets).await }
    }

    /// Returns the extents of the ciphertext written. They stay reserved until [`Self::keep`].
    pub(crate) fn extents(&self) -> Vec<Extent> {
        self.used().map(|(range, bytes)| Extent { bytes, ..range.room }).collect()
    }

    /// Returns the extents of headers, padding and entry: the space of the body beside
    /// [`Self::extents`].
    pub(crate) fn framing(&self) -> Vec<Extent> {
        let mut framing: Vec<Extent> = Vec::new();
        let mut add = |extent: Extent| match framing.last_mut() {
            Some(last) if last.segment == extent.segment && last.end() == extent.offset => {
                last.bytes += extent.bytes;
            }
            _ if extent.bytes == 0 => {}
            _ => framing.push(extent),
        };
        for (range, used) in self.used() {
            let room = range.room;
            if let Some(offset) = range.header {
                add(Extent { offset, bytes: HEADER_BYTES, ..room });
                let pad = align(used) - used;
                add(Extent { offset: room.offset + used, bytes: pad, ..room });
            }
        }
        self.record.iter().for_each(|&(extent, _)| add(extent));
        framing
    }

    /// Keeps the extents, because a committed row names them; frees what was reserved beyond them.
    pub(crate) fn keep(&self) {
        if self.keep_unconfirmed() {
            self.settle();
        }
    }

    fn settle(&self) {
        if let Some((record, _)) = &self.record {
            self.log.settle(record.segment);
        }
    }

    /// The same if it is unknown whether the row was committed: the next start checks. Returns
    /// `false` if they were kept already.
    pub(crate) fn keep_unconfirmed(&self) -> bool {
        if self.is_kept.swap(true, Ordering::SeqCst) {
            return false;
        }
        let used: Vec<u64> = self.used().map(|(_, bytes)| bytes).collect();
        let mut surplus = Vec::new();
        for (index, range) in self.room.iter().enumerate() {
            let full_extent = range.full_extent();
            let Some(&used) = used.get(index) else {
                surplus.push(full_extent);
                continue;
            };
            let used = if range.header.is_some() { align(used) } else { used };
            let offset = range.room.offset + used;
            if offset < full_extent.end() {
                surplus.push(Extent { offset, bytes: full_extent.end() - offset, ..full_extent });
            }
        }
        self.log.free(&surplus);
        true
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        if !*self.is_kept.get_mut() {
            let mut room: Vec<Extent> = self.room.iter().map(ReservedRange::full_extent).collect();
            room.extend(self.record.iter().map(|&(extent, _)| extent));
            self.log.free(&room);
            self.settle();
        }
    }
}

/// Writes entries for bodies that are in a log already. Dropping it without [`EntryWriter::keep`]
/// makes them unreadable, because the bodies remain and do not match the entries.
#[derive(Debug)]
pub(crate) struct EntryWriter {
    log: Arc<SegmentLog>,
    records: Vec<(Extent, SyncTarget)>,
    outcome: CommitOutcome,
}

/// The outcome of the commit that would name the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitOutcome {
    Rejected,
    Committed,
    Unconfirmed,
}

impl EntryWriter {
    pub(super) fn new(log: Arc<SegmentLog>) -> Self {
        Self { log, records: Vec::new(), outcome: CommitOutcome::Rejected }
    }

    /// Writes the entry of `body` and returns its extent. May block on the disk.
    pub(crate) fn write(&mut self, body: ObjectId, entry: &SealedEntry) -> Result<Extent> {
        let (place, target) = self.log.reserve_run(entry.record_bytes()?)?;
        self.records.push((place, target.clone()));
        let mut record = Vec::with_capacity(to_usize(place.bytes));
        entry.append(&self.log, body, place, &mut record);
        target.write_at(&record, place.offset)?;
        Ok(place)
    }

    /// Waits until all entries are durable. Blocks.
    pub(crate) fn sync_blocking(&self) -> Result<()> {
        let targets: BTreeMap<u64, SyncTarget> =
            self.records.iter().map(|(_, target)| (target.number, target.clone())).collect();
        self.log.sync.sync_blocking(targets.into_values().collect())
    }

    /// Keeps the entries: committed rows name them.
    pub(crate) fn keep(mut self) {
        self.outcome = CommitOutcome::Committed;
    }

    /// Keeps the entries while it is unknown whether rows name them: the next start checks.
    pub(crate) fn keep_unconfirmed(mut self) {
        self.outcome = CommitOutcome::Unconfirmed;
    }
}

impl Drop for EntryWriter {
    fn drop(&mut self) {
        match self.outcome {
            CommitOutcome::Unconfirmed => return,
            CommitOutcome::Committed => {
                self.records.iter().for_each(|(place, _)| self.log.settle(place.segment));
                return;
            }
            CommitOutcome::Rejected => {}
        }
        for (place, target) in &self.records {
            if let Err(error) = target.write_at(&[0; HEADER_LEN], place.offset) {
                tracing::warn!(%error, "cannot erase an entry of a failed completion");
            }
        }
        let room: Vec<Extent> = self.records.iter().map(|&(extent, _)| extent).collect();
        self.log.free(&room);
        self.records.iter().for_each(|(place, _)| self.log.settle(place.segment));
    }
}
