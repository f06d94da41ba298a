//! Headers of every response, and responses that s3s alone could not give.

use crate::harness::TestServer;

#[tokio::test]
async fn every_response_has_request_ids() {
    let server = TestServer::start().await;
    let mut ids = Vec::new();
    for response in [
        server.request("GET", "/").send().await,
        server.request("GET", "/vault/none").send().await,
        server.request("GET", "/").send_plain().await,
    ] {
        let id = response.header("x-amz-request-id").unwrap().to_owned();
        assert_eq!(id.len(), 16);
        assert!(response.header("x-amz-id-2").is_some());
        ids.push(id);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn error_documents_are_complete() {
    let server = TestServer::start().await;
    let response = server.request("GET", "/vault/a%3Cb").send().await;
    assert_eq!(response.error(), (404, "NoSuchKey".to_owned()));
    assert_eq!(response.element("Resource").as_deref(), Some("/vault/a%3Cb"));
    assert_eq!(response.element("RequestId").as_deref(), response.header("x-amz-request-id"));
    assert_eq!(response.element("HostId").as_deref(), response.header("x-amz-id-2"));
    assert!(response.element("Message").is_some_and(|message| message.contains("does not exist")));
    assert_eq!(response.header("content-type"), Some("application/xml"));
    let response = server.request("HEAD", "/vault/a").send().await;
    assert_eq!((response.status, response.body.len()), (404, 0));
}

#[tokio::test]
async fn archived_object_is_restored() {
    let server = TestServer::start().await;
    let put = server.request("PUT", "/vault/cold").header("x-amz-storage-class", "DEEP_ARCHIVE");
    assert_eq!(put.body(b"from glass").send().await.status, 200);

    let response = server.request("GET", "/vault/cold").send().await;
    assert_eq!(response.error(), (403, "InvalidObjectState".to_owned()));
    assert_eq!(response.element("StorageClass").as_deref(), Some("DEEP_ARCHIVE"));
    let head = server.request("HEAD", "/vault/cold").send().await;
    assert_eq!(head.header("x-amz-storage-class"), Some("DEEP_ARCHIVE"));
    assert_eq!(head.header("x-amz-restore"), None);

    let document = b"<RestoreRequest><Days>3</Days></RestoreRequest>";
    let restore = || server.request("POST", "/vault/cold?restore").body(document);
    assert_eq!(restore().send().await.status, 202);
    let shown = loop {
        let head = server.request("HEAD", "/vault/cold").send().await;
        let shown = head.header("x-amz-restore").unwrap().to_owned();
        if shown != "ongoing-request=\"true\"" {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    let date = shown.strip_prefix("ongoing-request=\"false\", expiry-date=\"").unwrap();
    assert!(date.ends_with("00:00:00 GMT\""), "{shown}");
    assert_eq!(restore().send().await.status, 200, "a second request extends the copy");
    let response = server.request("GET", "/vault/cold").send().await;
    assert_eq!(response.body, b"from glass");
    assert_eq!(response.header("x-amz-restore"), Some(shown.as_str()));

    let list = server.request("GET", "/vault?list-type=2").send().await;
    assert!(!list.text().contains("RestoreStatus"), "{}", list.text());
    let list = server.request("GET", "/vault?list-type=2");
    let list = list.header("x-amz-optional-object-attributes", "RestoreStatus").send().await;
    assert_eq!(list.element("IsRestoreInProgress").as_deref(), Some("false"));
    assert!(list.element("RestoreExpiryDate").is_some_and(|date| date.contains("T00:00:00")));
}
