//! Claims are read from all the places where clients put them, and contradictions are refused.

use fulgurite_archive::ChecksumAlgorithm;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::from_headers;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

fn code(pairs: &[(&'static str, &'static str)]) -> String {
    from_headers(&headers(pairs), Some(1)).unwrap_err().code().as_str().to_owned()
}

#[test]
fn checksum_header_sets_the_algorithm() {
    let claim = from_headers(&headers(&[("x-amz-checksum-crc32", "AAAAAA==")]), Some(7)).unwrap();
    assert_eq!(claim.bytes, Some(7));
    assert_eq!(claim.algorithm, Some(ChecksumAlgorithm::Crc32));
    assert_eq!(claim.checksum.unwrap().value, [0; 4]);
    let promised = [("x-amz-trailer", "x-amz-checksum-crc64nvme")];
    let claim = from_headers(&headers(&promised), None).unwrap();
    assert_eq!(claim.algorithm, Some(ChecksumAlgorithm::Crc64Nvme));
    assert!(claim.checksum.is_none());
}

#[test]
fn contradictory_claims_are_rejected() {
    let crc32 = ("x-amz-checksum-crc32", "AAAAAA==");
    assert_eq!(code(&[crc32, ("x-amz-checksum-crc32c", "AAAAAA==")]), "InvalidRequest");
    assert_eq!(code(&[("x-amz-checksum-crc32", "AAAA")]), "InvalidRequest");
    assert_eq!(code(&[("x-amz-checksum-crc32", "!")]), "InvalidRequest");
    assert_eq!(code(&[crc32, ("x-amz-sdk-checksum-algorithm", "SHA1")]), "InvalidRequest");
    assert_eq!(code(&[("x-amz-sdk-checksum-algorithm", "FOO")]), "InvalidRequest");
    assert_eq!(code(&[crc32, ("x-amz-trailer", "x-amz-checksum-crc32")]), "InvalidRequest");
    assert_eq!(code(&[("x-amz-trailer", "x-amz-checksum-md4")]), "InvalidRequest");
    assert_eq!(code(&[("content-md5", "AAAA")]), "InvalidDigest");
}
