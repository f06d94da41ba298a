//! `aws-chunked` bodies: trailers, chunk signatures, and chunks of any size.

use crate::harness::{TestResponse, TestServer, UNSIGNED, exchange};

const TRAILED: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
const CHUNK_SIGNED: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
const CHUNK_SIGNED_TRAILED: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";

/// CRC-32 of "123456789": 0xcbf43926.
const CRC32: &str = "y/Q5Jg==";

async fn put_trailed(server: &TestServer, decoded: usize, body: &[u8]) -> TestResponse {
    let request = server.request("PUT", "/vault/t").payload(TRAILED);
    let request = request.header("content-encoding", "aws-chunked");
    let request = request.header("x-amz-trailer", "x-amz-checksum-crc32");
    let request = request.header("x-amz-decoded-content-length", &decoded.to_string());
    let (head, _) = request.signed_head(body.len());
    exchange(server.address, &[head.as_bytes(), body], true).await
}

#[tokio::test]
async fn trailing_checksums_are_verified() {
    let server = TestServer::start().await;
    let body = |trailer: &str| format!("4\r\n1234\r\n5\r\n56789\r\n0\r\n{trailer}\r\n");
    let right = format!("x-amz-checksum-crc32:{CRC32}\r\n");
    for (decoded, trailer, code) in [
        (9, "x-amz-checksum-crc32:AAAAAA==\r\n", "BadDigest"),
        (9, "x-amz-checksum-crc32:?\r\n", "InvalidRequest"),
        (9, "x-amz-checksum-sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n", "MalformedTrailerError"),
        (9, "", "MalformedTrailerError"),
        (8, right.as_str(), "IncompleteBody"),
        (10, right.as_str(), "IncompleteBody"),
    ] {
        let response = put_trailed(&server, decoded, body(trailer).as_bytes()).await;
        assert_eq!(response.error(), (400, code.to_owned()), "{decoded} {trailer}");
        assert!(!server.has("/vault/t").await, "{decoded} {trailer}");
    }
    let response = put_trailed(&server, 9, body(&right).as_bytes()).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("x-amz-checksum-crc32"), Some(CRC32));
    let response = server.request("GET", "/vault/t").send().await;
    assert_eq!(response.body, b"123456789");
    assert_eq!(response.header("content-encoding"), None, "the framing is not stored");
}

#[tokio::test]
async fn body_with_broken_framing_is_not_stored() {
    let server = TestServer::start().await;
    let cut = format!("9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:{CRC32}\r\n\r\n");
    for (body, code) in [
        ("9\r\n12345", "IncompleteBody"),
        ("9\r\n123456789\r\n", "IncompleteBody"),
        ("zz\r\n123456789\r\n0\r\n\r\n", "InvalidRequest"),
        ("9\r\n123456789XX0\r\n\r\n", "InvalidRequest"),
    ] {
        let response = put_trailed(&server, 9, body.as_bytes()).await;
        assert_eq!(response.error(), (400, code.to_owned()), "{body:?}");
        assert!(!server.has("/vault/t").await, "{body:?}");
    }
    assert_eq!(put_trailed(&server, 9, cut.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn unannounced_trailers_are_rejected() {
    let server = TestServer::start().await;
    for (announced, trailer, code) in [
        (None, "x-amz-checksum-crc32:AAAAAA==\r\n".to_owned(), "MalformedTrailerError"),
        (None, format!("x-amz-checksum-crc32:{CRC32}\r\n"), "MalformedTrailerError"),
        (None, "x-amz-meta-a:b\r\n".to_owned(), "MalformedTrailerError"),
        (Some("x-amz-checksum-sha1"), String::new(), "MalformedTrailerError"),
        (Some("x-amz-meta-a"), "x-amz-meta-a:b\r\n".to_owned(), "InvalidRequest"),
        (Some("x-amz-checksum-crc32,x-amz-meta-a"), String::new(), "InvalidRequest"),
    ] {
        let body = format!("9\r\n123456789\r\n0\r\n{trailer}\r\n");
        let request = server.request("PUT", "/vault/t").payload(TRAILED);
        let mut request = request.header("x-amz-decoded-content-length", "9").body(body.as_bytes());
        if let Some(announced) = announced {
            request = request.header("x-amz-trailer", announced);
        }
        assert_eq!(request.send().await.error(), (400, code.to_owned()), "{announced:?} {trailer}");
        assert!(!server.has("/vault/t").await, "{announced:?} {trailer}");
    }
    // Without framing there can be no trailer.
    let request = server.request("PUT", "/vault/t").header("x-amz-trailer", "x-amz-checksum-crc32");
    let response = request.body(b"123456789").send().await;
    assert_eq!(response.error(), (400, "MalformedTrailerError".to_owned()));
    assert!(!server.has("/vault/t").await);
}

/// If a client framed its body and signed it as a plain one, it would find the framing in its
/// object.
#[tokio::test]
async fn framing_is_never_stored() {
    let server = TestServer::start().await;
    let body = b"5\r\nhello\r\n0\r\n\r\n";
    let announced = ("content-encoding", "aws-chunked");
    let listed = ("content-encoding", "gzip , AWS-Chunked");
    let length = ("x-amz-decoded-content-length", "5");
    for headers in [vec![announced], vec![listed], vec![length], vec![announced, length]] {
        let request = || {
            let request = server.request("PUT", "/vault/t").body(body);
            headers.iter().fold(request, |request, (name, value)| request.header(name, value))
        };
        let responses = [
            request().payload(UNSIGNED).send().await,
            request().send().await,
            request().presigned(60).send_plain().await,
        ];
        for response in responses {
            assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{headers:?}");
            let message = response.element("Message").unwrap();
            assert!(message.contains("STREAMING-"), "{message}");
        }
        assert!(!server.has("/vault/t").await, "{headers:?}");
    }
    let request = server.request("PUT", "/vault/t").header("content-encoding", "aws-chunked,gzip");
    let request = request.header("x-amz-decoded-content-length", "5").payload(TRAILED);
    assert_eq!(request.body(body).send().await.status, 200);
    let response = server.request("GET", "/vault/t").send().await;
    assert_eq!(
        (response.body.as_slice(), response.header("content-encoding")),
        (&b"hello"[..], Some("gzip"))
    );
}

/// Trailers of HTTP's own chunked encoding would be checked against nothing.
#[tokio::test]
async fn http_trailers_are_rejected() {
    let server = TestServer::start().await;
    let request = server.request("PUT", "/vault/t").payload(TRAILED);
    let (head, _) = request.header("x-amz-decoded-content-length", "5").signed_head(0);
    let head = head.replace("content-length: 0\r\n", "transfer-encoding: chunked\r\n");
    let inner = "5\r\nhello\r\n0\r\n\r\n";
    let send = async |trailer: &str| {
        let body = format!("{:x}\r\n{inner}\r\n0\r\n{trailer}\r\n", inner.len());
        exchange(server.address, &[head.as_bytes(), body.as_bytes()], false).await
    };
    let response = send("x-amz-checksum-crc32: AAAAAA==\r\n").await;
    assert_eq!(response.error(), (400, "MalformedTrailerError".to_owned()));
    assert!(!server.has("/vault/t").await);
    assert_eq!(send("").await.status, 200);
}

#[tokio::test]
async fn one_large_unsigned_chunk_streams() {
    let server = TestServer::start().await;
    let data: Vec<u8> = (0..24 << 20).map(|n: u32| (n >> 7).to_le_bytes()[0]).collect();
    let mut body = format!("{:x}\r\n", data.len()).into_bytes();
    body.extend_from_slice(&data);
    body.extend_from_slice(b"\r\n0\r\n\r\n");
    let request = server.request("PUT", "/vault/large").payload(TRAILED);
    let request = request.header("x-amz-decoded-content-length", &data.len().to_string());
    let (head, _) = request.signed_head(body.len());
    let response = exchange(server.address, &[head.as_bytes(), &body], false).await;
    assert_eq!(response.status, 200, "{response:?}");
    let response = server.request("GET", "/vault/large").send().await;
    assert!(response.body == data, "the bytes differ");
}

/// Which part to corrupt in a body whose chunks are signed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Corruption {
    Nothing,
    /// The signature of the first chunk, of the last, or of the trailer.
    First,
    Last,
    Trailer,
    /// The bytes of the first chunk, with the right signature.
    Bytes,
}

async fn put_signed(
    server: &TestServer,
    chunks: &[&[u8]],
    trailer: Option<(&str, &str)>,
    corruption: Corruption,
) -> TestResponse {
    let length: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let payload = if trailer.is_some() { CHUNK_SIGNED_TRAILED } else { CHUNK_SIGNED };
    let mut request = server.request("PUT", "/vault/s").payload(payload);
    if let Some((name, _)) = trailer {
        request = request.header("x-amz-trailer", name);
    }
    let request = request.header("x-amz-decoded-content-length", &length.to_string());
    let signer = request.signer.clone();
    let line = |chunk: &[u8], signature: &str| {
        let mut line = format!("{:x};chunk-signature={signature}\r\n", chunk.len()).into_bytes();
        line.extend_from_slice(chunk);
        if !chunk.is_empty() {
            line.extend_from_slice(b"\r\n");
        }
        line
    };
    let end = |signature: &str| match trailer {
        Some((name, value)) => {
            format!("{name}:{value}\r\nx-amz-trailer-signature:{signature}\r\n\r\n")
        }
        None => "\r\n".to_owned(),
    };
    // All lines have the same length except for the digits of the size.
    let zeros = "0".repeat(64);
    let all = chunks.iter().copied().chain([b"".as_slice()]);
    let total: usize = all.clone().map(|chunk| line(chunk, &zeros).len()).sum();
    let (head, mut signature) = request.signed_head(total + end(&zeros).len());
    let mut body = Vec::new();
    for (index, chunk) in all.enumerate() {
        signature = signer.chunk(&signature, chunk);
        let is_corrupted = (index == 0 && corruption == Corruption::First)
            || (chunk.is_empty() && corruption == Corruption::Last);
        body.extend(line(chunk, if is_corrupted { &zeros } else { &signature }));
        if index == 0 && corruption == Corruption::Bytes {
            let last = body.len() - 3;
            body[last] ^= 1;
        }
    }
    if let Some((name, value)) = trailer {
        signature = signer.trailer(&signature, &format!("{name}:{value}\n"));
    }
    body.extend(
        end(if corruption == Corruption::Trailer { &zeros } else { &signature }).into_bytes(),
    );
    exchange(server.address, &[head.as_bytes(), &body], true).await
}

#[tokio::test]
async fn every_chunk_signature_is_verified() {
    let server = TestServer::start().await;
    let chunks: [&[u8]; 3] = [&[1; 70_000], &[2; 65_536], b"the end"];
    for corruption in [Corruption::First, Corruption::Last, Corruption::Bytes] {
        let response = put_signed(&server, &chunks, None, corruption).await;
        assert_eq!(response.error(), (403, "SignatureDoesNotMatch".to_owned()));
        assert!(!server.has("/vault/s").await);
    }
    let response = put_signed(&server, &chunks, None, Corruption::Nothing).await;
    assert_eq!(response.status, 200, "{response:?}");
    let response = server.request("GET", "/vault/s").send().await;
    assert!(response.body == chunks.concat(), "the bytes differ");
}

#[tokio::test]
async fn trailer_signature_is_verified() {
    let server = TestServer::start().await;
    let right = Some(("x-amz-checksum-crc32", CRC32));
    let response = put_signed(&server, &[b"123456789"], right, Corruption::Trailer).await;
    assert_eq!(response.error(), (403, "SignatureDoesNotMatch".to_owned()));
    let wrong = Some(("x-amz-checksum-crc32", "AAAAAA=="));
    let response = put_signed(&server, &[b"123456789"], wrong, Corruption::Nothing).await;
    assert_eq!(response.error(), (400, "BadDigest".to_owned()));
    assert!(!server.has("/vault/s").await);
    let response = put_signed(&server, &[b"123456789"], right, Corruption::Nothing).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("x-amz-checksum-crc32"), Some(CRC32));
}

/// Chunks are not buffered until their signature is verified, so one may be as large as a body.
#[tokio::test]
async fn large_signed_chunks_stream() {
    let server = TestServer::start().await;
    let large: Vec<u8> = (0..24 << 20).map(|n: u32| (n >> 9).to_le_bytes()[0]).collect();
    let response = put_signed(&server, &[&large], None, Corruption::First).await;
    assert_eq!(response.error(), (403, "SignatureDoesNotMatch".to_owned()));
    assert!(!server.has("/vault/s").await);
    let response = put_signed(&server, &[&large], None, Corruption::Nothing).await;
    assert_eq!(response.status, 200, "{response:?}");
    let response = server.request("GET", "/vault/s").send().await;
    assert!(response.body == large, "the bytes differ");
}
