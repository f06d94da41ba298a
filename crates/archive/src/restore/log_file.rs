//! The log of the controller of restores in a file: one for each start, bounded, and never a reason
//! to stop. Like that of the library it begins with nothing known, so it cannot go on in another.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use fulgurite_platters::begin_log;
use fulgurite_restore::log::{End, FORMAT, LogError, LogWriter};
use fulgurite_restore::{Command, Event, Restores};
use fulgurite_units::{Instant, error_chain};

use crate::Result;
use crate::limits::RESTORE_LOG_BYTES_MAX;

/// The file of a log, until its controller begins.
#[derive(Debug)]
pub(super) struct Begun {
    file: File,
    path: PathBuf,
}

impl Begun {
    /// Makes the file; a log that is there is moved aside.
    pub(super) fn at(path: Option<&Path>) -> Result<Option<Self>> {
        let Some(path) = path else { return Ok(None) };
        let file = begin_log(path, "restore log", FORMAT)?;
        Ok(Some(Self { file, path: path.to_owned() }))
    }
}

/// The log, if there is one.
#[derive(Debug)]
pub(super) struct LogFile {
    open: Option<LogWriter<BufWriter<File>>>,
    path: PathBuf,
}

impl LogFile {
    /// Begins the log of a controller that was told nothing yet.
    pub(super) fn new(begun: Option<Begun>, restores: &Restores) -> Self {
        let Some(Begun { file, path }) = begun else {
            return Self { open: None, path: PathBuf::new() };
        };
        let open = LogWriter::new(BufWriter::new(file), restores);
        let open = open.inspect_err(|error| warn(&path, error)).ok();
        Self { open, path }
    }

    /// The controller is told something.
    pub(super) fn event(&mut self, now: Instant, event: &Event) {
        if self.open.as_ref().is_some_and(|log| log.bytes() >= RESTORE_LOG_BYTES_MAX) {
            let path = self.path.display();
            tracing::warn!(%path, limit = RESTORE_LOG_BYTES_MAX, "the restore log is full");
            self.end(End::Full);
        }
        self.write(|log| log.event(now, event));
    }

    /// The controller decides.
    pub(super) fn command(&mut self, command: &Command) {
        self.write(|log| log.command(command));
    }

    /// What was written is in the hands of the system.
    pub(super) fn flush(&mut self) {
        self.write(LogWriter::flush);
    }

    /// The controller stops.
    pub(super) fn stopped(&mut self) {
        self.end(End::Stopped);
    }

    fn end(&mut self, why: End) {
        if let Some(log) = self.open.take()
            && let Err(error) = log.end(why)
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
    tracing::warn!(%path, error, "the restore log ends here");
}
