//! Bodies in the segments of the staging and online logs, and in those that were set aside.
//!
//! Segments are independent of each other, so several threads scan them and open the entries that
//! they meet: of small objects, opening a million entries is more work than finding them. Nothing
//! is written and no segment is moved: a catalog that names one brings it back by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fulgurite_units::{ArchiveId, ObjectId};

use super::found::{Bodies, Known, Stretch, Written};
use crate::doubts::DoubtList;
use crate::entry::{Entry, PartEntry};
use crate::key_table::{KeyTable, UsedSlot};
use crate::limits::SCAN_THREADS_MAX;
use crate::log::orphans::Orphans;
use crate::log::record::{EntryForm, HEADER_BYTES, RecordHeader, RecordKind};
use crate::log::scan::{Scanned, SegmentScan};
use crate::log::{Extent, LogKind, list_segments, segment_path};
use crate::store::Layout;
use crate::{ArchiveError, Result};

/// The logs that hold what exists nowhere else.
const KINDS: [LogKind; 2] = [LogKind::Staging, LogKind::Online];

/// A segment, in its log or set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: LogKind,
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) is_orphan: bool,
    /// The run that made it, if its header says so.
    pub(crate) run: Option<u64>,
    /// Length of the file.
    pub(crate) bytes: u64,
    /// Bytes in it that are no records: torn ones, and all of before records.
    pub(crate) foreign_bytes: u64,
    /// Bodies whose keys are there and of which it holds something.
    pub(crate) bodies: BTreeSet<ObjectId>,
}

/// What the segments told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) segments: Vec<Segment>,
    /// Bodies with an entry of a part of an upload, and none of an object.
    pub(crate) parts: BTreeMap<ObjectId, Box<PartEntry>>,
    /// What could not be read.
    pub(crate) broken: Vec<String>,
}

/// A piece of what a segment holds of a body.
#[derive(Debug)]
enum Piece {
    Stretch(Stretch),
    Framing(LogKind, Extent),
    Entry(Box<Known>),
    /// The entry of an object in doubt.
    Doubted(Box<Known>),
    Part(Box<PartEntry>),
}

/// All segments of `layout`. Of several files of one number the one in the log counts, or else the
/// one of the latest run.
pub(crate) fn segments(layout: &Layout) -> Result<Vec<Segment>> {
    let mut found: BTreeMap<(LogKind, u32), Segment> = BTreeMap::new();
    for orphan in Orphans::new(layout.root()).list()? {
        if KINDS.contains(&orphan.kind) {
            let segment = unread(orphan.kind, orphan.number, orphan.path, true);
            found.insert((orphan.kind, orphan.number), segment);
        }
    }
    for kind in KINDS {
        let dir = layout.log(kind);
        if !dir.is_dir() {
            continue;
        }
        for number in list_segments(&dir)? {
            let path = segment_path(&dir, number);
            found.insert((kind, number), unread(kind, number, path, false));
        }
    }
    Ok(found.into_values().collect())
}

const fn unread(kind: LogKind, number: u32, path: PathBuf, is_orphan: bool) -> Segment {
    let bodies = BTreeSet::new();
    Segment { kind, number, path, is_orphan, run: None, bytes: 0, foreign_bytes: 0, bodies }
}

impl Segment {
    /// Whether it holds something of a body whose key is there, or of one that nobody knows.
    pub(crate) fn may_hold(&self) -> bool {
        !self.bodies.is_empty() || (self.run.is_none() && self.foreign_bytes > 0)
    }
}

/// The archive that a segment says it is of.
pub(crate) fn archive_of(segment: &Segment) -> Option<ArchiveId> {
    let scan = SegmentScan::open(&segment.path, segment.kind, segment.number).ok()?;
    scan.header().map(|header| header.archive)
}

/// Moves a segment from its log to the orphans.
pub(crate) fn set_aside(layout: &Layout, segment: &Segment) -> Result<()> {
    Orphans::new(layout.root()).adopt(&segment.path, segment.kind, segment.number, segment.run)
}

/// Scans `segments` for bodies whose keys are in `slots`, and adds what it finds to `bodies`; of
/// those in `doubts` it finds that they are in doubt.
pub(crate) fn scan(
    segments: Vec<Segment>,
    (keys, slots): (&KeyTable, &BTreeMap<ObjectId, UsedSlot>),
    doubts: &DoubtList,
    bodies: &mut Bodies,
    progress: &(dyn Fn(u64) + Sync),
) -> Told {
    let next = AtomicUsize::new(0);
    let shared = Mutex::new((bodies, Told::default()));
    let work = || {
        while let Some(segment) = segments.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut segment = segment.clone();
            let mut pieces = Vec::new();
            let mut broken = Vec::new();
            let known = (keys, slots);
            let outcome = scan_one(&mut segment, known, doubts, &mut pieces, &mut broken);
            if let Err(error) = outcome {
                broken.push(format!("{}: {error}", segment.path.display()));
            }
            pieces.sort_by_key(|&(body, _)| body);
            segment.bodies = pieces.iter().map(|&(body, _)| body).collect();
            let mut shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (bodies, told) = &mut *shared;
            told.broken.append(&mut broken);
            merge(bodies, &mut told.parts, pieces);
            told.segments.push(segment);
            progress(bodies.len() as u64);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 1..threads.min(SCAN_THREADS_MAX).min(segments.len()) {
            scope.spawn(work);
        }
        work();
    });
    let (bodies, mut told) = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    told.parts.retain(|body, _| bodies.get(body).is_none_or(|found| found.known.is_none()));
    told.segments.sort_by_key(|segment| (segment.kind, segment.number));
    told
}

fn merge(
    bodies: &mut Bodies,
    parts: &mut BTreeMap<ObjectId, Box<PartEntry>>,
    pieces: Vec<(ObjectId, Piece)>,
) {
    let mut pieces = pieces.into_iter().peekable();
    while let Some(&(body, _)) = pieces.peek() {
        let found = bodies.entry(body).or_default();
        while let Some((_, piece)) = pieces.next_if(|&(next, _)| next == body) {
            match piece {
                Piece::Stretch(stretch) => found.stretches.push(stretch),
                Piece::Framing(kind, extent) => found.framing.push((kind, extent)),
                Piece::Entry(known) => found.learn(*known),
                Piece::Doubted(known) => found.doubted = Some(*known),
                Piece::Part(part) => {
                    parts.insert(body, part);
                }
            }
        }
    }
}

fn scan_one(
    segment: &mut Segment,
    (keys, slots): (&KeyTable, &BTreeMap<ObjectId, UsedSlot>),
    doubts: &DoubtList,
    pieces: &mut Vec<(ObjectId, Piece)>,
    broken: &mut Vec<String>,
) -> Result<()> {
    let (kind, number) = (segment.kind, segment.number);
    let mut scan = SegmentScan::open(&segment.path, kind, number)?;
    segment.run = scan.header().map(|header| header.run);
    segment.bytes = scan.file_bytes();
    while let Some(record) = scan.next_record()? {
        let header = *record.header();
        let Some(&slot) = slots.get(&header.body) else { continue };
        let mut add = |piece| pieces.push((header.body, piece));
        match (record, header.kind) {
            (Scanned::Data(_), RecordKind::Data { body_offset }) => {
                let extent = header.content();
                add(Piece::Stretch(Stretch { kind, extent, body_offset }));
                framing(&header, header.bytes).for_each(|extent| add(Piece::Framing(kind, extent)));
            }
            (Scanned::Entry(_, sealed), RecordKind::Entry { form, written, .. }) => {
                framing(&header, 0).for_each(|extent| add(Piece::Framing(kind, extent)));
                let written = Some(Written { run: header.run, at: written, segment: number });
                let piece = keys.load(slot.index, slot.body).and_then(|key| match form {
                    EntryForm::Part => {
                        PartEntry::open(&key, slot.body, sealed).map(|e| Piece::Part(Box::new(e)))
                    }
                    EntryForm::Object => Entry::open(&key, slot.body, sealed).map(|entry| {
                        let is_doubted = doubts.contains(slot.body, entry.object_id);
                        let known = Box::new(Known { entry, slot, written });
                        if is_doubted { Piece::Doubted(known) } else { Piece::Entry(known) }
                    }),
                });
                match piece {
                    Ok(piece) => add(piece),
                    Err(error) => broken.push(format!("{}: {error}", segment.path.display())),
                }
            }
            _ => broken.push(format!(
                "{}: a record of body {} at byte {} is torn",
                segment.path.display(),
                header.body,
                header.offset
            )),
        }
    }
    segment.foreign_bytes = scan.foreign_bytes();
    Ok(())
}

/// What a record takes beside `content` bytes behind its header: the header, and the pad.
fn framing(header: &RecordHeader, content: u64) -> impl Iterator<Item = Extent> {
    let segment = header.segment;
    let end = header.end();
    let before = Extent { segment, offset: header.offset, bytes: HEADER_BYTES };
    if content == 0 {
        let bytes = end - header.offset;
        return vec![Extent { bytes, ..before }].into_iter();
    }
    let offset = header.offset + HEADER_BYTES + content;
    let pad = Extent { segment, offset, bytes: end - offset };
    [before, pad].into_iter().filter(|extent| extent.bytes > 0).collect::<Vec<_>>().into_iter()
}

/// Those of `wanted` that have an entry in a segment of `run`, or of one that is not known: their
/// catalog row may be what is missing, and not their upload.
pub(crate) fn with_entries(
    data: &Path,
    wanted: &BTreeSet<ObjectId>,
    run: u64,
) -> Result<BTreeSet<ObjectId>> {
    let mut found = BTreeSet::new();
    for segment in segments(&Layout::new(data))? {
        let mut scan = match SegmentScan::open(&segment.path, segment.kind, segment.number) {
            Ok(scan) => scan,
            Err(ArchiveError::Io { .. }) if !segment.path.exists() => continue,
            Err(error) => return Err(error),
        };
        if scan.header().is_some_and(|header| header.run != run) {
            continue;
        }
        while let Some(record) = scan.next_record()? {
            let header = record.header();
            let is_entry = matches!(header.kind, RecordKind::Entry { .. });
            if is_entry && wanted.contains(&header.body) {
                found.insert(header.body);
            }
        }
    }
    Ok(found)
}
