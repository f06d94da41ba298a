//! The log of a simulated library, in the format of a live one.

use std::io::Write;

use fulgurite_glass_core::control::Library;
use fulgurite_glass_core::control::log::{End, LogError, LogWriter};
use fulgurite_units::Instant;

use super::{Glass, Observation};
use crate::engine::Observer;

/// Writes the events and the outputs of a run's library.
#[derive(Debug)]
pub struct LibraryLog<W> {
    log: LogWriter<W>,
    failed: Option<LogError>,
}

impl<W: Write> LibraryLog<W> {
    /// Starts the log of a library that has had no event yet.
    ///
    /// # Errors
    /// When the sink fails, or the policy does not survive the round trip through text.
    pub fn new(sink: W, library: &Library) -> Result<Self, LogError> {
        Ok(Self { log: LogWriter::new(sink, library)?, failed: None })
    }

    /// Ends the log.
    ///
    /// # Errors
    /// When not all of it was written.
    pub fn end(self) -> Result<(), LogError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.log.end(End::Stopped).map(drop),
        }
    }

    fn record(&mut self, written: Result<(), LogError>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}

impl<W: Write> Observer<Glass> for LibraryLog<W> {
    fn observe(&mut self, now: Instant, observation: Observation<'_>) {
        match observation {
            Observation::Event(event) => {
                let written = self.log.event(now, event);
                self.record(written);
            }
            Observation::Output(output) => {
                let written = self.log.output(output);
                self.record(written);
            }
            Observation::Stepped(_)
            | Observation::RestoreEvent(_)
            | Observation::RestoreCommand(_) => {}
        }
    }
}
