//! The log of the library in a file: one for each start, bounded, and never a reason to stop.
//!
//! A log begins with the library at rest, so it cannot be continued in a second file: when it is
//! full it ends with a line that says so, and the library continues without it. The log of the
//! previous start is kept as `PATH.1`. A failing disk ends the log, too.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read as _};
use std::path::{Path, PathBuf};

use fulgurite_glass_core::control::log::{End, FORMAT, LogError, LogWriter};
use fulgurite_glass_core::control::{Event, Library, Output};
use fulgurite_units::Instant;

use crate::limits::LIBRARY_LOG_BYTES_MAX;
use crate::{GlassError, Result};

/// The log, if there is one.
#[derive(Debug)]
pub(super) struct LogFile {
    open: Option<LogWriter<BufWriter<File>>>,
    path: PathBuf,
    bytes_max: u64,
}

impl LogFile {
    /// Starts the log of a library that has received no event yet; an existing log is moved aside.
    pub(super) fn begin(path: Option<&Path>, library: &Library) -> Result<Self> {
        Self::bounded(path, library, LIBRARY_LOG_BYTES_MAX)
    }

    pub(super) fn bounded(path: Option<&Path>, library: &Library, bytes_max: u64) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self { open: None, path: PathBuf::new(), bytes_max });
        };
        let file = begin_log(path, "library log", FORMAT)?;
        let open = LogWriter::new(BufWriter::new(file), library)
            .map_err(|error| GlassError::Internal { what: format!("library log: {error}") })?;
        Ok(Self { open: Some(open), path: path.to_owned(), bytes_max })
    }

    /// Logs an event.
    pub(super) fn event(&mut self, now: Instant, event: &Event) {
        if self.open.as_ref().is_some_and(|log| log.bytes() >= self.bytes_max) {
            let (path, limit) = (self.path.display(), self.bytes_max);
            tracing::warn!(%path, limit, "the library log is full and ends here");
            self.end(End::Full);
        }
        self.write(|log| log.event(now, event));
    }

    /// Logs an output of the library.
    pub(super) fn output(&mut self, output: &Output) {
        self.write(|log| log.output(output));
    }

    /// Hands what was written to the operating system.
    pub(super) fn flush(&mut self) {
        self.write(LogWriter::flush);
    }

    /// Ends the log because the library stops.
    pub(super) fn stopped(&mut self) {
        self.end(End::Stopped);
    }

    /// Ends the log because the library's controller failed and is replaced, which cannot be
    /// replayed.
    pub(super) fn failed(&mut self) {
        if self.open.take().is_some() {
            tracing::warn!(path = %self.path.display(), "the library log ends here");
        }
    }

    fn end(&mut self, reason: End) {
        if let Some(log) = self.open.take()
            && let Err(error) = log.end(reason)
        {
            self.warn(&error);
        }
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut LogWriter<BufWriter<File>>) -> Result<(), LogError>,
    ) {
        if let Some(log) = &mut self.open
            && let Err(error) = write(log)
        {
            self.warn(&error);
            self.open = None;
        }
    }

    fn warn(&self, error: &LogError) {
        let error = fulgurite_units::error_chain(error);
        tracing::warn!(path = %self.path.display(), error, "the library log ends here");
    }
}

/// Creates the file of a log that is called `name` and whose first line contains `format`; the log
/// of an earlier start becomes `PATH.1`. A file that is not such a log is left in place.
///
/// # Errors
/// When such a file is in the way, or the file cannot be created.
pub fn begin_log(path: &Path, name: &str, format: &str) -> Result<File> {
    let mut begins = String::new();
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(GlassError::io("open the log", path)(error)),
        Ok(file) => {
            let read = file.take(64).read_to_string(&mut begins);
            if read.is_err() || !(begins.is_empty() || begins.contains(format)) {
                let what = format!("{name}: \"{}\" exists and is not such a log", path.display());
                return Err(GlassError::InvalidArgument { what });
            }
            let mut aside = path.as_os_str().to_owned();
            aside.push(".1");
            let moved = std::fs::rename(path, &aside);
            moved.map_err(GlassError::io("move the log aside", path))?;
        }
    }
    let create = OpenOptions::new().write(true).create_new(true).open(path);
    create.map_err(GlassError::io("create the log", path))
}
