//! Validates integers in queries and headers, and rejects repeated parameters and headers, before
//! anything acts on a request. Layers below would parse some integers by their first digits.

use std::collections::BTreeSet;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};

use super::framing::DECODED_LENGTH;
use super::responses::Refusal;
use super::signature;
use crate::limits::PART_NUMBER_MAX;

/// Integers in queries.
const QUERY_INTEGERS: [&str; 5] =
    ["max-keys", "max-parts", "max-uploads", "max-buckets", "part-number-marker"];
/// Integers in headers, with the same bounds as in queries.
static HEADER_COUNTS: [HeaderName; 2] = [
    HeaderName::from_static("x-amz-max-parts"),
    HeaderName::from_static("x-amz-part-number-marker"),
];
/// Integers in headers that are byte counts.
static HEADER_LENGTHS: [HeaderName; 5] = [
    CONTENT_LENGTH,
    HeaderName::from_static(DECODED_LENGTH),
    HeaderName::from_static("x-amz-mp-object-size"),
    HeaderName::from_static("x-amz-if-match-size"),
    HeaderName::from_static("x-amz-write-offset-bytes"),
];
/// Lists, whose header lines add up.
const LISTS: [&str; 2] = ["x-amz-object-attributes", "x-amz-optional-object-attributes"];
/// Single-valued headers outside S3's namespace.
const SINGLE: [&str; 11] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "expires",
    "if-modified-since",
    "if-unmodified-since",
    "range",
];

/// Refuses invalid integers, and repeated parameters and headers.
pub(super) fn check(parts: &Parts) -> Result<(), Refusal> {
    check_query(&signature::pairs(parts.uri.query().unwrap_or_default())?)?;
    check_headers(&parts.headers)
}

/// Parses an integer as S3 writes it: digits, after a minus if it is negative, and nothing else.
/// Each integer has one spelling, so that no two parsers disagree.
pub(super) fn parse_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = match digits.as_bytes() {
        [b'0'] => digits == text,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_plain.then(|| text.parse().ok())?
}

fn check_query(pairs: &[(String, String)]) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for (name, value) in pairs {
        if !seen.insert(name) {
            return Err(invalid_request(format!("The parameter {name} is repeated.")));
        }
        if name == "partNumber" {
            check_part_number(value)?;
        } else if QUERY_INTEGERS.contains(&name.as_str()) {
            check_range(name, value, i32::MAX.into())?;
        }
    }
    Ok(())
}

fn check_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    let may_repeat = headers.len() > headers.keys_len();
    for name in headers.keys().map(HeaderName::as_str).filter(|_| may_repeat) {
        let is_single =
            (name.starts_with("x-amz-") && !LISTS.contains(&name)) || SINGLE.contains(&name);
        if is_single && headers.get_all(name).iter().count() > 1 {
            return Err(invalid_request(format!("The header {name} is repeated.")));
        }
    }
    let counts = HEADER_COUNTS.iter().map(|name| (name, i32::MAX.into()));
    let lengths = HEADER_LENGTHS.iter().map(|name| (name, i64::MAX));
    for (name, largest) in counts.chain(lengths) {
        if let Some(value) = headers.get(name) {
            check_range(name.as_str(), value.to_str().unwrap_or_default(), largest)?;
        }
    }
    Ok(())
}

fn check_part_number(text: &str) -> Result<(), Refusal> {
    match parse_integer(text) {
        Some(number) if (1..=PART_NUMBER_MAX.into()).contains(&number) => Ok(()),
        _ => {
            let message = "Part number must be an integer between 1 and 10000, inclusive";
            Err(invalid_argument(message.to_owned()))
        }
    }
}

fn check_range(name: &str, text: &str, largest: i64) -> Result<(), Refusal> {
    match parse_integer(text) {
        Some(number) if (0..=largest).contains(&number) => Ok(()),
        Some(number) if number < 0 => Err(invalid_argument(format!(
            "Argument {name} must be an integer between 0 and {largest}"
        ))),
        _ => {
            Err(invalid_argument(format!("Provided {name} not an integer or within integer range")))
        }
    }
}

fn invalid_argument(message: String) -> Refusal {
    Refusal::new("InvalidArgument", StatusCode::BAD_REQUEST, message)
}

fn invalid_request(message: String) -> Refusal {
    Refusal::new("InvalidRequest", StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests;
