//! The time of a signed request, in the forms that clients use.

use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

const BASIC: &str = "%Y%m%dT%H%M%SZ";

/// Parses `YYYYMMDDTHHMMSSZ`.
pub(crate) fn parse_basic(text: &str) -> Option<Timestamp> {
    let is_well_formed = text.len() == 16
        && text.bytes().enumerate().all(|(index, b)| match index {
            8 => b == b'T',
            15 => b == b'Z',
            _ => b.is_ascii_digit(),
        });
    let time = is_well_formed.then(|| DateTime::strptime(BASIC, text).ok())??;
    time.to_zoned(TimeZone::UTC).ok().as_ref().map(Zoned::timestamp)
}

/// Parses a `Date` header: as above, or as HTTP and mail write it (`Mon, 23 Nov 2026 00:59:04
/// GMT`).
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    parse_basic(text)
        .or_else(|| rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok())
}

/// Formats a time for strings to sign.
pub(super) fn format_basic(time: Timestamp) -> String {
    time.strftime(BASIC).to_string()
}
