//! Writes a log line by line.

use std::io::{self, Write};

use fulgurite_units::Instant;
use fulgurite_units::lines::LineWriter;

use super::{End, FORMAT, Header, Line, LogError, NANOS_MAX, VERSION};
use crate::control::{Event, Library, Output};

/// Writes the log of one library from its first event on.
#[derive(Clone, Debug)]
pub struct LogWriter<W> {
    lines: LineWriter<W>,
}

impl<W: Write> LogWriter<W> {
    /// Starts the log of a library that has received no event yet.
    ///
    /// # Errors
    /// When the sink fails, or the policy does not survive being written as text.
    pub fn new(sink: W, library: &Library) -> Result<Self, LogError> {
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            shape: library.shape().clone(),
            policy: library.policy().clone(),
        };
        let text = serde_json::to_vec(&header).unwrap_or_default();
        // A share is a float: its text must parse to the same float.
        if serde_json::from_slice::<Header>(&text).ok().as_ref() != Some(&header) {
            return Err(LogError::Policy);
        }
        let mut lines = LineWriter::new(sink);
        lines.put(|buffer| buffer.write_all(&text)).map_err(write_error)?;
        Ok(Self { lines })
    }

    /// Logs an event. The library must be given the same time.
    ///
    /// # Errors
    /// When the sink fails; the log is useless then.
    pub fn event(&mut self, now: Instant, event: &Event) -> Result<(), LogError> {
        self.lines.advance_to(now);
        self.line(Line { event: Some(*event), ..Line::default() })
    }

    /// Logs one output of the library for the last event; outputs are logged in their order.
    ///
    /// # Errors
    /// When the sink fails; the log is useless then.
    pub fn output(&mut self, output: &Output) -> Result<(), LogError> {
        self.line(Line { output: Some(output.clone()), ..Line::default() })
    }

    /// Ends the log with a reason.
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
        self.lines.flush().map_err(write_error)
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn line(&mut self, line: Line) -> Result<(), LogError> {
        let t = self.lines.latest().as_nanos().min(NANOS_MAX - 1);
        let line = Line { t, ..line };
        let put = self.lines.put(|buffer| Ok(serde_json::to_writer(buffer, &line)?));
        put.map_err(write_error)
    }
}

const fn write_error(source: io::Error) -> LogError {
    LogError::Write { source }
}
