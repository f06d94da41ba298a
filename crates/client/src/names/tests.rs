//! Keys and paths map to each other, and no key leads out of its folder.

use std::path::{Component, Path, PathBuf};

use expect_test::expect;
use proptest::prelude::*;

use super::{NameError, S3Url, check_key_length, key_of, path_of};

#[test]
fn s3_urls_are_parsed_or_rejected() {
    let parse = |text: &str| text.parse::<S3Url>().map(|url| (url.bucket, url.key));
    let shown: Vec<_> = ["s3://b", "s3://b/", "s3://b/a/b c", "s3://b//x", "s3:///x", "b/x", ""]
        .map(|text| format!("{text:?} {:?}", parse(text)))
        .into();
    expect![[r#"
        [
            "\"s3://b\" Ok((\"b\", \"\"))",
            "\"s3://b/\" Ok((\"b\", \"\"))",
            "\"s3://b/a/b c\" Ok((\"b\", \"a/b c\"))",
            "\"s3://b//x\" Ok((\"b\", \"/x\"))",
            "\"s3:///x\" Err(NotS3Url { text: \"s3:///x\" })",
            "\"b/x\" Err(NotS3Url { text: \"b/x\" })",
            "\"\" Err(NotS3Url { text: \"\" })",
        ]
    "#]]
    .assert_debug_eq(&shown);
}

#[test]
fn folder_does_not_cover_sibling_prefix() {
    let covers = |url: &str, key: &str| url.parse::<S3Url>().unwrap().covers(key);
    assert!(covers("s3://b/docs", "docs") && covers("s3://b/docs", "docs/a/b"));
    assert!(!covers("s3://b/docs", "docs2") && !covers("s3://b/docs", "docs2/a"));
    assert!(covers("s3://b/docs/", "docs/a") && !covers("s3://b/docs/", "docs"));
    assert!(covers("s3://b", "anything") && covers("s3://b/", "/odd"));
}

#[test]
fn keys_outside_the_folder_are_rejected() {
    for key in [
        "../x",
        "a/../../x",
        "a/..",
        "/etc/passwd",
        "//x",
        "a//b",
        "./x",
        "a/./b",
        "..",
        ".",
        "/",
        "a\0b",
        "",
    ] {
        let refused = path_of("", key);
        assert!(matches!(refused, Err(NameError::NotAPath { .. })), "{key:?} gave {refused:?}");
    }
    assert!(path_of("p/", "q/x").is_err(), "another prefix");
    assert!(path_of("p/", "p//x").is_err(), "absolute behind the prefix");
    assert!(path_of("p/", "p/../x").is_err(), "parent behind the prefix");
}

#[test]
fn keys_map_to_relative_paths() {
    let path = |prefix, key| path_of(prefix, key).unwrap();
    assert_eq!(path("", "a/b/"), PathBuf::from("a/b"));
    assert_eq!(path("p/", "p/"), PathBuf::new());
    assert_eq!(path("p/", "p/...x/a b+%20"), PathBuf::from("...x/a b+%20"));
    assert_eq!(path("p/", "p/a\\..\\b"), PathBuf::from("a\\..\\b"));
}

#[test]
fn invalid_keys_are_rejected() {
    use std::os::unix::ffi::OsStrExt as _;
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"bad\xff"));
    assert!(matches!(key_of("p/", odd), Err(NameError::NotUtf8 { .. })));
    let longest = "x".repeat(1024);
    assert_eq!(check_key_length(&longest, odd), Ok(()));
    let long = key_of("p/", Path::new(&longest));
    assert!(matches!(long, Err(NameError::KeyTooLong { bytes: 1026, .. })));
}

proptest! {
    #[test]
    fn path_to_key_round_trips(
        prefix in "([a-z .+%]{1,8}/){0,2}",
        segments in prop::collection::vec("[^/\\x00]{1,12}", 1..5),
    ) {
        prop_assume!(segments.iter().all(|segment| segment != "." && segment != ".."));
        let relative: PathBuf = segments.iter().collect();
        let key = key_of(&prefix, &relative).unwrap();
        prop_assert!(key.starts_with(&prefix));
        prop_assert_eq!(path_of(&prefix, &key).unwrap(), relative);
    }

    #[test]
    fn no_key_escapes_the_folder(key in "([./a\\\\\\x00]|\\.\\.){0,12}") {
        if let Ok(path) = path_of("", &key) {
            prop_assert!(path.components().all(|c| matches!(c, Component::Normal(_))));
            prop_assert!(Path::new("/folder").join(&path).starts_with("/folder"));
        }
    }
}
