//! Where bytes are said to be, compared with what is there: sizes of segments, whole sets, and,
//! where it must be, the bytes of a body themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use fulgurite_units::{PlatterId, SetId};

use super::glass::Glass;
use super::logs::Segment;
use super::objects::{Look, WholeBody};
use super::opened::Opened;
use super::salvaged::Salvaged;
use crate::ingest::cipher_crc;
use crate::limits::CHUNK_BYTES;
use crate::log::{Extent, LogKind, list_segments, segment_path};
use crate::rows::{BodyRow, SetState};

/// Segments of each run and log whose bytes a crash may have come before the sync of: the one that
/// was written, and the one before it, whose last bodies may have waited still.
const UNSYNCED_SEGMENTS: usize = 2;

/// What is there.
pub(super) struct Places<'a> {
    glass: &'a Glass,
    safe: BTreeSet<PlatterId>,
    files: BTreeMap<(LogKind, u32), (PathBuf, u64)>,
    /// The last segments of each run.
    tails: BTreeSet<(LogKind, u32)>,
    /// The segment read last.
    open: Option<((LogKind, u32), File)>,
}

impl<'a> Places<'a> {
    pub(super) fn new(
        opened: &Opened,
        glass: &'a Glass,
        segments: &[Segment],
        salvaged: &Salvaged,
    ) -> Self {
        let is_released =
            |set: SetId| salvaged.sets.get(&set).is_none_or(|row| row.state == SetState::Released);
        let safe = glass.whole_sets().filter(|&(set, _)| is_released(set));
        let mut files = BTreeMap::new();
        let mut runs: BTreeMap<(LogKind, Option<u64>), BTreeSet<u32>> = BTreeMap::new();
        for segment in segments {
            files.insert((segment.kind, segment.number), (segment.path.clone(), segment.bytes));
            runs.entry((segment.kind, segment.run)).or_default().insert(segment.number);
        }
        let dir = opened.layout.log(LogKind::Restored);
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
            safe: safe.map(|(_, p)| p).collect(),
            files,
            tails: tails.collect(),
            open: None,
        }
    }

    /// Whether the bytes that a row says are in a log can be there.
    pub(super) fn holds_body(&self, body: &BodyRow) -> bool {
        body.log.as_ref().is_some_and(|(kind, extents)| self.holds(*kind, extents))
    }

    fn read(
        &mut self,
        kind: LogKind,
        extent: Extent,
        crc: &mut crc_fast::Digest,
    ) -> std::io::Result<()> {
        let place = (kind, extent.segment);
        if self.open.as_ref().is_none_or(|(open, _)| *open != place) {
            let path = self.files.get(&place).map(|(path, _)| path.clone()).unwrap_or_default();
            self.open = Some((place, File::open(path)?));
        }
        let Some((_, file)) = &self.open else { return Ok(()) };
        let (mut at, end) = (extent.offset, extent.offset + extent.bytes);
        let mut buffer =
            vec![0; CHUNK_BYTES.min(usize::try_from(extent.bytes).unwrap_or(CHUNK_BYTES))];
        while at < end {
            let now = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            file.read_exact_at(&mut buffer[..now], at)?;
            crc.update(&buffer[..now]);
            at += now as u64;
        }
        Ok(())
    }
}

impl Look for Places<'_> {
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
        let Some((kind, extents)) = &body.log else { return true };
        let mut crc = cipher_crc();
        let read = extents.iter().try_for_each(|&extent| self.read(*kind, extent, &mut crc));
        read.is_ok() && crc.finalize() == body.digest
    }

    fn may_be_torn(&self, body: &WholeBody) -> bool {
        let kind = body.row.log.as_ref().map(|&(kind, _)| kind);
        kind.zip(body.written)
            .is_some_and(|(kind, written)| self.tails.contains(&(kind, written.segment)))
    }
}
