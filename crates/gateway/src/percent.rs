//! Percent-encoding of names in listings and decoding of query strings.

use std::fmt::Write as _;

/// `text` as S3 shows it under `encoding-type=url`: everything but the unreserved characters and
/// the slash is escaped.
pub(crate) fn encode(text: &str) -> String {
    encode_bytes(text.as_bytes(), true)
}

/// The same for any bytes, as signatures have them: in paths slashes stay, in queries they do not.
pub(crate) fn encode_bytes(bytes: &[u8], keeps_slashes: bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain || (keeps_slashes && byte == b'/') {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The bytes that a path stands for; what is no escape stands for itself.
pub(crate) fn decode_bytes(path: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let mut value = [byte];
        rest = after;
        if byte == b'%'
            && let Some((digits, after)) = rest.split_at_checked(2)
            && hex::decode_to_slice(digits, &mut value).is_ok()
        {
            rest = after;
        }
        out.push(value[0]);
    }
    out
}

/// The text that a part of a query string stands for; `None` when it is not UTF-8 or an escape is
/// broken.
pub(crate) fn decode_query(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                let mut value = [0];
                hex::decode_to_slice(digits, &mut value).ok()?;
                value[0]
            }
            other => other,
        });
    }
    String::from_utf8(out).ok()
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
