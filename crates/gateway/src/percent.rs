//! Percent-encoding as S3 has it, and query strings in which a broken escape is a fault.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// What is escaped in queries: all but the unreserved characters.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What is escaped in paths.
const ESCAPED_IN_PATHS: &AsciiSet = &ESCAPED.remove(b'/');

/// `text` as S3 shows it under `encoding-type=url`: everything but the unreserved characters and
/// the slash is escaped.
pub(crate) fn encode(text: &str) -> String {
    encode_bytes(text.as_bytes(), true)
}

/// The same for any bytes, as signatures have them: in paths slashes stay, in queries they do not.
pub(crate) fn encode_bytes(bytes: &[u8], keeps_slashes: bool) -> String {
    let escaped = if keeps_slashes { ESCAPED_IN_PATHS } else { ESCAPED };
    percent_encode(bytes, escaped).to_string()
}

/// The bytes that a path stands for; what is no escape stands for itself.
pub(crate) fn decode_bytes(path: &str) -> Vec<u8> {
    percent_decode_str(path).collect()
}

/// The text that a part of a query string stands for; `None` when it is not UTF-8 or an escape is
/// broken.
pub(crate) fn decode_query(text: &str) -> Option<String> {
    let is_escape = |rest: &str| {
        rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let text = text.replace('+', " ");
    Some(percent_decode_str(&text).decode_utf8().ok()?.into_owned())
}

/// The decoded value of `name` in a query string.
pub(crate) fn query_value(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode_query(key)? == name).then(|| decode_query(value))?
    })
}

#[cfg(test)]
mod tests;
