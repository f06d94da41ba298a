//! Who is authenticated, and which errors the others get.

use jiff::ToSpan as _;

use crate::harness::{TestServer, UNSIGNED};

#[tokio::test]
async fn only_valid_signatures_are_accepted() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"hello").await;

    let response = server.request("GET", "/vault/a").send_plain().await;
    assert_eq!(response.error(), (403, "AccessDenied".to_owned()));

    let mut request = server.request("GET", "/vault/a");
    request.signer.secret_key = "another+secret".to_owned();
    assert_eq!(request.send().await.error(), (403, "SignatureDoesNotMatch".to_owned()));

    let mut request = server.request("GET", "/vault/a");
    request.signer.access_key = "SOMEBODYELSE1".to_owned();
    assert_eq!(request.send().await.error(), (403, "InvalidAccessKeyId".to_owned()));

    let mut request = server.request("GET", "/vault/a");
    request.signer.time = request.signer.time.checked_sub(20.minutes()).unwrap();
    assert_eq!(request.send().await.error(), (403, "RequestTimeTooSkewed".to_owned()));

    let response = server.request("GET", "/vault/a").send().await;
    assert_eq!((response.status, response.body.as_slice()), (200, b"hello".as_slice()));
}

#[tokio::test]
async fn presigned_urls_expire() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"hello").await;

    let response = server.request("GET", "/vault/a").presigned(60).send_plain().await;
    assert_eq!((response.status, response.body.as_slice()), (200, b"hello".as_slice()));

    let mut request = server.request("GET", "/vault/a");
    request.signer.time = request.signer.time.checked_sub(2.minutes()).unwrap();
    let response = request.presigned(60).send_plain().await;
    assert_eq!(response.error(), (403, "AccessDenied".to_owned()));
    assert_eq!(response.element("Message").as_deref(), Some("Request has expired"));

    let response = server.request("GET", "/vault/a").presigned(604_801).send_plain().await;
    assert_eq!(response.error(), (400, "AuthorizationQueryParametersError".to_owned()));

    // A URL signed for one request is not valid for another.
    let request = server.request("GET", "/vault/a").presigned(60);
    let head = request.plain_head(0).replacen("GET", "DELETE", 1);
    let response = crate::harness::exchange(server.address, &[head.as_bytes()], false).await;
    assert_eq!(response.error(), (403, "SignatureDoesNotMatch".to_owned()));
    assert!(server.has("/vault/a").await);
}

#[tokio::test]
async fn old_and_partial_signatures_are_rejected() {
    let server = TestServer::start().await;
    let request =
        server.request("GET", "/").unsigned_header("authorization", "AWS KEY:c2lnbmF0dXJl");
    assert_eq!(request.send_plain().await.error(), (400, "InvalidRequest".to_owned()));

    let old = "/vault/a?AWSAccessKeyId=KEY&Expires=1&Signature=c2ln";
    for method in ["PUT", "POST", "DELETE"] {
        let response = server.request(method, old).send_plain().await;
        assert_eq!(response.error(), (400, "InvalidRequest".to_owned()), "{method}");
        // The error names the setting that helps.
        let message = response.element("Message").unwrap();
        for setting in ["AWS4-HMAC-SHA256", "s3v4", "signature_v2 = False"] {
            assert!(message.contains(setting), "{message}");
        }
    }
    assert_eq!(
        server.request("GET", old).send().await.error(),
        (400, "InvalidArgument".to_owned())
    );
    let both = server.request("GET", old).presigned(60).send_plain().await;
    assert_eq!(both.error(), (400, "InvalidArgument".to_owned()));

    let request =
        server.request("PUT", "/vault/a").unsigned_header("x-amz-storage-class", "GLACIER");
    assert_eq!(request.send().await.error(), (403, "AccessDenied".to_owned()));
    assert!(!server.has("/vault/a").await);

    let request = server.request("GET", "/vault/a").presigned(60);
    let request = request.unsigned_header("authorization", "AWS4-HMAC-SHA256 Credential=x");
    assert_eq!(request.send_plain().await.error(), (400, "InvalidArgument".to_owned()));
}

/// URLs that botocore made with `signature_version="s3"`, as `aws s3 presign` does.
#[tokio::test]
async fn sigv2_urls_are_accepted_for_reads() {
    let server = TestServer::start().await;
    server.put("/vault/a/b%20c%2Bd.txt", b"hello").await;
    let url = |signature: &str, expires: &str| {
        format!(
            "/vault/a/b%20c%2Bd.txt?AWSAccessKeyId=TESTACCESSKEY&Signature={signature}\
             &Expires={expires}"
        )
    };
    let get = url("QZrRyLodCHeWgH0%2F2CjEwwxJFUA%3D", "4102444800");
    let response = server.request("GET", &get).send_plain().await;
    assert_eq!((response.status, response.text()), (200, "hello".to_owned()));
    let part = server.request("GET", &get).header("range", "bytes=1-2").send_plain().await;
    assert_eq!((part.status, part.text()), (206, "el".to_owned()));
    assert_eq!(server.request("HEAD", &get).send_plain().await.status, 403, "signed for GET");
    let head = url("OAgNNs3udKMJnzyIOp4Ia4ZSf8o%3D", "4102444800");
    let response = server.request("HEAD", &head).send_plain().await;
    assert_eq!((response.status, response.header("content-length")), (200, Some("5")));
    let renamed = format!(
        "{}&response-content-disposition=attachment%3B%20filename%3D%22x%20y%2Bz%22\
         &response-content-type=text%2Fplain",
        url("olLZ5TgEHk6LaPyztFqdPj531jc%3D", "4102444800")
    );
    let response = server.request("GET", &renamed).send_plain().await;
    let disposition = response.header("content-disposition");
    assert_eq!(disposition, Some("attachment; filename=\"x y+z\""));
    assert_eq!(response.header("content-type"), Some("text/plain"));

    let late = url("QZrRyLodCHeWgH0%2F2CjEwwxJFUA%3D", "1700003600");
    let response = server.request("GET", &late).send_plain().await;
    assert_eq!(response.error(), (403, "AccessDenied".to_owned()));
    assert_eq!(response.element("Message").as_deref(), Some("Request has expired"));
    assert_eq!(response.element("Expires").as_deref(), Some("2023-11-14T23:13:20Z"));
    let other = get.replace("/vault/a/b", "/vault/a/c");
    let response = server.request("GET", &other).send_plain().await;
    assert_eq!(response.error(), (403, "SignatureDoesNotMatch".to_owned()));
}

#[tokio::test]
async fn form_uploads_are_rejected_unread() {
    let server = TestServer::start().await;
    let request = server.request("POST", "/vault").payload(UNSIGNED);
    let request = request.header("content-type", "multipart/form-data; boundary=b").body(b"--b--");
    assert_eq!(request.send_plain().await.error(), (501, "NotImplemented".to_owned()));
}

/// There is one region; clients name others, some of them in upper case and unknown.
#[tokio::test]
async fn any_region_is_accepted_in_signatures() {
    let server = TestServer::start().await;
    for region in ["US", "EU", "eu-west-3", "auto", "Any_Region.1"] {
        let mut put = server.request("PUT", "/vault/a").body(region.as_bytes());
        region.clone_into(&mut put.signer.region);
        assert_eq!(put.send().await.status, 200, "{region}");
        let mut get = server.request("GET", "/vault/a");
        region.clone_into(&mut get.signer.region);
        assert_eq!(get.presigned(60).send_plain().await.body, region.as_bytes());
    }
    for path in ["/vault?location", "/vault"] {
        let mut request = server.request("GET", path);
        "EU".clone_into(&mut request.signer.region);
        assert_eq!(request.send().await.status, 200);
    }
}

#[tokio::test]
async fn signed_date_header_replaces_x_amz_date() {
    let server = TestServer::start().await;
    let date = |request: &crate::harness::TestRequest, form: &str| {
        request.signer.time.strftime(form).to_string()
    };
    for form in ["%a, %d %b %Y %H:%M:%S GMT", "%a, %d %b %Y %H:%M:%S -0000", "%Y%m%dT%H%M%SZ"] {
        let request = server.request("PUT", "/vault/a").body(b"x");
        let shown = date(&request, form);
        assert_eq!(request.header("date", &shown).send().await.status, 200, "{shown}");
    }
    let mut old = server.request("PUT", "/vault/old").body(b"x");
    old.signer.time = old.signer.time.checked_sub(20.minutes()).unwrap();
    let shown = date(&old, "%a, %d %b %Y %H:%M:%S GMT");
    let response = old.header("date", &shown).send().await;
    assert_eq!(response.error(), (403, "RequestTimeTooSkewed".to_owned()));
    assert!(!server.has("/vault/old").await);
}

#[tokio::test]
async fn malformed_authorization_is_reported() {
    let server = TestServer::start().await;
    let request = server.request("GET", "/vault/a").unsigned_header("authorization", "Basic YTpi");
    assert_eq!(
        request.send_plain().await.error(),
        (400, "AuthorizationHeaderMalformed".to_owned())
    );
}
