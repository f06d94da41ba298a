//! The text format of traces: two header lines, then a line for each read.
//!
//! ```text
//! fulgurite-trace 1
//! time_ns,size,key
//! 0,4096,17
//! ```

use std::io::{BufRead, Read as _, Write};

use fulgurite_units::{ByteCount, Instant};

use super::TraceRead;
use crate::Error;
use crate::error::FieldProblem;

/// The first line: the name of the format and its version.
const VERSION_LINE: &str = "fulgurite-trace 1";
/// The second line: the columns. Other programs can skip the first line and read the rest as CSV.
const COLUMN_LINE: &str = "time_ns,size,key";
/// Maximum bytes per line. Three numbers of 20 digits need 62; imported lines are longer.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Numbered lines of a source, each of bounded length, without an allocation per line.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    line: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), line: 0 }
    }

    /// Returns the next line and its number, without its terminator (`\n` or `\r\n`).
    pub(crate) fn next_line(&mut self) -> Result<Option<(u64, &str)>, Error> {
        self.line += 1;
        let line = self.line;
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 2;
        let count = (&mut self.source)
            .take(limit)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| Error::Read { line, source })?;
        if count == 0 {
            return Ok(None);
        }
        let text = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > LINE_BYTES_MAX {
            return Err(Error::LineTooLong { line, limit: LINE_BYTES_MAX });
        }
        std::str::from_utf8(text)
            .map(|text| Some((line, text)))
            .map_err(|_| Error::NotText { line })
    }
}

/// Streams the reads of a trace in its text format, whatever its length.
#[derive(Debug)]
pub struct TraceReader<R> {
    lines: Lines<R>,
    previous: Option<Instant>,
    ended: bool,
}

impl<R: BufRead> TraceReader<R> {
    /// Starts reading, with the header.
    ///
    /// # Errors
    /// When the header is not that of a known trace version.
    pub fn new(source: R) -> Result<Self, Error> {
        let mut lines = Lines::new(source);
        for expected in [VERSION_LINE, COLUMN_LINE] {
            let (line, found) = lines.next_line()?.ok_or(Error::EmptyTrace)?;
            if found != expected {
                let found = found.chars().take(80).collect();
                return Err(Error::Header { line, expected: expected.to_owned(), found });
            }
        }
        Ok(Self { lines, previous: None, ended: false })
    }

    fn read(&mut self) -> Result<Option<TraceRead>, Error> {
        let Some((line, text)) = self.lines.next_line()? else {
            return if self.previous.is_none() { Err(Error::EmptyTrace) } else { Ok(None) };
        };
        let read = parse_line(line, text)?;
        if let Some(previous) = self.previous
            && read.at < previous
        {
            return Err(Error::OutOfOrder { line, at: read.at, previous });
        }
        self.previous = Some(read.at);
        Ok(Some(read))
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceRead, Error>;

    /// Returns the next read. After an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Writes these reads in the text format.
///
/// # Errors
/// When the sink fails, or a read is earlier than the one before it, or there are none.
pub fn write_trace(
    mut sink: impl Write,
    reads: impl IntoIterator<Item = TraceRead>,
) -> Result<(), Error> {
    let failed = |source| Error::Write { source };
    writeln!(sink, "{VERSION_LINE}\n{COLUMN_LINE}").map_err(failed)?;
    let mut previous = None;
    for (line, read) in (3..).zip(reads) {
        if let Some(previous) = previous
            && read.at < previous
        {
            return Err(Error::OutOfOrder { line, at: read.at, previous });
        }
        previous = Some(read.at);
        let (at, size) = (read.at.as_nanos(), read.size.get());
        writeln!(sink, "{at},{size},{}", read.key).map_err(failed)?;
    }
    if previous.is_none() {
        return Err(Error::EmptyTrace);
    }
    sink.flush().map_err(failed)
}

fn parse_line(line: u64, text: &str) -> Result<TraceRead, Error> {
    let mut fields = text.split(',');
    let (Some(time), Some(size), Some(key), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(Error::FieldCount { line, expected: 3, found: text.split(',').count() });
    };
    Ok(TraceRead {
        at: Instant::from_nanos(field(line, "time_ns", time)?),
        size: ByteCount::new(field(line, "size", size)?),
        key: field(line, "key", key)?,
    })
}

fn field(line: u64, name: &str, text: &str) -> Result<u64, Error> {
    whole_number(text).map_err(|problem| Error::field(line, name, text, problem))
}

/// Parses a whole number: decimal digits and nothing else.
pub(crate) fn whole_number(text: &str) -> Result<u64, FieldProblem> {
    if text.is_empty() {
        return Err(FieldProblem::Empty);
    }
    let (sign, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if number.is_empty() {
        return Err(FieldProblem::NotANumber);
    }
    if !rest.is_empty() {
        let unit = rest.trim_start();
        let is_unit = !unit.is_empty() && unit.chars().all(char::is_alphabetic);
        return Err(if is_unit { FieldProblem::Unit } else { FieldProblem::NotANumber });
    }
    if sign {
        return Err(FieldProblem::Negative);
    }
    number.parse().map_err(|_| FieldProblem::Overflow)
}
