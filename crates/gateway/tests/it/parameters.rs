//! Integers in queries and headers: invalid ones are refused before anything is done.

use crate::harness::TestServer;

const NO_INTEGERS: [&str; 8] = ["1.5", "1x", "1e1", "%2B1", "01", "", "%20", "9223372036854775808"];

fn plain(text: &str) -> String {
    text.replace("%2B", "+").replace("%20", " ")
}

#[tokio::test]
async fn listing_parameters_must_be_integers() {
    let server = TestServer::start().await;
    server.put("/vault/a", b"x").await;
    let begun = server.request("POST", "/vault/m?uploads").send().await;
    let id = begun.element("UploadId").unwrap();
    for path in [
        "/vault?max-keys=".to_owned(),
        "/vault?list-type=2&max-keys=".to_owned(),
        "/vault?uploads&max-uploads=".to_owned(),
        "/?max-buckets=".to_owned(),
        format!("/vault/m?uploadId={id}&max-parts="),
        format!("/vault/m?uploadId={id}&part-number-marker="),
        "/vault/a?partNumber=".to_owned(),
    ] {
        for text in NO_INTEGERS.into_iter().chain(["-1", "2147483648"]) {
            let response = server.request("GET", &format!("{path}{text}")).send().await;
            assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{path}{text}");
        }
        let response = server.request("GET", &format!("{path}1")).send().await;
        assert!((200..300).contains(&response.status), "{path}: {response:?}");
    }
    for name in ["x-amz-max-parts", "x-amz-part-number-marker"] {
        for text in NO_INTEGERS.into_iter().map(plain) {
            let request = server.request("GET", "/vault/a?attributes").header(name, text.trim());
            let response = request.header("x-amz-object-attributes", "ETag").send().await;
            assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{name}: {text}");
        }
    }
}

#[tokio::test]
async fn part_parameters_must_be_integers() {
    let server = TestServer::start().await;
    let begun = server.request("POST", "/vault/m?uploads").send().await;
    let id = begun.element("UploadId").unwrap();
    for text in NO_INTEGERS.into_iter().chain(["0", "-1", "10001"]) {
        let path = format!("/vault/m?partNumber={text}&uploadId={id}");
        let response = server.request("PUT", &path).body(b"part").send().await;
        assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{text}");
        let message = response.element("Message").unwrap();
        assert_eq!(message, "Part number must be an integer between 1 and 10000, inclusive");
    }
    let listed = server.request("GET", &format!("/vault/m?uploadId={id}")).send().await;
    assert_eq!(listed.text().matches("<Part>").count(), 0, "{}", listed.text());
    let path = format!("/vault/m?partNumber=1&uploadId={id}");
    let etag = server.request("PUT", &path).body(b"part!").send().await;
    let etag = etag.header("etag").unwrap().to_owned();
    let xml = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let path = format!("/vault/m?uploadId={id}");
    for text in ["5.5", "5x", "5e0", "+5", "05", "", "9223372036854775808", "-5"] {
        let request = server.request("POST", &path).header("x-amz-mp-object-size", text);
        let response = request.body(xml.as_bytes()).send().await;
        assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{text}");
        assert!(!server.has("/vault/m").await, "{text}");
    }
    let request = server.request("POST", &path).header("x-amz-mp-object-size", "5");
    assert_eq!(request.body(xml.as_bytes()).send().await.status, 200);
}

#[tokio::test]
async fn lengths_must_be_integers() {
    let server = TestServer::start().await;
    for text in NO_INTEGERS.into_iter().map(plain) {
        let request =
            server.request("PUT", "/vault/a").payload("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
        let request = request.header("x-amz-decoded-content-length", text.trim());
        let response = request.body(b"1\r\nx\r\n0\r\n\r\n").send().await;
        assert_eq!(response.error(), (400, "InvalidArgument".to_owned()), "{text}");
    }
    for text in ["1.5", "1x", "1e1", "+1", "-1", "", "99999999999999999999"] {
        let (head, _) = server.request("PUT", "/vault/a").signed_head(0);
        let head = head.replace("content-length: 0", &format!("content-length: {text}"));
        let sent = [head.as_bytes(), b"x".as_slice()];
        let response = crate::harness::exchange(server.address, &sent, true).await;
        assert!(matches!(response.status, 0 | 400), "{text}: {response:?}");
    }
    for text in ["60.5", "60x", "6e1", "%2B60", "060", "", "9223372036854775808"] {
        let request = server.request("GET", "/vault/a").presigned(60);
        let request = request.query("X-Amz-Expires", text);
        let response = request.send_plain().await;
        let code = "AuthorizationQueryParametersError".to_owned();
        assert_eq!(response.error(), (400, code), "{text}");
    }
    assert!(!server.has("/vault/a").await);
}
