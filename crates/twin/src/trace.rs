//! Traces: reads in the order of time. What workloads generate, imports yield, engines replay.
//!
//! A trace says nothing about where bytes lie: placement is the consumer's. Times are nanoseconds
//! from the start of the trace. The text format is described in `docs/formats/trace.md`.

mod format;

use std::io::{BufRead, Write};

use fulgurite_units::{ByteCount, Instant};
use serde::{Deserialize, Serialize};

use crate::Error;
pub(crate) use format::{Lines, whole_number};
pub use format::{TraceReader, write_trace};

/// Reads that a [`Trace`] holds in memory at most: 1.5 GiB of them. Longer ones are streamed.
pub const TRACE_READS_MAX: usize = 1 << 26;

/// One read of a whole file or a range of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TraceRead {
    /// When it is asked for.
    pub at: Instant,
    /// How much.
    pub size: ByteCount,
    /// What: the same number for the same file.
    pub key: u64,
}

/// Reads in the order of time; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    reads: Vec<TraceRead>,
}

impl Trace {
    /// A trace of these.
    ///
    /// # Errors
    /// When there are none, too many, or one is earlier than the one before.
    pub fn new(reads: Vec<TraceRead>) -> Result<Self, Error> {
        Self::collect(reads.into_iter().map(Ok))
    }

    /// A trace of what an iterator yields.
    ///
    /// # Errors
    /// The first that it yields; otherwise as [`Trace::new`].
    pub fn collect(
        reads: impl IntoIterator<Item = Result<TraceRead, Error>>,
    ) -> Result<Self, Error> {
        let mut kept: Vec<TraceRead> = Vec::new();
        for (number, read) in (1..).zip(reads) {
            let read = read?;
            let previous = kept.last().map_or(Instant::ZERO, |last| last.at);
            if read.at < previous {
                return Err(Error::OutOfOrder { line: number, at: read.at, previous });
            }
            if kept.len() == TRACE_READS_MAX {
                return Err(Error::TraceTooLong { limit: TRACE_READS_MAX });
            }
            kept.push(read);
        }
        if kept.is_empty() {
            return Err(Error::EmptyTrace);
        }
        Ok(Self { reads: kept })
    }

    /// Reads a trace in its text format.
    ///
    /// # Errors
    /// Names the first line and field that is not sound.
    pub fn read(source: impl BufRead) -> Result<Self, Error> {
        Self::collect(TraceReader::new(source)?)
    }

    /// Reads a trace from text.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text.as_bytes())
    }

    /// Writes the text format.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn write(&self, sink: impl Write) -> Result<(), Error> {
        write_trace(sink, self.reads.iter().copied())
    }

    /// The reads.
    #[must_use]
    pub fn reads(&self) -> &[TraceRead] {
        &self.reads
    }
}

#[cfg(test)]
mod tests;
