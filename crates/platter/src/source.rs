//! The input from which platters are read.

use std::io;

/// The input of a platter reader, usually a file.
pub trait PlatterSource {
    /// Fills the buffer with the bytes at `offset`.
    ///
    /// # Errors
    /// When not all of them could be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Size of the source in bytes.
    fn bytes(&self) -> u64;
}

impl<S: PlatterSource + ?Sized> PlatterSource for &S {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, buffer)
    }

    fn bytes(&self) -> u64 {
        (**self).bytes()
    }
}

/// A platter in memory, for tests and small platters.
impl PlatterSource for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        match from.checked_add(buffer.len()).and_then(|end| self.get(from..end)) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}
