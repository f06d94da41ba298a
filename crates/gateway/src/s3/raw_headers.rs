//! Headers that s3s would refuse or read otherwise than S3 and RFC 9110 do. They are taken off a
//! request before s3s parses it, and its operation finds them back as the client wrote them.
//!
//! | header | s3s | S3 |
//! | --- | --- | --- |
//! | `Range` | one range, or 400 | what is no single range is ignored |
//! | `If-*` of reads | one tag, one form of date, or 400 | lists of tags; no date, no condition |
//! | `x-amz-copy-source-if-*` | as above | lists of tags |
//! | `Expires`, `response-expires` | a date, or 400 | any text |
//! | `x-amz-copy-source` | `+` stands for itself | `+` is a blank |

use http::header::{
    EXPIRES, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method};

use super::signature::retain_query;
use crate::percent;

/// Names the object that is copied.
const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
/// Conditions on the object that is copied.
pub(super) const COPY_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");
pub(super) const COPY_IF_NONE_MATCH: HeaderName =
    HeaderName::from_static("x-amz-copy-source-if-none-match");
pub(super) const COPY_IF_MODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-amz-copy-source-if-modified-since");
pub(super) const COPY_IF_UNMODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-amz-copy-source-if-unmodified-since");

/// What reads have of these headers.
static OF_READS: [HeaderName; 6] =
    [RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE];
/// What writes have of them. `If-Match` and `If-None-Match` of a write stay with s3s.
static OF_WRITES: [HeaderName; 5] =
    [EXPIRES, COPY_IF_MATCH, COPY_IF_NONE_MATCH, COPY_IF_MODIFIED_SINCE, COPY_IF_UNMODIFIED_SINCE];
const RESPONSE_EXPIRES: &str = "response-expires";

/// The headers of a request that s3s does not see.
#[derive(Clone, Debug, Default)]
struct RawHeaders(HeaderMap);

/// The parameter `response-expires`, as it was written.
#[derive(Clone, Debug)]
pub(super) struct ResponseExpires(pub(super) String);

/// Takes the headers off a request.
pub(super) fn hide(parts: &mut Parts) {
    let names: &[HeaderName] = match parts.method {
        Method::GET | Method::HEAD => &OF_READS,
        Method::PUT | Method::POST => &OF_WRITES,
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
        encode_blanks(source);
    }
    let query = parts.uri.query().unwrap_or_default();
    if let Some(text) = percent::query_value(query, RESPONSE_EXPIRES) {
        parts.extensions.insert(ResponseExpires(text));
        retain_query(parts, |name| name != RESPONSE_EXPIRES);
    }
}

/// Gives the headers back.
pub(super) fn restore(headers: &mut HeaderMap, extensions: &mut Extensions) {
    if let Some(RawHeaders(raw)) = extensions.remove() {
        headers.extend(raw);
    }
}

/// A plus sign that means itself is escaped in this header.
fn encode_blanks(source: &mut HeaderValue) {
    let escaped = source.to_str().ok().filter(|text| text.contains('+'));
    let escaped = escaped.and_then(|text| HeaderValue::from_str(&text.replace('+', "%20")).ok());
    if let Some(escaped) = escaped {
        *source = escaped;
    }
}

#[cfg(test)]
mod tests;
