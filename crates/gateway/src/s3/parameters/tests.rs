//! Every integer field, with text that some parsers accept as an integer.

use http::request::Parts;
use http::{HeaderName, Request};

use super::{HEADER_COUNTS, HEADER_LENGTHS, QUERY_INTEGERS, check, parse_integer};

/// Not integers in S3, though each contains one or nearly is one.
const WRONG: [&str; 12] =
    ["1.5", "1x", "1e1", "+1", "01", "", " ", "-0", "--1", "0x1", "\u{661}", "9223372036854775808"];

fn parts(target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn code(parts: &Parts) -> Option<&'static str> {
    check(parts).err().map(|refusal| refusal.code)
}

#[test]
fn integers_have_one_spelling() {
    for (text, number) in [
        ("0", 0),
        ("1", 1),
        ("-1", -1),
        ("10000", 10_000),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
    ] {
        assert_eq!(parse_integer(text), Some(number));
    }
    for text in WRONG.into_iter().chain(["1 ", " 1", "1\n", "-", "00", "-9223372036854775809"]) {
        assert_eq!(parse_integer(text), None, "{text:?}");
    }
}

#[test]
fn query_integers_are_validated() {
    for name in QUERY_INTEGERS.into_iter().chain(["partNumber"]) {
        for text in WRONG.into_iter().chain(["-1", "2147483648"]) {
            let text = crate::percent::encode(text);
            let found = code(&parts(&format!("/b/k?x-id=A&{name}={text}"), &[]));
            assert_eq!(found, Some("InvalidArgument"), "{name}={text}");
        }
        assert_eq!(code(&parts(&format!("/b?{name}"), &[])), Some("InvalidArgument"), "{name}");
        assert_eq!(code(&parts(&format!("/b?{name}=+1"), &[])), Some("InvalidArgument"));
        assert_eq!(code(&parts(&format!("/b?{name}=10000"), &[])), None, "{name}");
        assert_eq!(code(&parts(&format!("/b?{name}=%31"), &[])), None, "{name}");
        let twice = code(&parts(&format!("/b?{name}=1&a=b&{name}=1"), &[]));
        assert_eq!(twice, Some("InvalidRequest"), "{name}");
    }
    for text in ["0", "10001"] {
        assert_eq!(code(&parts(&format!("/b/k?partNumber={text}"), &[])), Some("InvalidArgument"));
    }
    assert_eq!(code(&parts("/b?max-keys=2147483647", &[])), None);
}

#[test]
fn header_integers_are_validated() {
    for name in HEADER_COUNTS.iter().chain(&HEADER_LENGTHS).map(HeaderName::as_str) {
        for text in WRONG.into_iter().filter(|text| text.is_ascii()).chain(["-1"]) {
            let found = code(&parts("/b/k", &[(name, text)]));
            assert_eq!(found, Some("InvalidArgument"), "{name}: {text}");
        }
        assert_eq!(code(&parts("/b/k", &[(name, "10000")])), None, "{name}");
        let twice = code(&parts("/b/k", &[(name, "1"), (name, "1")]));
        assert_eq!(twice, Some("InvalidRequest"), "{name}");
    }
}

#[test]
fn repeated_single_values_are_rejected() {
    for (name, code_twice) in [
        ("content-encoding", Some("InvalidRequest")),
        ("content-md5", Some("InvalidRequest")),
        ("x-amz-checksum-crc32", Some("InvalidRequest")),
        ("x-amz-trailer", Some("InvalidRequest")),
        ("x-amz-meta-a", Some("InvalidRequest")),
        ("x-amz-object-attributes", None),
        ("accept-encoding", None),
    ] {
        let found = code(&parts("/b/k", &[(name, "a"), (name, "b")]));
        assert_eq!(found, code_twice, "{name}");
    }
    assert_eq!(code(&parts("/b?delete&prefix=a&%70refix=a", &[])), Some("InvalidRequest"));
}
