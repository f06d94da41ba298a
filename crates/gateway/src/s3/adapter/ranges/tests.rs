//! A single range is honored; everything else is ignored.

use fulgurite_archive::ByteRange;
use http::header::RANGE;
use http::{HeaderMap, HeaderValue};

use super::{for_read, parse, unsatisfiable};

#[test]
fn malformed_and_multiple_ranges_are_ignored() {
    let from = |first, last| Some(ByteRange::From { first, last });
    let suffix = |bytes| Some(ByteRange::Suffix { bytes });
    for (text, expected) in [
        ("bytes=0-4", from(0, Some(4))),
        ("bytes=4-", from(4, None)),
        ("bytes=-4", suffix(4)),
        ("bytes=-0", suffix(0)),
        ("Bytes = 0-4 ", from(0, Some(4))),
        ("bytes=007-8", from(7, Some(8))),
        ("bytes=0-99999999999999999999", from(0, Some(u64::MAX))),
        ("bytes=99999999999999999999-", from(u64::MAX, None)),
        ("bytes=-99999999999999999999", suffix(u64::MAX)),
        ("", None),
        ("garbage", None),
        ("bytes", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=4", None),
        ("bytes=a-b", None),
        ("bytes=0-4x", None),
        ("bytes=+1-4", None),
        ("bytes=1.0-4", None),
        ("bytes=0 - 4", None),
        ("bytes=-1-4", None),
        ("bytes=4-1", None),
        ("bytes=0-1,3-4", None),
        ("bytes=0-1, 3-4", None),
        ("items=0-1", None),
        ("0-1", None),
    ] {
        assert_eq!(parse(text), expected, "{text}");
    }
}

#[test]
fn repeated_range_header_is_ignored() {
    let mut headers = HeaderMap::new();
    assert_eq!(for_read(&headers), None);
    headers.append(RANGE, HeaderValue::from_static("bytes=0-1"));
    assert!(for_read(&headers).is_some());
    headers.append(RANGE, HeaderValue::from_static("bytes=3-4"));
    assert_eq!(for_read(&headers), None);
}

#[test]
fn unsatisfiable_range_reports_object_size() {
    let headers = [(RANGE, HeaderValue::from_static("bytes=9-"))].into_iter().collect();
    let error = unsatisfiable(&headers, 5);
    assert_eq!(error.headers().unwrap()["content-range"], "bytes */5");
    assert_eq!(error.status_code().map(|status| status.as_u16()), Some(416));
}
