//! Events of the library over HTTP: limited in number, signed like any call, ended at a shutdown.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::admin::{call, signed_now};
use crate::harness::{TestResponse, TestServer, parse_response};
use crate::openapi;

const EVENTS: &str = "/-/events";

/// A subscriber, and what it has received so far.
pub(crate) struct Subscription {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Subscription {
    /// Subscribes; on return it has the first event, or the whole of an error response.
    async fn subscribe(server: &TestServer) -> Self {
        Self::subscribe_to(server, EVENTS).await
    }

    pub(crate) async fn subscribe_to(server: &TestServer, path: &str) -> Self {
        let request =
            server.request("GET", path).unsigned_header("authorization", &signed_now(path));
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.plain_head(0).as_bytes()).await.unwrap();
        let mut read = Vec::new();
        while !read.windows(6).any(|part| part == b"data: ") {
            if stream.read_buf(&mut read).await.unwrap() == 0 {
                break;
            }
        }
        Self { stream, read }
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.read.starts_with(b"HTTP/1.1 200 ")
    }

    /// Reads to the end of the stream.
    pub(crate) async fn remaining(mut self) -> TestResponse {
        self.stream.read_to_end(&mut self.read).await.unwrap();
        parse_response(&self.read)
    }
}

/// Seals: a platter-set is written, verified and stored.
async fn seal(server: &TestServer) {
    let put = server.request("PUT", "/vault/deep").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(put.body(&[9; 1000]).send().await.status, 200);
    server.archive.seal().await.unwrap();
}

/// Parses events to names and data.
pub(crate) fn events(text: &str) -> Vec<(&str, serde_json::Value)> {
    let field = |event: &str, name: &str| {
        let found = event.lines().find(|line| line.starts_with(name)).unwrap();
        event.find(found).unwrap() + name.len()
    };
    let all = text.split("\n\n").filter(|event| event.contains("event: "));
    all.map(|event| {
        let name = event[field(event, "event: ")..].lines().next().unwrap();
        let data = event[field(event, "data: ")..].lines().next().unwrap();
        (name, serde_json::from_str(data).unwrap())
    })
    .collect()
}

#[tokio::test]
async fn library_events_stream_until_server_stops() {
    let server = TestServer::start().await;
    let subscription = Subscription::subscribe(&server).await;
    seal(&server).await;
    let (serving, _data) = server.begin_stop();
    let response = subscription.remaining().await;
    serving.await.unwrap().unwrap();
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    openapi::check("GET", EVENTS, &response);
    let text = response.text();
    let seen = events(&text);
    assert_eq!(seen[0].0, "snapshot");
    let (last, steps) = seen[1..].split_last().unwrap();
    assert_eq!(*last, ("end", serde_json::json!({ "reason": "stopped" })));
    let first = seen[0].1["step"].as_u64().unwrap() + 1;
    for (number, (name, step)) in (first..).zip(steps) {
        assert_eq!((*name, step["step"].as_u64()), ("step", Some(number)));
        assert!(text.contains(&format!("\nid: {number}\n")), "{text}");
    }
    assert!(steps.iter().any(|(_, step)| step["event"]["store"].is_object()), "{text}");
}

#[tokio::test]
async fn subscribers_are_limited_and_authenticated() {
    let server = TestServer::start_with(|config| config.limits.subscribers = 1).await;
    assert_eq!(server.request("GET", EVENTS).send_plain().await.status, 403);
    assert_eq!(
        server.request("GET", EVENTS).send().await.status,
        403,
        "an S3 signature is not accepted"
    );
    assert_eq!(call(&server, "POST", EVENTS).await.status, 404);
    let first = Subscription::subscribe(&server).await;
    assert!(first.is_accepted());
    let refused = Subscription::subscribe(&server).await.remaining().await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("1"));
    openapi::check("GET", EVENTS, &refused);
    assert_eq!(call(&server, "GET", "/-/admin/status").await.status, 200, "other calls are served");
    drop(first);
    // A subscriber that is gone is detected at the next event.
    let again = loop {
        seal(&server).await;
        let again = Subscription::subscribe(&server).await;
        if again.is_accepted() {
            break again;
        }
    };
    let (serving, _data) = server.begin_stop();
    assert!(again.remaining().await.text().contains("event: end\n"));
    serving.await.unwrap().unwrap();
}
