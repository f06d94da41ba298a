//! `Range` of a read. By RFC 9110 and like S3, anything but exactly one range of bytes is ignored,
//! and the whole object is sent. A range that does not overlap the object is refused.

use fulgurite_archive::ByteRange;
use http::header::{CONTENT_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, StatusCode};
use s3s::S3Error;

use super::errors::{s3_error, with_details};

/// Returns the range that a request asks for; `None` for the whole object.
pub(super) fn for_read(headers: &HeaderMap) -> Option<ByteRange> {
    let mut lines = headers.get_all(RANGE).iter();
    let line = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    parse(line.to_str().ok()?)
}

fn parse(text: &str) -> Option<ByteRange> {
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    match range.trim().split_once('-')? {
        ("", bytes) => Some(ByteRange::Suffix { bytes: number(bytes)? }),
        (first, "") => Some(ByteRange::From { first: number(first)?, last: None }),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(ByteRange::From { first, last: Some(last) })
        }
    }
}

/// Parses digits only. A number too large for the type is larger than every object.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Returns the error for a range outside an object of `bytes` bytes. Clients on the AWS common
/// runtime (CRT) learn from it that an object is empty.
pub(super) fn unsatisfiable(headers: &HeaderMap, bytes: u64) -> S3Error {
    let message = "The requested range is not satisfiable";
    let mut error = s3_error("InvalidRange", StatusCode::RANGE_NOT_SATISFIABLE, message);
    if let Ok(value) = HeaderValue::from_str(&format!("bytes */{bytes}")) {
        error.set_headers([(CONTENT_RANGE, value)].into_iter().collect());
    }
    let requested = headers.get(RANGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let details =
        [("RangeRequested", requested.to_owned()), ("ActualObjectSize", bytes.to_string())];
    with_details(error, details)
}

#[cfg(test)]
mod tests;
