//! The output to which platters are written.

use std::io;

/// The output of a platter writer, usually a file.
pub trait PlatterSink {
    /// Appends bytes at the end.
    ///
    /// # Errors
    /// When they could not be written; the platter is scrap then.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
}

impl<S: PlatterSink + ?Sized> PlatterSink for &mut S {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (**self).append(bytes)
    }
}

/// A platter in memory, for tests and small platters.
impl PlatterSink for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}
