//! The log of a controller of restores: everything it was told and everything it decided, as text.
//!
//! The controller is a function of its tiers and its events, so the log of a served archive can be
//! played again: [`replay()`] holds every decision against what was decided then. One JSON object a
//! line; the format is described in `docs/formats/restore-log.md`. It is no journal: nothing is
//! read back at a start.

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

/// The name in the first line.
pub const FORMAT: &str = "fulgurite-restore-log";
/// The version in the first line. Version 2 knew one tier, and version 1 had pieces without their
/// offsets, too; both are read as well.
pub const VERSION: u32 = 3;
/// Bytes of a line, at most: a restore of ten thousand pieces needs less than a million.
pub const LINE_BYTES_MAX: usize = 4 << 20;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    /// Until version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drives: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tiers: Vec<Capacity>,
}

/// One further line: a time, and one of the others.
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

/// Why whoever wrote a log wrote no more, in its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The driver was stopped.
    Stopped,
    /// The log had reached its limit; the driver went on without.
    Full,
}

/// What is wrong with a log, or with where it is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// A line is not one of a log of this version.
    #[error("line {line}: {problem}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The source failed.
    #[error("line {line}: cannot be read")]
    Read {
        /// The line, from 1.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// The sink failed.
    #[error("the log cannot be written")]
    Write {
        /// Why.
        source: io::Error,
    },
}

/// Writes the log of one controller from its first event on.
#[derive(Debug)]
pub struct LogWriter<W> {
    lines: LineWriter<W>,
}

impl<W: Write> LogWriter<W> {
    /// Begins the log of a controller that was told nothing yet.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn new(sink: W, restores: &Restores) -> Result<Self, LogError> {
        let mut writer = Self { lines: LineWriter::new(sink) };
        let format = FORMAT.to_owned();
        let tiers = restores.tiers().to_vec();
        writer.put(&Header { format, version: VERSION, drives: None, tiers })?;
        Ok(writer)
    }

    /// The controller is told something. The same moment has to be handed to it.
    ///
    /// # Errors
    /// When the sink fails; the log is of no use then.
    pub fn event(&mut self, now: Instant, event: &Event) -> Result<(), LogError> {
        self.lines.pass_to(now);
        self.line(Line { event: Some(event.clone()), ..Line::default() })
    }

    /// The controller decided this on the last event; each command is one call, in their order.
    ///
    /// # Errors
    /// When the sink fails; the log is of no use then.
    pub fn command(&mut self, command: &Command) -> Result<(), LogError> {
        self.line(Line { command: Some(command.clone()), ..Line::default() })
    }

    /// Ends the log, and says why.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn end(mut self, why: End) -> Result<W, LogError> {
        self.line(Line { end: Some(why), ..Line::default() })?;
        self.flush()?;
        Ok(self.lines.into_sink())
    }

    /// Hands everything written so far on.
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
