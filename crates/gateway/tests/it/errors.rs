//! The elements of error documents besides code and message.

use jiff::ToSpan as _;

use crate::harness::{TestRequest, TestResponse, TestServer};
use crate::signer::{ACCESS_KEY, SECRET_KEY, sha256_hex};
use crate::xml::{References, parse, texts};

fn element(response: &TestResponse, name: &str) -> String {
    let leaves = parse(&response.body, References::Strict).unwrap();
    let found = texts(&leaves, name);
    assert_eq!(found.len(), 1, "{name}: {}", response.text());
    found[0].to_owned()
}

#[tokio::test]
async fn error_documents_name_the_resource() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"x").await;
    let get = |path: &str| server.request("GET", path);
    let put = |path: &str| server.request("PUT", path);
    let upload = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    let table: [(TestRequest, &str, &str, &str); 11] = [
        (get("/vault/no%20key%0D"), "NoSuchKey", "Key", "no key\r"),
        (get("/nowhere"), "NoSuchBucket", "BucketName", "nowhere"),
        (get("/nowhere/a"), "NoSuchBucket", "BucketName", "nowhere"),
        (put("/vault"), "BucketAlreadyOwnedByYou", "BucketName", "vault"),
        (server.request("DELETE", "/vault"), "BucketNotEmpty", "BucketName", "vault"),
        (get(&format!("/vault/a?uploadId={upload}")), "NoSuchUpload", "UploadId", upload),
        (put("/vault/b").header("x-amz-copy-source", "/vault/gone"), "NoSuchKey", "Key", "gone"),
        (
            put("/vault/b").header("x-amz-storage-class", "COLD"),
            "InvalidStorageClass",
            "StorageClassRequested",
            "COLD",
        ),
        (
            put("/vault/b").header("x-amz-tagging", "a=b"),
            "NotImplemented",
            "Header",
            "x-amz-tagging",
        ),
        (
            put("/vault/a").header("if-none-match", "*"),
            "PreconditionFailed",
            "Condition",
            "If-None-Match",
        ),
        (get("/vault/a?versionId=7"), "InvalidArgument", "ArgumentValue", "7"),
    ];
    for (request, code, name, value) in table {
        let response = request.send().await;
        assert_eq!(response.error().1, code, "{}", response.text());
        assert_eq!(element(&response, name), value, "{code}");
        assert_eq!(response.header("x-fulgurite-detail"), None, "{code}");
    }
    let head = server.request("HEAD", "/vault/none").send().await;
    assert_eq!((head.status, head.header("x-fulgurite-detail")), (404, None));
}

#[tokio::test]
async fn clock_skew_error_includes_server_time() {
    let server = TestServer::start().await;
    let mut request = server.request("GET", "/vault");
    request.signer.time = request.signer.time.checked_sub(1.hours()).unwrap();
    let sent = request.signer.date_time();
    let response = request.send().await;
    assert_eq!(response.error(), (403, "RequestTimeTooSkewed".to_owned()));
    assert_eq!(element(&response, "RequestTime"), sent);
    assert_eq!(element(&response, "MaxAllowedSkewMilliseconds"), "900000");
    let time: jiff::Timestamp = element(&response, "ServerTime").parse().unwrap();
    assert!(time.duration_since(jiff::Timestamp::now()).abs().as_secs() < 300, "{time}");

    let mut request = server.request("GET", "/vault/a");
    request.signer.time = request.signer.time.checked_sub(1.hours()).unwrap();
    let expiry = request.signer.time.checked_add(60.seconds()).unwrap();
    let response = request.presigned(60).send_plain().await;
    assert_eq!(response.error(), (403, "AccessDenied".to_owned()));
    assert_eq!(element(&response, "X-Amz-Expires"), "60");
    assert_eq!(element(&response, "Expires"), expiry.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    assert!(element(&response, "ServerTime").ends_with('Z'));
}

#[tokio::test]
async fn unsigned_headers_are_named() {
    let server = TestServer::start().await;
    for (name, value) in [
        ("x-amz-checksum-sha256", "LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564="),
        ("x-amz-meta-a", "1"),
        ("x-amz-storage-class", "GLACIER"),
    ] {
        let request = server.request("PUT", "/vault/k").presigned(60).unsigned_header(name, value);
        let response = request.body(b"foo").send_plain().await;
        assert_eq!(response.error(), (403, "AccessDenied".to_owned()), "{name}");
        assert_eq!(element(&response, "HeadersNotSigned"), name);
        let request = server.request("PUT", "/vault/k").unsigned_header(name, value).body(b"foo");
        assert_eq!(element(&request.send().await, "HeadersNotSigned"), name);
    }
    let request =
        server.request("PUT", "/vault/k").presigned(60).unsigned_header("x-amz-meta-a", "1");
    let response = request.unsigned_header("x-amz-meta-b", "2").send_plain().await;
    let named = element(&response, "HeadersNotSigned");
    let mut named: Vec<&str> = named.split(", ").collect();
    named.sort_unstable();
    assert_eq!(named, ["x-amz-meta-a", "x-amz-meta-b"]);
    assert!(!server.has("/vault/k").await);
}

/// A client behind a proxy sees which header it changed; the response contains no secret.
#[tokio::test]
async fn signature_mismatch_shows_canonical_request() {
    let server = TestServer::start().await;
    let request =
        server.request("GET", "/vault/a%20b?prefix=x%2Fy").header("accept-encoding", "identity");
    let signer = request.signer.clone();
    let (head, signature) = request.signed_head(0);
    let changed = head.replace("accept-encoding: identity", "accept-encoding: gzip");
    let response = crate::harness::exchange(server.address, &[changed.as_bytes()], false).await;
    assert_eq!(response.error(), (403, "SignatureDoesNotMatch".to_owned()));
    assert_eq!(element(&response, "AWSAccessKeyId"), ACCESS_KEY);
    assert_eq!(element(&response, "SignatureProvided"), signature);
    let form = element(&response, "CanonicalRequest");
    assert!(
        form.starts_with("GET\n/vault/a%20b\nprefix=x%2Fy\naccept-encoding:gzip\nhost:"),
        "{form}"
    );
    let text = element(&response, "StringToSign");
    assert!(text.starts_with("AWS4-HMAC-SHA256\n"), "{text}");
    assert!(text.ends_with(&sha256_hex(form.as_bytes())), "{text}");
    for (name, bytes) in [("CanonicalRequestBytes", &form), ("StringToSignBytes", &text)] {
        let shown: Vec<u8> = element(&response, name)
            .split(' ')
            .map(|digits| u8::from_str_radix(digits, 16).unwrap())
            .collect();
        assert_eq!(&shown, bytes.as_bytes(), "{name}");
    }
    assert!(!response.text().contains(SECRET_KEY));
    let right = server.request("GET", "/vault/a%20b?prefix=x%2Fy");
    let mut right = right.header("accept-encoding", "gzip");
    right.signer = signer;
    let (_, right) = right.signed_head(0);
    assert!(!response.text().contains(&right), "the signature that would be right");

    let mut request = server.request("GET", "/vault");
    request.signer.access_key = "SOMEBODYELSE1".to_owned();
    let response = request.send().await;
    assert_eq!(response.error(), (403, "InvalidAccessKeyId".to_owned()));
    assert_eq!(element(&response, "AWSAccessKeyId"), "SOMEBODYELSE1");
    assert!(
        !response.text().contains("StringToSign"),
        "nothing is computed for unknown access keys"
    );
}
