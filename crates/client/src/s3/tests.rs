//! The XML documents of S3, its names on the wire, and verification of bodies.

use expect_test::expect;
use proptest::prelude::*;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::checksum::{Verifier, crc64, crc64_combine, crc64_text, md5_text};
use super::client::parse_restore_header;
use super::error::{S3Error, S3ErrorKind};
use super::stream::streamed_part_bytes;
use super::transfer::part_bytes;
use super::uri::{is_addressable, percent_decode, percent_encode};
use super::xml::{self, UploadedPart};
use crate::limits;

#[test]
fn listing_parses_restore_status() {
    let page = xml::parse_list(
        r#"<?xml version="1.0" encoding="UTF-8"?>
        <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
          <Name>b</Name><Prefix></Prefix><KeyCount>3</KeyCount><MaxKeys>2</MaxKeys>
          <EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
          <NextContinuationToken>t0ken=</NextContinuationToken>
          <Contents><Key>a+b%2Bc%25%C3%A4%20</Key><Size>7</Size><ETag>&quot;abc&quot;</ETag>
            <LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents>
          <Contents><Key>x</Key><Size>0</Size><StorageClass>GLACIER</StorageClass>
            <RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress>
            <RestoreExpiryDate>2026-02-01T00:00:00.000Z</RestoreExpiryDate></RestoreStatus>
          </Contents>
          <Contents><Key>y</Key><Size>0</Size><StorageClass>DEEP_ARCHIVE</StorageClass>
            <RestoreStatus><IsRestoreInProgress>true</IsRestoreInProgress></RestoreStatus>
          </Contents>
          <CommonPrefixes><Prefix>p%2Fq/</Prefix></CommonPrefixes>
        </ListBucketResult>"#,
    )
    .unwrap();
    assert_eq!(page.objects[0].key, "a b+c%\u{e4} ");
    assert_eq!(page.prefixes, ["p/q/"]);
    assert_eq!(page.next.as_deref(), Some("t0ken="));
    let waiting: Vec<bool> = page.objects.iter().map(xml::ListedObject::needs_restore).collect();
    assert_eq!(waiting, [false, false, true]);
    assert_eq!(page.objects[0].class, "STANDARD");
    assert_eq!(page.objects[0].etag, "abc");
}

#[test]
fn malformed_documents_are_errors() {
    for text in [
        "",
        "<html>",
        "<ListBucketResult><Contents><Key>x</Key></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key><Size>1</Size>\
         </Contents></ListBucketResult>",
    ] {
        let error = xml::parse_list(text).expect_err(text);
        assert_eq!(error.kind(), S3ErrorKind::Internal, "{text}");
    }
}

#[test]
fn error_documents_parse_leniently() {
    let document = xml::parse_error(
        "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>no &lt;key&gt;</Message>\
         <Resource>/b/k</Resource></Error>",
    );
    assert_eq!((document.code.as_str(), document.message.as_str()), ("NoSuchKey", "no <key>"));
    assert_eq!(xml::parse_error("<html>busy</html>"), xml::ErrorDocument::default());
    assert_eq!(xml::parse_error(""), xml::ErrorDocument::default());
}

#[test]
fn request_bodies_are_xml_escaped() {
    let keys = ["a&b".to_owned(), "<k>".to_owned()];
    let lines = |xml: &str| xml.replace("><", ">\n<");
    expect![[r#"
        <Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
        <Object>
        <Key>a&amp;b</Key>
        </Object>
        <Object>
        <Key>&lt;k&gt;</Key>
        </Object>
        <Quiet>true</Quiet>
        </Delete>"#]]
    .assert_eq(&lines(&xml::delete_request(&keys)));
    let part = UploadedPart { number: 1, etag: "\"e\"".to_owned(), crc: 0, bytes: 1 };
    expect![[r#"
        <CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
        <Part>
        <ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME>
        <ETag>&quot;e&quot;</ETag>
        <PartNumber>1</PartNumber>
        </Part>
        </CompleteMultipartUpload>"#]]
    .assert_eq(&lines(&xml::complete_request(&[part])));
    let failures = "<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code></Error>\
                    </DeleteResult>";
    assert_eq!(xml::parse_delete(failures).unwrap()[0].key, "k");
    assert_eq!(xml::parse_delete("<DeleteResult/>").unwrap(), []);
}

#[test]
fn restore_header_parses_both_forms() {
    let running = parse_restore_header("ongoing-request=\"true\"").unwrap();
    assert!(running.in_progress && running.expiry.is_none());
    let text = "ongoing-request=\"false\", expiry-date=\"Fri, 21 Dec 2012 00:00:00 GMT\"";
    let done = parse_restore_header(text).unwrap();
    assert!(!done.in_progress);
    assert_eq!(done.expiry.as_deref(), Some("Fri, 21 Dec 2012 00:00:00 GMT"));
    assert_eq!(parse_restore_header(""), None);
    assert_eq!(parse_restore_header("ongoing-request=\"tr"), None);
}

#[test]
fn error_kinds_follow_status_and_code() {
    let kind = |status, code: &str| {
        let (target, message) = (String::new(), String::new());
        let operation = "GetObject";
        S3Error::Service { operation, target, status, code: code.to_owned(), message }.kind()
    };
    assert_eq!(kind(403, "InvalidObjectState"), S3ErrorKind::Archived);
    assert_eq!(kind(403, "SignatureDoesNotMatch"), S3ErrorKind::Denied);
    assert_eq!(kind(404, "NoSuchKey"), S3ErrorKind::NotFound);
    assert_eq!(kind(503, "SlowDown"), S3ErrorKind::Unavailable);
    assert_eq!(kind(400, "BadDigest"), S3ErrorKind::Corrupt);
    assert_eq!(kind(409, "BucketNotEmpty"), S3ErrorKind::Conflict);
}

/// The check values of each algorithm over "123456789", as its definition gives them.
#[test]
fn every_offered_checksum_is_verified() {
    let offers = [
        ("x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
        ("x-amz-checksum-crc32c", "4waSgw=="),
        ("x-amz-checksum-crc32", "y/Q5Jg=="),
        ("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
        ("x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
        ("etag", "\"25f9e794323b453885f5181f1b624d0b\""),
    ];
    for (name, value) in offers {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        let check = |body: &[u8]| {
            let mut verifier = Verifier::new(&headers);
            body.chunks(4).for_each(|chunk| verifier.update(chunk));
            verifier.finish("s3://b/k")
        };
        check(b"123456789").unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(check(b"123456788").unwrap_err().kind(), S3ErrorKind::Corrupt, "{name}");
    }
}

#[test]
fn unusable_checksums_are_ignored() {
    let offers = [
        ("x-amz-checksum-crc32", "y/Q5Jg==-3"),
        ("x-amz-checksum-crc64nvme", "y/Q5Jg=="),
        ("etag", "\"25f9e794323b453885f5181f1b624d0b-2\""),
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in offers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    Verifier::new(&headers).finish("s3://b/k").unwrap();
    let text = "1B2M2Y8AsgTpgAmY7PhCfg==";
    assert_eq!(md5_text(b""), text);
}

#[test]
fn part_size_is_whole_mib_within_part_limit() {
    let mib = 1 << 20;
    for bytes in [limits::MULTIPART_THRESHOLD_BYTES + 1, 1 << 30, 160_000 * mib + 1, 5 << 40] {
        let part = part_bytes(bytes);
        assert!(part.is_multiple_of(mib) && part >= limits::PART_BYTES_MIN, "{bytes}");
        assert!(bytes.div_ceil(part) <= limits::PARTS_MAX, "{bytes}");
    }
}

#[test]
fn keys_with_dot_segments_are_unaddressable() {
    for key in ["..", "a/../b", "./a", "a/."] {
        assert!(!is_addressable(key), "{key}");
    }
    for key in ["...", "a..b", ".a", "a//b"] {
        assert!(is_addressable(key), "{key}");
    }
}

proptest! {
    #[test]
    fn percent_encoding_round_trips(text in "\\PC*") {
        let encoded = percent_encode(&text, false);
        prop_assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~%".contains(&b)));
        prop_assert_eq!(percent_decode(&encoded).unwrap(), text);
    }

    #[test]
    fn part_crcs_combine_to_whole_crc(
        body in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0usize..200,
    ) {
        let (first, second) = body.split_at(cut.min(body.len()));
        let combined = crc64_combine(crc64(first), crc64(second), second.len() as u64);
        prop_assert_eq!(crc64_text(combined), crc64_text(crc64(&body)));
    }
}

#[test]
fn streamed_part_sizes_grow_within_bounds() {
    let lengths: Vec<u64> = (1..=limits::PARTS_MAX).map(streamed_part_bytes).collect();
    assert_eq!(lengths[0], limits::PART_BYTES_MIN);
    assert_eq!(lengths[999..1001], [16 << 20, 32 << 20]);
    assert!(lengths.is_sorted());
    assert_eq!(lengths.last(), Some(&limits::STREAMED_PART_BYTES_MAX));
    assert!(lengths.iter().sum::<u64>() > (16 << 40) / 10, "1.6 TiB");
}
