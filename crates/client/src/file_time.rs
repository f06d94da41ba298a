//! Modification times of files: as the file system has them, as object metadata stores them, as S3
//! dates its objects.
//!
//! S3 only knows when an object was put. So the file's own time is stored with the object, in the
//! header `x-amz-meta-mtime` and in the format of rclone: decimal seconds since 1970. Each of the
//! two programs finds files synced with the other unchanged. What a difference means is not decided
//! here, but by the `sync` command.

use std::fmt;
use std::fs::{File, Metadata};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Header of the modification time of a file.
pub const MTIME_HEADER: &str = "x-amz-meta-mtime";

const NANOS: i128 = 1_000_000_000;

/// Nanoseconds since 1970-01-01 UTC, negative before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(i128);

impl FileTime {
    /// Returns the modification time in `metadata`; `None` if the file system has none.
    pub fn from_metadata(metadata: &Metadata) -> Option<Self> {
        let modified = metadata.modified().ok()?;
        Some(match modified.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self(nanos(after)),
            Err(error) => Self(-nanos(error.duration())),
        })
    }

    /// Parses decimal seconds: `1354040105.123456789`. More than nine decimals are cut off.
    pub fn parse_seconds(text: &str) -> Option<Self> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text),
        };
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(decimals) {
            return None;
        }
        let decimals: String = decimals.chars().chain("000000000".chars()).take(9).collect();
        let seconds: i64 = whole.parse().ok()?;
        let rest: i128 = decimals.parse().ok()?;
        Some(Self(sign * (i128::from(seconds) * NANOS + rest)))
    }

    /// Parses a date of S3: RFC 3339 in listings, an HTTP date in headers.
    pub fn parse_date(text: &str) -> Option<Self> {
        let read = text.parse::<Timestamp>();
        let read = read.or_else(|_| jiff::fmt::rfc2822::parse(text).map(|zoned| zoned.timestamp()));
        read.ok().map(|timestamp| Self(timestamp.as_nanosecond()))
    }

    /// Whether a file of this time was last changed at `recorded`. A time without a fraction may
    /// come from a file system that stores none.
    pub const fn is_same(self, recorded: Self) -> bool {
        self.0 == recorded.0
            || (self.0.rem_euclid(NANOS) == 0
                && self.0.div_euclid(NANOS) == recorded.0.div_euclid(NANOS))
    }

    /// Sets the modification time of `file`.
    pub fn set(self, file: &File) -> std::io::Result<()> {
        let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let seconds = u64::try_from(self.0.unsigned_abs() / NANOS.unsigned_abs());
        let rest = u32::try_from(self.0.unsigned_abs() % NANOS.unsigned_abs());
        let (Ok(seconds), Ok(rest)) = (seconds, rest) else { return Err(invalid()) };
        let offset = Duration::new(seconds, rest);
        let time = if self.0 < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(offset)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(offset)
        };
        file.set_modified(time.ok_or_else(invalid)?)
    }
}

impl fmt::Display for FileTime {
    /// Formats decimal seconds, as in the header.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        let one = NANOS.unsigned_abs();
        match nanos % one {
            0 => write!(f, "{sign}{}", nanos / one),
            rest => {
                let decimals = format!("{rest:09}");
                write!(f, "{sign}{}.{}", nanos / one, decimals.trim_end_matches('0'))
            }
        }
    }
}

fn nanos(duration: Duration) -> i128 {
    i128::from(duration.as_secs()) * NANOS + i128::from(duration.subsec_nanos())
}

#[cfg(test)]
mod tests;
