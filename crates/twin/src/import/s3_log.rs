//! Amazon S3 server access logs, after "Amazon S3 server access log format" of the Amazon S3 User
//! Guide.
//!
//! ```text
//! OWNER BUCKET [06/Feb/2026:00:00:38 +0000] IP REQUESTER REQUEST_ID REST.GET.OBJECT KEY
//!     "GET /BUCKET/KEY HTTP/1.1" 200 - BYTES_SENT OBJECT_SIZE TIME TURNAROUND "REFERER" ...
//! ```
//!
//! One line per request; fields are separated by spaces, the time is in brackets, some are quoted,
//! and "-" means no value. Fields after the object's size are ignored: more were added over the
//! years.

use std::io::BufRead;

use fulgurite_units::ByteCount;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::{Imported, REORDER_READS, Row, SkipReason, import, unix_nanos};
use crate::Error;
use crate::error::FieldProblem;
use crate::trace::{Lines, whole_number};

const TIME_FORMAT: &str = "%d/%b/%Y:%H:%M:%S %z";

/// Names of the fields that are parsed.
const FIELDS: [&str; 13] = [
    "bucket-owner",
    "bucket",
    "time",
    "remote-ip",
    "requester",
    "request-id",
    "operation",
    "key",
    "request-uri",
    "http-status",
    "error-code",
    "bytes-sent",
    "object-size",
];
const BUCKET: usize = 1;
const TIME: usize = 2;
const OPERATION: usize = 6;
const KEY: usize = 7;
const STATUS: usize = 9;
const BYTES_SENT: usize = 11;
const OBJECT_SIZE: usize = 12;

/// How to read the logs. The reads are the requests whose operation ends in `.GET.OBJECT` (such as
/// `REST.GET.OBJECT`) and that were answered with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct S3LogImport {
    /// Which size a read gets.
    pub size: S3Size,
    /// How invalid lines are handled.
    pub malformed: Malformed,
    /// Number of reads held back to sort them by time: log records come "in no particular order".
    pub reorder_reads: usize,
}

/// Which size a read gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum S3Size {
    /// The bytes sent: only the range, for range requests.
    BytesSent,
    /// The size of the whole object, as an archive would restore it.
    ObjectSize,
}

/// How invalid lines are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Malformed {
    /// The import ends with an error that names the line and the field.
    Refuse,
    /// They are skipped and counted.
    Skip,
}

impl Default for S3LogImport {
    fn default() -> Self {
        Self { size: S3Size::BytesSent, malformed: Malformed::Refuse, reorder_reads: REORDER_READS }
    }
}

impl S3LogImport {
    /// Imports logs; several files may be concatenated.
    ///
    /// # Errors
    /// Names the first invalid line and field.
    pub fn import(&self, source: impl BufRead) -> Result<Imported, Error> {
        import(Lines::new(source), self.reorder_reads, |line, text| match self.row(line, text) {
            Err(Error::Field { .. } | Error::FieldCount { .. })
                if self.malformed == Malformed::Skip =>
            {
                Ok(Row::Skip(SkipReason::Malformed))
            }
            row => row,
        })
    }

    fn row(&self, line: u64, text: &str) -> Result<Row, Error> {
        let fields = split(line, text)?;
        if !fields[OPERATION].ends_with(".GET.OBJECT") {
            return Ok(Row::Skip(SkipReason::OtherOperation));
        }
        let bad = |at: usize, problem| Error::field(line, FIELDS[at], fields[at], problem);
        let status = whole_number(fields[STATUS]).map_err(|problem| bad(STATUS, problem))?;
        if status != 200 && status != 206 {
            return Ok(Row::Skip(SkipReason::Failed));
        }
        let at = match self.size {
            S3Size::BytesSent => BYTES_SENT,
            S3Size::ObjectSize => OBJECT_SIZE,
        };
        // "-" also stands for zero bytes.
        let size = if fields[at] == "-" { Ok(0) } else { whole_number(fields[at]) };
        let size = ByteCount::new(size.map_err(|problem| bad(at, problem))?);
        if size == ByteCount::ZERO {
            return Ok(Row::Skip(SkipReason::NoBytes));
        }
        if fields[KEY] == "-" {
            return Err(bad(KEY, FieldProblem::Empty));
        }
        let unix_nanos = parse_time(fields[TIME]).map_err(|problem| bad(TIME, problem))?;
        let key = xxh3_64(format!("{}/{}", fields[BUCKET], fields[KEY]).as_bytes());
        Ok(Row::Read { unix_nanos, size, key })
    }
}

fn parse_time(text: &str) -> Result<u64, FieldProblem> {
    let parsed = jiff::fmt::strtime::parse(TIME_FORMAT, text);
    unix_nanos(parsed.and_then(|time| time.to_timestamp()).map_err(|_| FieldProblem::Time)?)
}

/// Splits a line into its first fields, without brackets and quotes.
fn split(line: u64, text: &str) -> Result<[&str; FIELDS.len()], Error> {
    let mut fields = [""; FIELDS.len()];
    let mut rest = text.trim_start();
    for (at, field) in fields.iter_mut().enumerate() {
        if rest.is_empty() {
            return Err(Error::FieldCount { line, expected: FIELDS.len(), found: at });
        }
        let (open, close) = match rest.as_bytes()[0] {
            b'[' => (1, "]"),
            b'"' => (1, "\""),
            _ => (0, " "),
        };
        let inner = &rest[open..];
        let end = match inner.find(close) {
            Some(end) => end,
            None if open == 0 => inner.len(),
            None => return Err(Error::field(line, FIELDS[at], rest, FieldProblem::Delimiter)),
        };
        *field = &inner[..end];
        let after = &inner[(end + open).min(inner.len())..];
        if !after.is_empty() && !after.starts_with(' ') {
            return Err(Error::field(line, FIELDS[at], rest, FieldProblem::Delimiter));
        }
        rest = after.trim_start();
    }
    Ok(fields)
}
