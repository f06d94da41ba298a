//! The client against a scripted server: transient failures, interrupted bodies, flipped bits.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::thread::JoinHandle;

use aws_credential_types::Credentials;
use bytes::Bytes;

use super::checksum::{crc64, crc64_text};
use super::{Client, ClientConfig, CopySource, ObjectProperties, S3Error, S3ErrorKind, Trust};

const DEEP: ObjectProperties<'static> = ObjectProperties { class: "DEEP_ARCHIVE", file_time: None };

/// A request as received: its line, its headers in lower case, its body.
struct ReceivedRequest {
    line: String,
    headers: String,
    body: Vec<u8>,
}

/// Answers one connection after the other with `responses`, unchanged; returns the requests.
fn serve(responses: Vec<Vec<u8>>) -> (Client, JoinHandle<Vec<ReceivedRequest>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut received = Vec::new();
        for response in responses {
            let (mut socket, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(socket.try_clone().unwrap());
            let (mut line, mut headers) = (String::new(), String::new());
            reader.read_line(&mut line).unwrap();
            while !headers.ends_with("\r\n\r\n") && headers != "\r\n" {
                reader.read_line(&mut headers).unwrap();
            }
            let headers = headers.to_lowercase();
            let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            reader.read_exact(&mut body).unwrap();
            socket.write_all(&response).unwrap();
            received.push(ReceivedRequest { line: line.trim_end().to_owned(), headers, body });
        }
        received
    });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::new(ClientConfig {
        endpoint,
        credentials: Credentials::new("access", "secret", None, None, "test"),
        region: "us-east-1".to_owned(),
        trust: Trust::System,
    });
    (client.unwrap(), server)
}

fn response(status: &str, headers: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

fn get(client: &Client, path: &Path) -> Result<(), S3Error> {
    block_on(client.get_file("bucket", "a key+%", path, &|_| {})).map(drop)
}

const BODY: &[u8] = b"every byte of this body counts";

fn checksum() -> String {
    format!("etag: \"tag\"\r\nx-amz-checksum-crc64nvme: {}\r\n", crc64_text(crc64(BODY)))
}

#[test]
fn slow_down_response_is_retried_with_same_body() {
    let busy = b"<Error><Code>SlowDown</Code><Message>later</Message></Error>";
    let (client, server) = serve(vec![
        response("503 Slow Down", "", busy.len(), busy),
        response("200 OK", "etag: \"tag\"\r\n", 0, b""),
    ]);
    let body = Bytes::from_static(BODY);
    let etag = block_on(client.put_bytes("bucket", "k", body, DEEP)).unwrap();
    assert_eq!(etag, "tag");
    let received = server.join().unwrap();
    assert_eq!(received.len(), 2);
    for request in &received {
        assert_eq!(request.line, "PUT /bucket/k HTTP/1.1");
        assert_eq!(request.body, BODY);
        let crc = format!("{}: {}\r\n", super::checksum::CRC64_HEADER, crc64_text(crc64(BODY)));
        assert!(request.headers.contains(&crc.to_lowercase()), "{}", request.headers);
        assert!(request.headers.contains("authorization: aws4-hmac-sha256 "));
    }
}

#[test]
fn permanent_error_is_not_retried() {
    let body = b"<Error><Code>InvalidObjectState</Code><Message>archived</Message></Error>";
    let (client, server) = serve(vec![response("403 Forbidden", "", body.len(), body)]);
    let folder = tempfile::tempdir().unwrap();
    let error = get(&client, &folder.path().join("file")).unwrap_err();
    assert_eq!((error.kind(), error.code()), (S3ErrorKind::Archived, "InvalidObjectState"));
    assert_eq!(server.join().unwrap().len(), 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no temporary file is left");
}

#[test]
fn truncated_download_resumes_with_range() {
    let (client, server) = serve(vec![
        response("200 OK", &checksum(), BODY.len(), &BODY[..10]),
        response("206 Partial Content", "", BODY.len() - 10, &BODY[10..]),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    get(&client, &path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), BODY);
    let received = server.join().unwrap();
    assert_eq!(received[0].line, "GET /bucket/a%20key%2B%25 HTTP/1.1");
    assert!(received[1].headers.contains("range: bytes=10-\r\n"), "{}", received[1].headers);
    assert!(received[1].headers.contains("if-match: \"tag\"\r\n"), "{}", received[1].headers);
}

#[test]
fn resume_rejects_a_200_response() {
    let (client, server) = serve(vec![
        response("200 OK", &checksum(), BODY.len(), &BODY[..10]),
        response("200 OK", &checksum(), BODY.len(), BODY),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let error = get(&client, &folder.path().join("file")).unwrap_err();
    assert_eq!(error.kind(), S3ErrorKind::Internal);
    server.join().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no temporary file is left");
}

#[test]
fn corrupt_download_creates_no_file() {
    let mut flipped = BODY.to_vec();
    flipped[12] ^= 1;
    let (client, server) = serve(vec![response("200 OK", &checksum(), BODY.len(), &flipped)]);
    let folder = tempfile::tempdir().unwrap();
    let error = get(&client, &folder.path().join("file")).unwrap_err();
    assert_eq!(error.kind(), S3ErrorKind::Corrupt);
    server.join().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no temporary file is left");
}

const COPIED: &[u8] = b"<CopyPartResult><ETag>&quot;part&quot;</ETag></CopyPartResult>";

fn source() -> CopySource<'static> {
    CopySource { bucket: "bucket", key: "a key", bytes: 25, etag: "tag" }
}

#[test]
fn large_copy_is_multipart_and_keeps_metadata() {
    let created = b"<X><UploadId>up</UploadId></X>";
    let completed = b"<X><ETag>&quot;whole-3&quot;</ETag></X>";
    let head = "content-type: text/plain\r\nx-amz-meta-mtime: 5\r\netag: \"tag\"\r\n";
    let mut responses = vec![response("200 OK", head, 0, b"")];
    responses.push(response("200 OK", "", created.len(), created));
    responses.extend((0..3).map(|_| response("200 OK", "", COPIED.len(), COPIED)));
    responses.push(response("200 OK", "", completed.len(), completed));
    let (client, server) = serve(responses);
    let etag = block_on(client.copy_with_limit(10, source(), "bucket", "k", "GLACIER")).unwrap();
    assert_eq!(etag, "whole-3");
    let received = server.join().unwrap();
    assert_eq!(received[1].line, "POST /bucket/k?uploads= HTTP/1.1");
    for header in
        ["content-type: text/plain", "x-amz-meta-mtime: 5", "x-amz-storage-class: glacier"]
    {
        assert!(received[1].headers.contains(&format!("{header}\r\n")), "{}", received[1].headers);
    }
    let mut ranges: Vec<&str> = received[2..5]
        .iter()
        .map(|request| {
            assert!(request.headers.contains("x-amz-copy-source: /bucket/a%20key\r\n"));
            assert!(request.headers.contains("x-amz-copy-source-if-match: \"tag\"\r\n"));
            let lines = &mut request.headers.lines();
            lines.find_map(|line| line.strip_prefix("x-amz-copy-source-range: ")).unwrap()
        })
        .collect();
    ranges.sort_unstable();
    assert_eq!(ranges, ["bytes=0-9", "bytes=10-19", "bytes=20-24"]);
    let body = String::from_utf8(received[5].body.clone()).unwrap();
    assert_eq!(body.matches("<ETag>&quot;part&quot;</ETag>").count(), 3, "{body}");
}

#[test]
fn copy_error_inside_a_200_response_fails() {
    let body = b"<Error><Code>InternalError</Code><Message>later</Message></Error>";
    let (client, server) = serve(vec![response("200 OK", "", body.len(), body)]);
    let error = block_on(client.copy(source(), "bucket", "k", "GLACIER")).unwrap_err();
    assert_eq!(error.code(), "InternalError");
    assert_eq!(server.join().unwrap().len(), 1);
}

#[test]
fn broken_pipe_is_not_a_connection_error() {
    let (client, server) = serve(vec![response("200 OK", &checksum(), BODY.len(), BODY)]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let sink = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
    let got = block_on(client.get_into("bucket", "k", sink, &|_| {}));
    assert!(matches!(got, Err(S3Error::ReaderGone)), "{got:?}");
    server.join().unwrap();
}
