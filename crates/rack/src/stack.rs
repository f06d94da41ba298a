//! One stack: all fragments of a blob on one disk, in one self-describing file.
//!
//! A defect of a stack is a [`Fault`], which is data rather than an error: the other stacks of the
//! blob take over.

mod reader;
mod writer;

use std::io;

pub use reader::StackReader;
pub use writer::StackWriter;

use fulgurite_units::BlobId;

use crate::Fault;

/// A source with positional reads, such as a file.
pub trait ReadAt {
    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Those of the file, and `UnexpectedEof` when it ends earlier.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault>;

    /// Returns its length.
    ///
    /// # Errors
    /// Those of the file.
    fn bytes(&self) -> Result<u64, Fault>;

    /// Hints that `bytes` from `offset` on are read soon. May do nothing.
    fn will_need(&self, _offset: u64, _bytes: u64) {}

    /// Whether that hint [blocks](Self::will_need) until the disk has read them. Callers that read
    /// from several disks then give it in parallel.
    fn waits_for(&self, _offset: u64, _bytes: u64) -> bool {
        false
    }
}

/// An append-only sink that can be synced.
pub trait Sink {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// Those of the file.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault>;

    /// Blocks until all of them are on stable storage.
    ///
    /// # Errors
    /// Those of the file.
    fn sync(&mut self) -> Result<(), Fault>;
}

impl ReadAt for std::fs::File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let read = std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset);
        read.map_err(|error| Fault::from_io_error(&error))
    }

    fn bytes(&self) -> Result<u64, Fault> {
        self.metadata().map(|metadata| metadata.len()).map_err(|error| Fault::from_io_error(&error))
    }
}

impl Sink for std::fs::File {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        io::Write::write_all(self, bytes).map_err(|error| Fault::from_io_error(&error))
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.sync_all().map_err(|error| Fault::from_io_error(&error))
    }
}

impl ReadAt for &[u8] {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let found = from.and_then(|from| from.get(..buffer.len()));
        buffer.copy_from_slice(
            found.ok_or_else(|| Fault::from_io_error(&io::ErrorKind::UnexpectedEof.into()))?,
        );
        Ok(())
    }

    fn bytes(&self) -> Result<u64, Fault> {
        Ok(crate::format::bytes(self.len()))
    }
}

impl Sink for Vec<u8> {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Returns the name of a stack's file on its disk.
#[must_use]
pub fn file_name(blob: BlobId, index: u8) -> String {
    format!("{blob}.{index:03}.stack")
}

/// Returns the temporary name of a rebuilt stack, until it is renamed over the old one.
#[must_use]
pub fn new_name(name: &str) -> String {
    format!("{name}.new")
}

/// Parses blob and index from the name of a stack's file.
#[must_use]
pub fn parse_file_name(name: &str) -> Option<(BlobId, u8)> {
    let (blob, index) = name.strip_suffix(".stack")?.split_once('.')?;
    let (blob, index) = (blob.parse().ok()?, index.parse().ok()?);
    // Only the canonical spelling counts.
    (file_name(blob, index) == name).then_some((blob, index))
}
