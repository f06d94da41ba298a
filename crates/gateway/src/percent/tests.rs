//! What is encoded decodes to itself, and broken escapes are refused.

use super::{decode_query, encode, query_value};

#[test]
fn names_come_back() {
    for name in ["plain", "a b+c%d", "dir/sub/\u{e4}\u{1f600}", "line\nfeed\u{1}", "~-._"] {
        assert_eq!(decode_query(&encode(name)).as_deref(), Some(name));
    }
    assert_eq!(encode("a/b c+%"), "a/b%20c%2B%25");
}

#[test]
fn broken_escapes_are_refused() {
    for text in ["%", "%4", "%zz", "%ff"] {
        assert_eq!(decode_query(text), None, "{text}");
    }
}

#[test]
fn values_are_found_by_name() {
    let query = "bucket=b1&key=a%2Fb+c&flag";
    assert_eq!(query_value(query, "key").as_deref(), Some("a/b c"));
    assert_eq!(query_value(query, "flag").as_deref(), Some(""));
    assert_eq!(query_value(query, "ke"), None);
}
