//! Reads extents as one contiguous byte range.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::{Extent, SegmentLog, segment_path, to_usize};
use crate::{ArchiveError, Result};

/// Reads extents as one contiguous byte range. One file is open at a time.
#[derive(Debug)]
pub(crate) struct LogReader {
    log: Arc<SegmentLog>,
    extents: Vec<Extent>,
    pinned: BTreeSet<u32>,
    open: Option<(u32, File)>,
}

impl LogReader {
    /// Creates a reader. The caller has pinned the segments.
    pub(super) fn new(log: Arc<SegmentLog>, extents: Vec<Extent>, pinned: BTreeSet<u32>) -> Self {
        Self { log, extents, pinned, open: None }
    }

    /// Returns the first extent, if any.
    pub(crate) fn first(&self) -> Option<Extent> {
        self.extents.first().copied()
    }

    /// Fills `buffer` from byte `offset` of the range. May block on the disk.
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
        let path = segment_path(&self.log.dir, segment);
        let kind = self.log.kind;
        let damaged = |error: std::io::Error| {
            let is_lost = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof)
                || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
            if is_lost {
                let what = format!(
                    "segment {segment} of the {} log is cut off or unreadable: {error}",
                    kind.folder()
                );
                return ArchiveError::Corrupt { what };
            }
            // For example too many open files: the bytes are not damaged.
            ArchiveError::io("read", &path)(error)
        };
        let file = match &mut self.open {
            Some((number, file)) if *number == segment => file,
            open => {
                let file = File::open(&path).map_err(damaged)?;
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
