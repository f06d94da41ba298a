//! The examples of Amazon's description of signature version 4 verify, and small changes to them do
//! not.

use std::collections::VecDeque;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request};
use jiff::{Timestamp, ToSpan as _};

use super::{Payload, SignatureClaim, parse_basic, parse_date, strip, verify};
use crate::Credentials;
use crate::s3::chunks::ChunkDecoder;

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const SCOPE: &str = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";

fn keys() -> Credentials {
    Credentials::new("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY").unwrap()
}

fn then() -> Timestamp {
    parse_basic("20130524T000000Z").unwrap()
}

fn parts(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

/// One of Amazon's examples, with these headers under this signature.
fn example(method: &str, target: &str, headers: &[(&str, &str)], signature: &str) -> Parts {
    let mut parts = parts(method, target, headers);
    let mut names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    let text = format!(
        "AWS4-HMAC-SHA256 Credential={SCOPE},SignedHeaders={},Signature={signature}",
        names.join(";")
    );
    parts.headers.insert("authorization", HeaderValue::from_str(&text).unwrap());
    parts
}

const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
const DATE: (&str, &str) = ("x-amz-date", "20130524T000000Z");

fn get_example() -> Parts {
    let headers = [HOST, ("range", "bytes=0-9"), ("x-amz-content-sha256", EMPTY), DATE];
    let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    example("GET", "/test.txt", &headers, signature)
}

fn code(outcome: Result<Option<Payload>, super::Refusal>) -> &'static str {
    match outcome {
        Ok(Some(_)) => "signed",
        Ok(None) => "unsigned",
        Err(refusal) => refusal.code,
    }
}

#[test]
fn aws_header_examples_verify() {
    assert_eq!(code(verify(&get_example(), &keys(), then())), "signed");
    let body = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    let headers = [
        ("date", "Fri, 24 May 2013 00:00:00 GMT"),
        HOST,
        ("x-amz-content-sha256", body),
        DATE,
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    let signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
    for target in ["/test%24file.text", "/test$file.text"] {
        let put = example("PUT", target, &headers, signature);
        let found = verify(&put, &keys(), then()).unwrap();
        let Some(Payload::Digest(digest)) = found else { panic!("{found:?}") };
        assert_eq!(hex::encode(digest), body);
    }
    let headers = [HOST, ("x-amz-content-sha256", EMPTY), DATE];
    let lifecycle = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
    let parts = example("GET", "/?lifecycle", &headers, lifecycle);
    assert_eq!(code(verify(&parts, &keys(), then())), "signed");
    let list = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
    for target in ["/?max-keys=2&prefix=J", "/?prefix=J&max-keys=2"] {
        let parts = example("GET", target, &headers, list);
        assert_eq!(code(verify(&parts, &keys(), then())), "signed", "{target}");
    }
}

#[test]
fn aws_presigned_example_verifies_until_expiry() {
    let target = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
                  &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
                  &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
                  &X-Amz-Signature=\
                  aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    let outcome = |target: &str, now| code(verify(&parts("GET", target, &[HOST]), &keys(), now));
    assert_eq!(outcome(target, then()), "signed");
    assert_eq!(outcome(target, then() + 86_400.seconds()), "signed");
    assert_eq!(outcome(target, then() + 86_401.seconds()), "AccessDenied");
    assert_eq!(outcome(target, then() - 16.minutes()), "AccessDenied");
    let malformed = "AuthorizationQueryParametersError";
    assert_eq!(outcome(&format!("{target}&X-Amz-Expires=99"), then()), malformed);
    assert_eq!(outcome(&format!("{target}&%58-Amz-Date=20130524T000000Z"), then()), malformed);
    for seconds in ["604801", "86400.5", "86400x", "864e2", "%2B86400", "086400", "", "+86400"] {
        assert_eq!(outcome(&target.replace("86400", seconds), then()), malformed, "{seconds}");
    }
    assert_eq!(outcome(&target.replace("us-east-1", "us%2Ceast"), then()), malformed);
    assert_eq!(outcome(&target.replace("AKIA", "AKIA%2C"), then()), malformed);
    assert_eq!(outcome(&target.replace("86400", "86401"), then()), "SignatureDoesNotMatch");
    assert_eq!(outcome(&format!("{target}&versionId=null"), then()), "SignatureDoesNotMatch");
    assert_eq!(outcome(&target.replace("test", "best"), then()), "SignatureDoesNotMatch");
    let mut signed = parts("GET", &format!("{target}&a=%2Fb"), &[HOST]);
    strip(&mut signed);
    assert_eq!(signed.uri, "/test.txt?a=%2Fb", "the signature is removed");
}

#[test]
fn aws_chunked_example_verifies() {
    let headers = [
        ("content-encoding", "aws-chunked"),
        ("content-length", "66824"),
        ("host", "s3.amazonaws.com"),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        DATE,
        ("x-amz-decoded-content-length", "66560"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    let parts = example("PUT", "/examplebucket/chunkObject.txt", &headers, seed);
    let found = verify(&parts, &keys(), then()).unwrap();
    let Some(Payload::Chunks { signer, has_trailer }) = found else { panic!("{found:?}") };
    let mut body = Vec::new();
    for (bytes, signature) in [
        (65_536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
        (1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
        (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
    ] {
        body.extend(format!("{bytes:x};chunk-signature={signature}\r\n").into_bytes());
        body.extend(vec![b'a'; bytes]);
        body.extend(b"\r\n");
    }
    assert_eq!(body.len(), 66_824);
    let mut decoder = ChunkDecoder::new(signer.map(|signer| *signer), has_trailer, None);
    let mut out = VecDeque::new();
    decoder.push(Bytes::from(body), &mut out).unwrap();
    assert_eq!(out.iter().map(Bytes::len).sum::<usize>(), 66_560);
    assert!(decoder.finish().unwrap().is_empty());
}

#[test]
fn modified_examples_do_not_verify() {
    let check = |change: &dyn Fn(&mut Parts)| {
        let mut parts = get_example();
        change(&mut parts);
        code(verify(&parts, &keys(), then()))
    };
    let set = |name: &'static str, value: &'static str| {
        check(&move |parts| {
            parts.headers.insert(name, HeaderValue::from_static(value));
        })
    };
    let replaced = |from: &'static str, to: &'static str| {
        check(&move |parts| {
            let text = parts.headers["authorization"].to_str().unwrap().replace(from, to);
            parts.headers.insert("authorization", HeaderValue::from_str(&text).unwrap());
        })
    };
    let mismatch = "SignatureDoesNotMatch";
    assert_eq!(check(&|_| ()), "signed");
    assert_eq!(check(&|parts| parts.method = http::Method::DELETE), mismatch);
    assert_eq!(check(&|parts| parts.uri = "/test.txt?acl".parse().unwrap()), mismatch);
    assert_eq!(check(&|parts| parts.uri = "/Test.txt".parse().unwrap()), mismatch);
    assert_eq!(set("host", "evil"), mismatch);
    assert_eq!(set("range", "bytes=0-8"), mismatch);
    assert_eq!(set("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), mismatch);
    assert_eq!(set("x-amz-date", "20130524T000001Z"), mismatch);
    assert_eq!(set("x-amz-date", "20130525T000000Z"), "RequestTimeTooSkewed");
    assert_eq!(set("x-amz-date", "20131324T000000Z"), "AccessDenied");
    assert_eq!(set("x-amz-acl", "private"), "AccessDenied");
    assert_eq!(replaced("us-east-1", "US"), mismatch);
    assert_eq!(replaced("20130524/", "20130523/"), mismatch);
    assert_eq!(replaced("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLF"), "InvalidAccessKeyId");
    assert_eq!(replaced(";range", ""), mismatch);
    assert_eq!(replaced("host;", ""), "AccessDenied");
    assert_eq!(replaced("Signature=f", "Signature=0"), mismatch);
    let doubled = check(&|parts| {
        parts.headers.append("x-amz-date", HeaderValue::from_static("20130524T000000Z"));
    });
    assert_eq!(doubled, "InvalidRequest", "two parsers might pick different ones");
    assert_eq!(
        code(verify(&get_example(), &keys(), then() + 16.minutes())),
        "RequestTimeTooSkewed"
    );
    let mut none = get_example();
    strip(&mut none);
    assert_eq!(code(verify(&none, &keys(), then())), "unsigned");
}

#[test]
fn malformed_headers_are_rejected() {
    let good = format!(
        "AWS4-HMAC-SHA256 Credential={SCOPE}, SignedHeaders=host;x-amz-date, Signature={EMPTY}"
    );
    let claim = SignatureClaim::from_header(&good).unwrap();
    assert_eq!((claim.day.as_str(), claim.region.as_str()), ("20130524", "us-east-1"));
    for region in ["US", "EU", "eu-west-3", "", "minio_local.1"] {
        let text = good.replace("us-east-1", region);
        assert_eq!(SignatureClaim::from_header(&text).unwrap().region, region);
    }
    for bad in [
        String::new(),
        "AWS4-HMAC-SHA256".to_owned(),
        good.replace("HMAC", "ECDSA"),
        good.replace("/s3/", "/sts/"),
        good.replace("/s3/", "/"),
        good.replace("aws4_request", "aws4_request/"),
        good.replace("20130524", "2013-5-4"),
        good.replace("us-east-1", &"r".repeat(65)),
        good.replace("us-east-1", "a b"),
        good.replace("AKIAIOSFODNN7EXAMPLE", ""),
        good.replace("AKIA", "AK IA"),
        good.replace("host;", ";"),
        good.replace(EMPTY, "e3b0"),
        good.replace("SignedHeaders=host;x-amz-date, ", ""),
        format!("{good}, Signature={EMPTY}"),
        format!("{good}, More=1"),
    ] {
        assert!(SignatureClaim::from_header(&bad).is_err(), "{bad}");
    }
}

#[test]
fn client_date_formats_are_parsed() {
    let expected = Some(then());
    for text in [
        "20130524T000000Z",
        "Fri, 24 May 2013 00:00:00 GMT",
        "Fri, 24 May 2013 00:00:00 -0000",
        "Fri, 24 May 2013 02:00:00 +0200",
    ] {
        assert_eq!(parse_date(text), expected, "{text}");
    }
    for text in ["", "2013-05-24T00:00:00Z", "20130524T000000", "20130524T0000 0Z", "yesterday"] {
        assert_eq!(parse_date(text), None, "{text}");
    }
    assert_eq!(parse_basic("Fri, 24 May 2013 00:00:00 GMT"), None);
}
