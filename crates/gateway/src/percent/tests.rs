//! Encoding and decoding round-trip, and broken escapes are refused.

use super::{decode_bytes, decode_query, encode, encode_bytes, query_value};

#[test]
fn percent_encoding_round_trips() {
    for name in ["plain", "a b+c%d", "dir/sub/\u{e4}\u{1f600}", "line\nfeed\u{1}", "~-._"] {
        assert_eq!(decode_query(&encode(name)).as_deref(), Some(name));
    }
    assert_eq!(encode("a/b c+%"), "a/b%20c%2B%25");
}

#[test]
fn broken_escapes_are_rejected() {
    for text in ["%", "%4", "%zz", "%ff", "a%", "%%41", "%+1", "%4\u{e4}"] {
        assert_eq!(decode_query(text), None, "{text}");
    }
}

#[test]
fn query_value_finds_by_name() {
    let query = "bucket=b1&key=a%2Fb+c&flag";
    assert_eq!(query_value(query, "key").as_deref(), Some("a/b c"));
    assert_eq!(query_value(query, "flag").as_deref(), Some(""));
    assert_eq!(query_value(query, "ke"), None);
}

#[test]
fn bytes_are_encoded_as_signatures_require() {
    for byte in 0..=u8::MAX {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let escape = format!("%{byte:02X}");
        let expected = if is_plain { char::from(byte).to_string() } else { escape };
        assert_eq!(encode_bytes(&[byte], false), expected);
        let expected = if byte == b'/' { "/".to_owned() } else { expected };
        assert_eq!(encode_bytes(&[byte], true), expected);
        assert_eq!(decode_bytes(&format!("%{byte:02x}")), [byte]);
    }
}

#[test]
fn invalid_path_escapes_are_kept_verbatim() {
    for (path, bytes) in [("a+b", "a+b"), ("%", "%"), ("%4", "%4"), ("%%41", "%A"), ("%zz", "%zz")]
    {
        assert_eq!(decode_bytes(path), bytes.as_bytes(), "{path}");
    }
}
