//! `aws-chunked` bodies: trailers, chunk signatures, and the memory that large chunks would take.

use crate::harness::{Answer, TestServer, exchange};

const TRAILED: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
const CHUNK_SIGNED: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";

/// CRC-32 of "123456789": 0xcbf43926.
const CRC32: &str = "y/Q5Jg==";

async fn put_trailed(server: &TestServer, decoded: usize, body: &[u8]) -> Answer {
    let ask = server.ask("PUT", "/vault/t").payload(TRAILED);
    let ask = ask.header("content-encoding", "aws-chunked");
    let ask = ask.header("x-amz-trailer", "x-amz-checksum-crc32");
    let ask = ask.header("x-amz-decoded-content-length", &decoded.to_string());
    let (head, _) = ask.signed_head(body.len());
    exchange(server.address, &[head.as_bytes(), body], true).await
}

#[tokio::test]
async fn trailers_are_compared() {
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
        let answer = put_trailed(&server, decoded, body(trailer).as_bytes()).await;
        assert_eq!(answer.error(), (400, code.to_owned()), "{decoded} {trailer}");
        assert!(!server.has("/vault/t").await, "{decoded} {trailer}");
    }
    let answer = put_trailed(&server, 9, body(&right).as_bytes()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("x-amz-checksum-crc32"), Some(CRC32));
    let answer = server.ask("GET", "/vault/t").send().await;
    assert_eq!(answer.body, b"123456789");
    assert_eq!(answer.header("content-encoding"), None, "the framing is not kept");
}

#[tokio::test]
async fn broken_framing_stores_nothing() {
    let server = TestServer::start().await;
    let cut = format!("9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:{CRC32}\r\n\r\n");
    for (body, code) in [
        ("9\r\n12345", "IncompleteBody"),
        ("9\r\n123456789\r\n", "IncompleteBody"),
        ("zz\r\n123456789\r\n0\r\n\r\n", "InvalidRequest"),
        ("9\r\n123456789XX0\r\n\r\n", "InvalidRequest"),
    ] {
        let answer = put_trailed(&server, 9, body.as_bytes()).await;
        assert_eq!(answer.error(), (400, code.to_owned()), "{body:?}");
        assert!(!server.has("/vault/t").await, "{body:?}");
    }
    assert_eq!(put_trailed(&server, 9, cut.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn one_large_unsigned_chunk_streams() {
    let server = TestServer::start().await;
    let data: Vec<u8> = (0..24 << 20).map(|n: u32| (n >> 7).to_le_bytes()[0]).collect();
    let mut body = format!("{:x}\r\n", data.len()).into_bytes();
    body.extend_from_slice(&data);
    body.extend_from_slice(b"\r\n0\r\n\r\n");
    let ask = server.ask("PUT", "/vault/large").payload(TRAILED);
    let ask = ask.header("x-amz-trailer", "x-amz-meta-nothing");
    let ask = ask.header("x-amz-decoded-content-length", &data.len().to_string());
    let (head, _) = ask.signed_head(body.len());
    let answer = exchange(server.address, &[head.as_bytes(), &body], false).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = server.ask("GET", "/vault/large").send().await;
    assert!(answer.body == data, "the bytes differ");
}

async fn put_signed(server: &TestServer, chunks: &[&[u8]], spoil: bool) -> Answer {
    let length: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let ask = server.ask("PUT", "/vault/s").payload(CHUNK_SIGNED);
    let ask = ask.header("x-amz-decoded-content-length", &length.to_string());
    let signer = ask.signer.clone();
    // Every line has the same length but for the digits of its size.
    let line = |chunk: &[u8], signature: &str| {
        let mut line = format!("{:x};chunk-signature={signature}\r\n", chunk.len()).into_bytes();
        line.extend_from_slice(chunk);
        line.extend_from_slice(b"\r\n");
        line
    };
    let all = chunks.iter().copied().chain([b"".as_slice()]);
    let total = all.clone().map(|chunk| line(chunk, &"0".repeat(64)).len()).sum();
    let (head, mut signature) = ask.signed_head(total);
    let mut body = Vec::new();
    for chunk in all {
        signature = signer.chunk(&signature, chunk);
        let shown = if spoil && chunk.is_empty() { "0".repeat(64) } else { signature.clone() };
        body.extend(line(chunk, &shown));
    }
    exchange(server.address, &[head.as_bytes(), &body], true).await
}

#[tokio::test]
async fn every_chunk_signature_counts() {
    let server = TestServer::start().await;
    let chunks: [&[u8]; 3] = [&[1; 70_000], &[2; 65_536], b"the end"];
    let answer = put_signed(&server, &chunks, true).await;
    assert_eq!(answer.error(), (403, "SignatureDoesNotMatch".to_owned()));
    assert!(!server.has("/vault/s").await);
    let answer = put_signed(&server, &chunks, false).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = server.ask("GET", "/vault/s").send().await;
    assert!(answer.body == chunks.concat(), "the bytes differ");
}

#[tokio::test]
async fn signed_chunks_have_a_largest_size() {
    let server = TestServer::start().await;
    let large = vec![0; (16 << 20) + 1];
    let answer = put_signed(&server, &[&large], false).await;
    assert_eq!(answer.error(), (400, "InvalidChunkSizeError".to_owned()));
    assert!(!server.has("/vault/s").await);
}
