//! Error documents are complete and well-formed whatever the request looked like.

use http::{HeaderValue, Method, Response, StatusCode};
use s3s::Body;

use super::{DETAIL, Finisher, Refusal, StatusOverride, detail};
use crate::request::BodyFault;
use crate::request::RequestContext;

fn finish(context: &RequestContext, method: &Method, response: Response<Body>) -> Response<Body> {
    let host_id = HeaderValue::from_static("host");
    Finisher { context, host_id: &host_id, method, resource: "/b/a<&\u{1}>" }.finish(response)
}

fn text(response: &Response<Body>) -> String {
    String::from_utf8(response.body().bytes().unwrap().to_vec()).unwrap()
}

#[test]
fn error_document_has_all_elements() {
    let context = RequestContext::new("0123456789ABCDEF".to_owned());
    let mut response =
        Refusal::new("InvalidObjectState", StatusCode::FORBIDDEN, "not restored").into_response();
    response.headers_mut().append(DETAIL, detail("StorageClass", "GLACIER"));
    response.headers_mut().append(DETAIL, detail("Key", "a=\u{e9}<\r%"));
    let response = finish(&context, &Method::GET, response);
    assert_eq!(
        text(&response),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>InvalidObjectState</Code>\
         <Message>not restored</Message><StorageClass>GLACIER</StorageClass>\
         <Key>a=\u{e9}&lt;&#13;%</Key>\
         <Resource>/b/a&lt;&amp;&#1;&gt;</Resource><RequestId>0123456789ABCDEF</RequestId>\
         <HostId>host</HostId></Error>"
    );
    assert_eq!(response.headers()["x-amz-request-id"], "0123456789ABCDEF");
    assert!(!response.headers().contains_key(DETAIL));
}

#[test]
fn body_fault_replaces_the_error() {
    let context = RequestContext::new("1".to_owned());
    context.set_fault(BodyFault::ContentSha256);
    let refused = Refusal::new("InternalError", StatusCode::INTERNAL_SERVER_ERROR, "odd");
    let response = finish(&context, &Method::POST, refused.into_response());
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(text(&response).contains("<Code>XAmzContentSHA256Mismatch</Code>"));
}

#[test]
fn head_and_not_modified_have_no_body() {
    let context = RequestContext::new("1".to_owned());
    let refused = || Refusal::new("NoSuchKey", StatusCode::NOT_FOUND, "none").into_response();
    assert_eq!(text(&finish(&context, &Method::HEAD, refused())), "");
    let unchanged = Refusal::new("NotModified", StatusCode::NOT_MODIFIED, "").into_response();
    assert_eq!(text(&finish(&context, &Method::GET, unchanged)), "");
}

#[test]
fn refusal_details_are_in_the_document() {
    let context = RequestContext::new("1".to_owned());
    let refused = Refusal::new("AccessDenied", StatusCode::FORBIDDEN, "no")
        .with_detail("HeadersNotSigned", "x-amz-acl")
        .with_detail("Odd", "\r<");
    let response = finish(&context, &Method::PUT, refused.into_response());
    let found = "<Message>no</Message><HeadersNotSigned>x-amz-acl</HeadersNotSigned>\
                 <Odd>&#13;&lt;</Odd><Resource>";
    assert!(text(&response).contains(found), "{}", text(&response));
}

#[test]
fn only_documents_are_escaped() {
    let answer = |operation: &str, kind: &'static str| {
        let context = RequestContext::new("1".to_owned());
        context.set_operation(operation);
        let mut response = Response::new(Body::from("<Key>\r\u{1}\n</Key>".to_owned()));
        response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
        text(&finish(&context, &Method::GET, response))
    };
    assert_eq!(answer("ListObjects", "application/xml"), "<Key>&#13;&#1;\n</Key>");
    assert_eq!(answer("GetObject", "application/xml"), "<Key>\r\u{1}\n</Key>");
    assert_eq!(answer("Admin", "application/json"), "<Key>\r\u{1}\n</Key>");
}

#[test]
fn status_override_is_applied() {
    let context = RequestContext::new("1".to_owned());
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(StatusOverride(StatusCode::ACCEPTED));
    assert_eq!(finish(&context, &Method::POST, response).status(), StatusCode::ACCEPTED);
}
