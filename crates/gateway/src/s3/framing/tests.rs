//! Framing and trailers may be announced only where they can occur.

use fulgurite_archive::ChecksumAlgorithm;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{announced_trailer, check_unframed};

fn headers(name: &'static str, value: &'static str) -> HeaderMap {
    let pair = (HeaderName::from_static(name), HeaderValue::from_static(value));
    HeaderMap::from_iter([pair])
}

#[test]
fn trailer_announces_one_checksum() {
    let announced = |text| announced_trailer(&headers("x-amz-trailer", text)).map_err(|r| r.code);
    let crc32 = Ok(Some(ChecksumAlgorithm::Crc32));
    assert_eq!(announced_trailer(&HeaderMap::new()).unwrap(), None);
    assert_eq!(announced("x-amz-checksum-crc32"), crc32);
    assert_eq!(announced(" X-Amz-Checksum-CRC32 "), crc32);
    for text in [
        "",
        "x-amz-meta-a",
        "x-amz-checksum-md5",
        "x-amz-checksum-crc32,x-amz-checksum-sha1",
        "x-amz-checksum-crc32,x-amz-meta-a",
        "x-amz-checksum-crc32,",
    ] {
        assert_eq!(announced(text), Err("InvalidRequest"), "{text}");
    }
}

#[test]
fn unframed_bodies_must_not_announce_framing() {
    for (name, value, code) in [
        ("content-encoding", "gzip", None),
        ("content-encoding", "my-aws-chunked", None),
        ("content-encoding", "aws-chunked", Some("InvalidArgument")),
        ("content-encoding", "gzip , AWS-Chunked", Some("InvalidArgument")),
        ("x-amz-decoded-content-length", "5", Some("InvalidArgument")),
        ("x-amz-trailer", "x-amz-checksum-crc32", Some("MalformedTrailerError")),
    ] {
        let refusal = check_unframed(&headers(name, value), false).err();
        assert_eq!(refusal.map(|refusal| refusal.code), code, "{name}: {value}");
    }
    assert!(check_unframed(&headers("content-encoding", "aws-chunked"), true).is_ok());
}
