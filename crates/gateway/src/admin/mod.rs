//! The operator's interface under `/-/`. No bucket can be called `-`.
//!
//! ```text
//!   GET  /-/admin/status                   one JSON object
//!   GET  /-/admin/locate?bucket=B&key=K    one JSON array
//!   GET  /-/admin/margins?platter=ID       one JSON object: each sector at the last verification
//!   GET  /-/admin/orphans                  one JSON array
//!   POST /-/admin/discard-orphan?file=F    one JSON object: {"discarded":F}
//!   GET  /-/events                        server-sent events: see `events`
//!   POST /-/admin/seal                     lines of JSON:  {"progress":{..}} every second, then
//!   POST /-/admin/verify[?platter=ID]      {"report":..} or {"error":{"code":..,"message":..}}
//!   POST /-/admin/move?bucket=B&key=K&class=C    the same; prefix=P for all objects below it
//!   GET  /-/admin/tiers, ..               the tiers: see `tiers`
//! ```
//!
//! `docs/admin-openapi.json` describes them in full. Every call is signed individually, with its
//! time and a nonce: see `operator`. Work that has started is finished even if its caller
//! disconnects.

mod events;
mod nonces;
mod operator;
mod routes;
mod tiers;

use std::convert::Infallible;
use std::future::Future;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fulgurite_archive::{
    Archive, ArchiveError, BucketName, ErrorKind, ObjectKey, ObjectSelection, Progress,
    StorageClass,
};
use fulgurite_tier::TierError;
use fulgurite_units::{PlatterId, error_chain};
use futures::FutureExt as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::body::Incoming;
use jiff::Timestamp;
use s3s::Body;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::MissedTickBehavior;

use self::events::{ArchiveWatch, Events};
use self::nonces::NonceFile;
pub(crate) use self::operator::reads_authorization;
use self::operator::{CallFault, CallGate, EarlyNonce};
pub use self::operator::{Nonce, OperatorCall};
pub(crate) use self::routes::is_stream_of_events;
use self::routes::{Call, TierCall};
use crate::limits::{ADMIN_BODY_BYTES_MAX, ADMIN_PROGRESS_PERIOD};
use crate::percent::query_value;
use crate::status::FullStatus;
use crate::{Credentials, GatewayError, Limits, Result, ServerStatus, Tiers};

/// Path prefix of the operator's interface.
pub(crate) const PREFIX: &str = "/-/";
/// Lines buffered for a slow reader.
const LINES_BUFFERED: usize = 16;

/// Serves the operator's calls.
#[derive(Debug)]
pub(crate) struct Admin {
    archive: Archive,
    tiers: Tiers,
    credentials: Credentials,
    /// A second pair of keys that may sign the calls.
    operator: Option<Credentials>,
    gate: CallGate,
    /// Where nonces survive a restart.
    nonces: Option<Arc<Mutex<NonceFile>>>,
    calls: Arc<Semaphore>,
    subscribers: Arc<Semaphore>,
    body_timeout: Duration,
    stopping: watch::Receiver<bool>,
}

impl Admin {
    pub(crate) fn new(
        (archive, tiers): (Archive, Tiers),
        (credentials, operator): (Credentials, Option<Credentials>),
        nonces: Option<&Path>,
        limits: &Limits,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self> {
        let started_ms = now_ms();
        let (nonces, early) = match nonces {
            Some(path) => {
                let opened = NonceFile::open(path, started_ms);
                let failed = |source| GatewayError::Nonces { path: path.to_owned(), source };
                let (file, early) = opened.map_err(failed)?;
                (Some(Arc::new(Mutex::new(file))), early)
            }
            None => (None, Vec::new()),
        };
        Ok(Self {
            archive,
            tiers,
            credentials,
            operator,
            gate: CallGate::new(started_ms, &early),
            nonces,
            calls: Arc::new(Semaphore::new(limits.admin_requests)),
            subscribers: Arc::new(Semaphore::new(limits.subscribers)),
            body_timeout: limits.body_timeout,
            stopping,
        })
    }

    /// Checks that a call comes from the operator, and serves it.
    pub(crate) async fn respond(
        &self,
        parts: &Parts,
        body: Incoming,
        server: ServerStatus,
    ) -> Response<Body> {
        let whole = Limited::new(body, ADMIN_BODY_BYTES_MAX).collect();
        let Ok(Ok(body)) = tokio::time::timeout(self.body_timeout, whole).await else {
            let message = "the request body is truncated, late or too long";
            return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
        };
        let admitted = match self.admit_call(parts, &body.to_bytes()) {
            Ok(Some(early)) => self.persist(early).await,
            verdict => verdict.map(|_| ()),
        };
        match admitted {
            Ok(()) => self.serve(parts, server).await,
            Err(fault @ CallFault::TooMany) => {
                refuse(StatusCode::SERVICE_UNAVAILABLE, "SlowDown", &fault.to_string())
            }
            Err(fault) => refuse(StatusCode::FORBIDDEN, "AccessDenied", &fault.to_string()),
        }
    }

    /// Stores the nonce that must survive a restart, before the call is carried out.
    async fn persist(&self, early: EarlyNonce) -> Result<(), CallFault> {
        let Some(nonces) = self.nonces.clone() else { return Ok(()) };
        let persist = move || {
            let mut nonces = nonces.lock().unwrap_or_else(PoisonError::into_inner);
            nonces.persist(early, now_ms())
        };
        match tokio::task::spawn_blocking(persist).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot store the nonce of an admin call");
                Err(CallFault::NotPersisted)
            }
            Err(_) => Err(CallFault::NotPersisted),
        }
    }

    fn admit_call(&self, parts: &Parts, body: &[u8]) -> Result<Option<EarlyNonce>, CallFault> {
        let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
        let authorization = headers.next().and_then(|value| value.to_str().ok());
        let (Some(authorization), None) = (authorization, headers.next()) else {
            return Err(CallFault::Unsigned);
        };
        let target = parts.uri.path_and_query().map_or("", PathAndQuery::as_str);
        let call = OperatorCall { method: parts.method.as_str(), target, body };
        let admit = |keys| self.gate.admit(keys, authorization, &call, now_ms());
        match (admit(&self.credentials), &self.operator) {
            (Err(CallFault::Signature), Some(operator)) => admit(operator),
            (verdict, _) => verdict,
        }
    }

    async fn serve(&self, parts: &Parts, server: ServerStatus) -> Response<Body> {
        let Ok(slot) = Arc::clone(&self.calls).try_acquire_owned() else {
            let message = "too many admin calls are running";
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "SlowDown", message);
        };
        let query = parts.uri.query().unwrap_or_default();
        if let Some((name, call)) = TierCall::for_request(&parts.method, parts.uri.path()) {
            return self.serve_tier(name, call, query, slot).await;
        }
        let Some(call) = Call::for_request(&parts.method, parts.uri.path()) else {
            return refuse(StatusCode::NOT_FOUND, "NotFound", "no such admin call");
        };
        match call {
            Call::Status => {
                let status = self.archive.status().await;
                let kinds = self.tiers.iter().map(|(name, tier)| (name.clone(), tier.kind()));
                let tiers = kinds.collect();
                respond(status.map(|archive| FullStatus { archive, server, tiers }))
            }
            Call::Locate => self.locate(query).await,
            Call::Orphans => respond(self.archive.orphans().await),
            Call::DiscardOrphan => self.discard_orphan(query).await,
            Call::Events => self.events().await,
            Call::Seal => self.seal(slot, query),
            Call::Margins => match platter(query) {
                Ok(Some(platter)) => self.margins(platter).await,
                Ok(None) | Err(()) => no_platter_id(),
            },
            Call::Verify => {
                let (archive, progress) = (self.archive.clone(), Arc::<Progress>::default());
                match platter(query) {
                    Ok(platter) => {
                        self.stream(slot, self.progress_source(Arc::clone(&progress)), async move {
                            archive.verify(platter, &progress).await
                        })
                    }
                    Err(()) => no_platter_id(),
                }
            }
            Call::Move => self.reclassify(slot, query),
            Call::Tiers => self.list_tiers().await,
        }
    }

    fn seal(&self, slot: OwnedSemaphorePermit, query: &str) -> Response<Body> {
        let Ok(waits) = parse_parameter::<bool>(query, "wait") else {
            let message = "wait must be true or false";
            return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
        };
        let archive = self.archive.clone();
        let progress_source = self.progress_source(archive.seal_progress());
        self.stream(slot, progress_source, async move {
            let report = archive.seal().await?;
            if waits == Some(true) {
                archive.wait_until_moved().await?;
            }
            Ok::<_, ArchiveError>(report)
        })
    }

    fn reclassify(&self, slot: OwnedSemaphorePermit, query: &str) -> Response<Body> {
        let value = |name| query_value(query, name);
        let (Some(bucket), Some(class)) = (value("bucket"), value("class")) else {
            return refuse(StatusCode::BAD_REQUEST, "Invalid", "bucket and class must be given");
        };
        let chosen = match (value("key"), value("prefix")) {
            (Some(key), None) => ObjectKey::new(&key).map(ObjectSelection::One),
            (None, Some(prefix)) => Ok(ObjectSelection::Prefix(prefix)),
            (None, None) | (Some(_), Some(_)) => {
                let message = "either key or prefix must be given, not both";
                return refuse(StatusCode::BAD_REQUEST, "Invalid", message);
            }
        };
        let parse = || -> Result<_, ArchiveError> {
            Ok((BucketName::new(&bucket)?, chosen?, StorageClass::parse(&class)?))
        };
        match parse() {
            Ok((bucket, chosen, class)) => {
                let (archive, progress) = (self.archive.clone(), Arc::<Progress>::default());
                self.stream(slot, self.progress_source(Arc::clone(&progress)), async move {
                    archive.reclassify(&bucket, chosen, class, &progress).await
                })
            }
            Err(error) => Failure::from(error).response(),
        }
    }

    async fn events(&self) -> Response<Body> {
        let Some(slot) = self.acquire_subscriber_slot() else { return too_many_subscribers() };
        let restores = self.archive.watch_restores();
        match self.archive.watch_library().await {
            Ok(library) => {
                let watch = ArchiveWatch::new(library, restores);
                Events::new(watch, self.stopping.clone(), slot).response()
            }
            Err(error) => Failure::from(error).response(),
        }
    }

    /// Takes a slot for one more subscriber, if one is free.
    fn acquire_subscriber_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.subscribers).try_acquire_owned().ok()
    }

    async fn locate(&self, query: &str) -> Response<Body> {
        let names = query_value(query, "bucket").zip(query_value(query, "key"));
        let Some((bucket, key)) = names else {
            return refuse(StatusCode::BAD_REQUEST, "Invalid", "bucket and key must be given");
        };
        match BucketName::new(&bucket).and_then(|bucket| Ok((bucket, ObjectKey::new(&key)?))) {
            Ok((bucket, key)) => respond(self.archive.locate(&bucket, &key).await),
            Err(error) => Failure::from(error).response(),
        }
    }

    async fn discard_orphan(&self, query: &str) -> Response<Body> {
        let Some(file) = query_value(query, "file") else {
            return refuse(StatusCode::BAD_REQUEST, "Invalid", "file must be given");
        };
        let discarded = self.archive.discard_orphan(file.to_string()).await;
        respond(discarded.map(|()| json!({ "discarded": file })))
    }

    async fn margins(&self, platter: PlatterId) -> Response<Body> {
        match self.archive.verification(platter).await {
            Ok(Some(found)) => reply(StatusCode::OK, &json!(found)),
            Ok(None) => {
                let message = format!("platter {platter} has not been verified in this archive");
                refuse(StatusCode::NOT_FOUND, "NotFound", &message)
            }
            Err(error) => Failure::from(error).response(),
        }
    }

    fn progress_source(&self, progress: Arc<Progress>) -> ArchiveProgress {
        ArchiveProgress { archive: self.archive.clone(), progress }
    }

    /// Runs `work` in the background and streams its progress.
    fn stream<T, E>(
        &self,
        slot: OwnedSemaphorePermit,
        progress_source: impl ProgressSource,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Response<Body>
    where
        T: Serialize + Send + 'static,
        E: Into<Failure> + Send + 'static,
    {
        let mut work = Box::pin(work);
        // An immediate error gets an HTTP status of its own.
        let immediate = match work.as_mut().now_or_never() {
            Some(Err(error)) => return error.into().response(),
            Some(Ok(done)) => Some(done),
            None => None,
        };
        let work = async move {
            match immediate {
                Some(done) => Ok(done),
                None => work.await,
            }
        };
        let (sender, receiver) = mpsc::channel(LINES_BUFFERED);
        tokio::spawn(stream_progress(slot, progress_source, work, sender));
        let lines = futures::stream::unfold(receiver, |mut receiver| async move {
            let line: Bytes = receiver.recv().await?;
            Some((Ok::<_, Infallible>(Frame::data(line)), receiver))
        });
        let mut response = Response::new(Body::http_body_unsync(StreamBody::new(lines)));
        let kind = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// Reports the progress of a long call.
trait ProgressSource: Send + Sync + 'static {
    /// Returns the progress; `None` when it is not available now.
    fn progress(&self, seconds: f64) -> impl Future<Output = Option<Value>> + Send;
}

/// The progress of a call of the archive.
struct ArchiveProgress {
    archive: Archive,
    progress: Arc<Progress>,
}

impl ProgressSource for ArchiveProgress {
    async fn progress(&self, seconds: f64) -> Option<Value> {
        let status = self.archive.status().await.ok()?;
        let (bytes_done, bytes_total) = self.progress.bytes();
        Some(json!({
            "seconds": seconds,
            "bytes_done": bytes_done.get(),
            "bytes_total": bytes_total.get(),
            "pipeline": status.pipeline,
            "objects_staged": status.objects_staged,
            "staged_bytes": status.staged_bytes,
            "platters": status.platters,
        }))
    }
}

/// The progress of an operation of a tier.
struct OperationProgress(Arc<Progress>);

impl ProgressSource for OperationProgress {
    async fn progress(&self, seconds: f64) -> Option<Value> {
        let (done, total) = self.0.bytes();
        Some(json!({
            "seconds": seconds,
            "bytes_done": done.get(),
            "bytes_total": total.get(),
            "message": self.0.message(),
        }))
    }
}

/// Parses the query parameter `name`, if it is present; an error if its value does not parse.
fn parse_parameter<T: FromStr>(query: &str, name: &str) -> Result<Option<T>, ()> {
    query_value(query, name).map(|text| text.parse().map_err(drop)).transpose()
}

fn too_many_subscribers() -> Response<Body> {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "SlowDown", "too many event subscribers")
}

/// Returns the requested platter, if the query names one; an error if its value is no platter id.
fn platter(query: &str) -> Result<Option<PlatterId>, ()> {
    parse_parameter(query, "platter")
}

fn no_platter_id() -> Response<Body> {
    refuse(StatusCode::BAD_REQUEST, "Invalid", "platter must be a platter id")
}

async fn stream_progress<T: Serialize, E: Into<Failure>>(
    slot: OwnedSemaphorePermit,
    progress_source: impl ProgressSource,
    work: impl Future<Output = Result<T, E>>,
    lines: mpsc::Sender<Bytes>,
) {
    let started = tokio::time::Instant::now();
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval(ADMIN_PROGRESS_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let last = loop {
        tokio::select! {
            // The caller is gone: work that the archive has started goes on, the rest is dropped.
            () = lines.closed() => return,
            done = &mut work => break match done {
                Ok(report) => json!({ "report": report }),
                Err(error) => error.into().value(),
            },
            _ = ticks.tick() => {
                let seconds = started.elapsed().as_secs_f64();
                let Some(progress) = progress_source.progress(seconds).await else { continue };
                // A full channel means a slow reader, which misses a line; the work goes on.
                let _ = lines.try_send(line(&json!({ "progress": progress })));
            }
        }
    };
    // The caller may be gone by now; the work is finished anyway.
    let _ = lines.send(line(&last)).await;
    drop(slot);
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

fn line(value: &Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}

fn respond<T: Serialize>(outcome: Result<T, impl Into<Failure>>) -> Response<Body> {
    match outcome {
        Ok(value) => reply(StatusCode::OK, &json!(value)),
        Err(error) => error.into().response(),
    }
}

/// Why a call was not served. Includes the causes: the operator is trusted with paths and system
/// errors.
#[derive(Debug)]
struct Failure {
    kind: ErrorKind,
    is_busy: bool,
    message: String,
}

impl Failure {
    fn value(&self) -> Value {
        let code = if self.is_busy { "SlowDown".to_owned() } else { format!("{:?}", self.kind) };
        json!({ "error": { "code": code, "message": self.message } })
    }

    fn response(&self) -> Response<Body> {
        reply(status_of(self.kind), &self.value())
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let is_busy = matches!(error, ArchiveError::Busy { .. });
        Self { kind: error.kind(), is_busy, message: error_chain(&error) }
    }
}

impl From<TierError> for Failure {
    fn from(error: TierError) -> Self {
        Self { kind: error.kind, is_busy: error.is_busy, message: error.message }
    }
}

const fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Corrupt | ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        // The enum may grow; an unknown kind is a bug of ours.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn refuse(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    reply(status, &json!({ "error": { "code": code, "message": message } }))
}

fn reply(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(line(value)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
