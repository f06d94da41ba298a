//! Reads a log of any length line by line.

use std::io::BufRead;

use fulgurite_units::Instant;
use fulgurite_units::lines::{self, LineRead};
use serde::Deserialize;

use super::{AnyHeader, End, FORMAT, Header, LINE_BYTES_MAX, Line, LogError, VERSION};
use crate::{Capacity, Command, Event};

/// The lines of a log, one after another.
#[derive(Debug)]
pub struct LogReader<R> {
    source: R,
    text: Vec<u8>,
    line: u64,
    tiers: Vec<Capacity>,
    end: Option<End>,
}

/// One line of a log after the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Line number, from 1.
    pub line: u64,
    /// Time of the event or command.
    pub at: Instant,
    /// Content of the line.
    pub what: Logged,
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// The controller received this event.
    Event(Event),
    /// The controller issued this command for the event before.
    Command(Command),
}

impl<R: BufRead> LogReader<R> {
    /// Starts reading, and parses the header.
    ///
    /// # Errors
    /// When the source fails, or it is not a log of a known version.
    pub fn new(mut source: R) -> Result<Self, LogError> {
        let mut text = Vec::new();
        if !read_line(&mut source, &mut text, 1)? {
            return Err(wrong(1, "not the header of a restore log"));
        }
        let AnyHeader { format, version } = parse(1, &text)?;
        if format != FORMAT || version != VERSION {
            let found = format!("it is a {format:?} of version {version}");
            return Err(wrong(1, format!("{found}; expected a {FORMAT} of version {VERSION}")));
        }
        let header: Header = parse(1, &text)?;
        let tiers = header.tiers;
        let is_possible = !tiers.is_empty() && tiers.iter().all(Capacity::is_possible);
        if !is_possible {
            return Err(wrong(1, "its tiers have no capacity"));
        }
        Ok(Self { source, text, line: 1, tiers, end: None })
    }

    /// Returns the controller's tiers.
    pub fn tiers(&self) -> &[Capacity] {
        &self.tiers
    }

    /// Returns the reason in the log's end line, once that line was reached.
    pub const fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns the next event or command, or nothing at the end. A truncated last line is skipped.
    ///
    /// # Errors
    /// Names the invalid line.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, LogError> {
        if self.end.is_some() {
            return Ok(None);
        }
        self.line += 1;
        let number = self.line;
        if !read_line(&mut self.source, &mut self.text, number)? {
            return Ok(None);
        }
        let line: Line = parse(number, &self.text)?;
        let what = match (line.event, line.command, line.end) {
            (Some(event), None, None) => Logged::Event(event),
            (None, Some(command), None) => Logged::Command(command),
            (None, None, Some(end)) => {
                self.end = Some(end);
                return Ok(None);
            }
            _ => return Err(wrong(number, "a line needs exactly one of event, command and end")),
        };
        Ok(Some(Entry { line: number, at: Instant::from_nanos(line.t), what }))
    }
}

fn parse<'a, T: Deserialize<'a>>(line: u64, text: &'a [u8]) -> Result<T, LogError> {
    serde_json::from_slice(text).map_err(|error| wrong(line, error.to_string()))
}

pub(super) fn wrong(line: u64, problem: impl Into<String>) -> LogError {
    LogError::Line { line, problem: problem.into() }
}

/// Reads a line without its newline. Returns `false` for a last line that has none.
fn read_line(source: &mut impl BufRead, text: &mut Vec<u8>, line: u64) -> Result<bool, LogError> {
    let read = lines::read_line(source, text, LINE_BYTES_MAX);
    match read.map_err(|source| LogError::Read { line, source })? {
        LineRead::Complete => Ok(true),
        LineRead::Truncated => Ok(false),
        LineRead::TooLong => Err(wrong(line, format!("longer than {LINE_BYTES_MAX} bytes"))),
    }
}
