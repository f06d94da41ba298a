//! Compares stated locations with what exists: sizes of segments, complete sets, and, where
//! necessary, the bytes of a body themselves.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_glass::Recovered;
use fulgurite_units::{ObjectId, PlatterId};

use super::body_reader::{BodyReader, Files};
use super::context::RecoveryContext;
use super::logs::Segment;
use super::objects::{CompleteBody, StorageCheck};
use super::salvage::Salvaged;
use crate::bodies::log::{Extent, LogKind, list_segments, segment_path};
use crate::limits::SCAN_THREADS_MAX;
use crate::rows::BodyRow;

/// Last segments of each run and log that may have unsynced bytes: the one being written, and the
/// one before it, whose last bodies may still have been waiting for their sync.
const UNSYNCED_SEGMENTS: usize = 2;

/// What exists on disk and glass.
pub(super) struct Inventory<'a> {
    glass: &'a Recovered,
    safe: BTreeSet<PlatterId>,
    files: Files,
    /// The last segments of each run.
    tails: BTreeSet<(LogKind, u32)>,
    reader: BodyReader,
}

impl<'a> Inventory<'a> {
    pub(super) fn new(
        context: &RecoveryContext,
        glass: &'a Recovered,
        segments: &[Segment],
        salvaged: &Salvaged,
    ) -> Self {
        let mut files = BTreeMap::new();
        let mut runs: BTreeMap<(LogKind, Option<u64>), BTreeSet<u32>> = BTreeMap::new();
        for segment in segments {
            files.insert((segment.kind, segment.number), (segment.path.clone(), segment.bytes));
            runs.entry((segment.kind, segment.run)).or_default().insert(segment.number);
        }
        let dir = context.paths.log(LogKind::Restored);
        for number in list_segments(&dir).unwrap_or_default() {
            let path = segment_path(&dir, number);
            let bytes = path.metadata().map_or(0, |metadata| metadata.len());
            files.insert((LogKind::Restored, number), (path, bytes));
        }
        let tails = runs.iter().flat_map(|(&(kind, _), numbers)| {
            numbers.iter().rev().take(UNSYNCED_SEGMENTS).map(move |&number| (kind, number))
        });
        Self {
            glass,
            safe: glass.safe(&salvaged.glass),
            files,
            tails: tails.collect(),
            reader: BodyReader::default(),
        }
    }

    /// Whether the log extents in a row lie within existing segments.
    pub(super) fn holds_body(&self, body: &BodyRow) -> bool {
        body.in_log().is_some_and(|log| self.holds(log.kind, &log.extents))
    }
}

impl StorageCheck for Inventory<'_> {
    fn is_safe_on(&self, platter: PlatterId) -> bool {
        self.safe.contains(&platter)
    }

    fn has(&self, platter: PlatterId) -> bool {
        self.glass.has(platter)
    }

    fn holds(&self, kind: LogKind, extents: &[Extent]) -> bool {
        extents.iter().all(|extent| {
            let file = self.files.get(&(kind, extent.segment));
            let end = extent.offset.checked_add(extent.bytes);
            file.zip(end).is_some_and(|((_, bytes), end)| end <= *bytes)
        })
    }

    fn is_intact(&mut self, body: &BodyRow) -> bool {
        self.reader.is_intact(&self.files, body)
    }

    fn may_be_torn(&self, body: &CompleteBody) -> bool {
        let kind = body.row.in_log().map(|log| log.kind);
        kind.zip(body.written)
            .is_some_and(|(kind, written)| self.tails.contains(&(kind, written.segment)))
    }

    #[expect(clippy::disallowed_methods, reason = "one computation is shared out")]
    fn torn(&mut self, bodies: &[&CompleteBody]) -> BTreeSet<ObjectId> {
        let place = |body: &BodyRow| {
            let log = body.in_log()?;
            log.extents.first().map(|extent| (log.kind, extent.segment, extent.offset))
        };
        let wanted = bodies.iter().filter(|body| self.may_be_torn(body)).map(|body| &body.row);
        let mut wanted: Vec<_> = wanted.map(|row| (place(row), row)).collect();
        wanted.sort_unstable_by_key(|&(place, _)| place);
        let files = &self.files;
        let read = |rows: &[(_, &BodyRow)]| -> Vec<ObjectId> {
            let mut reader = BodyReader::in_order();
            let torn = rows.iter().filter(|(_, row)| !reader.is_intact(files, row));
            torn.map(|(_, row)| row.body_id).collect()
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = wanted.len().div_ceil(threads.min(SCAN_THREADS_MAX)).max(1);
        std::thread::scope(|scope| {
            let readers: Vec<_> =
                wanted.chunks(share).map(|rows| scope.spawn(move || read(rows))).collect();
            let torn = readers.into_iter().map(|reader| match reader.join() {
                Ok(torn) => torn,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            torn.flatten().collect()
        })
    }
}
