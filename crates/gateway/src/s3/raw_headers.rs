//! Headers that s3s would refuse or read differently than S3 and RFC 9110 do. They are removed from
//! a request before s3s parses it, and restored for its operation as the client wrote them.
//!
//! | header | s3s | S3 |
//! | --- | --- | --- |
//! | `Range` | one range, or 400 | anything but a single range is ignored |
//! | `If-*` of reads | one tag, one form of date, or 400 | lists of tags; no date, no condition |
//! | `x-amz-copy-source-if-*` | as above | lists of tags |
//! | `Expires`, `response-expires` | a date, or 400 | any text |
//! | `x-amz-copy-source` | `+` stands for itself | `+` is a space |

use http::header::{
    EXPIRES, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method};

use super::signature::retain_query;
use crate::percent;

/// Names the source of a copy.
const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
/// Conditions on the source of a copy.
pub(super) const COPY_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");
pub(super) const COPY_IF_NONE_MATCH: HeaderName =
    HeaderName::from_static("x-amz-copy-source-if-none-match");
pub(super) const COPY_IF_MODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-amz-copy-source-if-modified-since");
pub(super) const COPY_IF_UNMODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-amz-copy-source-if-unmodified-since");

/// The hidden headers of reads.
static READ_HEADERS: [HeaderName; 6] =
    [RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE];
/// The hidden headers of writes. `If-Match` and `If-None-Match` of a write stay with s3s.
static WRITE_HEADERS: [HeaderName; 5] =
    [EXPIRES, COPY_IF_MATCH, COPY_IF_NONE_MATCH, COPY_IF_MODIFIED_SINCE, COPY_IF_UNMODIFIED_SINCE];
const RESPONSE_EXPIRES: &str = "response-expires";

/// The headers of a request that are hidden from s3s.
#[derive(Clone, Debug, Default)]
struct RawHeaders(HeaderMap);

/// The parameter `response-expires`, as it was written.
#[derive(Clone, Debug)]
pub(super) struct ResponseExpires(pub(super) String);

/// Removes the headers from a request.
pub(super) fn hide(parts: &mut Parts) {
    let names: &[HeaderName] = match parts.method {
        Method::GET | Method::HEAD => &READ_HEADERS,
        Method::PUT | Method::POST => &WRITE_HEADERS,
        _ => return,
    };
    let mut raw = HeaderMap::new();
    for name in names {
        for value in parts.headers.get_all(name) {
            raw.append(name, value.clone());
        }
        parts.headers.remove(name);
    }
    if !raw.is_empty() {
        parts.extensions.insert(RawHeaders(raw));
    }
    if let Some(source) = parts.headers.get_mut(COPY_SOURCE) {
        escape_plus(source);
    }
    let query = parts.uri.query().unwrap_or_default();
    if let Some(text) = percent::query_value(query, RESPONSE_EXPIRES) {
        parts.extensions.insert(ResponseExpires(text));
        retain_query(parts, |name| name != RESPONSE_EXPIRES);
    }
}

/// Restores the headers.
pub(super) fn restore(headers: &mut HeaderMap, extensions: &mut Extensions) {
    if let Some(RawHeaders(raw)) = extensions.remove() {
        headers.extend(raw);
    }
}

/// Replaces `+` by an escaped space. In this header a literal plus sign comes escaped.
fn escape_plus(source: &mut HeaderValue) {
    let escaped = source.to_str().ok().filter(|text| text.contains('+'));
    let escaped = escaped.and_then(|text| HeaderValue::from_str(&text.replace('+', "%20")).ok());
    if let Some(escaped) = escaped {
        *source = escaped;
    }
}

#[cfg(test)]
mod tests;
