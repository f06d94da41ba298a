//! The plain form of documents, which request has which document, and what is refused for which
//! reason.

use http::request::Parts;
use http::{Method, Request};

use super::schema::{Content, Element};
use super::{DOCUMENTS, Document, DocumentError, is_read_for};
use crate::s3::adapter::Hosts;

fn document(operation: &str) -> &'static Document {
    DOCUMENTS.iter().find(|document| document.operation() == operation).unwrap()
}

fn plain(operation: &str, body: &str) -> Result<String, DocumentError> {
    let bytes = document(operation).rewrite(body.as_bytes())?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn documents_are_rewritten_to_plain_form() {
    for (body, expected) in [
        (
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n\
             <Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\r\n\
             <!-- first --><Object>\r\n<Key>a<![CDATA[&b]]><!-- c -->\r\nd&#13;&#x3c;</Key>\r\n\
             </Object><Quiet>TRUE</Quiet></Delete>\r\n",
            "<Delete><Object><Key>a&amp;b\nd&#13;&lt;</Key></Object><Quiet>true</Quiet></Delete>",
        ),
        ("<Delete/>", "<Delete></Delete>"),
        (
            "<Delete><Object><Size>0</Size><Key/></Object></Delete>",
            "<Delete><Object><Size>0</Size><Key></Key></Object></Delete>",
        ),
    ] {
        assert_eq!(plain("DeleteObjects", body).as_deref(), Ok(expected));
    }
    assert_eq!(plain("CreateBucket", "").as_deref(), Ok(""), "an empty body is no document");
}

#[test]
fn malformed_documents_are_explained() {
    for (body, reason) in [
        ("<RestoreRequest><Days>1.5</Days></RestoreRequest>", "Days is not an integer from"),
        ("<RestoreRequest><Day>1</Day></RestoreRequest>", "RestoreRequest has no element Day"),
        ("<RestoreRequest><Days>1</Days><Days>1</Days></RestoreRequest>", "has Days twice"),
        ("<RestoreRequest><GlacierJobParameters/></RestoreRequest>", "has no Tier"),
        ("<Restore/>", "it must be a single element RestoreRequest"),
        ("<RestoreRequest/><RestoreRequest/>", "it must be a single element RestoreRequest"),
        ("<RestoreRequest>1</RestoreRequest>", "RestoreRequest must not hold text"),
        ("<RestoreRequest><Days><b/></Days></RestoreRequest>", "Days may only hold text"),
        ("<RestoreRequest>", "it is truncated"),
        ("<RestoreRequest a=\"b\"/>", "an element has an attribute a"),
        ("<RestoreRequest><Tier>&b;</Tier></RestoreRequest>", "it has an unknown reference"),
        ("\0", "characters that XML 1.0 does not have"),
    ] {
        let Err(DocumentError::Malformed(found)) = plain("RestoreObject", body) else {
            panic!("{body} was accepted");
        };
        assert!(found.contains(reason), "{body}: {found}");
    }
    let select = "<RestoreRequest><Type>SELECT</Type></RestoreRequest>";
    let found = plain("RestoreObject", select);
    assert_eq!(found, Err(DocumentError::NotServed("Restores of type SELECT")));
}

/// CDATA sections hold more text in fewer bytes than escaped text does.
#[test]
fn plain_form_size_is_bounded() {
    let text = "&".repeat(crate::limits::XML_BYTES_MAX / 4);
    let body = format!("<Delete><Object><Key><![CDATA[{text}]]></Key></Object></Delete>");
    let Err(DocumentError::Malformed(found)) = plain("DeleteObjects", &body) else {
        panic!("it was accepted");
    };
    assert!(found.contains("longer than"), "{found}");
}

fn parts(method: Method, target: &str, host: &str) -> Parts {
    let request = Request::builder().method(method).uri(target).header("host", host);
    request.body(()).unwrap().into_parts().0
}

#[test]
fn request_head_determines_the_document() {
    let hosts = Hosts::new(Some("s3.example.org")).unwrap();
    let (here, of_bucket) = ("127.0.0.1:9000", "vault.s3.example.org");
    for (method, target, host, expected) in [
        (Method::POST, "/vault?delete", here, Some("DeleteObjects")),
        (Method::POST, "/vault?delete=&x-id=DeleteObjects", here, Some("DeleteObjects")),
        (Method::POST, "/?%64elete", of_bucket, Some("DeleteObjects")),
        (Method::POST, "/vault/a?restore", here, Some("RestoreObject")),
        (Method::POST, "/vault/a?uploadId=1", here, Some("CompleteMultipartUpload")),
        (Method::POST, "/vault/a?uploads", here, None),
        (Method::POST, "/vault/a?select&select-type=2", here, None),
        (Method::GET, "/vault?delete", here, None),
        (Method::PUT, "/vault", here, Some("CreateBucket")),
        (Method::PUT, "/vault/?x-id=CreateBucket", here, Some("CreateBucket")),
        (Method::PUT, "/", of_bucket, Some("CreateBucket")),
        (Method::PUT, "/vault", of_bucket, None),
        (Method::PUT, "/vault?acl", here, None),
        (Method::PUT, "/vault/a", here, None),
        (Method::PUT, "/vault%2Fa", here, None),
        (Method::PUT, "/", here, None),
    ] {
        let found = Document::for_request(&parts(method.clone(), target, host), &hosts);
        assert_eq!(found.map(Document::operation), expected, "{method} {host} {target}");
    }
}

#[test]
fn document_must_match_the_s3s_operation() {
    for (method, operation, read, agree) in [
        (Method::POST, "DeleteObjects", Some("DeleteObjects"), true),
        (Method::POST, "DeleteObjects", None, false),
        (Method::POST, "CompleteMultipartUpload", Some("DeleteObjects"), false),
        (Method::PUT, "PutObject", None, true),
        (Method::PUT, "PutObject", Some("CreateBucket"), false),
        (Method::PUT, "PutBucketAcl", None, false),
        (Method::POST, "CreateMultipartUpload", None, true),
        (Method::GET, "GetObject", None, true),
        (Method::DELETE, "DeleteObject", None, true),
    ] {
        assert_eq!(is_read_for(&method, operation, read), agree, "{operation} {read:?}");
    }
}

/// The bit set of seen children has 32 bits.
#[test]
fn elements_have_at_most_32_child_types() {
    fn check(element: &Element) {
        if let Content::Elements(children) = element.content {
            assert!(children.len() <= 32, "{}", element.name);
            children.iter().for_each(check);
        }
    }
    DOCUMENTS.iter().for_each(|document| check(&document.root));
}
