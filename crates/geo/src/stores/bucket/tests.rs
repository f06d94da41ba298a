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
    Says(u16, &'static str),
    /// It reads the request and closes the connection.
    Closes,
    /// It never answers.
    Hangs,
}

/// Returns a bucket whose server behaves so, and the number of requests received.
async fn bucket(answer: Answer) -> (Arc<dyn ObjectStore>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 1 << 16];
            let _ = stream.read(&mut request).await;
            counted.fetch_add(1, Ordering::SeqCst);
            match answer {
                Answer::Says(status, body) => {
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
    (store(port), asked)
}

fn store(port: u16) -> Arc<dyn ObjectStore> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let within = std::time::Duration::from_millis(300);
    let store = AmazonS3Builder::new()
        .with_client_options(ClientOptions::new().with_timeout(within))
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

/// Returns the error as a word.
#[expect(clippy::wildcard_enum_match_arm, reason = "what is no word here is another")]
fn word(error: &TableError) -> &'static str {
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
async fn every_answer_says_whether_it_happened() {
    use Answer::{Closes, Hangs, Says};
    let cases = [
        // Results of a create, of an update, of a read; then of the read of a blob.
        (Says(412, ""), ["conflict", "conflict", "unavailable"]),
        (
            Says(409, "<Code>ConditionalRequestConflict</Code>"),
            ["conflict", "conflict", "unavailable"],
        ),
        (Says(404, "<Code>NoSuchKey</Code>"), ["unavailable", "conflict", "absent"]),
        (Says(404, "<Code>NoSuchBucket</Code>"), ["unavailable", "conflict", "unavailable"]),
        (Says(403, ""), ["denied", "denied", "denied"]),
        (Says(401, ""), ["denied", "denied", "denied"]),
        (Says(400, ""), ["unavailable", "unavailable", "unavailable"]),
        (Says(429, ""), ["throttled for 7 s"; 3]),
        (Says(503, "<Code>SlowDown</Code>"), ["throttled for 7 s"; 3]),
        (Says(503, ""), ["unknown", "unknown", "unavailable"]),
        (Says(500, ""), ["unknown", "unknown", "unavailable"]),
        (Says(501, ""), ["unsupported", "unsupported", "unsupported"]),
        (Closes, ["unknown", "unknown", "unavailable"]),
        (Hangs, ["unknown", "unknown", "unavailable"]),
    ];
    let key = Key::new("a").unwrap();
    for (answer, expected) in cases {
        let (store, asked) = bucket(answer).await;
        let table = BucketTable::new(store, Path::from("rows"));
        let create = table.cas(&key, Expect::Absent, "row".into()).await.unwrap_err();
        let old = Expect::Is(tag(Some("\"old\"".to_owned()), None));
        let asked_before = asked.load(Ordering::SeqCst);
        assert_eq!(asked_before, 1, "{answer:?}: nothing is tried again");
        let (update, read) = if matches!(answer, Hangs) {
            // Its only connection stays occupied.
            (create.clone(), TableError::Unavailable(crate::stores::Cause::new("as above")))
        } else {
            let update = table.cas(&key, old, "row".into()).await.unwrap_err();
            match table.read(&key).await {
                Ok(row) => {
                    assert_eq!((row, expected[2]), (None, "absent"), "{answer:?}");
                    assert_eq!([word(&create), word(&update)], expected[..2], "{answer:?}");
                    continue;
                }
                Err(read) => (update, read),
            }
        };
        let words = [word(&create), word(&update), word(&read)];
        assert_eq!(words, expected, "{answer:?}: {create:?} {update:?} {read:?}");
        let shown = format!("{create:?} {create}");
        assert!(!shown.contains("a-secret"), "{shown}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_was_not_asked() {
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
async fn a_blob_is_absent_only_when_the_store_says_so() {
    let key = Key::new("a").unwrap();
    for (answer, is_absent) in [
        (Answer::Says(404, "<Code>NoSuchKey</Code>"), true),
        (Answer::Says(404, "<Code>NoSuchBucket</Code>"), false),
        (Answer::Says(500, ""), false),
        (Answer::Closes, false),
    ] {
        let (store, _) = bucket(answer).await;
        let blobs = BucketBlobs::new(store, Path::from("blobs"));
        for error in [blobs.get(&key, None).await.err(), blobs.get(&key, Some(1..2)).await.err()] {
            let said = error.as_ref() == Some(&BlobError::NotFound);
            assert_eq!(said, is_absent, "{answer:?}: {error:?}");
            assert!(is_absent || matches!(error, Some(BlobError::Unavailable(_))), "{error:?}");
        }
    }
}

#[test]
fn tags_are_what_the_store_says_of_an_image() {
    let some = |text: &str| Some(text.to_owned());
    for (e_tag, number) in [(some("\"x\""), None), (None, some("7")), (some("y"), some("8"))] {
        let back = version(&tag(e_tag.clone(), number.clone()));
        assert_eq!((back.e_tag, back.version), (e_tag, number));
    }
}
