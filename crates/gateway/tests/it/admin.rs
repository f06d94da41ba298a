//! The operator's calls: closed to others, and reporting their progress.

use fulgurite_gateway::OperatorCall;
use jiff::{Timestamp, ToSpan as _};

use crate::harness::{TestResponse, TestServer, credentials};
use crate::openapi;

/// Returns the header of a call made at `time`, with a fresh nonce.
fn authorization(method: &str, target: &str, body: &[u8], time: Timestamp) -> String {
    static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let call = CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&call.to_le_bytes());
    let time = u64::try_from(time.as_millisecond()).unwrap();
    OperatorCall { method, target, body }.authorization(&credentials(), time, &nonce)
}

async fn call_with(
    server: &TestServer,
    method: &str,
    path: &str,
    authorization: &str,
) -> TestResponse {
    let request = server.request(method, path);
    let response = request.unsigned_header("authorization", authorization).send_plain().await;
    openapi::check(method, path, &response);
    response
}

/// Returns the header of a `GET` made now.
pub(crate) fn signed_now(target: &str) -> String {
    authorization("GET", target, b"", Timestamp::now())
}

pub(crate) async fn call(server: &TestServer, method: &str, path: &str) -> TestResponse {
    call_with(server, method, path, &authorization(method, path, b"", Timestamp::now())).await
}

/// A server forgets its calls when it stops, except those that the next one would accept again.
#[tokio::test]
async fn early_call_cannot_be_replayed_after_restart() {
    let folder = tempfile::tempdir().unwrap();
    let nonces = folder.path().join("operator.nonces");
    let start = || TestServer::start_with(|config| config.nonces = Some(nonces.clone()));
    let status = "/-/admin/status";
    let ahead = Timestamp::now().checked_add(3.minutes()).unwrap();
    let signed = authorization("GET", status, b"", ahead);
    let before = start().await;
    assert_eq!(call(&before, "GET", status).await.status, 200);
    assert!(!nonces.exists(), "a call in time costs no write");
    assert_eq!(call_with(&before, "GET", status, &signed).await.status, 200);
    let server = start().await;
    let again = call_with(&server, "GET", status, &signed).await;
    assert_eq!(again.status, 403, "{}", again.text());
    assert!(again.text().contains("nonce was already used"), "{}", again.text());
    assert_eq!(call(&server, "GET", status).await.status, 200);
}

#[tokio::test]
async fn admin_calls_require_operator_signature() {
    let server = TestServer::start().await;
    let status = "/-/admin/status";
    let now = Timestamp::now();
    let long_ago = now.checked_sub(6.minutes()).unwrap();
    let for_seal = authorization("POST", "/-/admin/seal", b"", now);
    for response in [
        call_with(&server, "GET", status, "").await,
        // A bearer token is no signature.
        call_with(&server, "GET", status, &format!("Bearer {}", "0".repeat(64))).await,
        call_with(&server, "GET", status, &for_seal).await,
        call_with(&server, "POST", "/-/admin/verify", &for_seal).await,
        call_with(&server, "GET", status, &authorization("GET", status, b"", long_ago)).await,
        call_with(&server, "GET", status, &authorization("GET", status, b"more", now)).await,
        server.request("GET", status).send_plain().await,
        server.request("GET", status).send().await,
    ] {
        assert_eq!(response.status, 403, "{}", response.text());
        assert!(response.text().contains("AccessDenied"));
    }
    let response = call(&server, "GET", status).await;
    assert_eq!(response.status, 200);
    let shown: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(shown["objects_online"], 0);
    assert_eq!(shown["server"]["connections_max"], 2048);
    assert_eq!(call(&server, "GET", "/-/admin/unknown").await.status, 404);
    assert_eq!(call(&server, "GET", "/-/admin/seal").await.status, 404, "wrong method");
}

#[tokio::test]
async fn replayed_call_is_rejected() {
    let server = TestServer::start().await;
    let recorded = authorization("GET", "/-/admin/status", b"", Timestamp::now());
    assert_eq!(call_with(&server, "GET", "/-/admin/status", &recorded).await.status, 200);
    let response = call_with(&server, "GET", "/-/admin/status", &recorded).await;
    assert_eq!(response.status, 403, "{}", response.text());
    assert!(response.text().contains("nonce was already used"), "{}", response.text());
}

#[tokio::test]
async fn admin_body_size_is_bounded() {
    let server = TestServer::start().await;
    let large = vec![b' '; (64 << 10) + 1];
    let signed = authorization("GET", "/-/admin/status", &large, Timestamp::now());
    let request =
        server.request("GET", "/-/admin/status").unsigned_header("authorization", &signed);
    assert_eq!(request.body(&large).send_plain().await.status, 400);
}

/// Asserts that lines are progress reports. The first line of a long call comes at once, the others
/// every second.
fn assert_progress(lines: &[serde_json::Value]) {
    assert!(!lines.is_empty());
    for line in lines {
        let line = &line["progress"];
        assert!(line["seconds"].is_f64(), "{line}");
        let (done, total) = (line["bytes_done"].as_u64(), line["bytes_total"].as_u64());
        assert!(done.is_some() && done <= total, "{line}");
    }
}

#[tokio::test]
async fn seal_and_verify_stream_progress() {
    let server = TestServer::start().await;
    let put = server.request("PUT", "/vault/deep").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(put.body(&[9; 100_000]).send().await.status, 200);
    let located = call(&server, "GET", "/-/admin/locate?bucket=vault&key=deep").await;
    assert!(located.text().contains("\"residence\":\"staged\""), "{}", located.text());

    let response = call(&server, "POST", "/-/admin/seal").await;
    assert_eq!(response.header("content-type"), Some("application/x-ndjson"));
    let text = response.text();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["report"]["objects"], 1, "{text}");
    assert_progress(&lines[..lines.len() - 1]);
    let located = call(&server, "GET", "/-/admin/locate?bucket=vault&key=deep").await;
    assert!(located.text().contains("\"residence\":\"glass\""), "{}", located.text());

    let response = call(&server, "POST", "/-/admin/verify").await;
    let lines: Vec<serde_json::Value> =
        response.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, before) = lines.split_last().unwrap();
    assert_progress(before);
    assert!(
        last["report"]["platters"].as_array().is_some_and(|platters| platters.len() >= 4),
        "{last}"
    );
    let response = call(&server, "POST", "/-/admin/verify?platter=nonsense").await;
    assert_eq!(response.status, 400);
    let none = call(&server, "GET", "/-/admin/locate?bucket=vault&key=none").await;
    assert_eq!(none.status, 404, "{}", none.text());
    let unnamed = call(&server, "GET", "/-/admin/locate?bucket=vault").await;
    assert_eq!(unnamed.status, 400);
}

#[tokio::test]
async fn move_changes_storage_class() {
    let server = TestServer::start().await;
    for key in ["a/1", "a/2", "b"] {
        let put = server.request("PUT", &format!("/vault/{key}")).body(&[9; 1000]);
        assert_eq!(put.send().await.status, 200);
    }
    let to = |query: &str| format!("/-/admin/move?bucket=vault&{query}");
    let response = call(&server, "POST", &to("class=GLACIER&prefix=a%2F")).await;
    let last: serde_json::Value =
        serde_json::from_str(response.text().lines().last().unwrap()).unwrap();
    let report = serde_json::json!({
        "objects": 2, "bytes": 2000, "objects_there": 0, "objects_left": 0, "left": []
    });
    assert_eq!(last["report"], report, "{last}");
    for (key, class) in [("a/1", Some("GLACIER")), ("a/2", Some("GLACIER")), ("b", None)] {
        let head = server.request("HEAD", &format!("/vault/{key}")).send().await;
        assert_eq!(head.header("x-amz-storage-class"), class, "{key}");
    }
    for (query, status) in [
        ("class=GLACIER", 400),
        ("class=GLACIER&key=b&prefix=b", 400),
        ("key=b", 400),
        ("class=COLD&key=b", 400),
        ("class=GLACIER&key=", 400),
    ] {
        let response = call(&server, "POST", &to(query)).await;
        assert_eq!(response.status, status, "{query}: {}", response.text());
    }
    // An error after the call has started is in the last line.
    for (query, code) in
        [("class=GLACIER&key=none", "NotFound"), ("class=GLACIER_IR&key=b", "Invalid")]
    {
        let response = call(&server, "POST", &to(query)).await;
        assert!(response.text().contains(code), "{query}: {}", response.text());
    }
}

#[tokio::test]
async fn orphans_and_margins_match_openapi() {
    let server = TestServer::start().await;
    assert_eq!(call(&server, "GET", "/-/admin/orphans").await.text(), "[]\n");
    assert_eq!(call(&server, "POST", "/-/admin/discard-orphan").await.status, 400);
    assert_eq!(call(&server, "POST", "/-/admin/discard-orphan?file=none").await.status, 400);
    assert_eq!(call(&server, "GET", "/-/admin/margins").await.status, 400);
    let unknown = "/-/admin/margins?platter=486ebbc6-ddce-4703-b3bb-03a2ae53f2d7";
    assert_eq!(call(&server, "GET", unknown).await.status, 404);

    let put = server.request("PUT", "/vault/deep").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(put.body(&[9; 1000]).send().await.status, 200);
    assert_eq!(call(&server, "POST", "/-/admin/seal").await.status, 200);
    let located = call(&server, "GET", "/-/admin/locate?bucket=vault&key=deep").await;
    let located: serde_json::Value = serde_json::from_slice(&located.body).unwrap();
    let platter = located[0]["platter"].as_str().unwrap();
    let margins = call(&server, "GET", &format!("/-/admin/margins?platter={platter}")).await;
    assert_eq!(margins.status, 200, "{}", margins.text());
}
