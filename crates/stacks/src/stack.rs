//! One stack: all fragments of a blob that lie on one disk, in one file that says what it is.
//!
//! What is wrong with a stack is a [`Fault`], which is data and no error: the others
//! of its blob take over.

mod reader;
mod writer;

use std::io;

pub use reader::StackReader;
pub use writer::StackWriter;

use fulgurite_units::BlobId;

use crate::Fault;

/// Bytes that can be read at any place, as those of a file.
pub trait ReadAt {
    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Those of the file, and `UnexpectedEof` when it ends before.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault>;

    /// How many there are.
    ///
    /// # Errors
    /// Those of the file.
    fn bytes(&self) -> Result<u64, Fault>;

    /// Says that `bytes` from `offset` on are read soon. It may do nothing.
    fn will_need(&self, _offset: u64, _bytes: u64) {}

    /// Whether that [waits](Self::will_need) until its disk has read them: whoever reads from
    /// several disks says it to all side by side.
    fn waits_for(&self, _offset: u64, _bytes: u64) -> bool {
        false
    }
}

/// Where bytes are written one behind the other, and kept.
pub trait Sink {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// Those of the file.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault>;

    /// Returns when all of them are on stable storage.
    ///
    /// # Errors
    /// Those of the file.
    fn sync(&mut self) -> Result<(), Fault>;
}

impl ReadAt for std::fs::File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let read = std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset);
        read.map_err(|error| Fault::of(&error))
    }

    fn bytes(&self) -> Result<u64, Fault> {
        self.metadata().map(|metadata| metadata.len()).map_err(|error| Fault::of(&error))
    }
}

impl Sink for std::fs::File {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        io::Write::write_all(self, bytes).map_err(|error| Fault::of(&error))
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.sync_all().map_err(|error| Fault::of(&error))
    }
}

impl ReadAt for &[u8] {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Fault> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let found = from.and_then(|from| from.get(..buffer.len()));
        buffer
            .copy_from_slice(found.ok_or_else(|| Fault::of(&io::ErrorKind::UnexpectedEof.into()))?);
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

/// The name of a stack's file on its disk.
#[must_use]
pub fn file_name(blob: BlobId, index: u8) -> String {
    format!("{blob}.{index:03}.stack")
}

/// The name of a stack that is made anew, until it takes that of the one before it.
#[must_use]
pub fn new_name(name: &str) -> String {
    format!("{name}.new")
}

/// Blob and index of the stack that a file is called after.
#[must_use]
pub fn parse_file_name(name: &str) -> Option<(BlobId, u8)> {
    let (blob, index) = name.strip_suffix(".stack")?.split_once('.')?;
    let (blob, index) = (blob.parse().ok()?, index.parse().ok()?);
    // A name has one spelling.
    (file_name(blob, index) == name).then_some((blob, index))
}
