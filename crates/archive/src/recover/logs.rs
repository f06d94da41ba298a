//! Bodies in the segments of the staging and online logs, and in orphaned segments.
//!
//! Segments are independent, so several threads scan them and open the entries that they find: for
//! small objects, opening a million entries takes longer than finding them. Nothing is written and
//! no segment is moved: when the new catalog names an orphan, the next start restores it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fulgurite_units::{ArchiveId, ObjectId};

use super::evidence::{Bodies, BodyEvidence, KnownEntry, LoggedRange, WriteStamp};
use crate::bodies::entry::{Entry as ObjectEntry, PartEntry};
use crate::bodies::key_table::{KeyReader, KeyTable, UsedSlot};
use crate::bodies::log::orphans::Orphans;
use crate::bodies::log::record::{EntryForm, HEADER_BYTES, RecordHeader, RecordKind};
use crate::bodies::log::scan::{ScannedRecord, SegmentScan, read_segment_header};
use crate::bodies::log::{Extent, LogKind, list_segments, segment_path};
use crate::bodies::unconfirmed::UnconfirmedList;
use crate::directory::Paths;
use crate::limits::SCAN_THREADS_MAX;
use crate::{ArchiveError, Result};

/// The logs that hold data that exists nowhere else.
const KINDS: [LogKind; 2] = [LogKind::Staging, LogKind::Online];

/// A segment, in its log or orphaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) kind: LogKind,
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) is_orphan: bool,
    /// The run that wrote it, if its header is readable.
    pub(crate) run: Option<u64>,
    /// Length of the file.
    pub(crate) bytes: u64,
    /// Bytes in it that are neither records nor zeros.
    pub(crate) unrecognized_bytes: u64,
    /// Bodies with a key of which it holds something.
    pub(crate) bodies: BTreeSet<ObjectId>,
}

/// The result of a scan of segments.
#[derive(Debug, Default)]
pub(crate) struct LogFindings {
    pub(crate) segments: Vec<Segment>,
    /// Bodies that have an entry as a part of an upload, and none as an object's.
    pub(crate) parts: BTreeMap<ObjectId, Box<PartEntry>>,
    /// What could not be read.
    pub(crate) broken: Vec<String>,
}

/// What consecutive records of one body hold.
#[derive(Debug)]
struct Piece {
    body: ObjectId,
    slot: UsedSlot,
    found: BodyEvidence,
    part: Option<Box<PartEntry>>,
}

impl Piece {
    /// Adds a record of the body; entries are opened.
    fn take(
        &mut self,
        record: ScannedRecord<'_>,
        keys: &mut KeyReader<'_>,
        unconfirmed: &UnconfirmedList,
    ) -> Result<()> {
        let kind = record.header().log;
        let (header, slot) = (*record.header(), self.slot);
        let content = if matches!(record, ScannedRecord::Data(_)) { header.bytes } else { 0 };
        self.found.framing.extend(framing(&header, content).map(|extent| (kind, extent)));
        match (record, header.kind) {
            (ScannedRecord::Data(_), RecordKind::Data { body_offset, .. }) => {
                let extent = header.content();
                self.found.ranges.push(LoggedRange { kind, extent, body_offset });
            }
            (ScannedRecord::Entry(_, sealed), RecordKind::Entry { form, written, .. }) => {
                let key = keys.load(slot.index, slot.body)?;
                let written =
                    Some(WriteStamp { run: header.run, at: written, segment: header.segment });
                match form {
                    EntryForm::Part => {
                        self.part = Some(Box::new(PartEntry::open(&key, slot.body, sealed)?));
                    }
                    EntryForm::Object => {
                        let entry = Box::new(ObjectEntry::open(&key, slot.body, sealed)?);
                        let is_unconfirmed = unconfirmed.contains(slot.body, entry.object_id);
                        let known = KnownEntry { entry, slot, written };
                        if is_unconfirmed {
                            self.found.unconfirmed = Some(known);
                        } else {
                            self.found.record_entry(known);
                        }
                    }
                }
            }
            (ScannedRecord::Data(_) | ScannedRecord::Entry(..) | ScannedRecord::Torn(_), _) => {}
        }
        Ok(())
    }
}

/// Lists all segments of `paths`. If several files have one number, the one in the log counts, or
/// else the one of the latest run.
pub(crate) fn segments(paths: &Paths) -> Result<Vec<Segment>> {
    let mut found: BTreeMap<(LogKind, u32), Segment> = BTreeMap::new();
    for orphan in Orphans::new(paths.root()).list()? {
        if KINDS.contains(&orphan.kind) {
            let segment = unscanned(orphan.kind, orphan.number, orphan.path, true);
            found.insert((orphan.kind, orphan.number), segment);
        }
    }
    for kind in KINDS {
        let dir = paths.log(kind);
        if !dir.is_dir() {
            continue;
        }
        for number in list_segments(&dir)? {
            let path = segment_path(&dir, number);
            found.insert((kind, number), unscanned(kind, number, path, false));
        }
    }
    Ok(found.into_values().collect())
}

const fn unscanned(kind: LogKind, number: u32, path: PathBuf, is_orphan: bool) -> Segment {
    let bodies = BTreeSet::new();
    Segment { kind, number, path, is_orphan, run: None, bytes: 0, unrecognized_bytes: 0, bodies }
}

impl Segment {
    /// Whether it holds anything of a body with a key, or possibly of an unknown one.
    pub(crate) fn may_hold_bodies(&self) -> bool {
        !self.bodies.is_empty() || (self.run.is_none() && self.unrecognized_bytes > 0)
    }
}

/// Returns the archive id in a segment's header.
pub(crate) fn archive_of(segment: &Segment) -> Option<ArchiveId> {
    let scan = SegmentScan::open(&segment.path, segment.kind, segment.number).ok()?;
    scan.header().map(|header| header.archive)
}

/// Refuses segments of a newer program, whose bodies this one does not find.
pub(crate) fn refuse_newer(segments: &[Segment]) -> Result<()> {
    segments.iter().try_for_each(|segment| match read_segment_header(&segment.path) {
        Err(error @ ArchiveError::Newer { .. }) => Err(error),
        // One that cannot be read is reported when it is scanned.
        Ok(_) | Err(_) => Ok(()),
    })
}

/// Moves a segment from its log to the orphans.
pub(crate) fn set_aside(paths: &Paths, segment: &Segment) -> Result<()> {
    Orphans::new(paths.root()).adopt(&segment.path, segment.kind, segment.number, segment.run)
}

/// Scans `segments` for bodies whose keys are in `slots`, and adds the result to `bodies`. Entries
/// listed in `unconfirmed` are added as unconfirmed.
#[expect(clippy::disallowed_methods, reason = "one computation is shared out")]
pub(crate) fn scan(
    segments: Vec<Segment>,
    (keys, slots): (&KeyTable, &BTreeMap<ObjectId, UsedSlot>),
    unconfirmed: &UnconfirmedList,
    bodies: &mut Bodies,
    progress: &(dyn Fn(u64) + Sync),
) -> LogFindings {
    let next = AtomicUsize::new(0);
    let shared = Mutex::new((bodies, LogFindings::default()));
    let work = || {
        let mut keys = keys.reader();
        while let Some(segment) = segments.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut segment = segment.clone();
            let mut pieces = Vec::new();
            let mut broken = Vec::new();
            let known = (&mut keys, slots);
            let outcome = scan_one(&mut segment, known, unconfirmed, &mut pieces, &mut broken);
            if let Err(error) = outcome {
                broken.push(format!("{}: {error}", segment.path.display()));
            }
            pieces.sort_by_key(|piece| piece.body);
            segment.bodies = pieces.iter().map(|piece| piece.body).collect();
            let mut shared = shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (bodies, findings) = &mut *shared;
            findings.broken.append(&mut broken);
            merge(bodies, &mut findings.parts, pieces);
            findings.segments.push(segment);
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
    let (bodies, mut findings) =
        shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    findings.parts.retain(|body, _| bodies.get(body).is_none_or(|found| found.known.is_none()));
    findings.segments.sort_by_key(|segment| (segment.kind, segment.number));
    findings
}

fn merge(bodies: &mut Bodies, parts: &mut BTreeMap<ObjectId, Box<PartEntry>>, pieces: Vec<Piece>) {
    for Piece { body, found, part, .. } in pieces {
        match bodies.entry(body) {
            Entry::Vacant(place) => {
                place.insert(found);
            }
            Entry::Occupied(mut place) => place.get_mut().add(found),
        }
        if let Some(part) = part {
            parts.insert(body, part);
        }
    }
}

fn scan_one(
    segment: &mut Segment,
    (keys, slots): (&mut KeyReader<'_>, &BTreeMap<ObjectId, UsedSlot>),
    unconfirmed: &UnconfirmedList,
    pieces: &mut Vec<Piece>,
    broken: &mut Vec<String>,
) -> Result<()> {
    let (kind, number) = (segment.kind, segment.number);
    let mut scan = SegmentScan::open(&segment.path, kind, number)?;
    segment.run = scan.header().map(|header| header.run);
    segment.bytes = scan.file_bytes();
    while let Some(record) = scan.next_record()? {
        let header = *record.header();
        // Consecutive records mostly belong to one body.
        let slot = match pieces.last() {
            Some(last) if last.body == header.body => last.slot,
            Some(_) | None => match slots.get(&header.body) {
                Some(&slot) => slot,
                None => continue,
            },
        };
        if let ScannedRecord::Torn(header) = record {
            broken.push(format!(
                "{}: a record of body {} at byte {} is torn",
                segment.path.display(),
                header.body,
                header.offset
            ));
            continue;
        }
        if pieces.last().is_none_or(|last| last.body != header.body) {
            pieces.push(Piece {
                body: header.body,
                slot,
                found: BodyEvidence::default(),
                part: None,
            });
        }
        let Some(piece) = pieces.last_mut() else { continue };
        if let Err(error) = piece.take(record, keys, unconfirmed) {
            broken.push(format!("{}: {error}", segment.path.display()));
        }
    }
    segment.unrecognized_bytes = scan.unrecognized_bytes();
    Ok(())
}

/// Returns the extents of a record beside `content` bytes: the header, and the padding.
fn framing(header: &RecordHeader, content: u64) -> impl Iterator<Item = Extent> {
    let segment = header.segment;
    let before = Extent { segment, offset: header.offset, bytes: HEADER_BYTES };
    let offset = header.offset + HEADER_BYTES + content;
    let pad = Extent { segment, offset, bytes: header.end() - offset };
    let all = if content == 0 {
        // Header and padding are adjacent.
        [Extent { bytes: before.bytes + pad.bytes, ..before }, Extent { bytes: 0, ..pad }]
    } else {
        [before, pad]
    };
    all.into_iter().filter(|extent| extent.bytes > 0)
}

/// Returns the bodies of `wanted` that have an entry in a segment of `run` or of an unknown run.
/// They may be acknowledged uploads whose catalog rows are missing.
///
/// # Errors
/// `Newer` when a newer program wrote records that may be their entries.
pub(crate) fn with_entries(
    data: &Path,
    wanted: &BTreeSet<ObjectId>,
    run: u64,
) -> Result<BTreeSet<ObjectId>> {
    let mut found = BTreeSet::new();
    for segment in segments(&Paths::new(data))? {
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
        scan.refuse_newer()?;
    }
    Ok(found)
}
