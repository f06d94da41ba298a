//! Hosts name buckets, and headers with unsupported requests are refused.

use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::host::S3Host as _;

use super::{Hosts, check_headers};

#[test]
fn bucket_is_parsed_from_host() {
    let hosts = Hosts::new(Some("S3.Example.org")).unwrap();
    for (host, bucket) in [
        ("localhost:9000", None),
        ("b1.localhost:9000", Some("b1")),
        ("a.b.localhost", Some("a.b")),
        ("s3.example.org", None),
        ("Photos.s3.example.org:443", Some("photos")),
        ("notlocalhost", None),
        ("elsewhere.net", None),
    ] {
        assert_eq!(hosts.parse_host_header(host).unwrap().bucket(), bucket, "{host}");
    }
    assert!(Hosts::new(Some("")).is_err());
    assert!(Hosts::new(Some("a..b")).is_err());
    assert!(Hosts::new(Some("a/b")).is_err());
}

fn code_of(name: &'static str, value: &'static str) -> Option<String> {
    let mut headers = HeaderMap::new();
    headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    check_headers(&headers).err().map(|error| error.code().as_str().to_owned())
}

#[test]
fn unsupported_headers_are_rejected() {
    for (name, value, code) in [
        ("x-amz-acl", "private", None),
        ("x-amz-acl", "public-read", Some("AccessControlListNotSupported")),
        ("x-amz-grant-read", "id=1", Some("AccessControlListNotSupported")),
        ("x-amz-server-side-encryption", "AES256", None),
        ("x-amz-server-side-encryption", "aws:kms", Some("NotImplemented")),
        ("x-amz-server-side-encryption", "aws:kms:dsse", Some("NotImplemented")),
        ("x-amz-server-side-encryption", "AES128", Some("InvalidEncryptionAlgorithmError")),
        ("x-amz-server-side-encryption-customer-key", "k", Some("NotImplemented")),
        ("x-amz-object-lock-mode", "GOVERNANCE", Some("NotImplemented")),
        ("x-amz-tagging", "a=b", Some("NotImplemented")),
        ("x-amz-tagging", "", None),
        ("x-amz-checksum-sha512", "AAAA", Some("InvalidRequest")),
        ("x-amz-checksum-sha256", "AAAA", None),
        ("x-amz-expected-bucket-owner", "111122223333", Some("AccessDenied")),
        ("x-amz-meta-acl", "public-read", None),
    ] {
        assert_eq!(code_of(name, value).as_deref(), code, "{name}: {value}");
    }
}
