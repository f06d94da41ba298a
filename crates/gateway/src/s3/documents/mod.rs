//! The XML documents of requests. Each is read whole, checked against its digests, parsed against
//! its schema, and rewritten: s3s cannot misread what it gets, and a body that is no such document
//! changes nothing.
//!
//! The head of a request determines its document, here and in s3s. Admission compares the two
//! decisions, so s3s never parses a document that was not read here.

mod parser;
mod schema;

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt as _;
use s3s::host::S3Host as _;

use self::schema::Element;
use super::adapter::Hosts;
use super::digests::DocumentDigests;
use super::framing::announced_trailer;
use super::inbound::InboundBody;
use super::parameters::parse_integer;
use super::responses::Refusal;
use crate::limits::{READ_BUFFER_BYTES, XML_BYTES_MAX};
use crate::percent;
use crate::request::{BodyFault, RequestContext};

/// PUT and POST operations that have no document.
const WITHOUT_DOCUMENT: [&str; 5] =
    ["PutObject", "CopyObject", "UploadPart", "UploadPartCopy", "CreateMultipartUpload"];

/// A kind of document.
#[derive(Debug)]
pub(crate) struct Document {
    /// The operation, by its name in S3.
    operation: &'static str,
    root: Element,
    /// Whether the operation is destructive, so that a digest has to protect the document.
    needs_digest: bool,
    /// Whether `x-amz-checksum-*` headers are of an object and not of the document.
    has_object_checksum: bool,
}

/// All documents. A PUT or POST with another document belongs to an operation that is not
/// supported.
pub(crate) static DOCUMENTS: [Document; 4] = [
    Document {
        operation: "DeleteObjects",
        root: schema::DELETE,
        needs_digest: true,
        has_object_checksum: false,
    },
    Document {
        operation: "CompleteMultipartUpload",
        root: schema::COMPLETE,
        needs_digest: false,
        has_object_checksum: true,
    },
    Document {
        operation: "RestoreObject",
        root: schema::RESTORE,
        needs_digest: false,
        has_object_checksum: false,
    },
    Document {
        operation: "CreateBucket",
        root: schema::CREATE_BUCKET,
        needs_digest: false,
        has_object_checksum: false,
    },
];

/// Why a body is not the document of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DocumentError {
    /// It is not well-formed or does not match the schema, for this reason.
    Malformed(Cow<'static, str>),
    /// It asks for something that is not supported.
    NotServed(&'static str),
}

impl From<DocumentError> for Refusal {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Malformed(reason) => {
                let message = format!(
                    "The XML you provided was not well-formed or did not validate against our \
                     published schema: {reason}"
                );
                Self::new("MalformedXML", StatusCode::BAD_REQUEST, message)
            }
            DocumentError::NotServed(what) => {
                Self::new("NotImplemented", StatusCode::NOT_IMPLEMENTED, what)
            }
        }
    }
}

impl Document {
    /// Returns the document of a request, by its head.
    pub(super) fn for_request(parts: &Parts, hosts: &Hosts) -> Option<&'static Self> {
        // Reads are most requests, and have no body.
        if parts.method != Method::POST && parts.method != Method::PUT {
            return None;
        }
        let query = parts.uri.query().unwrap_or_default();
        let names: Vec<_> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| percent::decode_query(pair.split('=').next()?))
            .collect();
        let has = |name: &str| names.iter().any(|found| found == name);
        let operation = if parts.method == Method::POST {
            if has("delete") {
                "DeleteObjects"
            } else if has("restore") {
                "RestoreObject"
            } else if has("uploadId") {
                "CompleteMultipartUpload"
            } else {
                return None;
            }
        } else if parts.method == Method::PUT && is_bucket(parts, hosts) {
            // Every other parameter means another operation; SDKs add `x-id` with the name of this
            // one.
            if names.iter().any(|name| name != "x-id") {
                return None;
            }
            "CreateBucket"
        } else {
            return None;
        };
        DOCUMENTS.iter().find(|document| document.operation == operation)
    }

    /// The operation, by its name in S3.
    pub(crate) const fn operation(&self) -> &'static str {
        self.operation
    }

    /// Rewrites a document of this kind to its plain form. An empty body means no document, which
    /// some operations accept.
    pub(crate) fn rewrite(&'static self, body: &[u8]) -> Result<Bytes, DocumentError> {
        if body.is_empty() {
            return Ok(Bytes::new());
        }
        parser::rewrite(body, &self.root).map(Bytes::from)
    }

    /// Reads the whole document and rewrites it. Nothing is parsed before it is complete and its
    /// digests match.
    pub(super) async fn read(
        &'static self,
        headers: &HeaderMap,
        mut body: InboundBody,
        context: &RequestContext,
    ) -> Result<Bytes, Refusal> {
        let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let declared = declared.and_then(parse_integer).unwrap_or(0);
        let declared = usize::try_from(declared).unwrap_or(usize::MAX);
        if declared > XML_BYTES_MAX {
            return Err(too_long());
        }
        let trailer = announced_trailer(headers)?;
        let digests = DocumentDigests::for_request(headers, trailer, self.has_object_checksum)?;
        if self.needs_digest && digests.is_empty() {
            let message = "Missing required header for this request: Content-MD5 (or one of \
                           x-amz-checksum-crc32, -crc32c, -crc64nvme, -sha1 and -sha256)";
            return Err(Refusal::new("InvalidRequest", StatusCode::BAD_REQUEST, message));
        }
        let mut bytes = BytesMut::with_capacity(declared.min(READ_BUFFER_BYTES));
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if bytes.len() + data.len() > declared {
                return Err(BodyFault::Incomplete.into());
            }
            bytes.extend_from_slice(&data);
        }
        if bytes.len() < declared {
            return Err(BodyFault::Incomplete.into());
        }
        digests.check(&bytes, context.trailers())?;
        Ok(self.rewrite(&bytes)?)
    }
}

/// Returns whether the document that was read belongs to the operation that s3s chose; if that
/// operation has none, whether none was read.
pub(crate) fn is_read_for(method: &Method, operation: &str, document: Option<&str>) -> bool {
    let has_document =
        (method == Method::PUT || method == Method::POST) && !WITHOUT_DOCUMENT.contains(&operation);
    document == has_document.then_some(operation)
}

/// Returns whether a request names a bucket and no key, by its host or by its path.
fn is_bucket(parts: &Parts, hosts: &Hosts) -> bool {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.and_then(|host| hosts.parse_host_header(host).ok());
    let path = percent::decode_bytes(parts.uri.path());
    let path = path.strip_prefix(b"/").unwrap_or(&path);
    if host.is_some_and(|host| host.bucket().is_some()) {
        return path.is_empty();
    }
    let bucket = path.strip_suffix(b"/").unwrap_or(path);
    !bucket.is_empty() && !bucket.contains(&b'/')
}

fn too_long() -> Refusal {
    let message = format!("The XML you provided is longer than {XML_BYTES_MAX} bytes.");
    Refusal::new("MalformedXML", StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests;
