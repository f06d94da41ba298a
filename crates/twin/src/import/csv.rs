//! CSV with a header: columns are found by name, in any order, and others are ignored.
//!
//! Fields may be quoted (RFC 4180), but may not span lines.

use std::borrow::Cow;
use std::io::BufRead;

use fulgurite_units::ByteCount;
use serde::{Deserialize, Serialize};

use super::{Imported, REORDER_READS, Row, SkipReason, import, key_of, unix_nanos};
use crate::Error;
use crate::error::FieldProblem;
use crate::trace::{Lines, whole_number};

/// Units of sizes, binary and decimal, as the standard writes them.
const UNITS: [(&str, u64); 11] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];

/// How to read a CSV.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CsvImport {
    /// Name of the time column.
    pub time: String,
    /// Name of the size column: bytes, or a whole number with a unit ("4096", "64MiB").
    pub size: String,
    /// Name of the key column: a whole number is used as it is, other text is hashed.
    pub key: String,
    /// Format of the times.
    pub time_format: TimeFormat,
    /// Number of reads held back to sort them by time.
    pub reorder_reads: usize,
}

/// Format of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeFormat {
    /// `2026-02-06T00:00:38.25Z`, or with an offset.
    Rfc3339,
    /// Seconds since 1970, or since any other start, with nine decimals at most.
    UnixSeconds,
    /// Whole nanoseconds since 1970, or since any other start.
    UnixNanos,
}

impl Default for CsvImport {
    fn default() -> Self {
        Self {
            time: "time".to_owned(),
            size: "size".to_owned(),
            key: "key".to_owned(),
            time_format: TimeFormat::Rfc3339,
            reorder_reads: REORDER_READS,
        }
    }
}

impl CsvImport {
    /// Imports a CSV.
    ///
    /// # Errors
    /// Names the first invalid line and field.
    pub fn import(&self, source: impl BufRead) -> Result<Imported, Error> {
        let mut lines = Lines::new(source);
        let (line, text) = lines.next_line()?.ok_or(Error::EmptyTrace)?;
        let header = split(line, text.strip_prefix('\u{feff}').unwrap_or(text))?;
        let column = |name: &str| {
            let at = header.iter().position(|column| column.trim() == name);
            at.ok_or_else(|| Error::field(line, name, text, FieldProblem::NoColumn))
        };
        let columns = [column(&self.time)?, column(&self.size)?, column(&self.key)?];
        let expected = header.len();
        import(lines, self.reorder_reads, |line, text| {
            let fields = split(line, text)?;
            if fields.len() != expected {
                return Err(Error::FieldCount { line, expected, found: fields.len() });
            }
            self.row(line, columns.map(|column| fields[column].trim()))
        })
    }

    fn row(&self, line: u64, [time, size, key]: [&str; 3]) -> Result<Row, Error> {
        let bad = |field, value, problem| Error::field(line, field, value, problem);
        let unix_nanos = self.time_format.parse(time).map_err(|p| bad(&self.time, time, p))?;
        let bytes = parse_size(size).map_err(|problem| bad(&self.size, size, problem))?;
        if key.is_empty() {
            return Err(bad(&self.key, key, FieldProblem::Empty));
        }
        if bytes == ByteCount::ZERO {
            return Ok(Row::Skip(SkipReason::NoBytes));
        }
        Ok(Row::Read { unix_nanos, size: bytes, key: key_of(key) })
    }
}

impl TimeFormat {
    /// Parses a time to nanoseconds since 1970, or since the start that the file uses.
    fn parse(self, text: &str) -> Result<u64, FieldProblem> {
        match self {
            _ if text.is_empty() => Err(FieldProblem::Empty),
            Self::Rfc3339 => unix_nanos(text.parse().map_err(|_| FieldProblem::Time)?),
            Self::UnixNanos => whole_number(text),
            Self::UnixSeconds => {
                let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
                let seconds = whole_number(seconds)?;
                if decimals.len() > 9 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(FieldProblem::NotANumber);
                }
                let nanos = whole_number(&format!("{decimals:0<9}"))?;
                let whole = seconds.checked_mul(1_000_000_000);
                whole.and_then(|whole| whole.checked_add(nanos)).ok_or(FieldProblem::Overflow)
            }
        }
    }
}

/// Parses a whole number of bytes, with or without a unit.
fn parse_size(text: &str) -> Result<ByteCount, FieldProblem> {
    let end = text.trim_end_matches(|c: char| c.is_alphabetic()).len();
    let (number, unit) = text.split_at(end);
    let number = whole_number(number.trim_end())?;
    let factor = if unit.is_empty() {
        1
    } else {
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        known.map(|&(_, factor)| factor).ok_or(FieldProblem::Unit)?
    };
    number.checked_mul(factor).map(ByteCount::new).ok_or(FieldProblem::Overflow)
}

/// Splits a line into fields, without their quotes.
fn split(line: u64, text: &str) -> Result<Vec<Cow<'_, str>>, Error> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let Some(quoted) = rest.strip_prefix('"') else {
            let Some((field, after)) = rest.split_once(',') else {
                fields.push(Cow::Borrowed(rest));
                return Ok(fields);
            };
            fields.push(Cow::Borrowed(field));
            rest = after;
            continue;
        };
        let end = closing_quote(quoted);
        let name = || format!("{}", fields.len() + 1);
        let end = end.ok_or_else(|| Error::field(line, &name(), rest, FieldProblem::Delimiter))?;
        let (field, after) = (&quoted[..end], &quoted[end + 1..]);
        if !after.is_empty() && !after.starts_with(',') {
            return Err(Error::field(line, &name(), rest, FieldProblem::Delimiter));
        }
        fields.push(if field.contains('"') {
            Cow::Owned(field.replace("\"\"", "\""))
        } else {
            Cow::Borrowed(field)
        });
        let Some(next) = after.strip_prefix(',') else { return Ok(fields) };
        rest = next;
    }
}

/// Returns where a quoted field ends: at the first quote that is not doubled.
fn closing_quote(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text[at..].find('"')?;
        if !text[at + 1..].starts_with('"') {
            return Some(at);
        }
        at += 2;
    }
}
