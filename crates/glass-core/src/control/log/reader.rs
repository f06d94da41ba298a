//! Reads a log of any length, line by line.

use std::io::BufRead;

use fulgurite_units::Instant;
use fulgurite_units::lines::{self, LineRead};

use super::{
    AnyHeader, Ending, Entry, FORMAT, Header, LINE_BYTES_MAX, Line, LogError, Logged, NANOS_MAX,
    VERSION,
};
use crate::control::{LibraryShape, Policy};

/// Characters of a line that an error shows.
const SHOWN_CHARS_MAX: usize = 60;

/// The lines of a log, one after another.
#[derive(Debug)]
pub struct LogReader<R> {
    source: R,
    buffer: Vec<u8>,
    line: u64,
    header: Header,
    latest: u64,
    ending: Option<Ending>,
}

impl<R: BufRead> LogReader<R> {
    /// Starts reading, with the first line.
    ///
    /// # Errors
    /// When the source fails, or it is not a log of a known version.
    pub fn new(mut source: R) -> Result<Self, LogError> {
        let mut buffer = Vec::new();
        let whole = read_line(&mut source, &mut buffer, 1)?;
        let header =
            if whole { parse_header(&buffer)? } else { return Err(header_error(&buffer)) };
        Ok(Self { source, buffer, line: 1, header, latest: 0, ending: None })
    }

    /// The shape of the library.
    pub const fn shape(&self) -> &LibraryShape {
        &self.header.shape
    }

    /// The policy of the library.
    pub const fn policy(&self) -> &Policy {
        &self.header.policy
    }

    /// How the log ends, once the end was reached.
    pub const fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The last line read, from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Returns the next event or output; `None` at the end.
    ///
    /// # Errors
    /// Names the invalid line. A last line that is cut off is not an error but an ending.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, LogError> {
        if self.ending.is_some() {
            return Ok(None);
        }
        self.line += 1;
        let line = self.line;
        if !read_line(&mut self.source, &mut self.buffer, line)? {
            let empty = self.buffer.is_empty();
            self.ending = Some(if empty { Ending::Open } else { Ending::Cut { line } });
            return Ok(None);
        }
        let line_error = |problem: String| LogError::Line { line, problem };
        let read: Line =
            serde_json::from_slice(&self.buffer).map_err(|e| line_error(problem(&e)))?;
        if read.t < self.latest {
            let latest = self.latest;
            return Err(line_error(format!(
                "field t: {} is before {latest}, the line before",
                read.t
            )));
        }
        if read.t >= NANOS_MAX {
            return Err(line_error(format!("field t: {} is not a valid time", read.t)));
        }
        self.latest = read.t;
        let record = match (read.event, read.output, read.end) {
            (Some(event), None, None) => Logged::Event(event),
            (None, Some(output), None) => Logged::Output(output),
            (None, None, Some(end)) => {
                self.ending = Some(Ending::End(end));
                return self.expect_end();
            }
            _ => {
                return Err(line_error(
                    "it must have exactly one of event, output and end".to_owned(),
                ));
            }
        };
        Ok(Some(Entry { line, at: Instant::from_nanos(read.t), record }))
    }

    /// Checks that nothing follows the end.
    fn expect_end(&mut self) -> Result<Option<Entry>, LogError> {
        let line = self.line + 1;
        let whole = read_line(&mut self.source, &mut self.buffer, line)?;
        if whole || !self.buffer.is_empty() {
            return Err(LogError::Line {
                line,
                problem: "it follows the end of the log".to_owned(),
            });
        }
        Ok(None)
    }
}

/// Reads a line without its terminator into `buffer`; returns `false` for a last line that has
/// none.
fn read_line(source: &mut impl BufRead, buffer: &mut Vec<u8>, line: u64) -> Result<bool, LogError> {
    let read = lines::read_line(source, buffer, LINE_BYTES_MAX);
    match read.map_err(|source| LogError::Read { line, source })? {
        LineRead::Complete => Ok(true),
        LineRead::Truncated => Ok(false),
        LineRead::TooLong => Err(LogError::LineTooLong { line, limit: LINE_BYTES_MAX }),
    }
}

fn parse_header(text: &[u8]) -> Result<Header, LogError> {
    let any: AnyHeader = serde_json::from_slice(text).map_err(|_| header_error(text))?;
    if any.format != FORMAT {
        return Err(header_error(text));
    }
    if any.version != VERSION {
        let expected = format!("version {VERSION}");
        return Err(LogError::Header { expected, found: format!("version {}", any.version) });
    }
    serde_json::from_slice(text).map_err(|e| LogError::Line { line: 1, problem: problem(&e) })
}

fn header_error(text: &[u8]) -> LogError {
    let found: String = String::from_utf8_lossy(text).chars().take(SHOWN_CHARS_MAX).collect();
    LogError::Header { expected: format!("a {FORMAT}"), found: format!("{found:?}") }
}

/// Formats a parser's error with the column only: the parser sees one line at a time.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let record = text.rsplit_once(" at line ").map_or(text.as_str(), |(record, _)| record);
    format!("{record}, column {}", error.column())
}
