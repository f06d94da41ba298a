//! Segment logs: append-only files of ciphertext for staged bodies, STANDARD objects and restored
//! copies. Small bodies share a file and a sync (group commit).
//!
//! ```text
//! DIR/00000007.seg   header | body a | body b |  body c ...  |   freed space is punched out,
//! DIR/00000008.seg   header | ... body c | body d |              an empty segment is unlinked
//! ```
//!
//! The catalog's rows map extents to bodies. Staging and online logs also hold that themselves
//! (docs/formats/log.md), so that their bodies can be found without a catalog. A segment that the
//! catalog does not name is kept as an orphan, unless the catalog is certainly newer. A new run
//! never appends to an old segment. The log does not verify bytes: frames authenticate themselves.
//!
//! After a failed write or sync a segment is never written again; the log continues in the next.

mod budget;
mod kind;
pub(crate) mod orphans;
mod reader;
pub(crate) mod record;
pub(crate) mod scan;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_units::{ArchiveId, ObjectId};
use serde::{Deserialize, Serialize};

pub(crate) use self::budget::Budget;
pub(crate) use self::kind::LogKind;
use self::orphans::Orphans;
pub(crate) use self::reader::LogReader;
use self::record::{HEADER_BYTES, SegmentHeader, align};
pub(crate) use self::writer::{EntryWriter, LogWriter, SealedEntry};
use crate::commits::CommitCounter;
use crate::directory::Paths;
use crate::limits::{PUNCH_BYTES_MIN, SEGMENT_BYTES};
use crate::sync::{GroupSync, SyncTarget};
use crate::{ArchiveError, Result};

/// A contiguous byte range in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Extent {
    /// Returns the offset of the first byte after it.
    pub(crate) const fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// A reserved range for ciphertext, with its header if the log has headers.
#[derive(Clone, Debug)]
struct ReservedRange {
    header: Option<u64>,
    room: Extent,
    target: SyncTarget,
}

impl ReservedRange {
    /// Returns the extent of header and range.
    fn full_extent(&self) -> Extent {
        let offset = self.header.unwrap_or(self.room.offset);
        Extent { offset, bytes: self.room.end() - offset, ..self.room }
    }

    fn follows(&self, next: &Self) -> bool {
        self.room.segment == next.room.segment && self.room.end() == next.room.offset
    }
}

/// The location of a log, and the archive and run that open it.
#[derive(Clone, Debug)]
pub(crate) struct LogPlace {
    /// The data directory.
    pub(crate) data: PathBuf,
    pub(crate) kind: LogKind,
    pub(crate) archive: ArchiveId,
    /// This run; headers of new segments name it.
    pub(crate) run: u64,
    /// The last run that the catalog knows. Segments of earlier runs hold nothing that matters
    /// beyond what the catalog names.
    pub(crate) catalog_run: u64,
    /// Batches of this run that are durable in the catalog; records store the count.
    pub(crate) commits: Arc<CommitCounter>,
}

#[derive(Debug, Default)]
struct SegmentState {
    /// Bytes allocated.
    tail: u64,
    /// Bytes that rows name or writers hold.
    live: u64,
    readers: u32,
    /// Free ranges not yet punched out, end by offset; adjacent ones are merged.
    free: BTreeMap<u64, u64>,
}

impl SegmentState {
    fn add_free(&mut self, extent: Extent) {
        let (mut offset, mut end) = (extent.offset, extent.offset + extent.bytes);
        if let Some((&before, &before_end)) = self.free.range(..=offset).next_back()
            && before_end == offset
        {
            offset = before;
        }
        if let Some(after_end) = self.free.remove(&end) {
            end = after_end;
        }
        self.free.insert(offset, end);
    }

    fn take_large_free(&mut self) -> Vec<(u64, u64)> {
        let is_large = |&offset: &u64, end: &mut u64| *end - offset >= PUNCH_BYTES_MIN;
        self.free.extract_if(.., is_large).collect()
    }
}

#[derive(Debug, Default)]
struct LogState {
    segments: BTreeMap<u32, SegmentState>,
    /// The segment open for appends.
    active: Option<(u32, SyncTarget)>,
    next: u32,
    /// Unsettled entries per segment: no row names them yet, and one still may.
    unsettled: BTreeMap<u32, u32>,
}

/// One segment log.
#[derive(Debug)]
pub(crate) struct SegmentLog {
    dir: PathBuf,
    /// Kept open, so that syncing the name of a new segment needs no further file descriptor.
    dir_file: File,
    kind: LogKind,
    archive: ArchiveId,
    run: u64,
    commits: Arc<CommitCounter>,
    state: Mutex<LogState>,
    sync: GroupSync,
    budget: Arc<Budget>,
}

impl SegmentLog {
    /// Opens the log; `live` has the live bytes of each segment that the catalog names. Of the
    /// other segments, those certainly older than the catalog hold nothing and are unlinked; the
    /// rest become orphans. Orphans that the catalog names are moved back.
    pub(crate) fn open(
        place: &LogPlace,
        live: &BTreeMap<u32, u64>,
        budget: Arc<Budget>,
    ) -> Result<Self> {
        let (kind, dir) = (place.kind, Paths::new(&place.data).log(place.kind));
        std::fs::create_dir_all(&dir).map_err(ArchiveError::io("create", &dir))?;
        let dir_file = File::open(&dir).map_err(ArchiveError::io("open", &dir))?;
        let orphans = Orphans::new(&place.data);
        orphans.reinstate(kind, live)?;
        // Numbers of rows or orphans are not reused, even if their files are lost.
        let used = live.keys().copied().chain(orphans.numbers(kind)?);
        let mut next = used.map(|number| number.saturating_add(1)).max().unwrap_or(0);
        let mut state = LogState::default();
        for number in list_segments(&dir)? {
            next = next.max(number.saturating_add(1));
            match live.get(&number).copied().filter(|&bytes| bytes > 0) {
                Some(bytes) => {
                    let segment =
                        SegmentState { tail: u64::MAX, live: bytes, ..Default::default() };
                    state.segments.insert(number, segment);
                    budget.count(bytes);
                }
                None => retire_unreferenced(place, &dir, number, &orphans)?,
            }
        }
        state.next = next;
        for number in live.keys().filter(|number| !state.segments.contains_key(number)) {
            let path = segment_path(&dir, *number);
            tracing::error!(
                path = %path.display(),
                "a segment that holds objects is lost: bring it back, or the newer copy of its \
                 whole folder; its number is not reused"
            );
        }
        let sync = GroupSync::start(kind.folder())?;
        let (archive, run, commits) = (place.archive, place.run, Arc::clone(&place.commits));
        let state = Mutex::new(state);
        Ok(Self { dir, dir_file, kind, archive, run, commits, state, sync, budget })
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `Full` if a body of `bytes` does not fit now.
    pub(crate) fn admit(&self, bytes: u64) -> Result<()> {
        self.budget.admit(bytes)
    }

    /// Reserves space for `bytes` of `body` and returns a writer for it, which can reserve more
    /// later.
    pub(crate) fn writer(self: &Arc<Self>, body: ObjectId, bytes: u64) -> Result<LogWriter> {
        let mut writer = LogWriter::new(Arc::clone(self), body);
        self.admit(bytes)?;
        writer.reserve(bytes)?;
        Ok(writer)
    }

    /// Returns a writer for entries of bodies that are already in a log.
    pub(crate) fn entry_writer(self: &Arc<Self>) -> EntryWriter {
        EntryWriter::new(Arc::clone(self))
    }

    /// Reserves space for `bytes` of ciphertext, in as many ranges as needed. `after` is the
    /// caller's last range; one that continues it needs no header.
    fn reserve(&self, bytes: u64, after: Option<Extent>) -> Result<Vec<ReservedRange>> {
        let mut ranges: Vec<ReservedRange> = Vec::new();
        let mut left = bytes;
        while left > 0 {
            let before = ranges.last().map(ReservedRange::full_extent).or(after);
            match self.reserve_range(left, before) {
                Ok(range) => {
                    left -= left.min(range.room.bytes);
                    ranges.push(range);
                }
                Err(error) => {
                    let taken: Vec<Extent> =
                        ranges.iter().map(ReservedRange::full_extent).collect();
                    self.free(&taken);
                    return Err(error);
                }
            }
        }
        Ok(ranges)
    }

    fn reserve_range(&self, bytes: u64, before: Option<Extent>) -> Result<ReservedRange> {
        let mut state = self.lock();
        loop {
            let (segment, target) = self.active(&mut state)?;
            let Some(found) = state.segments.get_mut(&segment) else { continue };
            let goes_on = before.is_some_and(|b| (b.segment, b.end()) == (segment, found.tail));
            let header_bytes = if self.kind.is_framed() && !goes_on { HEADER_BYTES } else { 0 };
            let free = SEGMENT_BYTES - found.tail;
            if free <= header_bytes {
                found.tail = SEGMENT_BYTES;
                continue;
            }
            let wanted = if self.kind.is_framed() { align(bytes) } else { bytes };
            let offset = found.tail + header_bytes;
            let room = Extent { segment, offset, bytes: wanted.min(free - header_bytes) };
            self.take(found, header_bytes + room.bytes)?;
            let header = (header_bytes > 0).then_some(offset - header_bytes);
            return Ok(ReservedRange { header, room, target });
        }
    }

    /// Returns the first segment whose entries may belong to unfinished commits. Entries in earlier
    /// segments are named by durable rows, or their keys are zeroed, though possibly not yet
    /// durably.
    pub(crate) fn settled_below(&self) -> u32 {
        let state = self.lock();
        let first = state.unsettled.keys().next().copied();
        let active = state.active.as_ref().map(|&(active, _)| active);
        first.or(active).unwrap_or(state.next)
    }

    /// Records that the commit of an entry in this segment has ended.
    fn settle(&self, segment: u32) {
        let mut state = self.lock();
        if let Some(count) = state.unsettled.get_mut(&segment) {
            *count -= 1;
            if *count == 0 {
                state.unsettled.remove(&segment);
            }
        }
    }

    /// Reserves one contiguous range for an entry and what is written with it. The entry counts as
    /// unsettled from now on.
    fn reserve_run(&self, bytes: u64) -> Result<(Extent, SyncTarget)> {
        assert!(bytes <= SEGMENT_BYTES - HEADER_BYTES, "a run fits a segment");
        let mut state = self.lock();
        loop {
            let (segment, target) = self.active(&mut state)?;
            let Some(found) = state.segments.get_mut(&segment) else { continue };
            if SEGMENT_BYTES - found.tail < bytes {
                found.tail = SEGMENT_BYTES;
                continue;
            }
            let offset = found.tail;
            self.take(found, bytes)?;
            *state.unsettled.entry(segment).or_default() += 1;
            return Ok((Extent { segment, offset, bytes }, target));
        }
    }

    fn take(&self, segment: &mut SegmentState, bytes: u64) -> Result<()> {
        self.budget.take(bytes)?;
        segment.tail += bytes;
        segment.live += bytes;
        Ok(())
    }

    fn active(&self, state: &mut LogState) -> Result<(u32, SyncTarget)> {
        if let Some((number, target)) = &state.active
            && !target.is_failed()
            && state.segments.get(number).is_some_and(|segment| segment.tail < SEGMENT_BYTES)
        {
            return Ok((*number, target.clone()));
        }
        // A number is used once, even if creating the segment fails.
        let number = state.next;
        state.next = number.saturating_add(1);
        let target = self.create_segment(number)?;
        state.segments.insert(number, SegmentState { tail: HEADER_BYTES, ..Default::default() });
        let old = state.active.replace((number, target.clone()));
        if let Some((old, _)) = old {
            self.drop_if_empty(state, old);
        }
        Ok((number, target))
    }

    /// Creates a segment whose name is durable; on failure leaves none.
    fn create_segment(&self, number: u32) -> Result<SyncTarget> {
        let path = segment_path(&self.dir, number);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(ArchiveError::io("create", &path))?;
        let target = SyncTarget::new(u64::from(number), file, path.clone());
        let (archive, kind, run) = (self.archive, self.kind, self.run);
        let header = SegmentHeader { archive, kind, number, run };
        let made = target
            .write_at(&header.encode(), 0)
            .and_then(|()| self.dir_file.sync_all().map_err(ArchiveError::io("sync", &self.dir)));
        if let Err(error) = made {
            // It is still empty.
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove an unused segment");
            }
            return Err(error);
        }
        Ok(target)
    }

    /// Ends the segment open for appends, and unlinks it if it is empty.
    pub(crate) fn close_active(&self) {
        let mut state = self.lock();
        if let Some((number, _)) = state.active.take() {
            self.drop_if_empty(&mut state, number);
        }
    }

    /// Frees extents. Their blocks return to the file system when adjacent free ranges add up to
    /// [`PUNCH_BYTES_MIN`] and nobody reads the segment, or when the segment is unlinked.
    pub(crate) fn free(&self, extents: &[Extent]) {
        let mut touched = BTreeSet::new();
        let mut state = self.lock();
        for &extent in extents {
            // The bytes of a lost segment were never counted.
            let Some(segment) = state.segments.get_mut(&extent.segment) else { continue };
            let bytes = extent.bytes.min(segment.live);
            self.budget.release(bytes);
            segment.live -= bytes;
            segment.add_free(extent);
            touched.insert(extent.segment);
        }
        for number in touched {
            self.reclaim(&mut state, number);
        }
    }

    /// Unlinks an empty segment, or punches holes for its free ranges.
    fn reclaim(&self, state: &mut LogState, number: u32) {
        self.drop_if_empty(state, number);
        if let Some(segment) = state.segments.get_mut(&number)
            && segment.readers == 0
        {
            self.punch(number, &segment.take_large_free());
        }
    }

    fn drop_if_empty(&self, state: &mut LogState, number: u32) {
        let is_active = state.active.as_ref().is_some_and(|(active, _)| *active == number);
        let is_empty = state.segments.get(&number).is_some_and(|s| s.live == 0 && s.readers == 0);
        if is_empty && !is_active {
            state.segments.remove(&number);
            let path = segment_path(&self.dir, number);
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove an empty segment");
            }
        }
    }

    fn punch(&self, number: u32, ranges: &[(u64, u64)]) {
        use rustix::fs::{FallocateFlags, fallocate};
        if ranges.is_empty() {
            return;
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Unlinking the segment frees the space as well, so a failure only delays that.
        if let Ok(file) = File::options().write(true).open(segment_path(&self.dir, number)) {
            for &(offset, end) in ranges {
                let _ = fallocate(&file, flags, offset, end - offset);
            }
        }
    }

    /// Opens extents for reading. Their bytes do not change until the reader is dropped.
    pub(crate) fn reader(self: &Arc<Self>, extents: Vec<Extent>) -> LogReader {
        let pinned: BTreeSet<u32> = extents.iter().map(|extent| extent.segment).collect();
        let mut state = self.lock();
        for number in &pinned {
            if let Some(segment) = state.segments.get_mut(number) {
                segment.readers += 1;
            }
        }
        drop(state);
        LogReader::new(Arc::clone(self), extents, pinned)
    }

    fn release_reader(&self, numbers: impl Iterator<Item = u32>) {
        let mut state = self.lock();
        for number in numbers {
            let Some(segment) = state.segments.get_mut(&number) else { continue };
            segment.readers -= 1;
            self.reclaim(&mut state, number);
        }
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

pub(crate) fn segment_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:08}.seg"))
}

pub(crate) fn list_segments(dir: &Path) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(ArchiveError::io("list", dir))? {
        let name = entry.map_err(ArchiveError::io("list", dir))?.file_name();
        let number = name.to_str().and_then(|n| n.strip_suffix(".seg")).map(str::parse::<u32>);
        if let Some(Ok(number)) = number
            && segment_path(dir, number).file_name() == Some(&*name)
        {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Handles a segment that the catalog does not name: unlinks it if it is certainly older than the
/// catalog, otherwise makes it an orphan.
fn retire_unreferenced(place: &LogPlace, dir: &Path, number: u32, orphans: &Orphans) -> Result<()> {
    let path = segment_path(dir, number);
    let header = scan::read_segment_header(&path)?.filter(|header| {
        (header.archive, header.kind, header.number) == (place.archive, place.kind, number)
    });
    // The catalog had every acknowledged write of that run when the next run began.
    if header.is_some_and(|header| header.run < place.catalog_run) {
        return std::fs::remove_file(&path).map_err(ArchiveError::io("remove", &path));
    }
    orphans.adopt(&path, place.kind, number, header.map(|header| header.run))
}

#[cfg(test)]
mod tests;
