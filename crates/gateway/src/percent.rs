//! Percent-encoding as S3 does it, and query strings in which a broken escape is an error.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// Characters escaped in queries: all but the unreserved ones.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Characters escaped in paths.
const ESCAPED_IN_PATHS: &AsciiSet = &ESCAPED.remove(b'/');

/// Encodes `text` as S3 does under `encoding-type=url`: everything but the unreserved characters
/// and the slash is escaped.
pub(crate) fn encode(text: &str) -> String {
    encode_bytes(text.as_bytes(), true)
}

/// Encodes any bytes as signatures do: slashes are escaped in queries, but not in paths.
pub(crate) fn encode_bytes(bytes: &[u8], keeps_slashes: bool) -> String {
    let escaped = if keeps_slashes { ESCAPED_IN_PATHS } else { ESCAPED };
    percent_encode(bytes, escaped).to_string()
}

/// Decodes a path; invalid escapes stay as they are.
pub(crate) fn decode_bytes(path: &str) -> Vec<u8> {
    percent_decode_str(path).collect()
}

/// Decodes a part of a query string; `None` when it is not UTF-8 or an escape is broken.
pub(crate) fn decode_query(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let is_escape = |rest: &str| {
        rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let text = text.replace('+', " ");
    Some(Cow::Owned(percent_decode_str(&text).decode_utf8().ok()?.into_owned()))
}

/// Returns the decoded value of `name` in a query string.
pub(crate) fn query_value(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode_query(key)? == name).then(|| decode_query(value).map(Cow::into_owned))?
    })
}

#[cfg(test)]
mod tests;
