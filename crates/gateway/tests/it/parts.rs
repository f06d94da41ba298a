//! Parts of objects: read individually, and listed.

use crate::harness::{TestResponse, TestServer, sha256_base64};

const PART: usize = 5 << 20;

/// Puts an object in parts with SHA-256 digests, or with checksums that no client chose; returns
/// the digest of each part.
async fn put(server: &TestServer, path: &str, has_digests: bool, parts: &[Vec<u8>]) -> Vec<String> {
    let mut begin = server.request("POST", &format!("{path}?uploads"));
    if has_digests {
        begin = begin.header("x-amz-checksum-algorithm", "SHA256");
    }
    let id = begin.send().await.element("UploadId").unwrap();
    let (mut named, mut digests) = (String::new(), Vec::new());
    for (number, body) in (1..).zip(parts) {
        let digest = sha256_base64(body);
        let mut request =
            server.request("PUT", &format!("{path}?partNumber={number}&uploadId={id}"));
        let mut checksum = String::new();
        if has_digests {
            request = request.header("x-amz-checksum-sha256", &digest);
            checksum = format!("<ChecksumSHA256>{digest}</ChecksumSHA256>");
        }
        let response = request.body(body).send().await;
        let etag = response.header("etag").unwrap();
        named.push_str(&format!(
            "<Part><ETag>{etag}</ETag>{checksum}<PartNumber>{number}</PartNumber></Part>"
        ));
        digests.push(digest);
    }
    let xml = format!("<CompleteMultipartUpload>{named}</CompleteMultipartUpload>");
    let complete = server.request("POST", &format!("{path}?uploadId={id}"));
    let done = complete.body(xml.as_bytes()).send().await;
    assert_eq!(done.status, 200, "{done:?}");
    digests
}

fn three_parts() -> Vec<Vec<u8>> {
    vec![vec![1; PART], vec![2; PART + 3], b"the end".to_vec()]
}

#[tokio::test]
async fn parts_are_read_by_number() {
    let server = TestServer::start().await;
    let parts = three_parts();
    let checksums = put(&server, "/vault/m", true, &parts).await;
    let whole: usize = parts.iter().map(Vec::len).sum();
    let mut first = 0;
    for (number, (body, checksum)) in (1..).zip(parts.iter().zip(&checksums)) {
        let path = format!("/vault/m?partNumber={number}");
        for method in ["HEAD", "GET"] {
            let request = server.request(method, &path).header("x-amz-checksum-mode", "ENABLED");
            let response = request.send().await;
            assert_eq!(response.status, 206, "{method} {path}: {response:?}");
            let range = format!("bytes {first}-{}/{whole}", first + body.len() - 1);
            assert_eq!(response.header("content-range"), Some(range.as_str()));
            let length = body.len().to_string();
            assert_eq!(response.header("content-length"), Some(length.as_str()));
            assert_eq!(response.header("x-amz-mp-parts-count"), Some("3"));
            assert_eq!(response.header("x-amz-checksum-sha256"), Some(checksum.as_str()));
            if method == "GET" {
                assert!(response.body == *body, "{path}");
            }
        }
        first += body.len();
    }
    for path in ["/vault/m", "/vault/m?partNumber=4", "/vault/m?partNumber=10000"] {
        let response =
            server.request("GET", path).header("x-amz-checksum-mode", "ENABLED").send().await;
        assert_eq!(response.header("x-amz-mp-parts-count"), None, "{path}");
        if path.contains('?') {
            assert_eq!(response.error(), (416, "InvalidPartNumber".to_owned()), "{path}");
            assert_eq!(server.request("HEAD", path).send().await.status, 416, "{path}");
        } else {
            let composite = response.header("x-amz-checksum-sha256").unwrap();
            assert!(composite.ends_with("-3"), "{composite}");
        }
    }
}

#[tokio::test]
async fn invalid_part_numbers_are_rejected() {
    let server = TestServer::start().await;
    server.put("/vault/whole", b"0123456789").await;
    server.put("/vault/empty", b"").await;
    let get = |path: &'static str| server.request("GET", path).send();
    let one = get("/vault/whole?partNumber=1").await;
    assert_eq!((one.status, one.header("content-range")), (206, Some("bytes 0-9/10")));
    assert_eq!(one.header("x-amz-mp-parts-count"), None, "it has no parts");
    let one = get("/vault/empty?partNumber=1").await;
    assert_eq!((one.status, one.header("content-range")), (200, None));
    let refused = get("/vault/whole?partNumber=2").await;
    assert_eq!(refused.error(), (416, "InvalidPartNumber".to_owned()));
    for number in ["0", "10001", "-1"] {
        let refused =
            server.request("GET", &format!("/vault/whole?partNumber={number}")).send().await;
        assert_eq!(refused.error(), (400, "InvalidArgument".to_owned()), "{number}");
    }
    let both = server.request("GET", "/vault/whole?partNumber=1").header("range", "bytes=0-1");
    assert_eq!(both.send().await.error(), (400, "InvalidRequest".to_owned()));
}

async fn attributes(
    server: &TestServer,
    path: &str,
    more: &[(&'static str, &str)],
) -> TestResponse {
    let mut request = server.request("GET", &format!("{path}?attributes="));
    for (name, value) in more {
        request = request.header(name, value);
    }
    request.send().await
}

const ALL: &str = "ETag,Checksum, ObjectParts,StorageClass,ObjectSize";

#[tokio::test]
async fn attributes_list_parts_in_pages() {
    let server = TestServer::start().await;
    let parts = three_parts();
    let checksums = put(&server, "/vault/m", true, &parts).await;
    let names = "x-amz-object-attributes";
    let all = attributes(&server, "/vault/m", &[(names, ALL)]).await;
    assert_eq!(all.element("PartsCount").as_deref(), Some("3"), "{}", all.text());
    assert_eq!(all.element("IsTruncated").as_deref(), Some("false"));
    for (number, (body, checksum)) in (1..).zip(parts.iter().zip(&checksums)) {
        let text = all.text();
        let part = text.split("<Part>").nth(number).unwrap();
        assert!(part.contains(&format!("<PartNumber>{number}</PartNumber>")), "{part}");
        assert!(part.contains(&format!("<Size>{}</Size>", body.len())), "{part}");
        assert!(part.contains(&format!("<ChecksumSHA256>{checksum}</ChecksumSHA256>")), "{part}");
    }
    let page =
        [(names, "ObjectParts"), ("x-amz-max-parts", "1"), ("x-amz-part-number-marker", "1")];
    let second = attributes(&server, "/vault/m", &page).await;
    assert_eq!(second.text().matches("<Part>").count(), 1, "{}", second.text());
    assert_eq!(second.element("PartNumber").as_deref(), Some("2"));
    assert_eq!(second.element("NextPartNumberMarker").as_deref(), Some("2"));
    assert_eq!(second.element("PartNumberMarker").as_deref(), Some("1"));
    assert_eq!(second.element("IsTruncated").as_deref(), Some("true"));
    assert_eq!(second.element("PartsCount").as_deref(), Some("3"), "the count covers all pages");
}

#[tokio::test]
async fn parts_without_client_checksum_are_only_counted() {
    let server = TestServer::start().await;
    put(&server, "/vault/m", false, &three_parts()).await;
    let response = attributes(&server, "/vault/m", &[("x-amz-object-attributes", ALL)]).await;
    assert_eq!(response.element("PartsCount").as_deref(), Some("3"), "{}", response.text());
    assert!(!response.text().contains("<Part>"), "{}", response.text());
    server.put("/vault/whole", b"hello").await;
    let response = attributes(&server, "/vault/whole", &[("x-amz-object-attributes", ALL)]).await;
    assert!(!response.text().contains("ObjectParts"), "{}", response.text());
}

#[tokio::test]
async fn unknown_attributes_are_rejected_and_etag_is_bare() {
    let server = TestServer::start().await;
    server.put("/vault/k", b"hello").await;
    for name in ["", "Frob", "ETag,Frob", "ETag,,StorageClass", "etag"] {
        let response = attributes(&server, "/vault/k", &[("x-amz-object-attributes", name)]).await;
        assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{name:?}");
    }
    let tag = attributes(&server, "/vault/k", &[("x-amz-object-attributes", "ETag")]).await;
    assert_eq!(tag.element("ETag").as_deref(), Some("5d41402abc4b2a76b9719d911017c592"));
}
