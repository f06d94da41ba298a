//! Where a request goes, and what holds for all of them: its id, its slot, its record.
//!
//! ```text
//!            /livez, /readyz, ...  -> page::health
//!            / of a browser        -> page::front
//!            /-/, /-/openapi.json  -> page::asset
//!  request   /-/...                -> admin
//!            everything else       -> slot? -> refuse? -> signed? -> s3s -> finish -> answer
//!                                      503      4xx       403               ids, status, full XML
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fulgurite_archive::Archive;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use jiff::Timestamp;
use s3s::Body;
use s3s::service::S3Service;
use tokio::sync::{Semaphore, watch};
use tracing::Instrument as _;

use super::outbound::{OutboundBody, Record};
use super::{Busy, Connections};
use crate::admin::{self, CallGate};
use crate::limits::DRAIN_BYTES_MAX;
use crate::page::{Asset, HealthPage, Metrics, front};
use crate::request::{RequestContext, RequestIds};
use crate::s3::signature::{self, Payload};
use crate::s3::{self, ChunkDecoder, ExpectedDigests, Finisher, InboundBody, Refusal, refuse};
use crate::{Credentials, Limits, Result, ServerStatus};

/// Answers requests; shared by all connections.
pub(crate) struct Gateway {
    pub(crate) archive: Archive,
    pub(crate) credentials: Credentials,
    pub(crate) operator: Option<Credentials>,
    s3: S3Service,
    pub(crate) metrics: Arc<Metrics>,
    ids: RequestIds,
    host_id: HeaderValue,
    requests: Arc<Semaphore>,
    requests_max: usize,
    pub(crate) admin_requests: Arc<Semaphore>,
    pub(crate) watchers: Arc<Semaphore>,
    connections: Arc<Connections>,
    pub(crate) calls: CallGate,
    pub(crate) body_timeout: Duration,
    pub(crate) stopping: watch::Sender<bool>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    pub(crate) fn new(
        archive: Archive,
        credentials: Credentials,
        domain: Option<&str>,
        limits: &Limits,
        connections: Arc<Connections>,
    ) -> Result<Self> {
        let s3 = s3::service(archive.clone(), domain)?;
        let ids = RequestIds::new();
        // Names this process to its own operator, who can tell restarts apart; means nothing else.
        let host_id = HeaderValue::from_str(&BASE64.encode(format!("fulgurite {}", ids.next())))
            .unwrap_or(HeaderValue::from_static("fulgurite"));
        Ok(Self {
            archive,
            credentials,
            operator: None,
            s3,
            metrics: Arc::new(Metrics::default()),
            ids,
            host_id,
            requests: Arc::new(Semaphore::new(limits.requests)),
            requests_max: limits.requests,
            admin_requests: Arc::new(Semaphore::new(limits.admin_requests)),
            watchers: Arc::new(Semaphore::new(limits.watchers)),
            connections,
            calls: CallGate::new(admin::now_ms()),
            body_timeout: limits.body_timeout,
            stopping: watch::Sender::new(false),
        })
    }

    /// The same, with another pair of keys for the operator's calls.
    pub(crate) fn with_operator(self, operator: Option<Credentials>) -> Self {
        Self { operator, ..self }
    }

    /// From now on `/readyz` says no, so that a balancer sends requests elsewhere, and nobody
    /// watches the library.
    pub(crate) fn begin_stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Why requests, or writes, cannot be served now; nothing when they can.
    pub(crate) fn unready(&self) -> Option<String> {
        if !self.archive.is_ready() || *self.stopping.borrow() {
            return Some("it starts or stops".to_owned());
        }
        self.archive.write_refusal().map(|reason| format!("nothing can be written: {reason}"))
    }

    pub(crate) fn requests_in_progress(&self) -> usize {
        self.requests_max - self.requests.available_permits()
    }

    pub(crate) fn server_status(&self) -> ServerStatus {
        ServerStatus {
            connections: self.connections.open() as u64,
            connections_max: self.connections.max() as u64,
            connections_ended_idle: self.connections.ended_idle(),
        }
    }

    /// Answers one request.
    pub(crate) async fn handle(
        self: &Arc<Self>,
        request: Request<Incoming>,
        busy: Busy,
    ) -> Response<OutboundBody> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        if let Some(page) = HealthPage::of(&parts) {
            let response = self.health(page).await;
            return response.map(|body| OutboundBody::new(body, None, None, busy));
        }
        if let Some(asset) = Asset::of(&parts) {
            let response = asset.response(&parts);
            return response.map(|body| OutboundBody::new(body, None, None, busy));
        }
        if front::is_asked_for(&parts) {
            return front::page().map(|body| OutboundBody::new(body, None, None, busy));
        }
        let context = Arc::new(RequestContext::new(self.ids.next()));
        let resource = parts.uri.path().to_owned();
        let method = parts.method.clone();
        let expects = parts.headers.contains_key(EXPECT);
        let is_shown = is_shown(&parts.headers);
        let mut slot = None;
        let response = if resource.starts_with(admin::PREFIX) {
            // These last as long as their client likes: they say nothing about the others' times.
            context.set_operation(if resource == admin::EVENTS { "Events" } else { "Admin" });
            self.admin(&parts, body).await
        } else if let Ok(free) = Arc::clone(&self.requests).try_acquire_owned() {
            slot = Some(free);
            self.s3(Request::from_parts(parts, body), &context).await
        } else {
            let message = "Please reduce your request rate.";
            Refusal::new("SlowDown", StatusCode::SERVICE_UNAVAILABLE, message).into_response()
        };
        // A client that waits for "100 Continue" has sent nothing yet that could be drained.
        let is_waiting = expects && context.bytes_in() == 0;
        let is_error = response.status().is_client_error() || response.status().is_server_error();
        if let Some(body) = context.take_unread().filter(|_| is_error && !is_waiting) {
            tokio::spawn(drain(body, self.body_timeout));
        }
        let finisher = Finisher {
            context: &context,
            host_id: &self.host_id,
            method: &method,
            resource: &resource,
        };
        let mut response = finisher.finish(response);
        if is_shown {
            sandbox(response.headers_mut());
        }
        if is_waiting {
            // An answer in place of "100 Continue", as to every empty body, confuses botocore: it
            // takes this status for the next answer's too, unless the connection is a new one.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let record = Record {
            metrics: Arc::clone(&self.metrics),
            context,
            status: response.status(),
            started,
            bytes_out: 0,
        };
        response.map(|body| OutboundBody::new(body, Some(record), slot, busy))
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

    async fn s3(
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
        match self.s3.call(request).instrument(span).await {
            Ok(response) => response,
            Err(error) => {
                tracing::error!(id = context.id(), ?error, "an answer could not be written");
                let message = "We encountered an internal error. Please try again.";
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Refusal::new("InternalError", status, message).into_response()
            }
        }
    }
}

/// Whether a browser will show the answer as a page or a part of one. Objects have the origin of
/// the page that is given keys: a document among them must not act for it. Other clients do not say
/// so.
fn is_shown(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-dest").is_some_and(|dest| dest != "empty")
}

/// No script of the document runs, and it has an origin of its own. Browsers refuse to show PDF so;
/// its scripts have no origin anyway.
fn sandbox(headers: &mut HeaderMap) {
    if headers.get(CONTENT_TYPE).is_none_or(|kind| kind != "application/pdf") {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
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

/// Reads what a refused client is still sending, up to a bound, so that it gets to read the answer
/// instead of a reset connection.
async fn drain(mut body: Incoming, pause: Duration) {
    let mut left = DRAIN_BYTES_MAX;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(pause, body.frame()).await {
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
