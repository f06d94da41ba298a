//! The operator's calls: closed to others, and telling how far they are.

use crate::harness::{Answer, TestServer, credentials};

async fn call(server: &TestServer, method: &str, path: &str, token: &str) -> Answer {
    let ask = server.ask(method, path);
    ask.unsigned_header("authorization", &format!("Bearer {token}")).send_plain().await
}

#[tokio::test]
async fn only_the_operator_may_call() {
    let server = TestServer::start().await;
    let token = credentials().admin_token();
    let wrong = format!("{}0", &token[..token.len() - 1]);
    for answer in [
        call(&server, "GET", "/-/admin/status", "").await,
        call(&server, "POST", "/-/admin/seal", &wrong.replace('0', "1")).await,
        server.ask("GET", "/-/admin/status").send_plain().await,
        server.ask("GET", "/-/admin/status").send().await,
    ] {
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert!(answer.text().contains("AccessDenied"));
    }
    let answer = call(&server, "GET", "/-/admin/status", &token).await;
    assert_eq!(answer.status, 200);
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(status["objects_online"], 0);
    assert_eq!(call(&server, "GET", "/-/admin/unknown", &token).await.status, 404);
    assert_eq!(call(&server, "GET", "/-/admin/seal", &token).await.status, 404, "wrong method");
}

#[tokio::test]
async fn sealing_and_verifying_report() {
    let server = TestServer::start().await;
    let token = credentials().admin_token();
    let put = server.ask("PUT", "/vault/deep").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(put.body(&[9; 100_000]).send().await.status, 200);
    let located = call(&server, "GET", "/-/admin/locate?bucket=vault&key=deep", &token).await;
    assert!(located.text().contains("\"residence\":\"staged\""), "{}", located.text());

    let answer = call(&server, "POST", "/-/admin/seal", &token).await;
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let text = answer.text();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["report"]["objects"], 1, "{text}");
    for line in &lines[..lines.len() - 1] {
        assert!(line["progress"]["seconds"].is_f64(), "{text}");
    }
    let located = call(&server, "GET", "/-/admin/locate?bucket=vault&key=deep", &token).await;
    assert!(located.text().contains("\"residence\":\"glass\""), "{}", located.text());

    let answer = call(&server, "POST", "/-/admin/verify", &token).await;
    let last = answer.text().lines().last().unwrap().to_owned();
    let last: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert!(last["report"].as_array().is_some_and(|platters| platters.len() >= 4), "{last}");
    let answer = call(&server, "POST", "/-/admin/verify?platter=nonsense", &token).await;
    assert_eq!(answer.status, 400);
    let none = call(&server, "GET", "/-/admin/locate?bucket=vault&key=none", &token).await;
    assert_eq!(none.status, 404, "{}", none.text());
    let unnamed = call(&server, "GET", "/-/admin/locate?bucket=vault", &token).await;
    assert_eq!(unnamed.status, 400);
}
