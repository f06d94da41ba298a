//! Prepares S3 requests for s3s: checks the head, verifies the signature, and binds the body to
//! what both declare. XML documents are read whole here. s3s gets requests without a signature.

use std::sync::Arc;
use std::time::Duration;

use fulgurite_archive::{Archive, ChecksumAlgorithm};
use http::header::{CONTENT_LENGTH, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use jiff::Timestamp;
use s3s::Body;
use s3s::service::S3Service;
use tracing::Instrument as _;

use super::adapter::{self, Hosts};
use super::chunks::ChunkDecoder;
use super::digests::PayloadDigest;
use super::documents::Document;
use super::inbound::InboundBody;
use super::responses::Refusal;
use super::signature::{self, Payload};
use super::{framing, parameters, raw_headers, request_checks};
use crate::request::RequestContext;
use crate::{Credentials, Result};

/// The entry point of S3 requests.
pub(crate) struct Endpoint {
    service: S3Service,
    hosts: Hosts,
    credentials: Credentials,
    body_timeout: Duration,
}

impl Endpoint {
    pub(crate) fn new(
        archive: Archive,
        credentials: Credentials,
        domain: Option<&str>,
        body_timeout: Duration,
    ) -> Result<Self> {
        let hosts = Hosts::new(domain)?;
        let service = adapter::service(archive, hosts.clone());
        Ok(Self { service, hosts, credentials, body_timeout })
    }

    /// Returns whether the host of a request names a bucket: then its whole path is a key in it.
    pub(crate) fn is_virtual_hosted(&self, parts: &Parts) -> bool {
        self.bucket_of_host(parts).is_some()
    }

    fn bucket_of_host(&self, parts: &Parts) -> Option<String> {
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
        self.hosts.bucket_of(host?).map(|(_, bucket)| bucket)
    }

    /// Answers a request, without what `Finisher` adds.
    pub(crate) async fn respond(
        &self,
        request: Request<Incoming>,
        context: &Arc<RequestContext>,
    ) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let body = InboundBody::new(body, Arc::clone(context), self.body_timeout);
        let body = match self.receive(&mut parts, body, context).await {
            Ok(body) => body,
            Err(refusal) => return refusal.into_response(),
        };
        raw_headers::hide(&mut parts);
        parts.extensions.insert(Arc::clone(context));
        let request = Request::from_parts(parts, body);
        // All log lines below carry the request id.
        let span = tracing::error_span!("request", id = context.id());
        match self.service.call(request).instrument(span).await {
            Ok(response) => response,
            Err(error) => {
                tracing::error!(id = context.id(), ?error, "cannot write a response");
                let message = "We encountered an internal error. Please try again.";
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Refusal::new("InternalError", status, message).into_response()
            }
        }
    }

    /// Returns the body for s3s: a stream, or a whole document in its plain form.
    async fn receive(
        &self,
        parts: &mut Parts,
        body: InboundBody,
        context: &RequestContext,
    ) -> Result<Body, Refusal> {
        let body = self.admit(parts, body, context)?;
        // Documents of unsigned requests are not read. s3s resolves the operation, then `Admission`
        // refuses it.
        let document = Document::for_request(parts, &self.hosts).filter(|_| context.is_signed());
        let Some(document) = document else { return Ok(Body::http_body(body)) };
        context.set_operation(document.operation());
        let document_bytes = document.read(&parts.headers, body, context).await?;
        context.set_document(document.operation());
        parts.headers.insert(CONTENT_LENGTH, document_bytes.len().into());
        Ok(Body::from(document_bytes))
    }

    /// Checks head and signature, and binds the body to what they declare.
    fn admit(
        &self,
        parts: &mut Parts,
        body: InboundBody,
        context: &RequestContext,
    ) -> Result<InboundBody, Refusal> {
        request_checks::check(parts)?;
        let now = Timestamp::now();
        let bucket = self.bucket_of_host(parts);
        let payload =
            match signature::version2::verify(parts, bucket.as_deref(), &self.credentials, now)? {
                Some(payload) => Some(payload),
                None => signature::verify(parts, &self.credentials, now)?,
            };
        let Some(payload) = payload else { return Ok(body) };
        signature::strip(parts);
        parameters::check(parts)?;
        let trailer = framing::announced_trailer(&parts.headers)?;
        let body = bind(payload, &mut parts.headers, body, trailer)?;
        context.set_signed();
        Ok(body)
    }
}

/// Binds a body to what its signature declares.
fn bind(
    payload: Payload,
    headers: &mut HeaderMap,
    body: InboundBody,
    trailer: Option<ChecksumAlgorithm>,
) -> Result<InboundBody, Refusal> {
    match payload {
        Payload::Unsigned => {
            check_plain(headers, &body)?;
            Ok(body)
        }
        Payload::Digest(digest) => {
            check_plain(headers, &body)?;
            Ok(body.with_digest(PayloadDigest::new(digest)))
        }
        Payload::Chunks { signer, has_trailer } => {
            let length: Option<HeaderValue> = headers.get(framing::DECODED_LENGTH).cloned();
            headers.insert(CONTENT_LENGTH, length.ok_or_else(no_length)?);
            let trailer = trailer.map(ChecksumAlgorithm::header);
            Ok(body.with_chunks(ChunkDecoder::new(
                signer.map(|signer| *signer),
                has_trailer,
                trailer,
            )))
        }
    }
}

/// Checks that an unframed body has a length and announces no framing.
fn check_plain(headers: &HeaderMap, body: &InboundBody) -> Result<(), Refusal> {
    check_length(headers, body)?;
    framing::check_unframed(headers, body.size_hint().exact() == Some(0))
}

/// Refuses bodies of unknown length, as AWS does.
fn check_length(headers: &HeaderMap, body: &InboundBody) -> Result<(), Refusal> {
    if headers.contains_key(CONTENT_LENGTH) || body.size_hint().exact().is_some() {
        return Ok(());
    }
    Err(no_length())
}

fn no_length() -> Refusal {
    let message = "You must provide the Content-Length HTTP header.";
    Refusal::new("MissingContentLength", StatusCode::LENGTH_REQUIRED, message)
}
