//! Standard output: human-readable text, or with `--json` one JSON object per line.
//!
//! Data goes to standard output, progress and errors to standard error. A broken pipe is a success
//! ([`crate::exit`]): `fulgurite ls | head` does not fail. A command that changes something does
//! not stop at a broken pipe: `fulgurite put | head` puts everything.

use std::fmt;
use std::io::{BufWriter, ErrorKind, IsTerminal as _, Stdout, Write as _};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use fulgurite_units::UnixTime;
use serde::Serialize;

use crate::style::{self, Tone};

/// Where results go.
#[derive(Debug)]
pub struct Output {
    is_json: bool,
    ignores_broken_pipe: bool,
    stdout: Mutex<Option<BufWriter<Stdout>>>,
}

impl Output {
    /// Creates an output of JSON lines or of text.
    pub fn new(is_json: bool) -> Self {
        let stdout = Mutex::new(Some(BufWriter::new(std::io::stdout())));
        Self { is_json, ignores_broken_pipe: false, stdout }
    }

    /// Keeps the command running when the reader of its output is gone (broken pipe).
    pub fn ignoring_broken_pipe(self) -> Self {
        Self { ignores_broken_pipe: true, ..self }
    }

    /// Creates an output that discards everything, for steps within a larger run.
    pub fn silent() -> Self {
        Self { is_json: false, ignores_broken_pipe: true, stdout: Mutex::new(None) }
    }

    /// Whether `--json` was given.
    pub const fn is_json(&self) -> bool {
        self.is_json
    }

    /// Prints a line of text; prints nothing with `--json`.
    pub fn text(&self, line: impl fmt::Display) -> anyhow::Result<()> {
        if self.is_json { Ok(()) } else { self.line(line) }
    }

    /// Prints an object with `--json`, its `type` first; prints nothing otherwise. The object must
    /// have no field `type` of its own.
    pub fn json(&self, kind: &'static str, object: &impl Serialize) -> anyhow::Result<()> {
        if !self.is_json {
            return Ok(());
        }
        self.line(typed(kind, object)?)
    }

    /// Flushes everything printed so far.
    pub fn flush(&self) -> anyhow::Result<()> {
        self.write(|stdout| stdout.flush())
    }

    fn line(&self, line: impl fmt::Display) -> anyhow::Result<()> {
        self.write(|stdout| writeln!(stdout, "{line}"))
    }

    fn write(
        &self,
        write: impl FnOnce(&mut BufWriter<Stdout>) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut slot = self.stdout.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stdout) = &mut *slot else { return Ok(()) };
        match write(stdout) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe && self.ignores_broken_pipe => {
                // Nobody will read the buffered bytes: dropping the writer must not write them.
                if let Some(stdout) = slot.take() {
                    drop(stdout.into_parts());
                }
                Ok(())
            }
            written => Ok(written?),
        }
    }
}

/// Returns an object as JSON, its `type` first.
fn typed(kind: &'static str, object: &impl Serialize) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Typed<'a, T> {
        r#type: &'static str,
        #[serde(flatten)]
        object: &'a T,
    }
    serde_json::to_string(&Typed { r#type: kind, object }).context("cannot write JSON")
}

/// Writes a line to standard error, above any progress bar.
pub fn note(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Formats a hint to the user, for [`note`].
pub fn hint(line: impl fmt::Display) -> impl fmt::Display {
    style::error(Tone::Faint, format!("hint: {line}"))
}

/// Whether standard error is a terminal.
pub fn is_stderr_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Formats bytes: `22.3 MiB`. In files and on the command line there is no space before the unit.
pub fn bytes(count: u64) -> String {
    let text = fulgurite_units::ByteCount::new(count).to_string();
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    format!("{number} {}", &text[number.len()..])
}

/// Formats a rate: `250 MiB/s`.
pub fn rate(count: u64, seconds: f64) -> String {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is shown with few digits, and float casts saturate"
    )]
    let per_second = (count as f64 / seconds.max(1e-3)) as u64;
    format!("{}/s", bytes(per_second))
}

/// Formats seconds: `840 ms`, `12.3 s`, `4.5 min`, `2.85 h`.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{:.0} ms", v * 1e3),
        v if v < 120.0 => format!("{v:.1} s"),
        v if v < 7_200.0 => format!("{:.1} min", v / 60.0),
        v => format!("{:.2} h", v / 3600.0),
    }
}

/// Formats a number with thousands separators: `1,234,567`.
pub fn group_digits(number: u64) -> String {
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

/// Formats a count with its noun: `3 objects`, `1 object`, `2 copies`, `2 keys`.
pub fn pluralize(count: u64, noun: &str) -> String {
    let number = group_digits(count);
    // After a vowel the y stays: bodies, but keys.
    let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match stem {
        _ if count == 1 => format!("{number} {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

/// Formats a time.
pub fn timestamp(time: UnixTime) -> String {
    i64::try_from(time.as_millis())
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(|| "at an unknown time".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests;
