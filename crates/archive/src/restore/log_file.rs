//! The event log of the restore controller in a file: one for each start, limited in size, and
//! never a reason to stop. Like the library's log it begins with an empty state, so it cannot
//! continue a previous one.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use fulgurite_glass::begin_log;
use fulgurite_restore::log::{End, FORMAT, LogError, LogWriter};
use fulgurite_restore::{Command, Event, Restores};
use fulgurite_units::{Instant, error_chain};

use crate::Result;
use crate::limits::RESTORE_LOG_BYTES_MAX;

/// The file of a log whose controller has not started.
#[derive(Debug)]
pub(super) struct PendingLog {
    file: File,
    path: PathBuf,
}

impl PendingLog {
    /// Creates the file; an existing log is renamed.
    pub(super) fn create(path: Option<&Path>) -> Result<Option<Self>> {
        let Some(path) = path else { return Ok(None) };
        let file = begin_log(path, "restore log", FORMAT)?;
        Ok(Some(Self { file, path: path.to_owned() }))
    }
}

/// The log, if one is configured.
#[derive(Debug)]
pub(super) struct LogFile {
    open: Option<LogWriter<BufWriter<File>>>,
    path: PathBuf,
}

impl LogFile {
    /// Starts the log of a controller that has received no event yet.
    pub(super) fn new(pending: Option<PendingLog>, restores: &Restores) -> Self {
        let Some(PendingLog { file, path }) = pending else {
            return Self { open: None, path: PathBuf::new() };
        };
        let open = LogWriter::new(BufWriter::new(file), restores);
        let open = open.inspect_err(|error| warn(&path, error)).ok();
        Self { open, path }
    }

    /// Logs an event.
    pub(super) fn event(&mut self, now: Instant, event: &Event) {
        if self.open.as_ref().is_some_and(|log| log.bytes() >= RESTORE_LOG_BYTES_MAX) {
            let path = self.path.display();
            tracing::warn!(%path, limit = RESTORE_LOG_BYTES_MAX, "the restore log is full");
            self.end(End::Full);
        }
        self.write(|log| log.event(now, event));
    }

    /// Logs a command.
    pub(super) fn command(&mut self, command: &Command) {
        self.write(|log| log.command(command));
    }

    /// Flushes what was written to the operating system.
    pub(super) fn flush(&mut self) {
        self.write(LogWriter::flush);
    }

    /// Logs that the controller stops.
    pub(super) fn on_stop(&mut self) {
        self.end(End::Stopped);
    }

    fn end(&mut self, reason: End) {
        if let Some(log) = self.open.take()
            && let Err(error) = log.end(reason)
        {
            warn(&self.path, &error);
        }
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut LogWriter<BufWriter<File>>) -> Result<(), LogError>,
    ) {
        if let Some(log) = &mut self.open
            && let Err(error) = write(log)
        {
            warn(&self.path, &error);
            self.open = None;
        }
    }
}

fn warn(path: &Path, error: &LogError) {
    let (path, error) = (path.display(), error_chain(error));
    tracing::warn!(%path, error, "cannot write the restore log; it ends here");
}
