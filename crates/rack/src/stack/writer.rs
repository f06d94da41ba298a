//! Writes a stack: header, fragments, trailer, sync.

use super::Sink;
use crate::format::{Header, SUM_BYTES, Trailer, fragment_sum};
use crate::{Fault, Result};

/// Writes one stack. Without [`Self::finish`] it has no trailer and counts as unfinished.
#[derive(Debug)]
pub struct StackWriter<S> {
    sink: S,
    header: Header,
    stripes: u64,
}

impl<S: Sink> StackWriter<S> {
    /// Begins a stack.
    ///
    /// # Errors
    /// [`RackError::Invalid`](crate::RackError::Invalid) for an entry that is too long; the
    /// inner result has the faults of the file.
    pub fn begin(mut sink: S, header: Header) -> Result<Result<Self, Fault>> {
        let bytes = header.encode()?;
        Ok(sink.write_all(&bytes).map(|()| Self { sink, header, stripes: 0 }))
    }

    /// Which of its blob's stacks it is.
    #[must_use]
    pub const fn index(&self) -> u8 {
        self.header.index
    }

    /// Appends the fragment of the next stripe.
    ///
    /// # Errors
    /// Those of the file.
    pub fn fragment(&mut self, fragment: &[u8]) -> Result<(), Fault> {
        let sum = fragment_sum(self.header.blob, self.header.index, self.stripes, fragment);
        self.sink.write_all(fragment)?;
        let sum: [u8; SUM_BYTES] = sum.to_le_bytes();
        self.sink.write_all(&sum)?;
        self.stripes += 1;
        Ok(())
    }

    /// Ends the stack without syncing it, so that all stacks of a blob can be synced in parallel.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(mut self, trailer: &Trailer) -> Result<S, Fault> {
        assert_eq!(trailer.index, self.header.index, "the trailer of this stack");
        assert_eq!(trailer.blob, self.header.blob, "the trailer of this blob");
        self.sink.write_all(&trailer.encode())?;
        Ok(self.sink)
    }
}
