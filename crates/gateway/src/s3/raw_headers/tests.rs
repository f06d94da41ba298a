//! Headers hidden from s3s come back unchanged, and nothing else is touched.

use http::Request;
use http::header::{EXPIRES, IF_NONE_MATCH, RANGE};
use http::request::Parts;

use super::{ResponseExpires, hide, restore};

fn parts(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let request =
        headers.iter().fold(Request::builder().method(method).uri(target), |r, (name, value)| {
            r.header(*name, *value)
        });
    request.body(()).unwrap().into_parts().0
}

#[test]
fn hidden_headers_are_restored_unchanged() {
    let sent = [
        ("range", "bytes=0-1"),
        ("if-none-match", "\"a\""),
        ("if-none-match", "\"b\""),
        ("expires", "0"),
        ("x-amz-meta-a", "1"),
    ];
    let mut parts = parts("GET", "/b/k", &sent);
    let before = parts.headers.clone();
    hide(&mut parts);
    assert!(!parts.headers.contains_key(RANGE) && !parts.headers.contains_key(IF_NONE_MATCH));
    assert!(parts.headers.contains_key(EXPIRES), "a read has no such header of its own");
    restore(&mut parts.headers, &mut parts.extensions);
    assert_eq!(parts.headers, before);
}

#[test]
fn write_conditions_are_not_hidden() {
    let sent = [("if-none-match", "*"), ("expires", "0"), ("range", "bytes=0-1")];
    let mut parts = parts("PUT", "/b/k", &sent);
    hide(&mut parts);
    assert!(!parts.headers.contains_key(EXPIRES));
    assert_eq!(parts.headers.len(), 2);
}

#[test]
fn plus_in_copy_source_is_a_space() {
    let mut parts = parts("PUT", "/b/k", &[("x-amz-copy-source", "/b/a+b%2Bc")]);
    hide(&mut parts);
    assert_eq!(parts.headers["x-amz-copy-source"], "/b/a%20b%2Bc");
}

#[test]
fn response_expires_is_removed_from_query() {
    let mut with = parts("GET", "/b/k?response-expires=a+b%00&x-id=GetObject", &[]);
    hide(&mut with);
    assert_eq!(with.uri, "/b/k?x-id=GetObject");
    let found = with.extensions.get::<ResponseExpires>().map(|found| found.0.as_str());
    assert_eq!(found, Some("a b\0"));
}
