//! Segment logs: append-only files that hold ciphertext for staging, STANDARD objects and restored
//! copies. Small bodies share a file and a sync.
//!
//! ```text
//! DIR/00000007.seg   | body a | body b |  body c ...  |   space given back is punched out,
//! DIR/00000008.seg   | ... body c | body d |              an empty segment is unlinked
//! ```
//!
//! A segment has no structure of its own: the catalog's rows say which extents are whose, and only
//! extents named by a committed row exist. What a crash leaves beyond them is unlinked with its
//! segment. A new run never appends to an old segment. The log does not check bytes: frames
//! authenticate themselves.

#[allow(dead_code, reason = "what writes records and reads them again comes next")]
pub(crate) mod record;
#[allow(dead_code, reason = "as above")]
pub(crate) mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_units::ByteCount;
use serde::{Deserialize, Serialize};

use crate::limits::{CHUNK_BYTES, PUNCH_BYTES_MIN, SEGMENT_BYTES};
use crate::sync::{GroupSync, SyncTarget};
use crate::{ArchiveError, Result};

/// Which of the three logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum LogKind {
    Staging,
    Online,
    Restored,
}

impl LogKind {
    pub(crate) const ALL: [Self; 3] = [Self::Staging, Self::Online, Self::Restored];

    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Online => "online",
            Self::Restored => "restored",
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Staging => 0,
            Self::Online => 1,
            Self::Restored => 2,
        }
    }

    /// The log of this code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// A run of bytes in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Bytes all logs of an archive may hold together.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicU64,
    max: u64,
}

impl Budget {
    pub(crate) fn new(max: ByteCount) -> Self {
        Self { used: AtomicU64::new(0), max: max.get() }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) const fn max(&self) -> u64 {
        self.max
    }

    fn take(&self, bytes: u64) -> Result<()> {
        let take = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.max);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(used) => Err(ArchiveError::Full {
                what: format!(
                    "staged, online and restored bytes would pass the log capacity of {} ({} used)",
                    ByteCount::new(self.max),
                    ByteCount::new(used),
                ),
            }),
        }
    }

    fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
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
}

/// One segment log.
#[derive(Debug)]
pub(crate) struct SegmentLog {
    dir: PathBuf,
    kind: LogKind,
    state: Mutex<LogState>,
    sync: GroupSync,
    budget: Arc<Budget>,
}

impl SegmentLog {
    /// Opens the log in `dir`; `live` is what the catalog says of its segments. Segments the
    /// catalog does not name hold nothing and are unlinked.
    pub(crate) fn open(
        dir: PathBuf,
        kind: LogKind,
        live: &BTreeMap<u32, u64>,
        budget: Arc<Budget>,
    ) -> Result<Self> {
        std::fs::create_dir_all(&dir).map_err(ArchiveError::io("create", &dir))?;
        // Numbers that rows name are not used again, even when their files are lost.
        let next = live.keys().next_back().map_or(0, |last| last + 1);
        let mut state = LogState { next, ..LogState::default() };
        for number in list_segments(&dir)? {
            state.next = state.next.max(number + 1);
            match live.get(&number).copied().filter(|&bytes| bytes > 0) {
                Some(bytes) => {
                    let segment =
                        SegmentState { tail: u64::MAX, live: bytes, ..Default::default() };
                    state.segments.insert(number, segment);
                    budget.used.fetch_add(bytes, Ordering::Relaxed);
                }
                None => {
                    let path = segment_path(&dir, number);
                    std::fs::remove_file(&path).map_err(ArchiveError::io("remove", &path))?;
                }
            }
        }
        let sync = GroupSync::start(kind.folder())?;
        Ok(Self { dir, kind, state: Mutex::new(state), sync, budget })
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets room for `bytes` aside and returns a writer that fills it; more can be taken later.
    pub(crate) fn writer(self: &Arc<Self>, bytes: u64) -> Result<LogWriter> {
        let mut writer = LogWriter {
            log: Arc::clone(self),
            room: Vec::new(),
            targets: Vec::new(),
            room_bytes: 0,
            written: 0,
            is_kept: AtomicBool::new(false),
        };
        writer.reserve(bytes)?;
        Ok(writer)
    }

    fn reserve(&self, bytes: u64) -> Result<Vec<(Extent, SyncTarget)>> {
        self.budget.take(bytes)?;
        let mut left = bytes;
        let mut room = Vec::new();
        let mut state = self.lock();
        while left > 0 {
            let (number, target) = match self.active(&mut state) {
                Ok(active) => active,
                Err(error) => {
                    drop(state);
                    let taken: Vec<Extent> = room.iter().map(|&(extent, _)| extent).collect();
                    self.budget.give(left);
                    self.free(&taken);
                    return Err(error);
                }
            };
            let Some(segment) = state.segments.get_mut(&number) else { continue };
            let take = left.min(SEGMENT_BYTES - segment.tail);
            room.push((Extent { segment: number, offset: segment.tail, bytes: take }, target));
            segment.tail += take;
            segment.live += take;
            left -= take;
        }
        Ok(room)
    }

    fn active(&self, state: &mut LogState) -> Result<(u32, SyncTarget)> {
        if let Some((number, target)) = &state.active
            && state.segments.get(number).is_some_and(|segment| segment.tail < SEGMENT_BYTES)
        {
            return Ok((*number, target.clone()));
        }
        let number = state.next;
        let path = segment_path(&self.dir, number);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(ArchiveError::io("create", &path))?;
        sync_dir(&self.dir)?;
        state.next += 1;
        state.segments.insert(number, SegmentState::default());
        let target =
            SyncTarget { number: u64::from(number), file: Arc::new(file), path: Arc::new(path) };
        let old = state.active.replace((number, target.clone()));
        if let Some((old, _)) = old {
            self.drop_if_empty(state, old);
        }
        Ok((number, target))
    }

    /// Gives extents back. Their blocks return to the file system when free stretches of
    /// [`PUNCH_BYTES_MIN`] have come together and nobody reads the segment, or with the segment.
    pub(crate) fn free(&self, extents: &[Extent]) {
        let mut touched = BTreeSet::new();
        let mut state = self.lock();
        for &extent in extents {
            self.budget.give(extent.bytes);
            let Some(segment) = state.segments.get_mut(&extent.segment) else { continue };
            segment.live = segment.live.saturating_sub(extent.bytes);
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
        LogReader { log: Arc::clone(self), extents, pinned, open: None }
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

/// A body's way into a log. Dropped without [`LogWriter::keep`], its room is given back.
#[derive(Debug)]
pub(crate) struct LogWriter {
    log: Arc<SegmentLog>,
    room: Vec<Extent>,
    targets: Vec<SyncTarget>,
    room_bytes: u64,
    written: u64,
    is_kept: AtomicBool,
}

impl LogWriter {
    fn reserve(&mut self, bytes: u64) -> Result<()> {
        for (extent, target) in self.log.reserve(bytes)? {
            self.room_bytes += extent.bytes;
            match self.room.last_mut() {
                Some(last)
                    if last.segment == extent.segment
                        && last.offset + last.bytes == extent.offset =>
                {
                    last.bytes += extent.bytes;
                }
                _ => {
                    self.room.push(extent);
                    self.targets.push(target);
                }
            }
        }
        Ok(())
    }

    /// Appends `bytes`. May block on the disk.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let needed = self.written + bytes.len() as u64;
        if needed > self.room_bytes {
            self.reserve((needed - self.room_bytes).max(CHUNK_BYTES as u64))?;
        }
        let mut rest = bytes;
        let mut start = 0;
        for (extent, target) in self.room.iter().zip(&self.targets) {
            if rest.is_empty() {
                break;
            }
            let end = start + extent.bytes;
            if self.written < end {
                let skip = self.written - start;
                let (now, later) = rest.split_at(rest.len().min(to_usize(extent.bytes - skip)));
                target
                    .file
                    .write_all_at(now, extent.offset + skip)
                    .map_err(ArchiveError::io("write", &target.path))?;
                self.written += now.len() as u64;
                rest = later;
            }
            start = end;
        }
        assert!(rest.is_empty(), "room was reserved for every byte");
        Ok(())
    }

    /// Writes bytes of the run at `offset`, which must lie in the reserved room; any thread may
    /// write any part. [`Self::set_written`] says when all parts are there.
    pub(crate) fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> Result<()> {
        for (extent, target) in self.room.iter().zip(&self.targets) {
            if offset >= extent.bytes {
                offset -= extent.bytes;
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(to_usize(extent.bytes - offset)));
            target
                .file
                .write_all_at(now, extent.offset + offset)
                .map_err(ArchiveError::io("write", &target.path))?;
            bytes = later;
            offset = 0;
            if bytes.is_empty() {
                return Ok(());
            }
        }
        assert!(bytes.is_empty(), "room was reserved for every byte");
        Ok(())
    }

    /// The first `bytes` of the room hold the run.
    pub(crate) fn set_written(&mut self, bytes: u64) {
        assert!(bytes <= self.room_bytes, "no more was written than reserved");
        self.written = bytes;
    }

    /// Returns when everything written by all of `writers` is on stable storage.
    pub(crate) fn sync_many<'a>(writers: impl Iterator<Item = &'a Self>) -> Result<()> {
        let mut targets: BTreeMap<u64, SyncTarget> = BTreeMap::new();
        let mut log = None;
        for writer in writers {
            log = Some(&writer.log);
            targets.extend(writer.targets.iter().map(|t| (t.number, t.clone())));
        }
        log.map_or(Ok(()), |log| log.sync.sync_blocking(targets.into_values().collect()))
    }

    /// Returns when everything written so far is on stable storage.
    pub(crate) async fn sync(&self) -> Result<()> {
        if self.written == 0 { Ok(()) } else { self.log.sync.sync(self.targets.clone()).await }
    }

    /// The extents of what was written. They stay reserved until [`Self::keep`].
    pub(crate) fn extents(&self) -> Vec<Extent> {
        let mut left = self.written;
        let mut extents = Vec::with_capacity(self.room.len());
        for extent in &self.room {
            let bytes = extent.bytes.min(left);
            if bytes > 0 {
                extents.push(Extent { bytes, ..*extent });
            }
            left -= bytes;
        }
        extents
    }

    /// A committed row names the extents now; what was reserved beyond them is given back.
    pub(crate) fn keep(&self) {
        if self.is_kept.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut surplus = Vec::new();
        let mut left = self.written;
        for extent in &self.room {
            let used = extent.bytes.min(left);
            left -= used;
            if used < extent.bytes {
                let (offset, bytes) = (extent.offset + used, extent.bytes - used);
                surplus.push(Extent { segment: extent.segment, offset, bytes });
            }
        }
        self.log.free(&surplus);
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        if !*self.is_kept.get_mut() {
            self.log.free(&self.room);
        }
    }
}

/// Extents opened for reading, as one run of bytes. One file is open at a time.
#[derive(Debug)]
pub(crate) struct LogReader {
    log: Arc<SegmentLog>,
    extents: Vec<Extent>,
    pinned: BTreeSet<u32>,
    open: Option<(u32, File)>,
}

impl LogReader {
    /// Fills `buffer` from byte `offset` of the run. May block on the disk.
    pub(crate) fn read_at(&mut self, mut offset: u64, mut buffer: &mut [u8]) -> Result<()> {
        for index in 0..self.extents.len() {
            let extent = self.extents[index];
            if buffer.is_empty() {
                break;
            }
            if offset >= extent.bytes {
                offset -= extent.bytes;
                continue;
            }
            let take = buffer.len().min(to_usize(extent.bytes - offset));
            let (now, later) = buffer.split_at_mut(take);
            self.read_extent(extent.segment, extent.offset + offset, now)?;
            buffer = later;
            offset = 0;
        }
        if buffer.is_empty() {
            return Ok(());
        }
        Err(ArchiveError::Internal { what: "read beyond the extents of a body".to_owned() })
    }

    fn read_extent(&mut self, segment: u32, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let damaged = |error: std::io::Error| ArchiveError::Corrupt {
            what: format!(
                "segment {segment} of the {} log is cut off or unreadable: {error}",
                self.log.kind.folder()
            ),
        };
        let file = match &mut self.open {
            Some((number, file)) if *number == segment => file,
            open => {
                let file = File::open(segment_path(&self.log.dir, segment)).map_err(damaged)?;
                &mut open.insert((segment, file)).1
            }
        };
        file.read_exact_at(buffer, offset).map_err(damaged)
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        self.log.release_reader(self.pinned.iter().copied());
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn segment_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:08}.seg"))
}

fn list_segments(dir: &Path) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(ArchiveError::io("list", dir))? {
        let name = entry.map_err(ArchiveError::io("list", dir))?.file_name();
        let number = name.to_str().and_then(|n| n.strip_suffix(".seg")).map(str::parse);
        if let Some(Ok(number)) = number {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Makes a new or renamed entry of `dir` durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    let file = File::open(dir).map_err(ArchiveError::io("open", dir))?;
    file.sync_all().map_err(ArchiveError::io("sync", dir))
}

#[cfg(test)]
mod tests;
