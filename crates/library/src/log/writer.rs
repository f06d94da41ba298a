//! Writes a log, line by line.

use std::io::Write;

use fulgurite_units::Instant;

use super::{End, FORMAT, Header, Line, LogError, NANOS_MAX, VERSION};
use crate::{Event, Library, Output};

/// Writes the log of one library from its first event on.
#[derive(Clone, Debug)]
pub struct LogWriter<W> {
    sink: W,
    /// The line at hand.
    buffer: Vec<u8>,
    bytes: u64,
    latest: Instant,
}

impl<W: Write> LogWriter<W> {
    /// Begins the log of a library that was told nothing yet.
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
        let buffer = serde_json::to_vec(&header).unwrap_or_default();
        // A share is a float: its text must mean the same float.
        if serde_json::from_slice::<Header>(&buffer).ok().as_ref() != Some(&header) {
            return Err(LogError::Policy);
        }
        let mut writer = Self { sink, buffer, bytes: 0, latest: Instant::ZERO };
        writer.end_line()?;
        Ok(writer)
    }

    /// The library is told something. The same moment has to be handed to it.
    ///
    /// # Errors
    /// When the sink fails; the log is of no use then.
    pub fn event(&mut self, now: Instant, event: &Event) -> Result<(), LogError> {
        // The library does not let its clock run backwards either.
        self.latest = self.latest.max(now);
        self.line(Line { event: Some(*event), ..Line::default() })
    }

    /// The library answered the last event with this; each output is one call, in their order.
    ///
    /// # Errors
    /// When the sink fails; the log is of no use then.
    pub fn output(&mut self, output: &Output) -> Result<(), LogError> {
        self.line(Line { output: Some(output.clone()), ..Line::default() })
    }

    /// Ends the log, and says why.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn end(mut self, why: End) -> Result<W, LogError> {
        self.line(Line { end: Some(why), ..Line::default() })?;
        self.flush()?;
        Ok(self.sink)
    }

    /// Hands everything written so far on.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.sink.flush().map_err(|source| LogError::Write { source })
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn line(&mut self, line: Line) -> Result<(), LogError> {
        let t = self.latest.as_nanos().min(NANOS_MAX - 1);
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, &Line { t, ..line })
            .map_err(|error| LogError::Write { source: error.into() })?;
        self.end_line()
    }

    fn end_line(&mut self) -> Result<(), LogError> {
        self.buffer.push(b'\n');
        self.bytes += self.buffer.len() as u64;
        self.sink.write_all(&self.buffer).map_err(|source| LogError::Write { source })
    }
}
