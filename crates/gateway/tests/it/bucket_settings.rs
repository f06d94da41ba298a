//! Bucket settings that were never set: each is answered like S3 answers for a new bucket, and the
//! tools that read all of them succeed.

use crate::harness::TestServer;

const NO_CONFIGURATION: &str = "The specified configuration does not exist.";
const NO_POLICY: &str = "The bucket policy does not exist";

/// Query, code and message of settings without a default.
const ABSENT: [(&str, &str, &str); 12] = [
    ("policy", "NoSuchBucketPolicy", NO_POLICY),
    ("policyStatus", "NoSuchBucketPolicy", NO_POLICY),
    ("cors", "NoSuchCORSConfiguration", "The CORS configuration does not exist"),
    ("lifecycle", "NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist"),
    ("tagging", "NoSuchTagSet", "The TagSet does not exist"),
    (
        "website",
        "NoSuchWebsiteConfiguration",
        "The specified bucket does not have a website configuration",
    ),
    (
        "replication",
        "ReplicationConfigurationNotFoundError",
        "The replication configuration was not found",
    ),
    (
        "object-lock",
        "ObjectLockConfigurationNotFoundError",
        "Object Lock configuration does not exist for this bucket",
    ),
    ("analytics&id=a", "NoSuchConfiguration", NO_CONFIGURATION),
    ("intelligent-tiering&id=a", "NoSuchConfiguration", NO_CONFIGURATION),
    ("inventory&id=a", "NoSuchConfiguration", NO_CONFIGURATION),
    ("metrics&id=a", "NoSuchConfiguration", NO_CONFIGURATION),
];

/// Query, root and content of settings with a default.
const DEFAULTS: [(&str, &str, &str); 12] = [
    (
        "encryption",
        "ServerSideEncryptionConfiguration",
        "<Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>\
         </ApplyServerSideEncryptionByDefault><BucketKeyEnabled>false</BucketKeyEnabled></Rule>",
    ),
    (
        "ownershipControls",
        "OwnershipControls",
        "<Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule>",
    ),
    (
        "publicAccessBlock",
        "PublicAccessBlockConfiguration",
        "<BlockPublicAcls>true</BlockPublicAcls><BlockPublicPolicy>true</BlockPublicPolicy>\
         <IgnorePublicAcls>true</IgnorePublicAcls>\
         <RestrictPublicBuckets>true</RestrictPublicBuckets>",
    ),
    ("requestPayment", "RequestPaymentConfiguration", "<Payer>BucketOwner</Payer>"),
    ("versioning", "VersioningConfiguration", ""),
    ("accelerate", "AccelerateConfiguration", ""),
    ("logging", "BucketLoggingStatus", ""),
    ("notification", "NotificationConfiguration", ""),
    ("analytics", "ListBucketAnalyticsConfigurationResult", "<IsTruncated>false</IsTruncated>"),
    ("inventory", "ListInventoryConfigurationsResult", "<IsTruncated>false</IsTruncated>"),
    ("metrics", "ListMetricsConfigurationsResult", "<IsTruncated>false</IsTruncated>"),
    (
        "intelligent-tiering",
        "ListBucketIntelligentTieringConfigurationsOutput",
        "<IsTruncated>false</IsTruncated>",
    ),
];

#[tokio::test]
async fn unset_settings_return_not_found() {
    let server = TestServer::start().await;
    for (setting, code, message) in ABSENT {
        let response = server.request("GET", &format!("/vault?{setting}")).send().await;
        assert_eq!(response.error(), (404, code.to_owned()), "{setting}");
        assert_eq!(response.element("Message").as_deref(), Some(message), "{setting}");
        assert_eq!(response.element("BucketName").as_deref(), Some("vault"), "{setting}");
    }
}

#[tokio::test]
async fn default_settings_are_returned() {
    let server = TestServer::start().await;
    for (setting, root, content) in DEFAULTS {
        let response = server.request("GET", &format!("/vault?{setting}")).send().await;
        assert_eq!(response.status, 200, "{setting}: {}", response.text());
        let text = response.text();
        let (_, found) = text.split_once("?>").unwrap();
        let start = format!("<{root} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        let found = found.strip_prefix(&start).unwrap_or(found);
        let found = found.strip_prefix(&format!("<{root}>")).unwrap_or(found);
        assert_eq!(found.strip_suffix(&format!("</{root}>")), Some(content), "{setting}: {text}");
    }
}

#[tokio::test]
async fn acl_grants_full_control_to_the_owner() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"x").await;
    for path in ["/vault?acl", "/vault/a?acl"] {
        let response = server.request("GET", path).send().await;
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        assert!(response.text().contains("xsi:type=\"CanonicalUser\""), "{}", response.text());
        assert_eq!(response.element("Permission").as_deref(), Some("FULL_CONTROL"));
        assert_eq!(response.text().matches("<Grant>").count(), 1);
        assert_eq!(response.text().matches("<ID>").count(), 2, "of the owner and of the grantee");
    }
    let tags = server.request("GET", "/vault/a?tagging").send().await;
    assert_eq!(tags.status, 200);
    assert!(tags.text().contains("<TagSet></TagSet>"), "{}", tags.text());
    for setting in ["retention", "legal-hold"] {
        let response = server.request("GET", &format!("/vault/a?{setting}")).send().await;
        assert_eq!(response.error(), (400, "InvalidRequest".to_owned()), "{setting}");
    }
    for setting in ["acl", "tagging"] {
        let response = server.request("GET", &format!("/vault/none?{setting}")).send().await;
        assert_eq!(response.error(), (404, "NoSuchKey".to_owned()), "{setting}");
    }
}

#[tokio::test]
async fn missing_bucket_is_reported_first() {
    let server = TestServer::start().await;
    let settings = ABSENT.iter().chain(&DEFAULTS).map(|(setting, ..)| *setting);
    let reads = settings.map(|setting| format!("/nowhere?{setting}"));
    let others = ["?acl", "?versions", "?location", "/a?acl", "/a?tagging", "/a?retention"];
    let others = others.into_iter().chain(["/a?legal-hold"]).map(|rest| format!("/nowhere{rest}"));
    for path in reads.chain(others) {
        let response = server.request("GET", &path).send().await;
        assert_eq!(response.error(), (404, "NoSuchBucket".to_owned()), "{path}");
        assert_eq!(response.element("BucketName").as_deref(), Some("nowhere"), "{path}");
    }
}

/// Asserts that each read gets the status that the tool needs to go on.
async fn assert_statuses(server: &TestServer, reads: &[(&str, &str, u16)]) {
    for (method, path, status) in reads {
        let response = server.request(method, path).send().await;
        assert_eq!(response.status, *status, "{method} {path}: {}", response.text());
    }
}

/// In the order of the resource `aws_s3_bucket`, up to the deletion of a bucket with all its
/// contents.
#[tokio::test]
async fn terraform_reads_a_bucket() {
    let server = TestServer::start().await;
    assert_statuses(
        &server,
        &[
            ("HEAD", "/vault", 200),
            ("GET", "/vault?policy", 404),
            ("GET", "/vault?acl", 200),
            ("GET", "/vault?cors", 404),
            ("GET", "/vault?website", 404),
            ("GET", "/vault?versioning", 200),
            ("GET", "/vault?accelerate", 200),
            ("GET", "/vault?requestPayment", 200),
            ("GET", "/vault?logging", 200),
            ("GET", "/vault?lifecycle", 404),
            ("GET", "/vault?replication", 404),
            ("GET", "/vault?encryption", 200),
            ("GET", "/vault?object-lock", 404),
            ("HEAD", "/vault", 200),
            ("GET", "/vault?tagging", 404),
            ("GET", "/vault?versions", 200),
            ("DELETE", "/vault", 204),
        ],
    )
    .await;
}

#[tokio::test]
async fn s3cmd_shows_a_bucket_and_an_object() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"x").await;
    assert_statuses(
        &server,
        &[
            ("GET", "/vault?location", 200),
            ("GET", "/vault?requestPayment", 200),
            ("GET", "/vault?versioning", 200),
            ("GET", "/vault?ownershipControls", 200),
            ("GET", "/vault?publicAccessBlock", 200),
            ("GET", "/vault?lifecycle", 404),
            ("GET", "/vault?policy", 404),
            ("GET", "/vault?cors", 404),
            ("GET", "/vault?acl", 200),
            ("GET", "/vault?tagging", 404),
            ("HEAD", "/vault/a", 200),
            ("GET", "/vault/a?acl", 200),
            ("GET", "/vault/a?tagging", 200),
        ],
    )
    .await;
}

#[tokio::test]
async fn cyberduck_opens_a_bucket() {
    let server = TestServer::start().await;
    server.put("/vault/d/a", b"x").await;
    assert_statuses(
        &server,
        &[
            ("GET", "/", 200),
            ("GET", "/vault?location", 200),
            ("GET", "/vault?versioning", 200),
            ("GET", "/vault?logging", 200),
            ("GET", "/vault?lifecycle", 404),
            ("GET", "/vault?encryption", 200),
            ("GET", "/vault?accelerate", 200),
            ("GET", "/vault?requestPayment", 200),
            ("GET", "/vault?acl", 200),
            ("GET", "/vault?versions&delimiter=%2F&encoding-type=url&max-keys=1000&prefix=", 200),
            ("GET", "/vault?uploads&delimiter=%2F&encoding-type=url&max-uploads=1000&prefix=", 200),
            ("GET", "/vault/d/a?acl", 200),
            ("GET", "/vault/d/a?versionId=null", 200),
        ],
    )
    .await;
}

/// Libraries use `/bucket?acl` and `/bucket/?acl` interchangeably.
#[tokio::test]
async fn trailing_slash_after_bucket_is_ignored() {
    let server = TestServer::start().await;
    let others = ["acl", "location", "versions", "uploads"].into_iter();
    for setting in ABSENT.iter().chain(&DEFAULTS).map(|(setting, ..)| *setting).chain(others) {
        let plain = server.request("GET", &format!("/vault?{setting}")).send().await;
        let response = server.request("GET", &format!("/vault/?{setting}")).send().await;
        assert_eq!(response.status, plain.status, "{setting}: {}", response.text());
        assert_eq!(response.element("Code"), plain.element("Code"), "{setting}");
    }
}

/// Browsers send preflights without a signature, and get the same response for every bucket.
#[tokio::test]
async fn cors_preflights_are_rejected() {
    let server = TestServer::start().await;
    let request = |path: &str| {
        let request = server.request("OPTIONS", path).header("origin", "https://example.org");
        request.header("access-control-request-method", "PUT")
    };
    for path in ["/vault/a", "/vault", "/nowhere/a", "/"] {
        let response = request(path).send_plain().await;
        assert_eq!(response.error(), (403, "AccessForbidden".to_owned()), "{path}");
        assert_eq!(response.element("Method").as_deref(), Some("PUT"));
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
    let without = server.request("OPTIONS", "/vault/a").header("origin", "https://example.org");
    assert_eq!(without.send_plain().await.error(), (400, "BadRequest".to_owned()));
    let without = server.request("OPTIONS", "/vault/a");
    assert_eq!(without.send_plain().await.error(), (400, "BadRequest".to_owned()));
}
