//! ListObjectVersions: every object is its only version.

use crate::harness::{TestResponse, TestServer, sha256_base64};
use crate::xml::{References, parse, texts};

async fn list(server: &TestServer, query: &str) -> TestResponse {
    let response = server.request("GET", &format!("/vault?versions&{query}")).send().await;
    assert_eq!(response.status, 200, "{query}: {}", response.text());
    response
}

fn all(response: &TestResponse, name: &str) -> Vec<String> {
    let leaves = parse(&response.body, References::Strict).unwrap();
    texts(&leaves, name).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn object_is_its_only_version() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"12345").await;
    let response = list(&server, "").await;
    let found = |name: &str| response.element(name);
    assert_eq!(found("Name").as_deref(), Some("vault"));
    assert_eq!(found("Key").as_deref(), Some("a"));
    assert_eq!(found("VersionId").as_deref(), Some("null"));
    assert_eq!(found("IsLatest").as_deref(), Some("true"));
    assert_eq!(found("Size").as_deref(), Some("5"));
    assert_eq!(found("StorageClass").as_deref(), Some("STANDARD"));
    assert_eq!(found("IsTruncated").as_deref(), Some("false"));
    assert_eq!(found("MaxKeys").as_deref(), Some("1000"));
    assert_eq!(found("NextKeyMarker"), None);
    assert!(found("ETag").is_some() && found("LastModified").is_some() && found("ID").is_some());
    let head = server.request("HEAD", "/vault/a?versionId=null").send().await;
    assert_eq!((head.status, head.header("x-amz-version-id")), (200, None));
}

#[tokio::test]
async fn version_pages_are_contiguous() {
    let server = TestServer::start().await;
    for key in ["a", "b/1", "b/2", "c%20d", "e", "f/1"] {
        server.put(&format!("/vault/{key}"), b"x").await;
    }
    for limit in 1..=7 {
        let (mut keys, mut prefixes, mut marker) = (Vec::new(), Vec::new(), String::new());
        loop {
            let query = format!("delimiter=%2F&encoding-type=url&max-keys={limit}{marker}");
            let response = list(&server, &query).await;
            let found = response
                .text()
                .split("<CommonPrefixes>")
                .skip(1)
                .map(|rest| {
                    rest.split("<Prefix>").nth(1).unwrap().split("</").next().unwrap().to_owned()
                })
                .collect::<Vec<_>>();
            let page = all(&response, "Key");
            assert!(page.len() + found.len() <= limit, "{query}");
            keys.extend(page);
            prefixes.extend(found);
            let Some(key) = response.element("NextKeyMarker") else { break };
            assert_eq!(response.element("IsTruncated").as_deref(), Some("true"));
            marker = format!("&key-marker={}", key.replace('/', "%2F"));
            match response.element("NextVersionIdMarker") {
                Some(version) => marker += &format!("&version-id-marker={version}"),
                None => assert!(key.ends_with('/'), "{key} is a prefix"),
            }
        }
        assert_eq!(keys, ["a", "c%20d", "e"], "pages of {limit}");
        assert_eq!(prefixes, ["b/", "f/"], "pages of {limit}");
    }
    assert_eq!(all(&list(&server, "prefix=b%2F").await, "Key"), ["b/1", "b/2"]);
    assert_eq!(all(&list(&server, "key-marker=b%2F1").await, "Key"), ["b/2", "c d", "e", "f/1"]);
    let empty = list(&server, "max-keys=0").await;
    assert_eq!(empty.element("IsTruncated").as_deref(), Some("false"));
    assert_eq!(all(&empty, "Key"), Vec::<String>::new());
}

#[tokio::test]
async fn invalid_markers_are_rejected() {
    let server = TestServer::start().await;
    for query in [
        "version-id-marker=null",
        "key-marker=a&version-id-marker=other",
        "encoding-type=base64",
        "max-keys=-1",
    ] {
        let response = server.request("GET", &format!("/vault?versions&{query}")).send().await;
        assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{query}");
    }
}

/// In the order of `mc rm --versions --recursive --force`, in the forms of its library.
#[tokio::test]
async fn mc_removes_all_versions_below_a_prefix() {
    let server = TestServer::start().await;
    for key in ["d/a", "d/b/c", "e"] {
        server.put(&format!("/vault/{key}"), b"x").await;
    }
    let stat =
        "delimiter=%2F&encoding-type=url&fetch-owner=true&list-type=2&max-keys=1&prefix=d%2F";
    for (method, path, status) in [
        ("GET", "/vault/?location=".to_owned(), 200),
        ("HEAD", "/vault/".to_owned(), 200),
        ("HEAD", "/vault/d/".to_owned(), 404),
        ("GET", format!("/vault/?{stat}"), 200),
    ] {
        let response = server.request(method, &path).send().await;
        assert_eq!(response.status, status, "{method} {path}: {}", response.text());
    }
    let query = "delimiter=&encoding-type=url&max-keys=1000&prefix=d%2F&versions=";
    let listed = server.request("GET", &format!("/vault/?{query}")).send().await;
    assert_eq!((listed.status, all(&listed, "Key")), (200, vec!["d/a".into(), "d/b/c".into()]));
    assert_eq!(all(&listed, "VersionId"), ["null", "null"]);
    let namespace = "http://s3.amazonaws.com/doc/2006-03-01/";
    let objects: String = all(&listed, "Key")
        .iter()
        .map(|key| format!("<Object><Key>{key}</Key><VersionId>null</VersionId></Object>"))
        .collect();
    let body = format!("<Delete xmlns=\"{namespace}\"><Quiet>false</Quiet>{objects}</Delete>");
    let request = server.request("POST", "/vault/?delete=").body(body.as_bytes());
    let response =
        request.header("x-amz-checksum-sha256", &sha256_base64(body.as_bytes())).send().await;
    assert_eq!(all(&response, "Key"), ["d/a", "d/b/c"], "{}", response.text());
    assert_eq!(all(&list(&server, "").await, "Key"), ["e"]);
}

/// As `mc rm --versions --recursive` and Terraform's `force_destroy` do it.
#[tokio::test]
async fn versions_are_deleted_by_id() {
    let server = TestServer::start().await;
    for key in ["d/a", "d/b", "c"] {
        server.put(&format!("/vault/{key}"), b"x").await;
    }
    let listed = list(&server, "encoding-type=url&max-keys=1000&prefix=d%2F").await;
    assert_eq!(all(&listed, "VersionId"), ["null", "null"]);
    let objects: String = all(&listed, "Key")
        .iter()
        .map(|key| format!("<Object><Key>{key}</Key><VersionId>null</VersionId></Object>"))
        .collect();
    let remove = |objects: &str| {
        let body = format!("<Delete>{objects}</Delete>");
        let request = server.request("POST", "/vault?delete").body(body.as_bytes());
        request.header("x-amz-checksum-sha256", &sha256_base64(body.as_bytes())).send()
    };
    let response = remove(&objects).await;
    assert_eq!(response.text().matches("<Deleted>").count(), 2, "{}", response.text());
    assert_eq!(all(&response, "VersionId"), ["null", "null"]);
    assert_eq!(all(&list(&server, "").await, "Key"), ["c"]);
    let response = remove("<Object><Key>c</Key><VersionId>other</VersionId></Object>").await;
    assert_eq!(response.text().matches("<Error>").count(), 1, "{}", response.text());
    assert!(server.has("/vault/c").await);
    let response = server.request("DELETE", "/vault/c?versionId=null").send().await;
    assert_eq!(response.status, 204);
    assert_eq!(server.request("DELETE", "/vault").send().await.status, 204);
}
