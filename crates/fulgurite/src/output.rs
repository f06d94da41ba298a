//! Standard output: text for people, or one JSON object a line with `--json`.
//!
//! Data goes to standard output, progress and errors to standard error. A reader that goes away is
//! a success ([`crate::exit`]): `fulgurite ls | head` is no failure.

use std::fmt;
use std::io::{BufWriter, IsTerminal as _, Stdout, Write as _};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use serde::Serialize;

/// Where results go.
#[derive(Debug)]
pub(crate) struct Output {
    is_json: bool,
    stdout: Mutex<Option<BufWriter<Stdout>>>,
}

impl Output {
    /// Results as JSON lines, or as text.
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_json, stdout: Mutex::new(Some(BufWriter::new(std::io::stdout()))) }
    }

    /// Results nobody sees: for steps within a larger run.
    pub(crate) fn silent() -> Self {
        Self { is_json: false, stdout: Mutex::new(None) }
    }

    /// Whether `--json` was given.
    pub(crate) const fn is_json(&self) -> bool {
        self.is_json
    }

    /// Prints a line for people; nothing with `--json`.
    pub(crate) fn text(&self, line: impl fmt::Display) -> anyhow::Result<()> {
        if self.is_json { Ok(()) } else { self.line(line) }
    }

    /// Prints an object with `--json`; nothing otherwise.
    pub(crate) fn json(&self, object: &impl Serialize) -> anyhow::Result<()> {
        if !self.is_json {
            return Ok(());
        }
        let line = serde_json::to_string(object).context("cannot write JSON")?;
        self.line(line)
    }

    /// Makes everything printed so far visible.
    pub(crate) fn flush(&self) -> anyhow::Result<()> {
        let mut stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *stdout {
            Some(stdout) => Ok(stdout.flush()?),
            None => Ok(()),
        }
    }

    fn line(&self, line: impl fmt::Display) -> anyhow::Result<()> {
        let mut stdout = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *stdout {
            Some(stdout) => Ok(writeln!(stdout, "{line}")?),
            None => Ok(()),
        }
    }
}

/// Writes a line to standard error, above any progress bar.
pub(crate) fn note(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Whether somebody watches standard error.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// A rate for people: `250MiB/s`.
pub(crate) fn rate(bytes: u64, seconds: f64) -> String {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is shown with few digits, and float casts saturate"
    )]
    let per_second = (bytes as f64 / seconds.max(1e-3)) as u64;
    format!("{}/s", fulgurite_units::ByteCount::new(per_second))
}

/// `1,234,567`
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
