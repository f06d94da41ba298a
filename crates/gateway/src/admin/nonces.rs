//! Stores nonces of calls that were signed ahead of the clock, so that they survive a restart.
//!
//! A restart forgets nonces and refuses calls that were signed before it. A call that was signed
//! ahead of the clock may be dated later than the next start: its nonce is written to a file before
//! the call is carried out, and that start reads the file. Other calls cost nothing.
//!
//! ```text
//!   1790000200000 abababababababababababababababab      a line each: time, nonce
//! ```
//!
//! The file is created by the first such call. A torn line is ignored: its call was not carried
//! out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::operator::EarlyNonce;
use crate::limits::{ADMIN_CLOCK_SKEW_MS, ADMIN_NONCES_MAX};

/// Bytes of a line: a time of at most 20 digits, a space, a nonce, its line feed, and one before
/// it.
const LINE_BYTES_MAX: u64 = 20 + 1 + 32 + 2;
/// Most bytes that are read from a file.
const FILE_BYTES_MAX: u64 = 2 * ADMIN_NONCES_MAX as u64 * LINE_BYTES_MAX;

/// The file of nonces.
#[derive(Debug)]
pub(crate) struct NonceFile {
    path: PathBuf,
    /// `None` until the file is created.
    file: Option<File>,
    lines: usize,
}

impl NonceFile {
    /// Opens the file; returns the calls in it whose time is still valid.
    pub(crate) fn open(path: &Path, now_ms: u64) -> io::Result<(Self, Vec<EarlyNonce>)> {
        let mut this = Self { path: path.to_owned(), file: None, lines: 0 };
        let early = this.read(now_ms)?;
        if path.try_exists()? {
            this.write(&early)?;
        }
        Ok((this, early))
    }

    /// Records an admitted call; it is on stable storage when this returns.
    pub(crate) fn persist(&mut self, early: EarlyNonce, now_ms: u64) -> io::Result<()> {
        if self.file.is_none() || self.lines >= ADMIN_NONCES_MAX {
            let mut all = self.read(now_ms)?;
            all.push(early);
            return self.write(&all);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.write_all(line(&early).as_bytes()).and_then(|()| file.sync_data());
        if written.is_err() {
            // After a failed fsync, a second one proves nothing.
            self.file = None;
        }
        self.lines += 1;
        written
    }

    fn read(&self, now_ms: u64) -> io::Result<Vec<EarlyNonce>> {
        let mut text = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file.take(FILE_BYTES_MAX).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&text);
        let is_unexpired =
            |(time, _): &EarlyNonce| time.saturating_add(ADMIN_CLOCK_SKEW_MS) >= now_ms;
        Ok(text.lines().filter_map(parse).filter(is_unexpired).collect())
    }

    /// Replaces the file atomically.
    fn write(&mut self, all: &[EarlyNonce]) -> io::Result<()> {
        self.file = None;
        let part = self.path.with_extension("part");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&part)?;
        let text: String = all.iter().map(line).collect();
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        (self.file, self.lines) = (Some(file), all.len());
        Ok(())
    }
}

/// Formats a line. It begins with a line feed, so a torn line before it does no harm.
fn line((time, nonce): &EarlyNonce) -> String {
    format!("\n{time} {}\n", hex::encode(nonce))
}

fn parse(line: &str) -> Option<EarlyNonce> {
    let (time, text) = line.split_once(' ')?;
    let mut nonce = [0; 16];
    hex::decode_to_slice(text, &mut nonce).ok()?;
    Some((time.parse().ok().filter(|time| *time < u64::MAX / 2)?, nonce))
}

#[cfg(test)]
mod tests;
