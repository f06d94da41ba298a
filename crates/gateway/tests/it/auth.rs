//! Who is authenticated, and which errors the others get.

use jiff::ToSpan as _;

use crate::harness::{TestServer, UNSIGNED};

#[tokio::test]
async fn only_the_right_signature_opens() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"hello").await;

    let answer = server.ask("GET", "/vault/a").send_plain().await;
    assert_eq!(answer.error(), (403, "AccessDenied".to_owned()));

    let mut ask = server.ask("GET", "/vault/a");
    ask.signer.secret_key = "another+secret".to_owned();
    assert_eq!(ask.send().await.error(), (403, "SignatureDoesNotMatch".to_owned()));

    let mut ask = server.ask("GET", "/vault/a");
    ask.signer.access_key = "SOMEBODYELSE1".to_owned();
    assert_eq!(ask.send().await.error(), (403, "InvalidAccessKeyId".to_owned()));

    let mut ask = server.ask("GET", "/vault/a");
    ask.signer.time = ask.signer.time.checked_sub(20.minutes()).unwrap();
    assert_eq!(ask.send().await.error(), (403, "RequestTimeTooSkewed".to_owned()));

    let answer = server.ask("GET", "/vault/a").send().await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
}

#[tokio::test]
async fn presigned_urls_expire() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"hello").await;

    let answer = server.ask("GET", "/vault/a").presigned(60).send_plain().await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));

    let mut ask = server.ask("GET", "/vault/a");
    ask.signer.time = ask.signer.time.checked_sub(2.minutes()).unwrap();
    let answer = ask.presigned(60).send_plain().await;
    assert_eq!(answer.error(), (403, "AccessDenied".to_owned()));
    assert_eq!(answer.element("Message").as_deref(), Some("Request has expired"));

    let answer = server.ask("GET", "/vault/a").presigned(604_801).send_plain().await;
    assert_eq!(answer.error(), (400, "AuthorizationQueryParametersError".to_owned()));

    // A URL signed for one request is not valid for another.
    let ask = server.ask("GET", "/vault/a").presigned(60);
    let head = ask.plain_head(0).replacen("GET", "DELETE", 1);
    let answer = crate::harness::exchange(server.address, &[head.as_bytes()], false).await;
    assert_eq!(answer.error(), (403, "SignatureDoesNotMatch".to_owned()));
    assert!(server.has("/vault/a").await);
}

#[tokio::test]
async fn old_and_partial_signatures_are_refused() {
    let server = TestServer::start().await;
    let ask = server.ask("GET", "/").unsigned_header("authorization", "AWS KEY:c2lnbmF0dXJl");
    assert_eq!(ask.send_plain().await.error(), (400, "InvalidRequest".to_owned()));

    let old = "/vault/a?AWSAccessKeyId=KEY&Expires=1&Signature=c2ln";
    for method in ["PUT", "POST", "DELETE"] {
        let answer = server.ask(method, old).send_plain().await;
        assert_eq!(answer.error(), (400, "InvalidRequest".to_owned()), "{method}");
        // The error names the setting that helps.
        let message = answer.element("Message").unwrap();
        for setting in ["AWS4-HMAC-SHA256", "s3v4", "signature_v2 = False"] {
            assert!(message.contains(setting), "{message}");
        }
    }
    assert_eq!(server.ask("GET", old).send().await.error(), (400, "InvalidArgument".to_owned()));
    let both = server.ask("GET", old).presigned(60).send_plain().await;
    assert_eq!(both.error(), (400, "InvalidArgument".to_owned()));

    let ask = server.ask("PUT", "/vault/a").unsigned_header("x-amz-storage-class", "GLACIER");
    assert_eq!(ask.send().await.error(), (403, "AccessDenied".to_owned()));
    assert!(!server.has("/vault/a").await);

    let ask = server.ask("GET", "/vault/a").presigned(60);
    let ask = ask.unsigned_header("authorization", "AWS4-HMAC-SHA256 Credential=x");
    assert_eq!(ask.send_plain().await.error(), (400, "InvalidArgument".to_owned()));
}

/// URLs that botocore made with `signature_version="s3"`, as `aws s3 presign` does.
#[tokio::test]
async fn urls_of_version_2_are_served_for_reads() {
    let server = TestServer::start().await;
    server.put("/vault/a/b%20c%2Bd.txt", b"hello").await;
    let url = |signature: &str, expires: &str| {
        format!(
            "/vault/a/b%20c%2Bd.txt?AWSAccessKeyId=TESTACCESSKEY&Signature={signature}\
             &Expires={expires}"
        )
    };
    let get = url("QZrRyLodCHeWgH0%2F2CjEwwxJFUA%3D", "4102444800");
    let answer = server.ask("GET", &get).send_plain().await;
    assert_eq!((answer.status, answer.text()), (200, "hello".to_owned()));
    let part = server.ask("GET", &get).header("range", "bytes=1-2").send_plain().await;
    assert_eq!((part.status, part.text()), (206, "el".to_owned()));
    assert_eq!(server.ask("HEAD", &get).send_plain().await.status, 403, "signed for GET");
    let head = url("OAgNNs3udKMJnzyIOp4Ia4ZSf8o%3D", "4102444800");
    let answer = server.ask("HEAD", &head).send_plain().await;
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("5")));
    let renamed = format!(
        "{}&response-content-disposition=attachment%3B%20filename%3D%22x%20y%2Bz%22\
         &response-content-type=text%2Fplain",
        url("olLZ5TgEHk6LaPyztFqdPj531jc%3D", "4102444800")
    );
    let answer = server.ask("GET", &renamed).send_plain().await;
    let disposition = answer.header("content-disposition");
    assert_eq!(disposition, Some("attachment; filename=\"x y+z\""));
    assert_eq!(answer.header("content-type"), Some("text/plain"));

    let late = url("QZrRyLodCHeWgH0%2F2CjEwwxJFUA%3D", "1700003600");
    let answer = server.ask("GET", &late).send_plain().await;
    assert_eq!(answer.error(), (403, "AccessDenied".to_owned()));
    assert_eq!(answer.element("Message").as_deref(), Some("Request has expired"));
    assert_eq!(answer.element("Expires").as_deref(), Some("2023-11-14T23:13:20Z"));
    let other = get.replace("/vault/a/b", "/vault/a/c");
    let answer = server.ask("GET", &other).send_plain().await;
    assert_eq!(answer.error(), (403, "SignatureDoesNotMatch".to_owned()));
}

#[tokio::test]
async fn forms_are_refused_before_they_are_read() {
    let server = TestServer::start().await;
    let ask = server.ask("POST", "/vault").payload(UNSIGNED);
    let ask = ask.header("content-type", "multipart/form-data; boundary=b").body(b"--b--");
    assert_eq!(ask.send_plain().await.error(), (501, "NotImplemented".to_owned()));
}

/// There is one region; clients name others, some of them in upper case and unknown.
#[tokio::test]
async fn any_region_may_be_signed_for() {
    let server = TestServer::start().await;
    for region in ["US", "EU", "eu-west-3", "auto", "Any_Region.1"] {
        let mut put = server.ask("PUT", "/vault/a").body(region.as_bytes());
        region.clone_into(&mut put.signer.region);
        assert_eq!(put.send().await.status, 200, "{region}");
        let mut get = server.ask("GET", "/vault/a");
        region.clone_into(&mut get.signer.region);
        assert_eq!(get.presigned(60).send_plain().await.body, region.as_bytes());
    }
    for path in ["/vault?location", "/vault"] {
        let mut ask = server.ask("GET", path);
        "EU".clone_into(&mut ask.signer.region);
        assert_eq!(ask.send().await.status, 200);
    }
}

#[tokio::test]
async fn a_signed_date_stands_for_the_amz_date() {
    let server = TestServer::start().await;
    let date = |ask: &crate::harness::Ask, form: &str| ask.signer.time.strftime(form).to_string();
    for form in ["%a, %d %b %Y %H:%M:%S GMT", "%a, %d %b %Y %H:%M:%S -0000", "%Y%m%dT%H%M%SZ"] {
        let ask = server.ask("PUT", "/vault/a").body(b"x");
        let shown = date(&ask, form);
        assert_eq!(ask.header("date", &shown).send().await.status, 200, "{shown}");
    }
    let mut old = server.ask("PUT", "/vault/old").body(b"x");
    old.signer.time = old.signer.time.checked_sub(20.minutes()).unwrap();
    let shown = date(&old, "%a, %d %b %Y %H:%M:%S GMT");
    let answer = old.header("date", &shown).send().await;
    assert_eq!(answer.error(), (403, "RequestTimeTooSkewed".to_owned()));
    assert!(!server.has("/vault/old").await);
}

#[tokio::test]
async fn a_malformed_authorization_is_named() {
    let server = TestServer::start().await;
    let ask = server.ask("GET", "/vault/a").unsigned_header("authorization", "Basic YTpi");
    assert_eq!(ask.send_plain().await.error(), (400, "AuthorizationHeaderMalformed".to_owned()));
}
