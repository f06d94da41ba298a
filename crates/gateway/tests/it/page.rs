//! The page at `/-/`: the same for everybody, and with no more privileges than it needs.

use crate::harness::TestServer;

/// Returns the values of attributes that name another file.
fn links(page: &str) -> Vec<&str> {
    let named = |mark: &'static str| {
        page.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).collect::<Vec<_>>()
    };
    [named(" href=\""), named(" src=\"")].concat()
}

#[tokio::test]
async fn page_links_resolve_and_nothing_is_inline() {
    let server = TestServer::start().await;
    let response = server.request("GET", "/-/").send_plain().await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(response.header("cache-control"), Some("no-cache"));
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    let policy = response.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let page = response.text();
    for inline in ["<style", " style=", " onclick=", " onload=", "javascript:", "http:", "https:"] {
        assert!(!page.contains(inline), "{inline}");
    }
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, page.matches("<script type=\"module\" src").count(), "{page}");
    let found = links(&page);
    assert!(found.contains(&"/-/page.js") && found.contains(&"/-/page.css"), "{found:?}");
    for link in found.into_iter().filter(|link| !link.starts_with("data:")) {
        assert_eq!(server.request("GET", link).send_plain().await.status, 200, "{link}");
    }
    let tag = response.header("etag").unwrap();
    let again = server.request("GET", "/-/").header("if-none-match", tag).send_plain().await;
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn page_reveals_nothing_about_the_archive() {
    let (server, other) = (TestServer::start().await, TestServer::start().await);
    server.put("/vault/private-name", b"x").await;
    let put = server.request("PUT", "/vault/deep").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(put.body(b"x").send().await.status, 200);
    for path in [
        "/-/",
        "/-/page.js",
        "/-/calls.js",
        "/-/shown.js",
        "/-/tomes.js",
        "/-/page.css",
        "/-/openapi.json",
    ] {
        let here = server.request("GET", path).send_plain().await;
        let there = other.request("GET", path).send_plain().await;
        assert_eq!(here.status, 200, "{path}");
        assert!(here.body == there.body && here.header("etag") == there.header("etag"), "{path}");
    }
    // What the page shows needs the keys.
    for path in ["/-/admin/status", "/-/else", "/-/page.js?x"] {
        assert_eq!(server.request("GET", path).send_plain().await.status, 403, "{path}");
    }
}

/// An object has the same origin as the page where users enter keys.
#[tokio::test]
async fn html_objects_are_sandboxed() {
    let server = TestServer::start().await;
    let put = server.request("PUT", "/vault/evil.html").header("content-type", "text/html");
    assert_eq!(put.body(b"<script>alert(1)</script>").send().await.status, 200);
    for dest in ["document", "iframe", "object"] {
        let get = server.request("GET", "/vault/evil.html").presigned(60);
        let response = get.unsigned_header("sec-fetch-dest", dest).send_plain().await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.header("content-security-policy"), Some("sandbox"), "{dest}");
    }
    let response = server.request("GET", "/vault/evil.html").send().await;
    assert_eq!(response.header("content-security-policy"), None, "S3 clients get what S3 sends");
    let get = server.request("GET", "/vault/evil.html").presigned(60);
    let fetched = get.unsigned_header("sec-fetch-dest", "empty").send_plain().await;
    assert_eq!(fetched.header("content-security-policy"), None);
    let put = server.request("PUT", "/vault/paper.pdf").header("content-type", "application/pdf");
    assert_eq!(put.body(b"%PDF").send().await.status, 200);
    let get = server.request("GET", "/vault/paper.pdf").presigned(60);
    let paper = get.unsigned_header("sec-fetch-dest", "document").send_plain().await;
    assert_eq!(paper.header("content-security-policy"), None, "browsers would not show it");
}
