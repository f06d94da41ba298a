//! Segment logs: append-only files that hold ciphertext for staging, STANDARD objects and restored
//! copies. Small bodies share a file and a sync.
//!
//! ```text
//! DIR/00000007.seg   header | body a | body b |  body c ...  |   space given back is punched out,
//! DIR/00000008.seg   header | ... body c | body d |              an empty segment is unlinked
//! ```
//!
//! The catalog's rows say which extents are whose. Staging and online logs say it themselves as
//! well (docs/formats/log.md), so that their bodies are found without a catalog. A segment that
//! the catalog does not name is kept as an orphan, unless the catalog is newer for certain. A new
//! run never appends to an old segment. The log does not check bytes: frames authenticate
//! themselves.
//!
//! A segment to which a write or a sync failed is never written again; the log goes on in the next.

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
use crate::commits::Commits;
use crate::directory::Paths;
use crate::limits::{PUNCH_BYTES_MIN, SEGMENT_BYTES};
use crate::sync::{GroupSync, SyncTarget};
use crate::{ArchiveError, Result};

/// A run of bytes in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Extent {
    /// The first byte behind it.
    pub(crate) const fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// Room for ciphertext, behind its header if the log has such.
#[derive(Clone, Debug)]
struct Stretch {
    header: Option<u64>,
    room: Extent,
    target: SyncTarget,
}

impl Stretch {
    /// Header and room.
    fn whole(&self) -> Extent {
        let offset = self.header.unwrap_or(self.room.offset);
        Extent { offset, bytes: self.room.end() - offset, ..self.room }
    }

    fn follows(&self, next: &Self) -> bool {
        self.room.segment == next.room.segment && self.room.end() == next.room.offset
    }
}

/// Where a log is, and in which run of which archive it is opened.
#[derive(Clone, Debug)]
pub(crate) struct LogPlace {
    /// The data directory.
    pub(crate) data: PathBuf,
    pub(crate) kind: LogKind,
    pub(crate) archive: ArchiveId,
    /// This run, which the headers of new segments name.
    pub(crate) run: u64,
    /// The last run that the catalog knows of. What segments of earlier runs hold is in the
    /// catalog, or nowhere.
    pub(crate) catalog_run: u64,
    /// Batches of this run that are durable in the catalog, which records name.
    pub(crate) commits: Arc<Commits>,
}

#[derive(Debug, Default)]
struct SegmentState {
    /// Bytes handed out.
    tail: u64,
    /// Bytes that rows name or writers hold.
    live: u64,
    readers: u32,
    /// Free stretches not yet punched out, end by offset; neighbors are joined.
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
    /// The segment that is appended to.
    active: Option<(u32, SyncTarget)>,
    next: u32,
    /// Entries by segment that no row names yet, and of which nobody knows whether one will.
    unsettled: BTreeMap<u32, u32>,
}

/// One segment log.
#[derive(Debug)]
pub(crate) struct SegmentLog {
    dir: PathBuf,
    /// Open as long as the log is: a new segment needs no descriptor to make its name durable.
    dir_file: File,
    kind: LogKind,
    archive: ArchiveId,
    run: u64,
    commits: Arc<Commits>,
    state: Mutex<LogState>,
    sync: GroupSync,
    budget: Arc<Budget>,
}

impl SegmentLog {
    /// Opens the log; `live` is what the catalog says of its segments. Of the segments that it
    /// does not name, those that are certainly older than the catalog hold nothing and are
    /// unlinked; the others become orphans. Orphans that the catalog names are brought back.
    pub(crate) fn open(
        place: &LogPlace,
        live: &BTreeMap<u32, u64>,
        budget: Arc<Budget>,
    ) -> Result<Self> {
        let (kind, dir) = (place.kind, Paths::new(&place.data).log(place.kind));
        std::fs::create_dir_all(&dir).map_err(ArchiveError::io("create", &dir))?;
        let dir_file = File::open(&dir).map_err(ArchiveError::io("open", &dir))?;
        let orphans = Orphans::new(&place.data);
        orphans.bring_back(kind, live)?;
        // Numbers that rows or orphans have are not used again, even when their files are lost.
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
                None => retire_unnamed(place, &dir, number, &orphans)?,
            }
        }
        state.next = next;
        for number in live.keys().filter(|number| !state.segments.contains_key(number)) {
            let path = segment_path(&dir, *number);
            tracing::error!(
                path = %path.display(),
                "a segment is lost that objects lie in: bring it back, or the newer copy of its \
                 whole folder; its name is not given to another"
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

    /// `Full` if a body of `bytes` could not be taken in now.
    pub(crate) fn admit(&self, bytes: u64) -> Result<()> {
        self.budget.admit(bytes)
    }

    /// Sets room for `bytes` of `body` aside and returns a writer that fills it; more can be taken
    /// later.
    pub(crate) fn writer(self: &Arc<Self>, body: ObjectId, bytes: u64) -> Result<LogWriter> {
        let mut writer = LogWriter::new(Arc::clone(self), body);
        self.admit(bytes)?;
        writer.reserve(bytes)?;
        Ok(writer)
    }

    /// A writer for entries of bodies that are in a log already.
    pub(crate) fn entry_writer(self: &Arc<Self>) -> EntryWriter {
        EntryWriter::new(Arc::clone(self))
    }

    /// Room for `bytes` of ciphertext, in as many stretches as it takes; `after` is the caller's
    /// last stretch, which needs no new header where it goes on.
    fn reserve(&self, bytes: u64, after: Option<Extent>) -> Result<Vec<Stretch>> {
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut left = bytes;
        while left > 0 {
            let before = stretches.last().map(Stretch::whole).or(after);
            match self.reserve_stretch(left, before) {
                Ok(stretch) => {
                    left -= left.min(stretch.room.bytes);
                    stretches.push(stretch);
                }
                Err(error) => {
                    let taken: Vec<Extent> = stretches.iter().map(Stretch::whole).collect();
                    self.free(&taken);
                    return Err(error);
                }
            }
        }
        Ok(stretches)
    }

    fn reserve_stretch(&self, bytes: u64, before: Option<Extent>) -> Result<Stretch> {
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
            return Ok(Stretch { header, room, target });
        }
    }

    /// The segment from which on entries may be those of bodies whose commit has not ended. All
    /// before it are named by rows on stable storage, or their keys are zeros, if not on stable
    /// storage yet.
    pub(crate) fn settled_below(&self) -> u32 {
        let state = self.lock();
        let first = state.unsettled.keys().next().copied();
        let active = state.active.as_ref().map(|&(active, _)| active);
        first.or(active).unwrap_or(state.next)
    }

    /// The commit of an entry in this segment has ended.
    fn settle(&self, segment: u32) {
        let mut state = self.lock();
        if let Some(count) = state.unsettled.get_mut(&segment) {
            *count -= 1;
            if *count == 0 {
                state.unsettled.remove(&segment);
            }
        }
    }

    /// Room for an entry, and what is written with it, in one run. The entry is unsettled from now
    /// on.
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
        // A number is used once, even for a segment that comes to nothing.
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

    /// Makes a segment whose name is durable, or none.
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
            // Nothing is in it yet.
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "an unused segment stays");
            }
            return Err(error);
        }
        Ok(target)
    }

    /// Ends the segment that is appended to, and unlinks it if nothing is in it.
    pub(crate) fn close_active(&self) {
        let mut state = self.lock();
        if let Some((number, _)) = state.active.take() {
            self.drop_if_empty(&mut state, number);
        }
    }

    /// Gives extents back. Their blocks return to the file system when free stretches of
    /// [`PUNCH_BYTES_MIN`] have come together and nobody reads the segment, or with the segment.
    pub(crate) fn free(&self, extents: &[Extent]) {
        let mut touched = BTreeSet::new();
        let mut state = self.lock();
        for &extent in extents {
            // A segment that was lost was never counted.
            let Some(segment) = state.segments.get_mut(&extent.segment) else { continue };
            let bytes = extent.bytes.min(segment.live);
            self.budget.give(bytes);
            segment.live -= bytes;
            segment.add_free(extent);
            touched.insert(extent.segment);
        }
        for number in touched {
            self.reclaim(&mut state, number);
        }
    }

    /// Unlinks a segment that is empty, or punches out what is free of it.
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
                tracing::warn!(path = %path.display(), %error, "empty segment stays");
            }
        }
    }

    fn punch(&self, number: u32, stretches: &[(u64, u64)]) {
        use rustix::fs::{FallocateFlags, fallocate};
        if stretches.is_empty() {
            return;
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Space also comes back when the whole segment goes, so failing here costs only time.
        if let Ok(file) = File::options().write(true).open(segment_path(&self.dir, number)) {
            for &(offset, end) in stretches {
                let _ = fallocate(&file, flags, offset, end - offset);
            }
        }
    }

    /// Opens extents for reading. Their bytes stay as they are until the reader is dropped.
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

/// Unlinks a segment that the catalog does not name if it is older than the catalog for certain,
/// and makes it an orphan if not.
fn retire_unnamed(place: &LogPlace, dir: &Path, number: u32, orphans: &Orphans) -> Result<()> {
    let path = segment_path(dir, number);
    let header = scan::read_segment_header(&path)?.filter(|header| {
        (header.archive, header.kind, header.number) == (place.archive, place.kind, number)
    });
    // What that run wrote and was told is there, the catalog knew when the next run began.
    if header.is_some_and(|header| header.run < place.catalog_run) {
        return std::fs::remove_file(&path).map_err(ArchiveError::io("remove", &path));
    }
    orphans.adopt(&path, place.kind, number, header.map(|header| header.run))
}

#[cfg(test)]
mod tests;
