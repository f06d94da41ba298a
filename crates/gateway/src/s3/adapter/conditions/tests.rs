//! The precedence table of conditional reads, row by row.

use fulgurite_archive::{ObjectInfo, ObjectMeta, Residence, StorageClass};
use fulgurite_units::{ObjectId, UnixTime};
use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{ReadConditions, for_write, http_seconds, range_holds};
use crate::s3::adapter::conversions::http_date;
use crate::s3::raw_headers::{
    COPY_IF_MATCH, COPY_IF_MODIFIED_SINCE, COPY_IF_NONE_MATCH, COPY_IF_UNMODIFIED_SINCE,
};

const MODIFIED_MS: u64 = 1_700_000_000_500;

fn object() -> ObjectInfo {
    ObjectInfo {
        key: "k".to_owned(),
        object_id: ObjectId::from_random([0; 16]),
        bytes: 1,
        etag: "abc".to_owned(),
        modified: UnixTime::from_millis(MODIFIED_MS),
        class: StorageClass::Standard,
        meta: ObjectMeta::default(),
        checksum: None,
        part_count: None,
        restore: None,
        residence: Residence::Online,
    }
}

/// Formats the date of the object plus an offset in seconds.
fn date(offset_s: i64) -> String {
    let ms = MODIFIED_MS.checked_add_signed(offset_s * 1000).unwrap();
    http_date(UnixTime::from_millis(ms))
}

fn headers(pairs: &[(&HeaderName, &str)]) -> HeaderMap {
    let value = |text: &str| HeaderValue::from_str(text).unwrap();
    let mut headers = HeaderMap::new();
    for (name, text) in pairs {
        headers.append(*name, value(text));
    }
    headers
}

fn status(pairs: &[(&HeaderName, &str)]) -> u16 {
    let answer = ReadConditions::for_read(&headers(pairs)).check(&object());
    answer.err().and_then(|error| error.status_code()).map_or(200, |status| status.as_u16())
}

/// Returns the name of the same condition on the source of a copy.
fn for_copy(name: &HeaderName) -> HeaderName {
    match name {
        name if name == IF_MATCH => COPY_IF_MATCH,
        name if name == IF_NONE_MATCH => COPY_IF_NONE_MATCH,
        name if name == IF_MODIFIED_SINCE => COPY_IF_MODIFIED_SINCE,
        _ => COPY_IF_UNMODIFIED_SINCE,
    }
}

#[test]
fn entity_tags_take_precedence_over_dates() {
    let (same, before) = (&date(0), &date(-1));
    let table: &[(&[(&HeaderName, &str)], u16)] = &[
        (&[], 200),
        (&[(&IF_MATCH, "\"abc\"")], 200),
        (&[(&IF_MATCH, "*")], 200),
        (&[(&IF_MATCH, "\"xyz\"")], 412),
        (&[(&IF_UNMODIFIED_SINCE, same)], 200),
        (&[(&IF_UNMODIFIED_SINCE, before)], 412),
        (&[(&IF_MATCH, "\"abc\""), (&IF_UNMODIFIED_SINCE, before)], 200),
        (&[(&IF_NONE_MATCH, "\"abc\"")], 304),
        (&[(&IF_NONE_MATCH, "*")], 304),
        (&[(&IF_NONE_MATCH, "\"xyz\"")], 200),
        (&[(&IF_MODIFIED_SINCE, same)], 304),
        (&[(&IF_MODIFIED_SINCE, before)], 200),
        (&[(&IF_NONE_MATCH, "\"abc\""), (&IF_MODIFIED_SINCE, before)], 304),
        (&[(&IF_NONE_MATCH, "\"xyz\""), (&IF_MODIFIED_SINCE, same)], 200),
        (&[(&IF_MATCH, "\"xyz\""), (&IF_NONE_MATCH, "\"abc\"")], 412),
        // Lists, in one header line and in several.
        (&[(&IF_NONE_MATCH, "\"0\", \"abc\"")], 304),
        (&[(&IF_NONE_MATCH, "\"0\""), (&IF_NONE_MATCH, "\"abc\"")], 304),
        (&[(&IF_NONE_MATCH, "\"0\",\"a,bc\"")], 200),
        (&[(&IF_MATCH, "\"0\", ,\"abc\"")], 200),
        (&[(&IF_MATCH, "0, abc")], 200),
        (&[(&IF_MATCH, "\"0\", \"1\"")], 412),
        (&[(&IF_MATCH, ",")], 412),
        (&[(&IF_MATCH, "\"abc")], 412),
        // A weak tag is enough to save a transfer, but does not identify bytes.
        (&[(&IF_NONE_MATCH, "W/\"abc\"")], 304),
        (&[(&IF_MATCH, "W/\"abc\"")], 412),
        (&[(&IF_MATCH, "W/\"abc\", \"abc\"")], 200),
    ];
    for (pairs, expected) in table {
        assert_eq!(status(pairs), *expected, "{pairs:?}");
        let names: Vec<HeaderName> = pairs.iter().map(|(name, _)| for_copy(name)).collect();
        let pairs: Vec<(&HeaderName, &str)> =
            names.iter().zip(*pairs).map(|(name, (_, text))| (name, *text)).collect();
        let conditions = ReadConditions::for_copy(&headers(&pairs)).unwrap();
        assert_eq!(conditions.check_copy(&object()).is_ok(), *expected == 200, "{pairs:?}");
    }
}

#[test]
fn invalid_dates_are_ignored_on_reads() {
    for text in ["garbage", "0", "2023-11-14T22:13:20Z", "Tue, 14 Nov 2023 22:13:20 +0000"] {
        assert_eq!(status(&[(&IF_MODIFIED_SINCE, text)]), 200, "{text}");
        assert_eq!(status(&[(&IF_UNMODIFIED_SINCE, text)]), 200, "{text}");
        for name in [COPY_IF_MODIFIED_SINCE, COPY_IF_UNMODIFIED_SINCE] {
            let refused = ReadConditions::for_copy(&headers(&[(&name, text)])).unwrap_err();
            assert_eq!(refused.code().as_str(), "InvalidArgument", "{name}: {text}");
        }
    }
    let before_1970 = "Wed, 31 Dec 1969 23:59:59 GMT";
    assert_eq!(status(&[(&IF_MODIFIED_SINCE, before_1970)]), 200);
    assert_eq!(status(&[(&IF_UNMODIFIED_SINCE, before_1970)]), 412);
}

#[test]
fn http_dates_have_three_forms() {
    let expected = Some(784_111_777);
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        assert_eq!(http_seconds(text), expected, "{text}");
    }
    for text in ["", "Sun, 06 Nov 1994 08:49:37", "Sun, 36 Nov 1994 08:49:37 GMT", "784111777"] {
        assert_eq!(http_seconds(text), None, "{text}");
    }
}

#[test]
fn if_range_requires_the_same_object() {
    for (text, expected) in [
        ("\"abc\"", true),
        ("\"xyz\"", false),
        ("W/\"abc\"", false),
        ("\"abc\", \"xyz\"", false),
        ("*", false),
        ("garbage", false),
        (&date(0), true),
        (&date(1), false),
        (&date(-1), false),
    ] {
        assert_eq!(range_holds(&headers(&[(&IF_RANGE, text)]), &object()), expected, "{text}");
    }
    assert!(range_holds(&HeaderMap::new(), &object()), "without the header, any range holds");
}

#[test]
fn write_conditions_are_parsed() {
    let parse = |name: &'static str, value: &'static str| {
        let pair = (HeaderName::from_static(name), HeaderValue::from_static(value));
        for_write(&HeaderMap::from_iter([pair]))
    };
    assert!(parse("if-none-match", "*").unwrap().absent);
    assert_eq!(parse("if-match", "\"abc\"").unwrap().etag.as_deref(), Some("abc"));
    assert_eq!(parse("if-match", "*").unwrap().etag.as_deref(), Some("*"));
    assert!(parse("if-none-match", "\"abc\"").is_err());
}
