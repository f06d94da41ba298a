//! Direct I/O in whole pages, for callers that read less at a time.
//!
//! One window moves forward with the reader. A second holds the end of the file, which tells
//! whether the stack is complete and is needed first.

use fulgurite_disks::DiskFile;
use fulgurite_disks::limits::DIRECT_ALIGN;

use super::on_disk::fault;
use crate::Fault;
use crate::format::{FRAGMENT_BYTES, SUM_BYTES, TRAILER_BYTES, bytes};

/// Bytes of a stack per direct read: four fragments with their checksums, wherever in a page they
/// begin. With half of that a put took an eighth longer, with twice that as long
/// (docs/rack-speed.md).
const READ_BACK_WINDOW: usize =
    (4 * (FRAGMENT_BYTES + SUM_BYTES) + DIRECT_ALIGN).next_multiple_of(DIRECT_ALIGN);

/// Bytes of the end that are read first: a trailer, wherever in a page it begins.
const READ_BACK_END: usize = 2 * DIRECT_ALIGN;

const _: () = assert!(TRAILER_BYTES <= READ_BACK_END - DIRECT_ALIGN);

/// The parts of a file that were last read.
#[derive(Debug)]
pub(super) struct Window {
    body: Pages,
    end: Pages,
}

/// Bytes of a file from a page boundary on.
#[derive(Debug)]
struct Pages {
    /// Buffer with slack, so that the data can begin at an aligned address.
    buffer: Vec<u8>,
    /// Their offset in the file.
    start: u64,
    filled: usize,
}

impl Window {
    pub(super) fn new() -> Self {
        Self { body: Pages::new(READ_BACK_WINDOW), end: Pages::new(READ_BACK_END) }
    }

    /// Fills `buffer` with the bytes at `offset` of `file`.
    ///
    /// # Errors
    /// When the file ends earlier, or cannot be read.
    pub(super) fn read(
        &mut self,
        file: &DiskFile,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), Fault> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + bytes(done);
            if self.bytes_from(at).is_empty() {
                self.body.fill(file, at)?;
            }
            let here = self.bytes_from(at);
            if here.is_empty() {
                return Err(Fault::from_io_error(&std::io::ErrorKind::UnexpectedEof.into()));
            }
            let count = here.len().min(buffer.len() - done);
            buffer[done..][..count].copy_from_slice(&here[..count]);
            done += count;
        }
        Ok(())
    }

    /// Whether it holds `count` bytes from `offset` on.
    pub(super) fn contains(&self, offset: u64, count: u64) -> bool {
        bytes(self.bytes_from(offset).len()) >= count
    }

    /// Prefetches. A short span that is not at the beginning is the trailer and goes to the window
    /// of the end. Errors are left to the read that needs the bytes.
    pub(super) fn prefetch(&mut self, file: &DiskFile, offset: u64, count: u64) {
        let is_end = offset > 0 && count <= bytes(READ_BACK_END - DIRECT_ALIGN);
        let pages = if is_end { &mut self.end } else { &mut self.body };
        let _ = pages.fill(file, offset);
    }

    /// Returns the bytes it holds from `at` on.
    fn bytes_from(&self, at: u64) -> &[u8] {
        let (body, end) = (self.body.bytes_from(at), self.end.bytes_from(at));
        if body.len() >= end.len() { body } else { end }
    }
}

impl Pages {
    fn new(count: usize) -> Self {
        Self { buffer: vec![0; count + DIRECT_ALIGN], start: 0, filled: 0 }
    }

    fn bytes_from(&self, at: u64) -> &[u8] {
        let within = at.checked_sub(self.start).and_then(|within| usize::try_from(within).ok());
        let here = &self.buffer[self.first()..][..self.filled];
        within.and_then(|within| here.get(within..)).unwrap_or_default()
    }

    /// Reads from the page that contains the byte `at`.
    fn fill(&mut self, file: &DiskFile, at: u64) -> Result<(), Fault> {
        let page = bytes(DIRECT_ALIGN);
        self.start = at / page * page;
        self.filled = 0;
        let (first, count) = (self.first(), self.buffer.len() - DIRECT_ALIGN);
        let buffer = &mut self.buffer[first..][..count];
        self.filled = file.read_at(buffer, self.start).map_err(|error| fault(&error))?;
        Ok(())
    }

    /// Returns the aligned start within the buffer.
    fn first(&self) -> usize {
        self.buffer.as_ptr().align_offset(DIRECT_ALIGN)
    }
}
