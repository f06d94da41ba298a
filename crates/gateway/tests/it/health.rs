//! Health pages, the limits on requests, and the graceful shutdown.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::harness::{TestServer, UNSIGNED, read_response};

#[tokio::test]
async fn health_pages_need_no_signature() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"12345").await;
    let page = |path: &'static str| server.request("GET", path).send_plain();
    assert_eq!(page("/livez").await.text(), "live\n");
    assert_eq!(page("/readyz").await.text(), "ready\n");
    assert_eq!(page("/version").await.header("content-type"), Some("application/json"));
    let metrics = page("/metrics").await.text();
    assert!(metrics.contains("fulgurite_requests_total{op=\"PutObject\",status=\"200\"} 1\n"));
    assert!(metrics.contains("fulgurite_request_seconds_count{op=\"PutObject\"} 1\n"));
    assert!(metrics.contains("fulgurite_received_bytes_total 5\n"), "{metrics}");
    assert!(metrics.contains("fulgurite_objects{residence=\"online\"} 1\n"));
    assert!(metrics.contains("fulgurite_objects{residence=\"tier\"} 0\n"));
    assert_eq!(page("/livezz").await.error(), (403, "AccessDenied".to_owned()));
}

#[tokio::test]
async fn failed_seal_degrades_readiness() {
    let server = TestServer::start().await;
    let put = server.request("PUT", "/vault/deep").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(put.body(&[9; 1000]).send().await.status, 200);
    let shelves = server.data.path().join("archive/platters");
    std::fs::remove_dir(&shelves).unwrap();
    server.archive.seal().await.unwrap_err();
    let page = |path: &'static str| server.request("GET", path).send_plain();
    let ready = page("/readyz").await;
    assert_eq!(ready.status, 200, "requests are served");
    let text = ready.text();
    // The request is not signed, so neither the set nor the path of its platters is reported.
    assert_eq!(text, "degraded\nglass: sealing fails\n");
    let reported = server.archive.degraded().concat();
    assert!(
        reported.starts_with("set ") && reported.contains(" waits, next try in "),
        "{reported}"
    );
    assert!(reported.contains("No such file"), "{reported}");
    assert!(
        page("/metrics")
            .await
            .text()
            .contains("fulgurite_tier_seal_failures{tier=\"glass\",kind=\"glass\"} 1\n")
    );
    std::fs::create_dir(&shelves).unwrap();
    server.archive.seal().await.unwrap();
    assert_eq!(page("/readyz").await.text(), "ready\n");
    assert!(
        page("/metrics")
            .await
            .text()
            .contains("fulgurite_tier_seal_failures{tier=\"glass\",kind=\"glass\"} 0\n")
    );
}

/// Flips a bit in the first block of every table of an open catalog.
fn damage_tables(catalog: &std::path::Path) {
    for keyspace in std::fs::read_dir(catalog.join("keyspaces")).unwrap() {
        let Ok(tables) = std::fs::read_dir(keyspace.unwrap().path().join("tables")) else {
            continue;
        };
        for table in tables {
            let table = table.unwrap().path();
            let mut content = std::fs::read(&table).unwrap();
            content[40] ^= 4;
            std::fs::write(table, content).unwrap();
        }
    }
}

#[tokio::test]
async fn catalog_damage_makes_server_not_ready() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"12345").await;
    // Rows are flushed to tables at the stop, and read only on demand.
    let server = server.restart().await;
    let page = |path: &'static str| server.request("GET", path).send_plain();
    assert_eq!(page("/readyz").await.text(), "ready\n");
    damage_tables(&server.data.path().join("archive/catalog"));
    assert_eq!(server.request("GET", "/vault").send().await.status, 500);
    let ready = page("/readyz").await;
    let remedy = "the catalog is damaged: stop the archive and run `fulgurite recover`";
    assert_eq!((ready.status, ready.text()), (503, format!("not ready: {remedy}\n")));
    let status = server.archive.status().await.unwrap();
    assert!(
        status.catalog_damage.is_some(),
        "the status is reported even if other rows cannot be read"
    );
    assert!(page("/metrics").await.text().contains("fulgurite_catalog_damaged 1\n"));
}

#[tokio::test]
async fn bucket_may_share_a_page_name() {
    let server = TestServer::start().await;
    assert_eq!(server.request("PUT", "/metrics").send().await.status, 200);
    let response = server.request("GET", "/metrics").send().await;
    assert_eq!(response.element("Name").as_deref(), Some("metrics"));
}

#[tokio::test]
async fn excess_requests_get_slow_down() {
    let server = TestServer::start_with(|config| config.limits.requests = 1).await;
    let (head, _) = server.request("PUT", "/vault/slow").payload(UNSIGNED).signed_head(10);
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(head.as_bytes()).await.unwrap();
    first.write_all(b"12345").await.unwrap();
    // The first may not have arrived yet: then this one was early enough.
    let busy = loop {
        let response = server.request("GET", "/").send().await;
        if response.status != 200 {
            break response;
        }
    };
    assert_eq!(busy.error(), (503, "SlowDown".to_owned()));
    assert_eq!(
        server.request("GET", "/livez").send_plain().await.status,
        200,
        "health pages are not limited"
    );
    first.write_all(b"67890").await.unwrap();
    assert_eq!(read_response(&mut first).await.status, 200);
}

#[tokio::test]
async fn shutdown_waits_for_running_requests() {
    let server = TestServer::start().await;
    let archive = server.archive.clone();
    let address = server.address;
    let (head, _) = server.request("PUT", "/vault/late").payload(UNSIGNED).signed_head(10);
    let mut running = TcpStream::connect(address).await.unwrap();
    running.write_all(head.as_bytes()).await.unwrap();
    running.write_all(b"12345").await.unwrap();
    while server
        .request("GET", "/metrics")
        .send_plain()
        .await
        .text()
        .lines()
        .all(|line| line != "fulgurite_requests_in_progress 1")
    {}
    let (mut serving, _data) = server.begin_stop();
    let early = tokio::time::timeout(Duration::from_millis(300), &mut serving).await;
    assert!(early.is_err(), "stopped before the request was done");
    assert!(TcpStream::connect(address).await.is_err(), "still listening");
    running.write_all(b"67890").await.unwrap();
    assert_eq!(read_response(&mut running).await.status, 200);
    serving.await.unwrap().unwrap();
    assert_eq!(archive.status().await.unwrap().objects_online, 1);
}

/// As many idle connections as are allowed, and one more with a request.
#[tokio::test]
async fn idle_connections_are_evicted_at_the_limit() {
    let server = TestServer::start_with(|config| config.limits.connections = 3).await;
    let mut idle = Vec::new();
    for _ in 0..5 {
        idle.push(TcpStream::connect(server.address).await.unwrap());
    }
    // One of them has sent a part of a request and stalls.
    idle[0].write_all(b"PUT /vault/never HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    server.put("/vault/a", b"served").await;
    let metrics = server.request("GET", "/metrics").send_plain().await.text();
    assert!(metrics.contains("fulgurite_connections_max 3\n"), "{metrics}");
    let closed = metrics.lines().find_map(|line| {
        line.strip_prefix("fulgurite_connections_ended_idle_total ")?.parse::<u32>().ok()
    });
    assert!(closed.unwrap() >= 3, "{metrics}");
    assert_eq!(read_response(&mut idle[0]).await.status, 0, "the oldest was closed");
}

#[tokio::test]
async fn busy_connections_are_not_evicted() {
    let server = TestServer::start_with(|config| config.limits.connections = 2).await;
    let (head, _) = server.request("PUT", "/vault/slow").payload(UNSIGNED).signed_head(10);
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(b"12345").await.unwrap();
    for _ in 0..2 {
        let _idle = TcpStream::connect(server.address).await.unwrap();
        server.put("/vault/other", b"x").await;
    }
    slow.write_all(b"67890").await.unwrap();
    assert_eq!(read_response(&mut slow).await.status, 200);
}

#[tokio::test]
async fn browser_gets_an_html_page() {
    let server = TestServer::start().await;
    let html = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let response = server.request("GET", "/").header("accept", html).send_plain().await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(response.header("content-security-policy").unwrap().contains("default-src 'none'"));
    let text = response.text();
    assert!(text.contains(env!("CARGO_PKG_VERSION")) && text.contains("href=\"/readyz\""));
    assert!(text.contains("href=\"/-/\""), "{text}");
    assert!(!text.contains("<script"), "{text}");
    for response in [
        // A client that does not want HTML, requests for more than the root, and a client with
        // keys.
        server.request("GET", "/").header("accept", "*/*").send_plain().await,
        server.request("GET", "/?acl").header("accept", html).send_plain().await,
        server.request("GET", "/vault").header("accept", html).send_plain().await,
        server.request("GET", "/").header("accept", html).send().await,
    ] {
        assert_eq!(response.header("content-type"), Some("application/xml"), "{response:?}");
    }
}

/// A client that sends nothing, or stalls in the middle of a head, is disconnected.
#[tokio::test]
async fn idle_connections_time_out() {
    let server = TestServer::start_with(|config| {
        config.limits.head_timeout = Duration::from_millis(200);
    })
    .await;
    for sent in ["", "GET /livez HTTP/1.1\r\nhost: x\r\nx-more", "GET /livez HTTP/1.1\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        // The timeout only guards the test: the server has to close the connection.
        let response =
            tokio::time::timeout(Duration::from_secs(30), read_response(&mut stream)).await;
        let expected = if sent.ends_with("\r\n\r\n") { 200 } else { 0 };
        assert_eq!(response.unwrap().status, expected, "{sent:?}");
    }
}

/// A client that requests an object but reads nothing of it is disconnected.
#[tokio::test]
async fn unread_response_times_out() {
    let server = TestServer::start_with(|config| {
        config.limits.write_timeout = Duration::from_millis(200);
    })
    .await;
    // More than socket buffers hold.
    let body = vec![7; 32 << 20];
    server.put("/vault/large", &body).await;
    let (head, _) = server.request("GET", "/vault/large").signed_head(0);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let finished = "fulgurite_requests_total{op=\"GetObject\",status=\"200\"} 1\n";
    let timed_out = async {
        while !server.request("GET", "/metrics").send_plain().await.text().contains(finished) {}
    };
    tokio::time::timeout(Duration::from_secs(30), timed_out).await.unwrap();
    assert!(read_response(&mut stream).await.body.len() < body.len());
    server.put("/vault/other", b"x").await;
}
