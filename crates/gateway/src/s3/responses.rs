//! Completes responses for S3 clients: ids on each one, error documents with all their elements,
//! and documents that parsers read as intended.
//!
//! s3s writes only `Code` and `Message` of an error, ignores a status that an operation sets, and
//! leaves control characters as they are, so all three are fixed here.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use s3s::Body;

use super::xml::{escape_controls, push_element};
use crate::percent;
use crate::request::RequestContext;

/// Header by which the adapter adds an element to an error document, in the form that `detail`
/// makes. s3s passes nothing else of an error on; clients never see the header.
pub(crate) const DETAIL: HeaderName = HeaderName::from_static("x-fulgurite-detail");

/// The operation whose response bodies are clients' bytes, whatever content type they have.
const GET_OBJECT: &str = "GetObject";
const APPLICATION_XML: &str = "application/xml";
const END: &str = "</Error>";

/// Extension of a response by which the adapter sets a status that s3s cannot express.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusOverride(pub(crate) StatusCode);

/// Extension of a response: the entity tag in its document has no quotes, which s3s always writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BareEntityTag;

/// An error that does not come from s3s.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// Elements of the document besides code and message.
    details: Vec<(&'static str, String)>,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, status: StatusCode, message: impl Into<String>) -> Self {
        Self { code, status, message: message.into(), details: Vec::new() }
    }

    /// Adds an element to the document.
    pub(crate) fn with_detail(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.details.push((name, value.into()));
        self
    }

    /// Converts it to a response, without what `Finisher` adds.
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.document()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(APPLICATION_XML));
        response
    }

    fn document(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error>");
        push_element(&mut text, "Code", self.code);
        push_element(&mut text, "Message", &self.message);
        for (name, value) in &self.details {
            push_element(&mut text, name, value);
        }
        text.push_str(END);
        text
    }
}

/// Encodes an element of an error document as a value of the header `DETAIL`.
pub(crate) fn detail(name: &str, value: &str) -> HeaderValue {
    let text = format!("{name}={}", percent::encode_bytes(value.as_bytes(), false));
    // Element names and escaped text are ASCII.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

/// The parts of a request that completing its response needs.
pub(crate) struct Finisher<'a> {
    pub(crate) context: &'a RequestContext,
    pub(crate) host_id: &'a HeaderValue,
    pub(crate) method: &'a Method,
    /// Path as in the request.
    pub(crate) resource: &'a str,
}

impl Finisher<'_> {
    /// Completes status, headers and error document.
    pub(crate) fn finish(&self, mut response: Response<Body>) -> Response<Body> {
        if let Some(&StatusOverride(status)) = response.extensions().get() {
            *response.status_mut() = status;
        }
        if response.extensions().get::<BareEntityTag>().is_some() {
            unquote_entity_tag(&mut response);
        }
        let is_error = response.status().is_client_error() || response.status().is_server_error();
        if let Some(fault) = self.context.fault().filter(|_| is_error) {
            let (code, status) = fault.code_and_status();
            response = Refusal::new(code, status, fault.to_string()).into_response();
        }
        if is_error {
            self.complete_document(&mut response);
        }
        if is_error || self.context.operation() != GET_OBJECT {
            escape_document(&mut response);
        }
        if response.status() == StatusCode::NOT_MODIFIED {
            *response.body_mut() = Body::empty();
            response.headers_mut().remove(CONTENT_TYPE);
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::from_str(self.context.id()) {
            headers.insert("x-amz-request-id", id);
        }
        headers.insert("x-amz-id-2", self.host_id.clone());
        headers.insert("server", HeaderValue::from_static("Fulgurite"));
        response
    }

    fn complete_document(&self, response: &mut Response<Body>) {
        let details = take_details(response.headers_mut());
        if self.method == Method::HEAD {
            *response.body_mut() = Body::empty();
            return;
        }
        let Some(bytes) = response.body().bytes() else { return };
        let Ok(text) = std::str::from_utf8(&bytes) else { return };
        let Some(open) = text.strip_suffix(END) else { return };
        let mut full = open.to_owned();
        if !open.contains("<Message>") {
            let message = default_message(element(open, "Code").unwrap_or_default());
            push_element(&mut full, "Message", message);
        }
        for (name, value) in &details {
            push_element(&mut full, name, value);
        }
        push_element(&mut full, "Resource", self.resource);
        push_element(&mut full, "RequestId", self.context.id());
        push_element(&mut full, "HostId", self.host_id.to_str().unwrap_or_default());
        full.push_str(END);
        *response.body_mut() = Body::from(Bytes::from(full));
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(APPLICATION_XML));
    }
}

fn take_details(headers: &mut HeaderMap) -> Vec<(String, String)> {
    let details = headers.get_all(DETAIL).iter().filter_map(|value| {
        let (name, value) = value.to_str().ok()?.split_once('=')?;
        let value = String::from_utf8(percent::decode_bytes(value)).ok()?;
        Some((name.to_owned(), value))
    });
    let details = details.collect();
    headers.remove(DETAIL);
    details
}

fn unquote_entity_tag(response: &mut Response<Body>) {
    let Some(bytes) = response.body().bytes() else { return };
    let Ok(text) = std::str::from_utf8(&bytes) else { return };
    let bare = ["\"", "&quot;"].iter().fold(text.to_owned(), |text, quote| {
        let text = text.replace(&format!("<ETag>{quote}"), "<ETag>");
        text.replace(&format!("{quote}</ETag>"), "</ETag>")
    });
    *response.body_mut() = Body::from(Bytes::from(bare));
    response.headers_mut().remove(CONTENT_LENGTH);
}

/// Escapes control characters of a document. Documents are held in memory whole: their size is
/// bounded, however many keys they name.
fn escape_document(response: &mut Response<Body>) {
    if response.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != APPLICATION_XML) {
        return;
    }
    let escaped = response.body().bytes().and_then(|bytes| escape_controls(&bytes));
    if let Some(escaped) = escaped {
        *response.body_mut() = Body::from(Bytes::from(escaped));
        response.headers_mut().remove(CONTENT_LENGTH);
    }
}

/// Returns the content of the first element of that name; error documents are flat.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    Some(after.split_once("</")?.0)
}

/// Returns S3's message for errors that s3s leaves without any.
fn default_message(code: &str) -> &'static str {
    match code {
        "SignatureDoesNotMatch" => {
            "The request signature we calculated does not match the signature you provided. \
             Check your key and signing method."
        }
        "InvalidBucketName" => "The specified bucket is not valid.",
        "KeyTooLongError" => "Your key is too long.",
        "InvalidURI" => "Couldn't parse the specified URI.",
        "MalformedXML" => {
            "The XML you provided was not well-formed or did not validate against our published \
             schema"
        }
        "MethodNotAllowed" => "The specified method is not allowed against this resource.",
        "MissingContentLength" => "You must provide the Content-Length HTTP header.",
        "MaxMessageLengthExceeded" => "Your request was too big.",
        "InternalError" => "We encountered an internal error. Please try again.",
        _ => "The request could not be served.",
    }
}

#[cfg(test)]
mod tests;
