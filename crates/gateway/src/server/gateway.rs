//! Routes requests, and adds what all of them have: an id, a slot, a record in the metrics.
//!
//! ```text
//!            a virtual host        -> S3: all of its paths are keys
//!            /livez, /readyz, ...  -> page::health
//!            / of a browser        -> page::front
//!            /-/, /-/openapi.json  -> page::asset
//!  request   /-/...                -> admin
//!            everything else       -> slot? -> checks? -> signed? -> s3s -> finish -> response
//!                                      503      4xx       403               ids, status, full XML
//! ```

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fulgurite_accept::{Busy, Connections};
use fulgurite_archive::Archive;
use http::header::{CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use s3s::Body;
use tokio::sync::{Semaphore, watch};

use super::outbound::{OutboundBody, Record};
use crate::admin::{self, Admin};
use crate::limits::DRAIN_BYTES_MAX;
use crate::page::{Asset, Health, HealthPage, Metrics, front};
use crate::request::{RequestContext, RequestIds};
use crate::s3::{self, Finisher, Refusal};
use crate::{Credentials, Limits, Result, ServerStatus, Tiers};

/// Answers requests; shared by all connections.
pub(crate) struct Gateway {
    s3: s3::Endpoint,
    admin: Admin,
    health: Health,
    metrics: Arc<Metrics>,
    ids: RequestIds,
    host_id: HeaderValue,
    requests: Arc<Semaphore>,
    requests_max: usize,
    connections: Arc<Connections>,
    body_timeout: Duration,
    stopping: watch::Sender<bool>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// Creates the gateway. `operator` is a second pair of keys for the operator's calls, whose
    /// nonces are stored in `nonces`.
    pub(crate) fn new(
        (archive, tiers): (&Archive, Tiers),
        (credentials, operator): (Credentials, Option<Credentials>),
        (domain, nonces): (Option<&str>, Option<&Path>),
        limits: &Limits,
        connections: Arc<Connections>,
    ) -> Result<Self> {
        let stopping = watch::Sender::new(false);
        let metrics = Arc::new(Metrics::default());
        let s3 =
            s3::Endpoint::new(archive.clone(), credentials.clone(), domain, limits.body_timeout)?;
        let keys = (credentials, operator);
        let admin = Admin::new(
            (archive.clone(), tiers.clone()),
            keys,
            nonces,
            limits,
            stopping.subscribe(),
        )?;
        let health =
            Health::new(archive.clone(), tiers, Arc::clone(&metrics), stopping.subscribe());
        let ids = RequestIds::new();
        // Identifies this process, so that its operator can tell restarts apart; it has no other
        // meaning.
        let host_id = HeaderValue::from_str(&BASE64.encode(format!("fulgurite {}", ids.next())))
            .unwrap_or(HeaderValue::from_static("fulgurite"));
        Ok(Self {
            s3,
            admin,
            health,
            metrics,
            ids,
            host_id,
            requests: Arc::new(Semaphore::new(limits.requests)),
            requests_max: limits.requests,
            connections,
            body_timeout: limits.body_timeout,
            stopping,
        })
    }

    /// From now on `/readyz` fails, so that a load balancer sends requests elsewhere, and event
    /// streams end.
    pub(crate) fn begin_stop(&self) {
        self.stopping.send_replace(true);
    }

    fn requests_in_progress(&self) -> usize {
        self.requests_max - self.requests.available_permits()
    }

    fn server_status(&self) -> ServerStatus {
        ServerStatus {
            connections: self.connections.open() as u64,
            connections_max: self.connections.max() as u64,
            connections_ended_idle: self.connections.evictions(),
        }
    }

    /// Returns the requested page, if it is one of those that need no signature.
    async fn page(&self, parts: &Parts) -> Option<Response<Body>> {
        if let Some(page) = HealthPage::for_request(parts) {
            let (in_progress, server) = (self.requests_in_progress(), self.server_status());
            return Some(self.health.respond(page, in_progress, &server).await);
        }
        if let Some(asset) = Asset::for_request(parts) {
            return Some(asset.response(parts));
        }
        front::is_requested(parts).then(front::page)
    }

    /// Answers one request.
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
        busy: Busy,
    ) -> Response<OutboundBody> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        // The paths of a bucket's own host are its keys, whatever their names.
        let is_virtual_hosted = self.s3.is_virtual_hosted(&parts);
        if !is_virtual_hosted && let Some(page) = self.page(&parts).await {
            return page.map(|body| OutboundBody::new(body, None, None, busy));
        }
        let context = Arc::new(RequestContext::new(self.ids.next()));
        let resource = parts.uri.path().to_owned();
        let method = parts.method.clone();
        let expects = parts.headers.contains_key(EXPECT);
        let is_shown = is_shown(&parts.headers);
        let mut slot = None;
        let response = if !is_virtual_hosted && resource.starts_with(admin::PREFIX) {
            // Event streams last as long as the client likes, and would distort the latencies of
            // other calls.
            let is_stream = admin::is_stream_of_events(&resource);
            context.set_operation(if is_stream { "Events" } else { "Admin" });
            self.admin.respond(&parts, body, self.server_status()).await
        } else if let Ok(free) = Arc::clone(&self.requests).try_acquire_owned() {
            slot = Some(free);
            self.s3.respond(Request::from_parts(parts, body), &context).await
        } else {
            let message = "Please reduce your request rate.";
            Refusal::new("SlowDown", StatusCode::SERVICE_UNAVAILABLE, message).into_response()
        };
        // A client that waits for "100 Continue" has not yet sent anything that could be drained.
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
            // A response instead of "100 Continue" confuses botocore: it takes this status for the
            // next response's too, unless that comes over a new connection. Every request with an
            // empty body gets such a response.
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
}

/// Returns whether a browser will show the response as a page or a part of one. Objects have the
/// same origin as the page where users enter keys: a document among them must not act on its
/// behalf. Clients other than browsers do not send this header.
fn is_shown(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-dest").is_some_and(|dest| dest != "empty")
}

/// Sandboxes a document: its scripts do not run, and it has an origin of its own. Browsers refuse
/// to show a sandboxed PDF; its scripts have no origin anyway.
fn sandbox(headers: &mut HeaderMap) {
    if headers.get(CONTENT_TYPE).is_none_or(|kind| kind != "application/pdf") {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    }
}

/// Reads what a refused client is still sending, up to a limit, so that it gets to read the
/// response instead of a reset connection.
async fn drain(mut body: Incoming, timeout: Duration) {
    let mut left = DRAIN_BYTES_MAX;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(timeout, body.frame()).await {
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
