//! Whole pages of a file that is read past the system's memory, for whoever wants less of them.
//!
//! One window, which goes forward with its reader.

use fulgurite_disks::DiskFile;
use fulgurite_disks::limits::DIRECT_ALIGN;

use super::on_disk::fault;
use crate::Fault;
use crate::format::bytes;
use crate::limits::READ_BACK_WINDOW;

/// What was last read of a file.
#[derive(Debug)]
pub(super) struct Window {
    /// Room for the window, and for its beginning to be at a page.
    room: Vec<u8>,
    /// Where it begins in the file; the beginning of a page.
    start: u64,
    have: usize,
}

impl Window {
    pub(super) fn new() -> Self {
        Self { room: vec![0; READ_BACK_WINDOW + DIRECT_ALIGN], start: 0, have: 0 }
    }

    /// Fills `buffer` with what is at `offset` of `file`.
    ///
    /// # Errors
    /// When the file ends before, or cannot be read.
    pub(super) fn read(
        &mut self,
        file: &DiskFile,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), Fault> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + bytes(done);
            let within = at.checked_sub(self.start).and_then(|within| usize::try_from(within).ok());
            let within = match within.filter(|within| *within < self.have) {
                Some(within) => within,
                None => self.fill(file, at)?,
            };
            let first = self.first();
            let here = &self.room[first..][within..self.have];
            let count = here.len().min(buffer.len() - done);
            buffer[done..][..count].copy_from_slice(&here[..count]);
            done += count;
        }
        Ok(())
    }

    /// Reads the window that has the byte `at`; says where in it that is.
    fn fill(&mut self, file: &DiskFile, at: u64) -> Result<usize, Fault> {
        let page = bytes(DIRECT_ALIGN);
        self.start = at / page * page;
        let first = self.first();
        let room = &mut self.room[first..][..READ_BACK_WINDOW];
        self.have = 0;
        self.have = file.read_at(room, self.start).map_err(|error| fault(&error))?;
        let within = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        match within < self.have {
            true => Ok(within),
            false => Err(Fault::of(&std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Where in its room it begins.
    fn first(&self) -> usize {
        self.room.as_ptr().align_offset(DIRECT_ALIGN)
    }
}
