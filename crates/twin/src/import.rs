//! Imports: traces from the logs of other systems, either a CSV with a header or Amazon S3 server
//! access logs.
//!
//! Times become nanoseconds from the first read. Logs are nearly sorted by time, so lines pass
//! through a heap of bounded size; lines further out of order are rejected by line number. Nothing
//! is dropped silently: each line is a read, or is counted with the reason why it is not.

mod csv;
mod s3_log;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::BufRead;

use fulgurite_units::{ByteCount, Instant, UnixTime};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::FieldProblem;
use crate::trace::{Lines, TRACE_READS_MAX, whole_number};
use crate::{Error, Trace, TraceRead};
pub use csv::{CsvImport, TimeFormat};
pub use s3_log::{Malformed, S3LogImport, S3Size};

/// Default number of reads held back for sorting.
pub const REORDER_READS: usize = 1 << 20;

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its reads, from time zero on.
    pub trace: Trace,
    /// The time of the first read, rounded down to milliseconds. Of little use if the file has no
    /// calendar times.
    pub begin: UnixTime,
    /// Number of lines.
    pub lines: u64,
    /// Lines that are no reads, by reason.
    pub skipped: BTreeMap<SkipReason, u64>,
}

/// Why a line is not a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SkipReason {
    /// It is blank.
    Blank,
    /// It is not the read of an object.
    OtherOperation,
    /// The response had no bytes: its status is neither 200 nor 206.
    Failed,
    /// No bytes were sent, or the object is empty.
    NoBytes,
    /// The line is invalid, and such lines are skipped.
    Malformed,
}

/// A line: a read, or the reason why it is not.
enum Row {
    Read { unix_nanos: u64, size: ByteCount, key: u64 },
    Skip(SkipReason),
}

/// Sorts reads into a trace.
#[derive(Debug)]
struct Reorder {
    /// Time, line, size and key of the reads held back.
    buffer: BinaryHeap<Reverse<(u64, u64, ByteCount, u64)>>,
    limit: usize,
    begin: u64,
    reads: Vec<TraceRead>,
}

impl Reorder {
    const fn new(limit: usize) -> Self {
        Self { buffer: BinaryHeap::new(), limit, begin: 0, reads: Vec::new() }
    }

    fn push(&mut self, line: u64, nanos: u64, size: ByteCount, key: u64) -> Result<(), Error> {
        if let Some(last) = self.reads.last() {
            let previous = Instant::from_nanos(self.begin + last.at.as_nanos());
            let at = Instant::from_nanos(nanos);
            if at < previous {
                return Err(Error::OutOfOrder { line, at, previous });
            }
        }
        if self.buffer.len() + self.reads.len() == TRACE_READS_MAX {
            return Err(Error::TraceTooLong { limit: TRACE_READS_MAX });
        }
        self.buffer.push(Reverse((nanos, line, size, key)));
        if self.buffer.len() > self.limit {
            self.release();
        }
        Ok(())
    }

    fn release(&mut self) {
        let Some(Reverse((nanos, _, size, key))) = self.buffer.pop() else { return };
        if self.reads.is_empty() {
            self.begin = nanos;
        }
        assert!(nanos >= self.begin, "the heap yields the earliest read first");
        self.reads.push(TraceRead { at: Instant::from_nanos(nanos - self.begin), size, key });
    }

    fn finish(mut self) -> Result<(Trace, UnixTime), Error> {
        while !self.buffer.is_empty() {
            self.release();
        }
        Ok((Trace::new(self.reads)?, UnixTime::from_millis(self.begin / 1_000_000)))
    }
}

/// Parses all lines with `parse` and sorts the reads by time.
fn import<R: BufRead>(
    mut lines: Lines<R>,
    reorder_reads: usize,
    mut parse: impl FnMut(u64, &str) -> Result<Row, Error>,
) -> Result<Imported, Error> {
    let mut reorder = Reorder::new(reorder_reads);
    let mut skipped = BTreeMap::new();
    let mut line_count = 0;
    while let Some((line, text)) = lines.next_line()? {
        line_count = line;
        let row =
            if text.trim().is_empty() { Row::Skip(SkipReason::Blank) } else { parse(line, text)? };
        match row {
            Row::Read { unix_nanos, size, key } => reorder.push(line, unix_nanos, size, key)?,
            Row::Skip(reason) => *skipped.entry(reason).or_default() += 1,
        }
    }
    let (trace, begin) = reorder.finish()?;
    Ok(Imported { trace, begin, lines: line_count, skipped })
}

/// Returns the key of a name: its number if it is one, else its XXH3 hash.
fn key_of(name: &str) -> u64 {
    whole_number(name).unwrap_or_else(|_| xxh3_64(name.as_bytes()))
}

/// Converts a calendar time to nanoseconds since 1970.
fn unix_nanos(time: jiff::Timestamp) -> Result<u64, FieldProblem> {
    let nanos = time.as_nanosecond();
    if nanos < 0 {
        return Err(FieldProblem::Negative);
    }
    u64::try_from(nanos).map_err(|_| FieldProblem::Overflow)
}

#[cfg(test)]
mod tests;
