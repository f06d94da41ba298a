//! Maps the responses of HTTP servers to errors: which of them mean that nothing happened.

use std::sync::atomic::{AtomicUsize, Ordering};

use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, RetryConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::stores::{Blob as _, BlobError};

/// What a server does with every request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Responds(u16, &'static str),
    /// It reads the request and closes the connection.
    Closes,
    /// It never answers.
    Hangs,
}

/// Returns a bucket whose server behaves so, and the number of requests received.
async fn bucket(answer: Answer) -> (Arc<dyn ObjectStore>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 1 << 16];
            let _ = stream.read(&mut request).await;
            counted.fetch_add(1, Ordering::SeqCst);
            match answer {
                Answer::Responds(status, body) => {
                    let length = body.len();
                    let text = format!(
                        "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nretry-after: 7\r\n\
                         connection: close\r\n\r\n{body}"
                    );
                    let _ = stream.write_all(text.as_bytes()).await;
                }
                Answer::Closes => {}
                Answer::Hangs => std::future::pending().await,
            }
        }
    });
    (store(port), requests)
}

fn store(port: u16) -> Arc<dyn ObjectStore> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let timeout = std::time::Duration::from_millis(300);
    let store = AmazonS3Builder::new()
        .with_client_options(ClientOptions::new().with_timeout(timeout))
        .with_endpoint(format!("http://127.0.0.1:{port}"))
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_access_key_id("id")
        .with_secret_access_key("a-secret")
        .with_bucket_name("bucket")
        .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
        .with_http_connector(StatusConnector);
    Arc::new(store.build().unwrap())
}

/// Returns the name of an error.
#[expect(clippy::wildcard_enum_match_arm, reason = "these errors are not expected here")]
fn error_name(error: &TableError) -> &'static str {
    match error {
        TableError::Conflict(None) => "conflict",
        TableError::Unknown(_) => "unknown",
        TableError::Unavailable(_) => "unavailable",
        TableError::Throttled(Some(wait)) if wait.as_secs() == 7 => "throttled for 7 s",
        TableError::Denied(_) => "denied",
        TableError::Unsupported(_) => "unsupported",
        _ => "another",
    }
}

#[tokio::test]
async fn http_responses_map_to_call_certainty() {
    use Answer::{Closes, Hangs, Responds};
    let cases = [
        // Results of a create, of an update, of a read; then of the read of a blob.
        (Responds(412, ""), ["conflict", "conflict", "unavailable"]),
        (
            Responds(409, "<Code>ConditionalRequestConflict</Code>"),
            ["conflict", "conflict", "unavailable"],
        ),
        (Responds(404, "<Code>NoSuchKey</Code>"), ["unavailable", "conflict", "absent"]),
        (Responds(404, "<Code>NoSuchBucket</Code>"), ["unavailable", "conflict", "unavailable"]),
        (Responds(403, ""), ["denied", "denied", "denied"]),
        (Responds(401, ""), ["denied", "denied", "denied"]),
        (Responds(400, ""), ["unavailable", "unavailable", "unavailable"]),
        (Responds(429, ""), ["throttled for 7 s"; 3]),
        (Responds(503, "<Code>SlowDown</Code>"), ["throttled for 7 s"; 3]),
        (Responds(503, ""), ["unknown", "unknown", "unavailable"]),
        (Responds(500, ""), ["unknown", "unknown", "unavailable"]),
        (Responds(501, ""), ["unsupported", "unsupported", "unsupported"]),
        (Closes, ["unknown", "unknown", "unavailable"]),
        (Hangs, ["unknown", "unknown", "unavailable"]),
    ];
    let key = Key::new("a").unwrap();
    for (answer, expected) in cases {
        let (store, requests) = bucket(answer).await;
        let table = BucketTable::new(store, Path::from("rows"));
        let create = table.cas(&key, Expect::Absent, "row".into()).await.unwrap_err();
        let old = Expect::Is(tag(Some("\"old\"".to_owned()), None));
        let request_count = requests.load(Ordering::SeqCst);
        assert_eq!(request_count, 1, "{answer:?}: no call is retried");
        let (update, read) = if matches!(answer, Hangs) {
            // Its only connection stays occupied.
            (create.clone(), TableError::Unavailable(crate::stores::Cause::new("as above")))
        } else {
            let update = table.cas(&key, old, "row".into()).await.unwrap_err();
            match table.read(&key).await {
                Ok(row) => {
                    assert_eq!((row, expected[2]), (None, "absent"), "{answer:?}");
                    assert_eq!(
                        [error_name(&create), error_name(&update)],
                        expected[..2],
                        "{answer:?}"
                    );
                    continue;
                }
                Err(read) => (update, read),
            }
        };
        let names = [error_name(&create), error_name(&update), error_name(&read)];
        assert_eq!(names, expected, "{answer:?}: {create:?} {update:?} {read:?}");
        let shown = format!("{create:?} {create}");
        assert!(!shown.contains("a-secret"), "{shown}");
    }
}

#[tokio::test]
async fn unreachable_server_means_not_executed() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let table = BucketTable::new(store(port), Path::from("rows"));
    let key = Key::new("a").unwrap();
    let error = table.cas(&key, Expect::Absent, "row".into()).await.unwrap_err();
    assert!(matches!(error, TableError::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn blob_is_absent_only_if_store_says_so() {
    let key = Key::new("a").unwrap();
    for (answer, is_absent) in [
        (Answer::Responds(404, "<Code>NoSuchKey</Code>"), true),
        (Answer::Responds(404, "<Code>NoSuchBucket</Code>"), false),
        (Answer::Responds(500, ""), false),
        (Answer::Closes, false),
    ] {
        let (store, _) = bucket(answer).await;
        let blobs = BucketBlobs::new(store, Path::from("blobs"));
        for error in [blobs.get(&key, None).await.err(), blobs.get(&key, Some(1..2)).await.err()] {
            let is_not_found = error.as_ref() == Some(&BlobError::NotFound);
            assert_eq!(is_not_found, is_absent, "{answer:?}: {error:?}");
            assert!(is_absent || matches!(error, Some(BlobError::Unavailable(_))), "{error:?}");
        }
    }
}

#[test]
fn tags_round_trip() {
    let some = |text: &str| Some(text.to_owned());
    for (e_tag, number) in [(some("\"x\""), None), (None, some("7")), (some("y"), some("8"))] {
        let back = version(&tag(e_tag.clone(), number.clone()));
        assert_eq!((back.e_tag, back.version), (e_tag, number));
    }
}
