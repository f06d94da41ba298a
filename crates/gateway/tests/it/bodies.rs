//! Bodies that do not match their claims: each gets its own error, and nothing is stored.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{TestServer, UNSIGNED, exchange, read_response, sha256_base64};

/// MD5 of the empty body.
const EMPTY_MD5: &str = "1B2M2Y8AsgTpgAmY7PhCfg==";
/// CRC-32 of "123456789": 0xcbf43926, the check value in every table of CRCs.
const CRC32: &str = "y/Q5Jg==";

#[tokio::test]
async fn body_with_wrong_digest_is_not_stored() {
    let server = TestServer::start().await;
    let wrong_sha256 = "0".repeat(64);
    for (name, value, code) in [
        ("content-md5", EMPTY_MD5, "BadDigest"),
        ("content-md5", "nonsense", "InvalidDigest"),
        ("x-amz-checksum-crc32", "AAAAAA==", "BadDigest"),
        ("x-amz-checksum-crc32c", "AAAAAA==", "BadDigest"),
        ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=", "BadDigest"),
        ("x-amz-checksum-sha1", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "BadDigest"),
        ("x-amz-checksum-sha256", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "BadDigest"),
        ("x-amz-checksum-crc32", "short", "InvalidRequest"),
    ] {
        let request = server.request("PUT", "/vault/bad").header(name, value).body(b"some bytes");
        assert_eq!(request.send().await.error(), (400, code.to_owned()), "{name}: {value}");
        assert!(!server.has("/vault/bad").await, "{name}: {value}");
    }
    let request = server.request("PUT", "/vault/bad").payload(&wrong_sha256).body(b"some bytes");
    assert_eq!(request.send().await.error(), (400, "XAmzContentSHA256Mismatch".to_owned()));
    let two = server.request("PUT", "/vault/bad").body(b"some bytes");
    let two = two.header("x-amz-checksum-crc32", "AAAAAA==");
    let two = two.header("x-amz-checksum-crc32c", "AAAAAA==");
    assert_eq!(two.send().await.error(), (400, "InvalidRequest".to_owned()));
    assert!(!server.has("/vault/bad").await);
}

#[tokio::test]
async fn valid_checksums_are_stored_and_returned() {
    let server = TestServer::start().await;
    let request = server.request("PUT", "/vault/a").header("x-amz-checksum-crc32", CRC32);
    let response = request.body(b"123456789").send().await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("x-amz-checksum-crc32"), Some(CRC32));
    let response = server.request("HEAD", "/vault/a").send().await;
    assert_eq!(response.header("x-amz-checksum-crc32"), None, "only on request");
    let request = server.request("HEAD", "/vault/a").header("x-amz-checksum-mode", "ENABLED");
    let response = request.send().await;
    assert_eq!(response.header("x-amz-checksum-crc32"), Some(CRC32));
    assert_eq!(response.header("x-amz-checksum-type"), Some("FULL_OBJECT"));
}

#[tokio::test]
async fn short_body_is_not_stored() {
    let server = TestServer::start().await;
    for class in ["STANDARD", "DEEP_ARCHIVE"] {
        let request = server.request("PUT", "/vault/short").header("x-amz-storage-class", class);
        let (head, _) = request.payload(UNSIGNED).signed_head(100);
        let response = exchange(server.address, &[head.as_bytes(), b"only this"], true).await;
        assert_eq!(response.error(), (400, "IncompleteBody".to_owned()), "{class}");
        assert!(!server.has("/vault/short").await);
    }
}

#[tokio::test]
async fn bytes_beyond_content_length_are_ignored() {
    let server = TestServer::start().await;
    let (head, _) = server.request("PUT", "/vault/long").payload(UNSIGNED).signed_head(5);
    let response = exchange(server.address, &[head.as_bytes(), b"12345 and more"], false).await;
    assert_eq!(response.status, 200);
    let response = server.request("GET", "/vault/long").send().await;
    assert_eq!(response.body, b"12345");
}

#[tokio::test]
async fn disconnected_upload_is_not_stored() {
    let server = TestServer::start().await;
    let (head, _) = server.request("PUT", "/vault/gone").payload(UNSIGNED).signed_head(10 << 20);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![7; 3 << 20]).await.unwrap();
    drop(stream);
    assert!(!server.has("/vault/gone").await);
    let status = server.archive.status().await.unwrap();
    assert_eq!((status.objects_online, status.objects_staged), (0, 0));
}

#[tokio::test]
async fn stalled_body_times_out() {
    let server = TestServer::start_with(|config| {
        config.limits.body_timeout = Duration::from_millis(200);
    })
    .await;
    let (head, _) = server.request("PUT", "/vault/slow").payload(UNSIGNED).signed_head(100);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"and then nothing").await.unwrap();
    let response = read_response(&mut stream).await;
    assert_eq!(response.error(), (400, "RequestTimeout".to_owned()));
    assert!(!server.has("/vault/slow").await);
}

#[tokio::test]
async fn xml_with_wrong_digest_has_no_effect() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"keep me").await;
    let xml = b"<Delete><Object><Key>a</Key></Object></Delete>";
    for (name, value) in [
        ("content-md5", EMPTY_MD5),
        ("x-amz-checksum-crc32", "AAAAAA=="),
        ("x-amz-checksum-sha256", "nonsense"),
    ] {
        let request = server.request("POST", "/vault?delete").header(name, value).body(xml);
        assert_eq!(request.send().await.error(), (400, "BadDigest".to_owned()), "{name}");
        assert!(server.has("/vault/a").await);
    }
    let request = server.request("POST", "/vault?delete").payload(&"0".repeat(64)).body(xml);
    let request = request.header("x-amz-checksum-sha256", &sha256_base64(xml));
    assert_eq!(request.send().await.error(), (400, "XAmzContentSHA256Mismatch".to_owned()));
    let two = server.request("POST", "/vault?delete").header("x-amz-checksum-crc32", "AAAAAA==");
    let two = two.header("x-amz-checksum-sha256", &sha256_base64(xml)).body(xml).send().await;
    assert_eq!(two.error(), (400, "InvalidRequest".to_owned()), "one of them is wrong");
    assert!(server.has("/vault/a").await);
    let request = server.request("POST", "/vault?delete").body(xml);
    let right = request.header("x-amz-checksum-sha256", &sha256_base64(xml)).send().await;
    assert_eq!(right.status, 200, "{right:?}");
    assert!(!server.has("/vault/a").await);
}

/// The digest under the signature protects one hop only; AWS requires an end-to-end one too.
#[tokio::test]
async fn delete_objects_requires_a_body_digest() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"keep me").await;
    let xml = b"<Delete><Object><Key>a</Key></Object></Delete>";
    let sdk = ("x-amz-sdk-checksum-algorithm", "CRC32");
    for (payload, headers) in [(None, vec![]), (Some(UNSIGNED), vec![]), (None, vec![sdk])] {
        let mut request = server.request("POST", "/vault?delete").body(xml);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(payload) = payload {
            request = request.payload(payload);
        }
        let response = request.send().await;
        assert_eq!(response.error(), (400, "InvalidRequest".to_owned()));
        let message = response.element("Message").unwrap();
        assert!(message.contains("Missing required header"), "{message}");
        assert!(server.has("/vault/a").await);
    }
    let presigned = server.request("POST", "/vault?delete").body(xml).presigned(60);
    assert_eq!(presigned.send_plain().await.error(), (400, "InvalidRequest".to_owned()));
    assert!(server.has("/vault/a").await);
}

/// A checksum in the trailer protects the document as well as one in the head.
#[tokio::test]
async fn documents_accept_trailing_checksums() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"keep me").await;
    let xml = "<Delete><Object><Key>a</Key></Object></Delete>";
    let right = sha256_base64(xml.as_bytes());
    for (value, length, error) in [
        ("AAAA", xml.len(), (400, "BadDigest")),
        (right.as_str(), xml.len() - 1, (400, "IncompleteBody")),
        (right.as_str(), xml.len() + 1, (400, "IncompleteBody")),
        (right.as_str(), xml.len(), (200, "")),
    ] {
        assert!(server.has("/vault/a").await, "{value} {length}");
        let body =
            format!("{:x}\r\n{xml}\r\n0\r\nx-amz-checksum-sha256:{value}\r\n\r\n", xml.len());
        let request =
            server.request("POST", "/vault?delete").payload("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
        let request = request.header("x-amz-trailer", "x-amz-checksum-sha256");
        let request = request.header("x-amz-decoded-content-length", &length.to_string());
        let response = request.body(body.as_bytes()).send().await;
        assert_eq!(response.error(), (error.0, error.1.to_owned()), "{value} {length}");
    }
    assert!(!server.has("/vault/a").await);
}

#[tokio::test]
async fn rejected_upload_still_gets_its_response() {
    let server = TestServer::start().await;
    let body = vec![1; 8 << 20];
    let (head, _) = server.request("PUT", "/nowhere/a").payload(UNSIGNED).signed_head(body.len());
    let response = exchange(server.address, &[head.as_bytes(), &body], false).await;
    assert_eq!(response.error(), (404, "NoSuchBucket".to_owned()));
}

/// botocore takes a response that comes instead of "100 Continue" for the response to its next
/// request as well, unless it has to connect again.
#[tokio::test]
async fn response_without_100_continue_closes_connection() {
    let server = TestServer::start().await;
    for (path, length, status) in [("/vault/empty", 0, 200), ("/nowhere/a", 100, 404)] {
        let request =
            server.request("PUT", path).header("expect", "100-continue").payload(UNSIGNED);
        let (head, _) = request.signed_head(length);
        let head = head.replace("connection: close\r\n", "");
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let response =
            tokio::time::timeout(Duration::from_secs(10), read_response(&mut stream)).await;
        let response = response.unwrap();
        assert_eq!(response.status, status);
        assert_eq!(response.header("connection"), Some("close"));
    }
    let request = server.request("PUT", "/vault/full").header("expect", "100-continue");
    let (head, _) = request.payload(UNSIGNED).signed_head(5);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut line = [0; 25];
    stream.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"12345").await.unwrap();
    assert_eq!(read_response(&mut stream).await.status, 200);
}

/// AWS answers 400 too. A body longer than any document is not read.
#[tokio::test]
async fn oversized_documents_are_rejected() {
    let server = TestServer::start().await;
    let pad = " ".repeat(9 << 20);
    let xml = format!("<Delete>{pad}<Object><Key>a</Key></Object></Delete>");
    for path in ["/vault?delete", "/vault/a?restore", "/vault/a?uploadId=1"] {
        let response = server.request("POST", path).body(xml.as_bytes()).send().await;
        assert_eq!(response.error(), (400, "MalformedXML".to_owned()), "{path}");
        let message = response.element("Message").unwrap();
        assert!(message.contains("longer than 8388608 bytes"), "{message}");
    }
}

#[tokio::test]
async fn bodies_of_unknown_length_are_rejected() {
    let server = TestServer::start().await;
    for payload in [UNSIGNED, &"0".repeat(64)] {
        let (head, _) = server.request("PUT", "/vault/a").payload(payload).signed_head(0);
        let head = head.replace("content-length: 0\r\n", "transfer-encoding: chunked\r\n");
        let body = b"5\r\nhello\r\n0\r\n\r\n";
        let response = exchange(server.address, &[head.as_bytes(), body], false).await;
        assert_eq!(response.error(), (411, "MissingContentLength".to_owned()));
        assert!(!server.has("/vault/a").await);
    }
}
