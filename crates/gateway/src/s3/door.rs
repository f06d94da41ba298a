//! A request on its way to S3: judged by its head, its signature verified, its body bound to what
//! both say of it. s3s gets what is left, and asks for no signature.

use std::sync::Arc;
use std::time::Duration;

use fulgurite_archive::Archive;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use jiff::Timestamp;
use s3s::Body;
use s3s::service::S3Service;
use tracing::Instrument as _;

use super::adapter;
use super::answers::Refusal;
use super::chunks::ChunkDecoder;
use super::digests::ExpectedDigests;
use super::inbound::InboundBody;
use super::refuse;
use super::signature::{self, Payload};
use crate::request::RequestContext;
use crate::{Credentials, Result};

/// The way in.
pub(crate) struct Door {
    service: S3Service,
    credentials: Credentials,
    body_timeout: Duration,
}

impl Door {
    pub(crate) fn new(
        archive: Archive,
        credentials: Credentials,
        domain: Option<&str>,
        body_timeout: Duration,
    ) -> Result<Self> {
        let service = adapter::service(archive, domain)?;
        Ok(Self { service, credentials, body_timeout })
    }

    /// Answers a request, still without what `Finisher` adds.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        context: &Arc<RequestContext>,
    ) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let body = InboundBody::new(body, Arc::clone(context), self.body_timeout);
        let body = match self.admit(&mut parts, body, context) {
            Ok(body) => body,
            Err(refusal) => return refusal.into_response(),
        };
        parts.extensions.insert(Arc::clone(context));
        let request = Request::from_parts(parts, Body::http_body(body));
        // The log lines of everything below name the request.
        let span = tracing::error_span!("request", id = context.id());
        match self.service.call(request).instrument(span).await {
            Ok(response) => response,
            Err(error) => {
                tracing::error!(id = context.id(), ?error, "an answer could not be written");
                let message = "We encountered an internal error. Please try again.";
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Refusal::new("InternalError", status, message).into_response()
            }
        }
    }

    /// Judges head and signature, and binds the body to what they say of it.
    fn admit(
        &self,
        parts: &mut Parts,
        mut body: InboundBody,
        context: &RequestContext,
    ) -> Result<InboundBody, Refusal> {
        refuse::check(parts)?;
        let payload = signature::verify(parts, &self.credentials, Timestamp::now())?;
        let mut sha256 = None;
        match payload {
            // Admission refuses it; until then it is known which operation was meant.
            None => return Ok(body),
            Some(Payload::Unsigned) => check_length(&parts.headers, &body)?,
            Some(Payload::Digest(digest)) => {
                check_length(&parts.headers, &body)?;
                sha256 = Some(digest);
            }
            Some(Payload::Chunks { signer, is_trailed }) => {
                let length = parts.headers.get("x-amz-decoded-content-length").cloned();
                let is_number = |value: &HeaderValue| {
                    value.to_str().is_ok_and(|text| text.parse::<u64>().is_ok())
                };
                let length = length.filter(is_number).ok_or_else(no_length)?;
                parts.headers.insert(CONTENT_LENGTH, length);
                body =
                    body.with_chunks(ChunkDecoder::new(signer.map(|signer| *signer), is_trailed));
            }
        }
        if let Some(digests) = ExpectedDigests::of(parts, sha256) {
            body = body.with_digests(digests);
        }
        signature::strip(parts);
        context.set_signed();
        Ok(body)
    }
}

/// Bodies whose length nobody knows before their end are not taken: AWS does not either.
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
