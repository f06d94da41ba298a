//! Multipart uploads: every call, parts in any order, and what may go wrong.

use crate::harness::{TestResponse, TestServer};

const PART: usize = 5 << 20;
/// Digests of "123456789", encoded for headers.
const CRC32: &str = "y/Q5Jg==";
const SHA256: &str = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=";

async fn begin(server: &TestServer, path: &str) -> String {
    let response = server.request("POST", &format!("{path}?uploads")).send().await;
    assert_eq!(response.status, 200, "{response:?}");
    response.element("UploadId").unwrap()
}

async fn part(server: &TestServer, path: &str, id: &str, number: u32, body: &[u8]) -> String {
    let path = format!("{path}?partNumber={number}&uploadId={id}");
    let response = server.request("PUT", &path).body(body).send().await;
    assert_eq!(response.status, 200, "{response:?}");
    response.header("etag").unwrap().to_owned()
}

async fn complete(
    server: &TestServer,
    path: &str,
    id: &str,
    parts: &[(u32, &str)],
) -> TestResponse {
    let parts: String = parts
        .iter()
        .map(|(number, etag)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
        })
        .collect();
    let xml = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
    server.request("POST", &format!("{path}?uploadId={id}")).body(xml.as_bytes()).send().await
}

#[tokio::test]
async fn parts_may_arrive_in_any_order() {
    let server = TestServer::start().await;
    let id = begin(&server, "/vault/m").await;
    let first = vec![1; PART];
    let last = part(&server, "/vault/m", &id, 7, b"the end").await;
    let early = part(&server, "/vault/m", &id, 2, &first).await;
    let listed = server.request("GET", &format!("/vault/m?uploadId={id}")).send().await;
    assert_eq!(listed.text().matches("<Part>").count(), 2);
    let uploads = server.request("GET", "/vault?uploads").send().await;
    assert_eq!(uploads.element("UploadId"), Some(id.clone()));
    let named = [(2, early.as_str()), (7, last.as_str())];
    let response = complete(&server, "/vault/m", &id, &named).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.element("ETag").unwrap().contains("-2"), "{response:?}");
    let again = complete(&server, "/vault/m", &id, &named).await;
    assert_eq!(again.element("ETag"), response.element("ETag"), "completing is idempotent");
    let response = server.request("GET", "/vault/m").header("range", "bytes=5242878-").send().await;
    assert_eq!((response.status, response.body.as_slice()), (206, b"\x01\x01the end".as_slice()));
    assert_eq!(response.header("x-amz-mp-parts-count"), None, "no part was requested");
}

#[tokio::test]
async fn invalid_completions_have_s3_codes() {
    let server = TestServer::start().await;
    let id = begin(&server, "/vault/m").await;
    let one = part(&server, "/vault/m", &id, 1, b"small").await;
    let two = part(&server, "/vault/m", &id, 2, b"small too").await;
    let wrong = "\"00000000000000000000000000000000\"";
    for (parts, code) in [
        (vec![(2, two.as_str()), (1, one.as_str())], "InvalidPartOrder"),
        (vec![(1, one.as_str()), (2, two.as_str())], "EntityTooSmall"),
        (vec![(1, wrong)], "InvalidPart"),
        (vec![(9, one.as_str())], "InvalidPart"),
        (vec![], "MalformedXML"),
    ] {
        let response = complete(&server, "/vault/m", &id, &parts).await;
        assert_eq!(response.error(), (400, code.to_owned()), "{parts:?}");
    }
    let path = format!("/vault/m?partNumber=10001&uploadId={id}");
    let response = server.request("PUT", &path).body(b"x").send().await;
    assert_eq!(response.error(), (400, "InvalidArgument".to_owned()));
    let size = server.request("POST", &format!("/vault/m?uploadId={id}"));
    let xml = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{one}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let size = size.header("x-amz-mp-object-size", "6").body(xml.as_bytes()).send().await;
    assert_eq!(size.error(), (400, "InvalidRequest".to_owned()));
    assert!(!server.has("/vault/m").await);
    let response = server.request("DELETE", &format!("/vault/m?uploadId={id}")).send().await;
    assert_eq!(response.status, 204);
    for id in [id.as_str(), "nonsense"] {
        let response = complete(&server, "/vault/m", id, &[(1, &one)]).await;
        assert_eq!(response.error(), (404, "NoSuchUpload".to_owned()), "{id}");
    }
}

#[tokio::test]
async fn uploads_are_listed_in_pages_by_prefix() {
    let server = TestServer::start().await;
    for key in ["a/1", "a/2", "b", "c/1"] {
        begin(&server, &format!("/vault/{key}")).await;
    }
    let response = server.request("GET", "/vault?uploads&delimiter=%2F&max-uploads=2").send().await;
    assert_eq!(response.element("IsTruncated").as_deref(), Some("true"));
    assert!(response.text().contains("<Prefix>a/</Prefix>"), "{}", response.text());
    assert!(response.text().contains("<Key>b</Key>"), "{}", response.text());
    let key = response.element("NextKeyMarker").unwrap();
    let id = response.element("NextUploadIdMarker").unwrap();
    let next = format!("/vault?uploads&delimiter=%2F&key-marker={key}&upload-id-marker={id}");
    let response = server.request("GET", &next).send().await;
    assert_eq!(response.element("IsTruncated").as_deref(), Some("false"));
    assert!(response.text().contains("<Prefix>c/</Prefix>"), "{}", response.text());
    assert!(!response.text().contains("<Upload>"), "{}", response.text());
}

/// A short part instead of the requested range would be a hole in an object.
#[tokio::test]
async fn part_copy_rejects_ranges_beyond_the_source() {
    let server = TestServer::start().await;
    server.put("/vault/source", b"0123456789").await;
    let id = begin(&server, "/vault/m").await;
    let copy = |range: &str| {
        let path = format!("/vault/m?partNumber=1&uploadId={id}");
        let request = server.request("PUT", &path).header("x-amz-copy-source", "/vault/source");
        request.header("x-amz-copy-source-range", range).send()
    };
    for range in ["bytes=0-10", "bytes=9-10", "bytes=10-10", "bytes=11-20", "bytes=5-", "bytes=-5"]
    {
        let response = copy(range).await;
        assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{range}");
    }
    let listed = server.request("GET", &format!("/vault/m?uploadId={id}")).send().await;
    assert_eq!(listed.text().matches("<Part>").count(), 0, "nothing was copied");
    let response = copy("bytes=3-9").await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("x-amz-server-side-encryption"), Some("AES256"));
    let etag = response.element("ETag").unwrap().replace("&quot;", "\"");
    assert_eq!(complete(&server, "/vault/m", &id, &[(1, &etag)]).await.status, 200);
    assert_eq!(server.request("GET", "/vault/m").send().await.body, b"3456789");
}

#[tokio::test]
async fn multipart_responses_name_the_encryption() {
    let server = TestServer::start().await;
    let name = "x-amz-server-side-encryption";
    let begun = server.request("POST", "/vault/m?uploads").header(name, "AES256").send().await;
    assert_eq!(begun.header(name), Some("AES256"));
    let id = begun.element("UploadId").unwrap();
    let path = format!("/vault/m?partNumber=1&uploadId={id}");
    let put = server.request("PUT", &path).body(b"part").send().await;
    assert_eq!(put.header(name), Some("AES256"));
    let etag = put.header("etag").unwrap().to_owned();
    let done = complete(&server, "/vault/m", &id, &[(1, &etag)]).await;
    assert_eq!((done.status, done.header(name)), (200, Some("AES256")));
}

async fn begin_with(server: &TestServer, headers: &[(&str, &str)]) -> String {
    let request = server.request("POST", "/vault/m?uploads");
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    let response = request.send().await;
    assert_eq!(response.status, 200, "{response:?}");
    response.element("UploadId").unwrap()
}

/// The checksum of a completed upload has the type that was chosen when it was created.
#[tokio::test]
async fn completion_must_match_checksum_type() {
    let server = TestServer::start().await;
    let algorithm = ("x-amz-checksum-algorithm", "CRC32");
    let (full, composite) = ("FULL_OBJECT", "COMPOSITE");
    for (begun, right, wrong) in [
        (vec![algorithm, ("x-amz-checksum-type", full)], full, composite),
        (vec![algorithm, ("x-amz-checksum-type", composite)], composite, full),
        (vec![algorithm], composite, full),
        (vec![], full, composite),
    ] {
        let id = begin_with(&server, &begun).await;
        let path = format!("/vault/m?partNumber=1&uploadId={id}");
        let put = server.request("PUT", &path).header("x-amz-checksum-crc32", CRC32);
        let put = put.body(b"123456789").send().await;
        assert_eq!(put.status, 200, "{put:?}");
        let xml = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag>\
             <ChecksumCRC32>{CRC32}</ChecksumCRC32></Part></CompleteMultipartUpload>",
            put.header("etag").unwrap()
        );
        let finish = |kind: &str| {
            let request = server.request("POST", &format!("/vault/m?uploadId={id}"));
            request.header("x-amz-checksum-type", kind).body(xml.as_bytes()).send()
        };
        for kind in [wrong, "OTHER"] {
            let response = finish(kind).await;
            assert_eq!(response.error(), (400, "InvalidRequest".to_owned()), "{begun:?} {kind}");
            assert!(!server.has("/vault/m").await, "{begun:?} {kind}");
        }
        assert_eq!(finish(right).await.status, 200, "{begun:?}");
        assert_eq!(finish(right).await.status, 200, "{begun:?}: completing is idempotent");
        assert_eq!(server.request("DELETE", "/vault/m").send().await.status, 204);
    }
}

/// A composite checksum is worth only what the client knows of its parts.
#[tokio::test]
async fn composite_upload_requires_part_checksums() {
    let server = TestServer::start().await;
    for (algorithm, header, name, digest) in [
        ("CRC32", "x-amz-checksum-crc32", "ChecksumCRC32", CRC32),
        ("SHA256", "x-amz-checksum-sha256", "ChecksumSHA256", SHA256),
    ] {
        let id = begin_with(&server, &[("x-amz-checksum-algorithm", algorithm)]).await;
        let path = format!("/vault/m?partNumber=1&uploadId={id}");
        let bare = server.request("PUT", &path).body(b"123456789").send().await;
        assert_eq!(bare.error(), (400, "InvalidRequest".to_owned()), "{algorithm}");
        let put =
            server.request("PUT", &path).header(header, digest).body(b"123456789").send().await;
        assert_eq!(put.status, 200, "{put:?}");
        let etag = put.header("etag").unwrap();
        let finish = |digest: &str| {
            let xml = format!(
                "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag>\
                 {digest}</Part></CompleteMultipartUpload>"
            );
            server.request("POST", &format!("/vault/m?uploadId={id}")).body(xml.as_bytes()).send()
        };
        let response = finish("").await;
        assert_eq!(response.error(), (400, "InvalidRequest".to_owned()), "{algorithm}");
        let message = response.element("Message").unwrap();
        assert!(message.contains("missing for part 1"), "{message}");
        assert!(!server.has("/vault/m").await);
        let other = "<ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME>";
        assert_eq!(finish(other).await.error(), (400, "InvalidRequest".to_owned()));
        let response = finish(&format!("<{name}>{digest}</{name}>")).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.element("ChecksumType").as_deref(), Some("COMPOSITE"));
        assert_eq!(server.request("DELETE", "/vault/m").send().await.status, 204);
    }
}
