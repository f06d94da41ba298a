//! Reads a file past the page cache, as a verification must.
//!
//! ```text
//! read_at --> window of one reader, aligned <-- O_DIRECT -- disk
//! ```
//!
//! The bytes that are compared then come from the disk, whatever the page cache holds of the file.
//! It is faster, too: the window is the same memory for a whole platter, where the page cache would
//! take new pages for every byte of it and evict others that may be needed.
//!
//! Not every file system supports such reads; where one does not, there is no `Direct`.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;

use crate::limits::{DIRECT_ALIGN, DIRECT_WINDOW_BYTES};

/// A file that is read directly, usually sequentially.
#[derive(Debug)]
pub(super) struct Direct {
    file: File,
    window: Mutex<Window>,
}

/// The part of the file that was read last.
struct Window {
    /// Buffer longer than the window, which begins in it at an aligned address.
    buffer: Vec<u8>,
    start: usize,
    /// Offset of the window in the file, and its bytes that were read.
    offset: u64,
    bytes: usize,
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buffer: _, start: _, offset, bytes } = self;
        f.debug_struct("Window")
            .field("offset", offset)
            .field("bytes", bytes)
            .finish_non_exhaustive()
    }
}

impl Direct {
    /// Opens the file at `path`; returns `None` when it cannot be read directly.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let flags = i32::try_from(OFlags::DIRECT.bits()).ok()?;
        let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
        let mut window = Window::new();
        window.fill(&file, 0).ok()?;
        Some(Self { file, window: Mutex::new(window) })
    }

    /// Fills the buffer with the bytes at `offset`.
    pub(super) fn read_at(&self, mut offset: u64, mut buffer: &mut [u8]) -> Result<()> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        while !buffer.is_empty() {
            if window.after(offset).is_empty() {
                window.fill(&self.file, offset)?;
            }
            let held = window.after(offset);
            if held.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let take = held.len().min(buffer.len());
            let (now, later) = buffer.split_at_mut(take);
            now.copy_from_slice(&held[..take]);
            (offset, buffer) = (offset + take as u64, later);
        }
        Ok(())
    }
}

impl Window {
    fn new() -> Self {
        let buffer = vec![0; DIRECT_WINDOW_BYTES + DIRECT_ALIGN];
        let start = buffer.as_ptr().align_offset(DIRECT_ALIGN);
        assert!(start < DIRECT_ALIGN, "the start of the window is within one block");
        Self { buffer, start, offset: 0, bytes: 0 }
    }

    /// Returns the window's bytes from byte `offset` of the file on.
    fn after(&self, offset: u64) -> &[u8] {
        let held = &self.buffer[self.start..][..self.bytes];
        let skip = offset.checked_sub(self.offset).and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| held.get(skip..)).unwrap_or_default()
    }

    /// Fills the window from the block of byte `offset` on.
    fn fill(&mut self, file: &File, offset: u64) -> Result<()> {
        self.bytes = 0;
        self.offset = offset / DIRECT_ALIGN as u64 * DIRECT_ALIGN as u64;
        let buffer = &mut self.buffer[self.start..][..DIRECT_WINDOW_BYTES];
        loop {
            match file.read_at(buffer, self.offset) {
                Ok(bytes) => {
                    self.bytes = bytes;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
