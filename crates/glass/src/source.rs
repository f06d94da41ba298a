//! Where platters are read from.

use std::io;

/// Where a platter is read from: a file, as a rule.
pub trait PlatterSource {
    /// Fills the buffer with the bytes at `offset`.
    ///
    /// # Errors
    /// When not all of them could be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Bytes of the source.
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
