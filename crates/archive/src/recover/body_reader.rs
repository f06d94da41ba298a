//! Reads bodies in logs to verify their digests: single bodies, or many in order of their
//! locations.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use fulgurite_glass::cipher_crc;

use crate::bodies::log::{Extent, LogKind};
use crate::limits::CHUNK_BYTES;
use crate::rows::BodyRow;

/// Path and length of each segment.
pub(super) type Files = BTreeMap<(LogKind, u32), (PathBuf, u64)>;

/// Reads one body after another; adjacent small ones share a read.
#[derive(Debug, Default)]
pub(super) struct BodyReader {
    is_in_order: bool,
    /// The segment read last.
    open: Option<((LogKind, u32), File)>,
    /// Buffered bytes of it, from `window_at` on.
    window: Vec<u8>,
    window_at: u64,
}

impl BodyReader {
    /// Creates a reader with read-ahead, for bodies in order of their locations.
    pub(super) fn in_order() -> Self {
        Self { is_in_order: true, ..Self::default() }
    }

    /// Whether the bytes of a body in a log match the ingested ones.
    pub(super) fn is_intact(&mut self, files: &Files, body: &BodyRow) -> bool {
        let Some(log) = body.in_log() else { return true };
        let mut crc = cipher_crc();
        let mut extents = log.extents.iter();
        let read = extents.try_for_each(|&extent| self.read(files, log.kind, extent, &mut crc));
        read.is_ok() && crc.finalize() == body.digest
    }

    fn read(
        &mut self,
        files: &Files,
        kind: LogKind,
        extent: Extent,
        crc: &mut crc_fast::Digest,
    ) -> std::io::Result<()> {
        let place = (kind, extent.segment);
        let (path, file_bytes) = files.get(&place).cloned().unwrap_or_default();
        if self.open.as_ref().is_none_or(|(open, _)| *open != place) {
            self.window.clear();
            self.open = Some((place, File::open(path)?));
        }
        let Some((_, file)) = &self.open else { return Ok(()) };
        let (mut at, end) = (extent.offset, extent.end());
        while at < end {
            let buffered = self.window_at..self.window_at + self.window.len() as u64;
            if !buffered.contains(&at) {
                self.window_at = at;
                let ahead = if self.is_in_order { file_bytes.max(end) } else { end };
                // Read-ahead may hit unreadable bytes that belong to other bodies: retry without
                // it.
                fill(file, &mut self.window, at, ahead)
                    .or_else(|_| fill(file, &mut self.window, at, end))?;
                continue;
            }
            let from = to_usize(at - self.window_at);
            let until = self.window.len().min(to_usize(end - self.window_at));
            crc.update(&self.window[from..until]);
            at += (until - from) as u64;
        }
        Ok(())
    }
}

/// Fills `window` from `at`, up to `end` or the window's maximum size.
fn fill(file: &File, window: &mut Vec<u8>, at: u64, end: u64) -> std::io::Result<()> {
    window.resize(CHUNK_BYTES.min(to_usize(end - at)), 0);
    let read = file.read_exact_at(window, at);
    if read.is_err() {
        window.clear();
    }
    read
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use fulgurite_units::ObjectId;

    use super::*;
    use crate::rows::{LoggedBody, Place};

    const KIND: LogKind = LogKind::Staging;
    const BODIES: usize = 40;

    /// Creates two segments of noise with adjacent bodies of two extents each.
    fn world(dir: &tempfile::TempDir) -> (Files, Vec<BodyRow>) {
        let noise = |at: u32| at.wrapping_mul(2_654_435_761).to_le_bytes()[3];
        let noise: Vec<u8> = (0..1 << 20).map(noise).collect();
        let mut files = Files::new();
        for segment in 0..2 {
            let path = dir.path().join(segment.to_string());
            std::fs::write(&path, &noise).unwrap();
            files.insert((KIND, segment), (path, noise.len() as u64));
        }
        let bytes = noise.len() / BODIES;
        let body = |number: usize| {
            let extents = [0, 1].map(|segment| Extent {
                segment,
                offset: (number * bytes) as u64,
                bytes: bytes as u64,
            });
            let mut crc = cipher_crc();
            extents.iter().for_each(|_| crc.update(&noise[number * bytes..(number + 1) * bytes]));
            BodyRow {
                body_id: ObjectId::from_bytes([u8::try_from(number).unwrap(); 16]),
                digest: crc.finalize(),
                place: Place::Log(LoggedBody::new(KIND, extents.to_vec(), Vec::new())),
                ..crate::testing::body_row(KIND)
            }
        };
        (files, (0..BODIES).map(body).collect())
    }

    #[test]
    fn read_ahead_matches_single_reads() {
        let dir = crate::testing::dir();
        let (mut files, bodies) = world(&dir);
        let intact = |files: &Files, mut reader: BodyReader| -> Vec<usize> {
            (0..BODIES).filter(|&at| reader.is_intact(files, &bodies[at])).collect()
        };
        let both = |files: &Files| {
            let found = intact(files, BodyReader::in_order());
            assert_eq!(found, intact(files, BodyReader::default()));
            found
        };
        assert_eq!(both(&files), (0..BODIES).collect::<Vec<_>>());
        let (path, bytes) = files[&(KIND, 1)].clone();
        let mut content = std::fs::read(&path).unwrap();
        let at = content.len() / 2;
        content[at] ^= 1;
        std::fs::write(&path, &content).unwrap();
        let bad = at / (content.len() / BODIES);
        assert_eq!(both(&files), (0..BODIES).filter(|&at| at != bad).collect::<Vec<_>>());
        // If a file is shorter than stated, only bodies beyond its end are lost.
        std::fs::write(&path, &content[..at]).unwrap();
        assert_eq!(both(&files), (0..bad).collect::<Vec<_>>());
        files.insert((KIND, 1), (dir.path().join("missing"), bytes));
        assert_eq!(both(&files), Vec::<usize>::new());
    }
}
