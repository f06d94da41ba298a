//! Objects as clients see them: ranges, conditions, metadata, copies, listings.

use crate::harness::{TestRequest, TestServer};

#[tokio::test]
async fn range_reads_return_the_requested_bytes() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"0123456789").await;
    for (range, status, body, shown) in [
        ("bytes=2-4", 206, "234", Some("bytes 2-4/10")),
        ("bytes=7-", 206, "789", Some("bytes 7-9/10")),
        ("bytes=7-100", 206, "789", Some("bytes 7-9/10")),
        ("bytes=-3", 206, "789", Some("bytes 7-9/10")),
        ("bytes=-30", 206, "0123456789", Some("bytes 0-9/10")),
    ] {
        let response = server.request("GET", "/vault/a").header("range", range).send().await;
        assert_eq!((response.status, response.text().as_str()), (status, body), "{range}");
        assert_eq!(response.header("content-range"), shown, "{range}");
        let head = server.request("HEAD", "/vault/a").header("range", range).send().await;
        assert_eq!(head.status, 206, "{range}");
        assert_eq!(head.header("content-length"), response.header("content-length"), "{range}");
    }
    let response = server.request("GET", "/vault/a").header("range", "bytes=10-").send().await;
    assert_eq!(response.error(), (416, "InvalidRange".to_owned()));
}

#[tokio::test]
async fn metadata_round_trips() {
    let server = TestServer::start().await;
    let sent = [
        ("content-type", "text/plain; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("content-disposition", "attachment; filename=\"a b.txt\""),
        ("content-encoding", "gzip"),
        ("content-language", "de"),
        ("expires", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("x-amz-website-redirect-location", "/elsewhere"),
        ("x-amz-meta-color", "blue"),
        ("x-amz-meta-shape", "round; or not"),
    ];
    let put =
        sent.iter().fold(server.request("PUT", "/vault/a"), |request, (n, v)| request.header(n, v));
    assert_eq!(put.body(b"x").send().await.status, 200);
    for method in ["GET", "HEAD"] {
        let response = server.request(method, "/vault/a").send().await;
        for (name, value) in sent {
            assert_eq!(response.header(name), Some(value), "{method} {name}");
        }
        assert_eq!(response.header("x-amz-storage-class"), None, "STANDARD has no header");
    }
    let response = server
        .request("GET", "/vault/a?response-content-type=a%2Fb&response-cache-control=max-age%3D1")
        .send()
        .await;
    assert_eq!(response.header("content-type"), Some("a/b"));
    assert_eq!(response.header("cache-control"), Some("max-age=1"));
    server.put("/vault/plain", b"x").await;
    let response = server.request("HEAD", "/vault/plain").send().await;
    assert_eq!(response.header("content-type"), Some("binary/octet-stream"));
}

#[tokio::test]
async fn conditional_requests_are_honored() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"x").await;
    let head = server.request("HEAD", "/vault/a").send().await;
    let etag = head.header("etag").unwrap().to_owned();
    let modified = head.header("last-modified").unwrap().to_owned();
    let get = |name: &str, value: &str| server.request("GET", "/vault/a").header(name, value);
    assert_eq!(get("if-match", &etag).send().await.status, 200);
    assert_eq!(get("if-match", "\"other\"").send().await.status, 412);
    assert_eq!(get("if-unmodified-since", &modified).send().await.status, 200);
    let unchanged = get("if-none-match", &etag).send().await;
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    assert_eq!(unchanged.header("etag"), Some(etag.as_str()));
    assert_eq!(get("if-modified-since", &modified).send().await.status, 304);

    let put = |name: &str, value: &str| server.request("PUT", "/vault/a").header(name, value);
    let response = put("if-none-match", "*").body(b"y").send().await;
    assert_eq!(response.error(), (412, "PreconditionFailed".to_owned()));
    assert_eq!(put("if-match", "\"other\"").body(b"y").send().await.status, 412);
    assert_eq!(put("if-match", &etag).body(b"y").send().await.status, 200);
    let new =
        server.request("PUT", "/vault/b").header("if-none-match", "*").body(b"z").send().await;
    assert_eq!(new.status, 200);
}

#[tokio::test]
async fn copy_directives_are_honored() {
    let server = TestServer::start().await;
    let put = server.request("PUT", "/vault/a").header("x-amz-meta-n", "1").body(b"body");
    assert_eq!(put.send().await.status, 200);
    let copy = |to: &str| server.request("PUT", to).header("x-amz-copy-source", "/vault/a");
    assert_eq!(copy("/vault/b").send().await.status, 200);
    let head = server.request("HEAD", "/vault/b").send().await;
    assert_eq!(head.header("x-amz-meta-n"), Some("1"));
    let replaced = copy("/vault/c")
        .header("x-amz-metadata-directive", "REPLACE")
        .header("x-amz-meta-m", "2")
        .header("x-amz-storage-class", "GLACIER");
    assert_eq!(replaced.send().await.status, 200);
    let head = server.request("HEAD", "/vault/c").send().await;
    assert_eq!((head.header("x-amz-meta-n"), head.header("x-amz-meta-m")), (None, Some("2")));
    assert_eq!(head.header("x-amz-storage-class"), Some("GLACIER"));

    let failed = |request: TestRequest| async { request.send().await.error() };
    assert_eq!(failed(copy("/vault/a")).await, (400, "InvalidRequest".to_owned()));
    let condition = copy("/vault/d").header("x-amz-copy-source-if-match", "\"other\"");
    assert_eq!(failed(condition).await, (412, "PreconditionFailed".to_owned()));
    let cold = server.request("PUT", "/vault/d").header("x-amz-copy-source", "/vault/c");
    assert_eq!(failed(cold).await, (403, "ObjectNotInActiveTierError".to_owned()));
    let none = server.request("PUT", "/vault/d").header("x-amz-copy-source", "/vault/none");
    assert_eq!(failed(none).await, (404, "NoSuchKey".to_owned()));
}

/// A copy of an object to itself has to name a change, even if the object already has that value.
#[tokio::test]
async fn copy_onto_itself_requires_a_change() {
    let server = TestServer::start().await;
    server.put("/vault/k", b"x").await;
    let copy = |path: &str| server.request("PUT", path).header("x-amz-copy-source", path);
    let nothing = copy("/vault/k").send().await;
    assert_eq!(nothing.error(), (400, "InvalidRequest".to_owned()));
    for (name, value) in [
        ("x-amz-storage-class", "STANDARD"),
        ("x-amz-server-side-encryption", "AES256"),
        ("x-amz-website-redirect-location", "/elsewhere"),
        ("x-amz-metadata-directive", "REPLACE"),
    ] {
        let response = copy("/vault/k").header(name, value).send().await;
        assert_eq!(response.status, 200, "{name}: {}", response.text());
        assert_eq!(server.request("GET", "/vault/k").send().await.body, b"x", "{name}");
    }
}

/// As for every copy, the class is STANDARD unless another is named.
#[tokio::test]
async fn copy_onto_itself_defaults_to_standard_class() {
    let server = TestServer::start().await;
    for (class, kept) in [(None, None), (Some("DEEP_ARCHIVE"), Some("DEEP_ARCHIVE"))] {
        let put = server.request("PUT", "/vault/a").header("x-amz-storage-class", "DEEP_ARCHIVE");
        assert_eq!(put.body(b"x").send().await.status, 200);
        let restore = b"<RestoreRequest><Days>1</Days></RestoreRequest>";
        assert_eq!(
            server.request("POST", "/vault/a?restore").body(restore).send().await.status,
            202
        );
        let head = || server.request("HEAD", "/vault/a").send();
        while head().await.header("x-amz-restore").is_none_or(|text| text.contains("true")) {
            tokio::task::yield_now().await;
        }
        let copy = server.request("PUT", "/vault/a").header("x-amz-copy-source", "/vault/a");
        let copy = copy.header("x-amz-metadata-directive", "REPLACE");
        let copy = copy.header("x-amz-meta-n", "1");
        let copy = class
            .into_iter()
            .fold(copy, |request, class| request.header("x-amz-storage-class", class));
        let response = copy.send().await;
        assert_eq!(response.status, 200, "{}", response.text());
        let head = head().await;
        assert_eq!(head.header("x-amz-storage-class"), kept);
        assert_eq!(head.header("x-amz-meta-n"), Some("1"));
    }
}

#[tokio::test]
async fn plus_in_copy_source_is_a_space() {
    let server = TestServer::start().await;
    server.put("/vault/a%20b", b"blank").await;
    server.put("/vault/a%2Bb", b"plus").await;
    for (source, body) in
        [("/vault/a+b", "blank"), ("vault/a%20b", "blank"), ("/vault/a%2Bb", "plus")]
    {
        let copy = server.request("PUT", "/vault/to").header("x-amz-copy-source", source);
        assert_eq!(copy.send().await.status, 200, "{source}");
        assert_eq!(server.request("GET", "/vault/to").send().await.text(), body, "{source}");
    }
}

/// `Expires` is text: "0" and "-1" are common.
#[tokio::test]
async fn expires_header_round_trips() {
    let server = TestServer::start().await;
    for text in ["0", "-1", "never", "Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21T07:28:00Z"] {
        let put = server.request("PUT", "/vault/a").header("expires", text).body(b"x");
        assert_eq!(put.send().await.status, 200, "{text}");
        let copy = server.request("PUT", "/vault/b").header("x-amz-copy-source", "/vault/a");
        assert_eq!(copy.send().await.status, 200, "{text}");
        let replaced = server.request("PUT", "/vault/c").header("x-amz-copy-source", "/vault/b");
        let replaced = replaced.header("x-amz-metadata-directive", "REPLACE");
        assert_eq!(replaced.header("expires", text).send().await.status, 200, "{text}");
        let begun = server.request("POST", "/vault/d?uploads").header("expires", text).send().await;
        let id = begun.element("UploadId").unwrap();
        let path = format!("/vault/d?partNumber=1&uploadId={id}");
        let part = server.request("PUT", &path).body(b"x").send().await;
        let xml = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>\
             </CompleteMultipartUpload>",
            part.header("etag").unwrap()
        );
        let done = server.request("POST", &format!("/vault/d?uploadId={id}")).body(xml.as_bytes());
        assert_eq!(done.send().await.status, 200, "{text}");
        for path in ["/vault/a", "/vault/b", "/vault/c", "/vault/d"] {
            for method in ["GET", "HEAD"] {
                let response = server.request(method, path).send().await;
                assert_eq!(response.header("expires"), Some(text), "{method} {path}");
            }
        }
    }
    let response = server.request("GET", "/vault/a?response-expires=0").send().await;
    assert_eq!((response.status, response.header("expires")), (200, Some("0")));
    let response = server.request("GET", "/vault/a?response-expires=a%0Ab").send().await;
    assert_eq!(response.error(), (400, "InvalidArgument".to_owned()));
}

#[tokio::test]
async fn listings_are_paged_and_url_encoded() {
    let server = TestServer::start().await;
    let keys = ["a%20b", "d/1", "d/2", "e%2Bf", "g%25", "z%01"];
    for key in keys {
        server.put(&format!("/vault/{key}"), b"x").await;
    }
    let mut seen = Vec::new();
    let mut token = None::<String>;
    loop {
        let mut path = "/vault?list-type=2&max-keys=2&delimiter=%2F&encoding-type=url".to_owned();
        if let Some(token) = &token {
            path += &format!("&continuation-token={token}");
        }
        let response = server.request("GET", &path).send().await;
        assert_eq!(response.status, 200, "{}", response.text());
        let text = response.text();
        seen.extend(text.split("<Key>").skip(1).map(|t| t.split("</").next().unwrap().to_owned()));
        seen.extend(
            text.split("<CommonPrefixes><Prefix>")
                .skip(1)
                .map(|t| t.split("</").next().unwrap().to_owned()),
        );
        token = response.element("NextContinuationToken");
        if token.is_none() {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen, ["a%20b", "d/", "e%2Bf", "g%25", "z%01"]);
    let response = server.request("GET", "/vault?list-type=2&continuation-token=%21").send().await;
    assert_eq!(response.error(), (400, "InvalidArgument".to_owned()));
    let response = server.request("GET", "/vault?list-type=2&max-keys=0").send().await;
    assert_eq!(response.element("IsTruncated").as_deref(), Some("false"));
    let response = server.request("GET", "/vault?marker=d%2F1&max-keys=1").send().await;
    assert_eq!(response.element("Key").as_deref(), Some("d/2"));
    assert_eq!(response.element("NextMarker"), None, "only with a delimiter");
}

#[tokio::test]
async fn virtual_host_names_the_bucket() {
    let server = TestServer::start_with(|config| config.domain = Some("s3.test".to_owned())).await;
    server.put("/vault/a", b"x").await;
    for (host, path, status) in [
        ("vault.s3.test", "/a", 200),
        ("vault.localhost:9000", "/a", 200),
        ("elsewhere.example", "/vault/a", 200),
        ("vault.s3.test", "/vault/a", 404),
    ] {
        let response = server.request("GET", path).header("host", host).send().await;
        assert_eq!(response.status, status, "{host}{path}");
    }
}

#[tokio::test]
async fn virtual_host_paths_are_always_keys() {
    let server = TestServer::start_with(|config| config.domain = Some("s3.test".to_owned())).await;
    for key in ["-/", "-/page.js", "-/admin/status", "-/unknown", "livez", "metrics"] {
        let path = format!("/{key}");
        let request = |method| server.request(method, &path).header("host", "vault.s3.test");
        assert_eq!(request("PUT").body(key.as_bytes()).send().await.status, 200, "{key}");
        let response = request("GET").send().await;
        assert_eq!((response.status, response.text()), (200, key.to_owned()));
        let unsigned = request("GET").send_plain().await;
        assert_eq!(unsigned.error(), (403, "AccessDenied".to_owned()), "{key}");
        assert_eq!(server.request("GET", &format!("/vault/{key}")).send().await.text(), key);
    }
    // A browser at the root of that host does not get our page either.
    let browser = server.request("GET", "/").header("host", "vault.s3.test");
    let response = browser.header("accept", "text/html").send_plain().await;
    assert_eq!(response.error(), (403, "AccessDenied".to_owned()));
    // Under every other host the pages are unchanged.
    assert_eq!(server.request("GET", "/livez").send_plain().await.text(), "live\n");
    assert_eq!(server.request("GET", "/-/").send_plain().await.status, 200);
}

#[tokio::test]
async fn attributes_and_tags_are_returned() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"12345").await;
    let request = server.request("GET", "/vault/a?attributes");
    let request = request.header("x-amz-object-attributes", "ObjectSize,StorageClass,Checksum");
    let response = request.send().await;
    assert_eq!(response.element("ObjectSize").as_deref(), Some("5"));
    assert_eq!(response.element("StorageClass").as_deref(), Some("STANDARD"));
    assert_eq!(response.element("ChecksumType").as_deref(), Some("FULL_OBJECT"));
    let response = server.request("GET", "/vault/a?tagging").send().await;
    assert_eq!(response.status, 200);
    assert!(!response.text().contains("<Tag>"));
    let response = server.request("GET", "/vault?location").send().await;
    assert!(response.text().contains("LocationConstraint"), "{}", response.text());
}

/// Every body is encrypted with a key that the archive manages, as AWS states of its own.
#[tokio::test]
async fn encryption_header_is_echoed() {
    let server = TestServer::start().await;
    let name = "x-amz-server-side-encryption";
    let put = server.request("PUT", "/vault/a").header(name, "AES256").body(b"x").send().await;
    assert_eq!((put.status, put.header(name)), (200, Some("AES256")));
    let copy = server.request("PUT", "/vault/b").header("x-amz-copy-source", "/vault/a");
    let copy = copy.header(name, "AES256").send().await;
    assert_eq!((copy.status, copy.header(name)), (200, Some("AES256")));
    for (method, path) in [("GET", "/vault/a"), ("HEAD", "/vault/a"), ("HEAD", "/vault/b")] {
        let response = server.request(method, path).send().await;
        assert_eq!(
            (response.status, response.header(name)),
            (200, Some("AES256")),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn content_encoding_round_trips() {
    let server = TestServer::start().await;
    for (sent, kept) in [
        ("gzip, br", Some("gzip, br")),
        ("my-own;level=9", Some("my-own;level=9")),
        ("aws-chunked, gzip , br", Some("gzip , br")),
        ("gzip,aws-chunked", Some("gzip")),
        ("aws-chunked", None),
    ] {
        let put = server.request("PUT", "/vault/a").header("content-encoding", sent);
        let put = if sent.contains("aws-chunked") {
            let put = put.payload("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
            let put = put.header("x-amz-decoded-content-length", "1");
            put.body(b"1\r\nx\r\n0\r\n\r\n")
        } else {
            put.body(b"x")
        };
        assert_eq!(put.send().await.status, 200, "{sent}");
        let response = server.request("HEAD", "/vault/a").send().await;
        assert_eq!(response.header("content-encoding"), kept, "{sent}");
    }
}
