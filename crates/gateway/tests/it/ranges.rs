//! Ranges and conditions of reads, by RFC 9110.

use crate::harness::TestServer;

/// Clients on the AWS common runtime (CRT) request the first bytes of every object, and recognize
/// an empty one by this response.
#[tokio::test]
async fn unsatisfiable_range_reports_object_size() {
    let server = TestServer::start().await;
    server.put("/vault/empty", b"").await;
    server.put("/vault/five", b"hello").await;
    for (path, range, size) in [
        ("/vault/empty", "bytes=0-8388607", "0"),
        ("/vault/empty", "bytes=0-", "0"),
        ("/vault/empty", "bytes=-1", "0"),
        ("/vault/five", "bytes=5-", "5"),
        ("/vault/five", "bytes=5-9", "5"),
        ("/vault/five", "bytes=-0", "5"),
        ("/vault/five", "bytes=99999999999999999999-", "5"),
    ] {
        let response = server.request("GET", path).header("range", range).send().await;
        assert_eq!(response.error(), (416, "InvalidRange".to_owned()), "{path} {range}");
        assert_eq!(response.element("ActualObjectSize").as_deref(), Some(size), "{path} {range}");
        assert_eq!(response.element("RangeRequested").as_deref(), Some(range), "{path} {range}");
        let unsatisfied = format!("bytes */{size}");
        assert_eq!(response.header("content-range"), Some(unsatisfied.as_str()));
        let head = server.request("HEAD", path).header("range", range).send().await;
        assert_eq!((head.status, head.body.len()), (416, 0), "{path} {range}");
        assert_eq!(head.header("content-range"), Some(unsatisfied.as_str()));
    }
}

#[tokio::test]
async fn malformed_and_multiple_ranges_are_ignored() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"hello").await;
    for range in [
        "garbage",
        "bytes=a-b",
        "items=0-1",
        "bytes=4-1",
        "bytes=0-1,3-4",
        "bytes=-",
        "bytes=1x-2",
        "bytes=+1-2",
        "bytes=1.5-2",
        "bytes= ",
    ] {
        let response = server.request("GET", "/vault/a").header("range", range).send().await;
        assert_eq!((response.status, response.text().as_str()), (200, "hello"), "{range}");
        assert_eq!(response.header("content-range"), None, "{range}");
        let head = server.request("HEAD", "/vault/a").header("range", range).send().await;
        assert_eq!((head.status, head.header("content-length")), (200, Some("5")), "{range}");
    }
}

/// A resumed download must not continue with another object.
#[tokio::test]
async fn if_range_mismatch_returns_the_whole_object() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"hello").await;
    let head = server.request("HEAD", "/vault/a").send().await;
    let (etag, modified) = (head.header("etag").unwrap(), head.header("last-modified").unwrap());
    let get = |range: &'static str, known: &str| {
        server.request("GET", "/vault/a").header("range", range).header("if-range", known).send()
    };
    for known in [etag, modified] {
        let response = get("bytes=3-", known).await;
        assert_eq!((response.status, response.text().as_str()), (206, "lo"), "{known}");
        assert_eq!(get("bytes=9-", known).await.status, 416, "{known}");
    }
    let weak = format!("W/{etag}");
    for known in ["\"0\"", weak.as_str(), "*", "garbage", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        for range in ["bytes=3-", "bytes=9-"] {
            let response = get(range, known).await;
            assert_eq!(
                (response.status, response.text().as_str()),
                (200, "hello"),
                "{known} {range}"
            );
        }
        let head = server.request("HEAD", "/vault/a").header("range", "bytes=3-");
        assert_eq!(head.header("if-range", known).send().await.status, 200, "{known}");
    }
    let response = server.request("GET", "/vault/a").header("if-range", "\"0\"").send().await;
    assert_eq!(response.status, 200, "without a range the header is ignored");
}

#[tokio::test]
async fn conditions_are_checked_before_ranges() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"hello").await;
    let get = |name: &str, value: &str| {
        server.request("GET", "/vault/a").header("range", "bytes=9-").header(name, value).send()
    };
    assert_eq!(get("if-none-match", "*").await.status, 304);
    assert_eq!(get("if-match", "\"0\"").await.status, 412);
    assert_eq!(get("if-none-match", "\"0\"").await.status, 416);
}

#[tokio::test]
async fn conditions_accept_lists_and_ignore_bad_dates() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"hello").await;
    let head = server.request("HEAD", "/vault/a").send().await;
    let etag = head.header("etag").unwrap();
    let (listed, weak) = (format!("\"0\", {etag}"), format!("\"0\", W/{etag}"));
    for (name, value, status) in [
        ("if-none-match", listed.as_str(), 304),
        ("if-none-match", &weak, 304),
        ("if-none-match", "\"0\", \"1\"", 200),
        ("if-none-match", "*", 304),
        ("if-match", &listed, 200),
        ("if-match", &weak, 412),
        ("if-match", "\"0\", \"1\"", 412),
        ("if-match", "*", 200),
        ("if-modified-since", "garbage", 200),
        ("if-modified-since", "0", 200),
        ("if-unmodified-since", "garbage", 200),
        ("if-modified-since", "Thursday, 01-Jan-60 00:00:00 GMT", 304),
        ("if-unmodified-since", "Wed Nov 16 08:49:37 1994", 412),
    ] {
        for method in ["GET", "HEAD"] {
            let response = server.request(method, "/vault/a").header(name, value).send().await;
            assert_eq!(response.status, status, "{method} {name}: {value}");
        }
    }
    let failed = server.request("GET", "/vault/a").header("if-match", "\"0\"").send().await;
    assert_eq!(failed.element("Condition").as_deref(), Some("If-Match"));
    let copy = |value: &str| {
        let request = server.request("PUT", "/vault/b").header("x-amz-copy-source", "/vault/a");
        request.header("x-amz-copy-source-if-match", value)
    };
    assert_eq!(copy(&listed).send().await.status, 200);
    assert_eq!(copy("\"0\", \"1\"").send().await.status, 412);
    let dated = server.request("PUT", "/vault/c").header("x-amz-copy-source", "/vault/a");
    let dated = dated.header("x-amz-copy-source-if-unmodified-since", "garbage").send().await;
    assert_eq!(
        dated.error(),
        (400, "InvalidArgument".to_owned()),
        "the copy is not made without its condition"
    );
    assert!(!server.has("/vault/c").await);
}
