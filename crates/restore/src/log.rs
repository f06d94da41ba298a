//! The event log of a restore controller: every event and every command, as text.
//!
//! The controller is a function of its tiers and its events, so the log of a served archive can be
//! replayed: [`replay()`] compares every command with the logged one. There is one JSON object per
//! line; `docs/formats/restore-log.md` describes the format. It is not a write-ahead log: nothing
//! is read back at startup.

mod reader;
mod replay;

use std::io::{self, Write};

use fulgurite_units::Instant;
use fulgurite_units::lines::LineWriter;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Capacity, Command, Event, Restores};

pub use reader::{Entry, LogReader, Logged};
pub use replay::{Divergence, Replay, replay};

/// The format name in the header.
pub const FORMAT: &str = "fulgurite-restore-log";
/// The version in the header.
pub const VERSION: u32 = 1;
/// Maximum length of a line in bytes. A restore of ten thousand pieces needs less than a million.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// What the header has in every version.
#[derive(Debug, Deserialize)]
struct AnyHeader {
    format: String,
    version: u32,
}

/// The header: the first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    tiers: Vec<Capacity>,
}

/// A line after the header: a time, and exactly one of the other fields.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    t: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<Event>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Command>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<End>,
}

/// Why the writer stopped, in the last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The driver was stopped.
    Stopped,
    /// The log reached its size limit; the driver went on without it.
    Full,
}

/// An invalid log, or one that cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// A line is invalid in this version of the format.
    #[error("line {line}: {problem}")]
    Line {
        /// Line number, from 1.
        line: u64,
        /// What is wrong with the line.
        problem: String,
    },
    /// The source failed.
    #[error("line {line}: cannot be read")]
    Read {
        /// Line number, from 1.
        line: u64,
        /// The I/O error.
        source: io::Error,
    },
    /// The sink failed.
    #[error("the log cannot be written")]
    Write {
        /// The I/O error.
        source: io::Error,
    },
}

/// Writes the log of one controller, from its first event on.
#[derive(Debug)]
pub struct LogWriter<W> {
    lines: LineWriter<W>,
}

impl<W: Write> LogWriter<W> {
    /// Starts the log of a controller that has received no event yet.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn new(sink: W, restores: &Restores) -> Result<Self, LogError> {
        let mut writer = Self { lines: LineWriter::new(sink) };
        let format = FORMAT.to_owned();
        let tiers = restores.tiers().to_vec();
        writer.put(&Header { format, version: VERSION, tiers })?;
        Ok(writer)
    }

    /// Logs an event. Pass the same `now` to the controller.
    ///
    /// # Errors
    /// When the sink fails; the log is unusable then.
    pub fn event(&mut self, now: Instant, event: &Event) -> Result<(), LogError> {
        self.lines.advance_to(now);
        self.line(Line { event: Some(event.clone()), ..Line::default() })
    }

    /// Logs a command issued for the last event. Call once for each command, in order.
    ///
    /// # Errors
    /// When the sink fails; the log is unusable then.
    pub fn command(&mut self, command: &Command) -> Result<(), LogError> {
        self.line(Line { command: Some(command.clone()), ..Line::default() })
    }

    /// Ends the log and states why.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn end(mut self, reason: End) -> Result<W, LogError> {
        self.line(Line { end: Some(reason), ..Line::default() })?;
        self.flush()?;
        Ok(self.lines.into_sink())
    }

    /// Flushes everything written so far.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.lines.flush().map_err(|source| LogError::Write { source })
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn line(&mut self, line: Line) -> Result<(), LogError> {
        let t = self.lines.latest().as_nanos();
        self.put(&Line { t, ..line })
    }

    fn put(&mut self, line: &impl Serialize) -> Result<(), LogError> {
        let put = self.lines.put(|buffer| Ok(serde_json::to_writer(buffer, line)?));
        put.map_err(|source| LogError::Write { source })
    }
}
