//! Unsupported requests, each with the error code that clients expect.

use crate::harness::{TestResponse, TestServer};

fn assert_error(response: &TestResponse, status: u16, code: &str) {
    assert_eq!(response.error(), (status, code.to_owned()), "{}", response.text());
}

#[tokio::test]
async fn invalid_names_are_rejected() {
    let server = TestServer::start().await;
    for name in
        ["ab", "Upper", "under_score", "dot..dot", "192.168.0.1", "-lead", "trail-", "xn--a"]
    {
        let response = server.request("PUT", &format!("/{name}")).send().await;
        assert_error(&response, 400, "InvalidBucketName");
    }
    assert_error(
        &server.request("PUT", &format!("/{}", "a".repeat(64))).send().await,
        400,
        "InvalidBucketName",
    );
    let longest = "k".repeat(1024);
    server.put(&format!("/vault/{longest}"), b"x").await;
    let response = server.request("PUT", &format!("/vault/{longest}k")).body(b"x").send().await;
    assert_error(&response, 400, "KeyTooLongError");
    assert_error(
        &server.request("PUT", "/vault/%ff%fe").body(b"x").send().await,
        400,
        "InvalidURI",
    );
}

#[tokio::test]
async fn bucket_state_errors_have_s3_codes() {
    let server = TestServer::start().await;
    assert_error(&server.request("PUT", "/vault").send().await, 409, "BucketAlreadyOwnedByYou");
    assert_error(&server.request("DELETE", "/nowhere").send().await, 404, "NoSuchBucket");
    assert_error(&server.request("GET", "/nowhere/a").send().await, 404, "NoSuchBucket");
    assert_error(&server.request("GET", "/vault/none").send().await, 404, "NoSuchKey");
    assert_eq!(server.request("HEAD", "/nowhere").send().await.status, 404);
    server.put("/vault/a", b"x").await;
    assert_error(&server.request("DELETE", "/vault").send().await, 409, "BucketNotEmpty");
    assert_eq!(server.request("DELETE", "/vault/a").send().await.status, 204);
    assert_eq!(
        server.request("DELETE", "/vault/a").send().await.status,
        204,
        "deletes are idempotent"
    );
    assert_eq!(server.request("DELETE", "/vault").send().await.status, 204);
}

#[tokio::test]
async fn unsupported_features_are_rejected() {
    let server = TestServer::start().await;
    for (name, value, status, code) in [
        ("x-amz-storage-class", "GLACIER_IR", 400, "InvalidStorageClass"),
        ("x-amz-storage-class", "STANDARD_IA", 400, "InvalidStorageClass"),
        ("x-amz-storage-class", "COLD", 400, "InvalidStorageClass"),
        ("x-amz-tagging", "a=b", 501, "NotImplemented"),
        ("x-amz-server-side-encryption", "aws:kms", 501, "NotImplemented"),
        ("x-amz-server-side-encryption", "AES512", 400, "InvalidEncryptionAlgorithmError"),
        ("x-amz-server-side-encryption-customer-algorithm", "AES256", 501, "NotImplemented"),
        ("x-amz-acl", "public-read", 400, "AccessControlListNotSupported"),
        ("x-amz-meta-large", &"v".repeat(2100), 400, "MetadataTooLarge"),
        ("x-amz-checksum-sha512", "AAAA", 400, "InvalidRequest"),
    ] {
        let response =
            server.request("PUT", "/vault/a").header(name, value).body(b"x").send().await;
        assert_error(&response, status, code);
        assert!(!server.has("/vault/a").await, "{name}: {value}");
    }
    let xml = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    assert_error(
        &server.request("PUT", "/vault?versioning").body(xml).send().await,
        501,
        "NotImplemented",
    );
    for path in ["/vault?acl", "/vault/a?acl"] {
        let response = server.request("PUT", path).header("x-amz-acl", "public-read").send().await;
        assert_error(&response, 400, "AccessControlListNotSupported");
        // The status from which s3cmd concludes that a copy needs no ACL.
        let response = server.request("PUT", path).body(b"<AccessControlPolicy/>").send().await;
        assert_error(&response, 501, "NotImplemented");
    }
    assert_error(
        &server.request("GET", "/vault?metadataTable").send().await,
        501,
        "NotImplemented",
    );
    assert_error(
        &server.request("GET", "/vault/a?versionId=abc").send().await,
        400,
        "InvalidArgument",
    );
}

/// A client that creates a file from such a key would write outside of its folder.
#[tokio::test]
async fn keys_with_path_traversal_are_rejected() {
    let server = TestServer::start().await;
    for key in ["a/../b", "a/./b", "./x", "a/..", "..a/b"] {
        server.put(&format!("/vault/{key}"), b"x").await;
    }
    for key in ["..", "../bad", "a/../../b", "%2e%2e/bad", "a%2F..%2F..%2Fb"] {
        let path = format!("/vault/{key}");
        assert_error(&server.request("PUT", &path).body(b"x").send().await, 400, "InvalidURI");
        assert_error(
            &server.request("POST", &format!("{path}?uploads")).send().await,
            400,
            "InvalidURI",
        );
        let copy = server.request("PUT", &path).header("x-amz-copy-source", "/vault/a/../b");
        assert_error(&copy.send().await, 400, "InvalidURI");
        assert_error(&server.request("GET", &path).send().await, 404, "NoSuchKey");
        assert_eq!(server.request("DELETE", &path).send().await.status, 204, "{key}");
    }
}

#[tokio::test]
async fn invalid_restores_are_rejected() {
    let server = TestServer::start().await;
    server.put("/vault/warm", b"x").await;
    let cold = server.request("PUT", "/vault/cold").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(cold.body(b"x").send().await.status, 200);
    let restore = |days: &str, tier: &str| {
        let days = if days.is_empty() { String::new() } else { format!("<Days>{days}</Days>") };
        format!(
            "<RestoreRequest>{days}<GlacierJobParameters><Tier>{tier}</Tier>\
             </GlacierJobParameters></RestoreRequest>"
        )
    };
    for (path, body, status, code) in [
        ("/vault/warm", restore("1", "Bulk"), 403, "InvalidObjectState"),
        ("/vault/none", restore("1", "Bulk"), 404, "NoSuchKey"),
        ("/vault/cold", restore("0", "Bulk"), 400, "InvalidArgument"),
        ("/vault/cold", restore("-1", "Bulk"), 400, "InvalidArgument"),
        ("/vault/cold", restore("", "Bulk"), 400, "MalformedXML"),
        ("/vault/cold", restore("1", "Fast"), 400, "MalformedXML"),
        ("/vault/cold", restore("1", "Expedited"), 400, "InvalidArgument"),
        ("/vault/cold", String::new(), 400, "MalformedXML"),
    ] {
        let request = server.request("POST", &format!("{path}?restore")).body(body.as_bytes());
        assert_error(&request.send().await, status, code);
    }
    let response =
        server.request("POST", "/vault/warm?restore").body(restore("1", "Bulk").as_bytes());
    assert_eq!(response.send().await.element("StorageClass").as_deref(), Some("STANDARD"));
    // S3's message, which clients look for; and no code that an SDK retries.
    let request =
        server.request("POST", "/vault/cold?restore").body(restore("1", "Expedited").as_bytes());
    let message = request.send().await.element("Message").unwrap();
    let expected = "Retrieval option is not supported by this storage class";
    assert!(message.starts_with(expected), "{message}");
}
