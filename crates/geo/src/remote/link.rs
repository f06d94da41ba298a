//! Link to one store of a node: a connection that is opened on demand. For a call without an
//! answer, the error states whether it may have been executed.
//!
//! ```text
//! no connection -- dial, Open: version, store --> connection -- call --> answer
//!       ^                                            |
//!       '---------------- it ended -----------------'   a call that was sent: outcome unknown
//! ```
//!
//! Not here: the calls themselves.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fulgurite_rpc::{Alert, Call, Client, DialError as RpcDialError, Identity, TlsFiles, dial};
use fulgurite_units::error_chain;
use futures::stream::{self, Stream, StreamExt as _};
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout};
use tonic::{Code, ConnectError, Request, Status, Streaming, TimeoutExpired};

use crate::remote::limits::{CONNECTION, VERSION, WIRE_BYTES_MAX};
use crate::remote::refusals::{DialError, connection_error, handshake_error};
use crate::remote::wire::{Failure, OpenReply, OpenRequest, calls};
use crate::remote::wire_errors::{
    decode_blob_error, decode_table_error, is_foreign, is_missing, is_not_served,
};
use crate::stores::limits::{ANSWER_TIMEOUT, CONNECT_TIMEOUT};
use crate::stores::{BlobError, Cause, NodeEndpoint, OpenError, TableCaps, TableError};

/// A store of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Table,
    Blobs,
}

impl StoreKind {
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Table => 1,
            Self::Blobs => 2,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Blobs => "blob folder",
        }
    }
}

/// Why no call can be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LinkError {
    /// There is no connection.
    Dial(DialError),
    /// The node has no such store at the moment.
    Store(Failure),
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallError {
    /// It did not arrive.
    NotSent(LinkError),
    /// It may have arrived.
    Lost(String),
}

/// Link to one store of a node.
#[derive(Debug)]
pub(crate) struct Link {
    place: NodeEndpoint,
    files: TlsFiles,
    kind: StoreKind,
    dialing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    caps: OnceLock<TableCaps>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of the current connection, or of the last one.
    number: u64,
    current: Option<Client>,
    failed: Option<(Instant, LinkError)>,
}

impl Link {
    pub(crate) fn new(place: NodeEndpoint, kind: StoreKind) -> Self {
        let files = TlsFiles {
            ca: place.ca.clone(),
            certificate: place.certificate.clone(),
            key: place.key.clone(),
        };
        let (dialing, state, caps) = Default::default();
        Self { place, files, kind, dialing, state, caps }
    }

    /// Connects, and makes the node open the store. An unreachable node is no error, unless it is
    /// to create the store: each call tries to connect again.
    pub(crate) async fn open(&self, may_create: bool) -> Result<(), OpenError> {
        match self.connected(may_create).await {
            Ok(_) => Ok(()),
            Err(LinkError::Dial(DialError::Unreachable(why))) if !may_create => {
                tracing::warn!(node = %self.place.authority, "the node is not reachable: {why}");
                Ok(())
            }
            Err(error) => Err(self.open_error(error)),
        }
    }

    fn open_error(&self, error: LinkError) -> OpenError {
        let place = self.place.address.clone();
        match error {
            LinkError::Store(failure) if is_missing(&failure) => {
                OpenError::Missing { what: self.kind.name(), place }
            }
            LinkError::Store(failure) if is_not_served(&failure) => {
                let what = if self.kind == StoreKind::Table { "table" } else { "blobs" };
                OpenError::NotServed { what, place }
            }
            LinkError::Store(failure) if is_foreign(&failure) => {
                OpenError::Foreign { place, what: failure.what }
            }
            LinkError::Dial(DialError::Refused(what)) => OpenError::Foreign { place, what },
            error @ (LinkError::Dial(_) | LinkError::Store(_)) => match self.kind {
                StoreKind::Table => OpenError::Table { place, source: not_sent(error) },
                StoreKind::Blobs => OpenError::Blob { place, source: blob_not_sent(error) },
            },
        }
    }

    /// Returns the capabilities of the table, once the node has sent them.
    pub(crate) fn caps(&self) -> Option<TableCaps> {
        self.caps.get().copied()
    }

    /// Returns a connection and its number.
    pub(crate) async fn client(&self) -> Result<(u64, Client), LinkError> {
        self.connected(false).await
    }

    async fn connected(&self, may_create: bool) -> Result<(u64, Client), LinkError> {
        let started = Instant::now();
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let _one = self.dialing.lock().await;
        if let Some(current) = self.current() {
            return Ok(current);
        }
        // A caller that waited for another's failed attempt would wait just as long for the same
        // result.
        if let Some((when, error)) = &self.state().failed
            && *when >= started
        {
            return Err(error.clone());
        }
        // Creating a store takes longer than finding one.
        let time_limit = if may_create { ANSWER_TIMEOUT } else { CONNECT_TIMEOUT };
        let dialed = timeout(time_limit, self.dial(may_create)).await.unwrap_or_else(|_| {
            let why = format!("the node at {} does not answer in time", self.place.authority);
            Err(LinkError::Dial(DialError::Unreachable(why)))
        });
        let mut state = self.state();
        match dialed {
            Ok(client) => {
                state.number += 1;
                state.failed = None;
                state.current = Some(client.clone());
                Ok((state.number, client))
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<(u64, Client)> {
        let state = self.state();
        Some((state.number, state.current.clone()?))
    }

    /// Records that the connection with this number has ended.
    fn mark_closed(&self, number: u64) {
        let mut state = self.state();
        if state.number == number {
            state.current = None;
        }
    }

    async fn dial(&self, may_create: bool) -> Result<Client, LinkError> {
        let authority = &self.place.authority;
        let (mut client, alert) = self.connect().await.map_err(LinkError::Dial)?;
        let request = OpenRequest { version: VERSION, part: self.kind.number(), may_create };
        let reply = client.unary::<calls::Open>(with_timeout(request, ANSWER_TIMEOUT)).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(status) if status.code() == Code::Unimplemented => {
                return Err(wrong_version(authority, "not a node, or one of another release"));
            }
            Err(status) => {
                let error = connection_error(authority, &alert, &describe(&status));
                return Err(LinkError::Dial(error));
            }
        };
        let caps = check_opened(authority, &reply)?;
        self.caps.get_or_init(|| caps);
        Ok(client)
    }

    async fn connect(&self) -> Result<(Client, Alert), DialError> {
        let NodeEndpoint { authority, name, .. } = &self.place;
        // Read the files each time: certificates are replaced before they expire.
        let identity = Identity::read(&self.files).map_err(|error| {
            DialError::Refused(format!("cannot use our certificates: {}", error_chain(&error)))
        })?;
        let server = ServerName::try_from(name.clone()).map_err(|_| {
            let what = format!("{name:?} is not a valid name of a certificate: use a host name");
            DialError::Refused(what)
        })?;
        match dial(authority, server, &identity, CONNECTION).await {
            Ok((channel, alert)) => Ok((Client::new(channel, WIRE_BYTES_MAX), alert)),
            Err(RpcDialError::Tcp(error)) => {
                Err(DialError::Unreachable(format!("no connection to {authority}: {error}")))
            }
            Err(RpcDialError::Tls(error)) => Err(handshake_error(authority, name, &error)),
            Err(RpcDialError::Http { what, alert }) => {
                Err(connection_error(authority, &alert, &what))
            }
        }
    }

    /// Sends one request and returns its answer. If it was not sent because the connection had
    /// ended meanwhile, it is sent once more.
    pub(crate) async fn unary<C: Call<Request: Clone>>(
        &self,
        request: C::Request,
        time_limit: Duration,
    ) -> Result<C::Reply, CallError> {
        let call = async {
            let mut has_retried = false;
            loop {
                let (number, mut client) = self.client().await.map_err(CallError::NotSent)?;
                let request = with_timeout(request.clone(), time_limit);
                match client.unary::<C>(request).await {
                    Ok(answer) => return Ok(answer),
                    Err(status) => match self.call_error(number, &status) {
                        CallError::NotSent(LinkError::Dial(DialError::Unreachable(_)))
                            if !has_retried =>
                        {
                            has_retried = true;
                        }
                        call_error @ (CallError::NotSent(_) | CallError::Lost(_)) => {
                            return Err(call_error);
                        }
                    },
                }
            }
        };
        self.in_time(time_limit, call).await
    }

    /// Sends a stream of requests and returns the answer.
    pub(crate) async fn client_streaming<C: Call>(
        &self,
        requests: impl Stream<Item = C::Request> + Send + 'static,
        time_limit: Duration,
    ) -> Result<C::Reply, CallError> {
        let call = async {
            let (number, mut client) = self.client().await.map_err(CallError::NotSent)?;
            let reply = client.client_streaming::<C>(with_timeout(requests, time_limit)).await;
            reply.map_err(|status| self.call_error(number, &status))
        };
        self.in_time(time_limit, call).await
    }

    /// Sends one request and returns a stream of answers, which ends after an error. Each answer
    /// has this time.
    pub(crate) fn server_streaming<C: Call>(
        &self,
        request: C::Request,
        time_limit: Duration,
    ) -> impl Stream<Item = Result<C::Reply, CallError>> + Send {
        let call = async move {
            let (number, mut client) = self.client().await.map_err(CallError::NotSent)?;
            let replies = client.server_streaming::<C>(request).await;
            Ok((number, replies.map_err(|status| self.call_error(number, &status))?))
        };
        let replies = async move {
            match self.in_time(time_limit, call).await {
                Ok((number, replies)) => self.replies(number, replies, time_limit).left_stream(),
                Err(error) => stream::iter([Err(error)]).right_stream(),
            }
        };
        stream::once(replies).flatten()
    }

    fn replies<M: Send + 'static>(
        &self,
        number: u64,
        replies: Streaming<M>,
        time_limit: Duration,
    ) -> impl Stream<Item = Result<M, CallError>> + Send {
        stream::unfold(Some(replies), move |replies| async move {
            let mut replies = replies?;
            let next = async {
                let next = replies.message().await;
                next.map_err(|status| self.call_error(number, &status))
            };
            match self.in_time(time_limit, next).await.transpose()? {
                Ok(reply) => Some((Ok(reply), Some(replies))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn in_time<T>(
        &self,
        time_limit: Duration,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let timed_out = |_| Err(CallError::Lost(self.timeout_message(time_limit)));
        timeout(time_limit, call).await.unwrap_or_else(timed_out)
    }

    pub(crate) fn timeout_message(&self, time_limit: Duration) -> String {
        format!(
            "the node at {} did not answer within {} s",
            self.place.authority,
            time_limit.as_secs()
        )
    }

    /// Interprets a status that does not come from the store.
    pub(crate) fn call_error(&self, number: u64, status: &Status) -> CallError {
        let authority = &self.place.authority;
        if status.code() == Code::Unimplemented {
            return CallError::NotSent(wrong_version(authority, "one without this call"));
        }
        if !is_timeout(status) {
            self.mark_closed(number);
        }
        let why = format!("the node at {authority}: {}", describe(status));
        if is_connect_error(status) {
            return CallError::NotSent(LinkError::Dial(DialError::Unreachable(why)));
        }
        CallError::Lost(why)
    }
}

/// Returns a request which the node cancels after this time, when nobody waits for it.
fn with_timeout<T>(message: T, time_limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(time_limit);
    request
}

/// Returns the capabilities of a table that a node opened; blobs have none.
pub(crate) fn check_opened(authority: &str, reply: &OpenReply) -> Result<TableCaps, LinkError> {
    if reply.version != VERSION {
        let found =
            format!("one that speaks version {} (release {})", reply.version, reply.program);
        return Err(wrong_version(authority, &found));
    }
    if let Some(failure) = &reply.failure {
        return Err(LinkError::Store(failure.clone()));
    }
    Ok(TableCaps {
        max_row: usize::try_from(reply.max_row).unwrap_or(usize::MAX),
        cond_delete: reply.cond_delete,
        reply_on_conflict: reply.reply_on_conflict,
        tag_reuse: reply.tag_reuse,
        scan_order: reply.scan_order,
    })
}

fn wrong_version(authority: &str, found: &str) -> LinkError {
    LinkError::Dial(DialError::Refused(format!(
        "the node at {authority} is {found}; this program speaks version {VERSION} (release {}): \
         run the same release at both ends",
        env!("CARGO_PKG_VERSION")
    )))
}

/// Whether a call took too long, on a connection that still works. tonic reports its own timeout as
/// a cancellation.
pub(crate) fn is_timeout(status: &Status) -> bool {
    let is_tonics = status.message() == TimeoutExpired(()).to_string();
    status.code() == Code::DeadlineExceeded || (status.code() == Code::Cancelled && is_tonics)
}

/// Whether the request was not sent because the connection had already ended.
fn is_connect_error(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn describe(status: &Status) -> String {
    match (std::error::Error::source(status), status.message()) {
        (Some(source), _) => error_chain(source),
        (None, "") => status.code().to_string(),
        (None, message) => message.to_owned(),
    }
}

fn not_sent(error: LinkError) -> TableError {
    match error {
        LinkError::Dial(DialError::Unreachable(why)) => TableError::Unavailable(Cause::new(why)),
        LinkError::Dial(DialError::Refused(why)) => TableError::Denied(Cause::new(why)),
        LinkError::Store(failure) => into_read_error(decode_table_error(failure)),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other errors stay as they are")]
fn blob_not_sent(error: LinkError) -> BlobError {
    match error {
        LinkError::Dial(DialError::Unreachable(why)) => BlobError::Unavailable(Cause::new(why)),
        LinkError::Dial(DialError::Refused(why)) => BlobError::Denied(Cause::new(why)),
        // A missing store says nothing about a blob.
        LinkError::Store(failure) => match decode_blob_error(failure) {
            BlobError::NotFound | BlobError::Exists | BlobError::Unknown(_) => {
                BlobError::Unavailable(Cause::new("the node's store cannot be opened"))
            }
            error => error,
        },
    }
}

/// Returns the table error of a call without an answer.
pub(crate) fn to_table_error(call_error: CallError) -> TableError {
    match call_error {
        CallError::NotSent(error) => not_sent(error),
        CallError::Lost(why) => TableError::Unknown(Cause::new(why)),
    }
}

/// Returns the blob error of a call without an answer.
pub(crate) fn to_blob_error(call_error: CallError) -> BlobError {
    match call_error {
        CallError::NotSent(error) => blob_not_sent(error),
        CallError::Lost(why) => BlobError::Unknown(Cause::new(why)),
    }
}

/// Maps the error of a call without effects: an unknown outcome becomes not done.
pub(crate) fn into_read_error(error: TableError) -> TableError {
    if let TableError::Unknown(cause) = error { TableError::Unavailable(cause) } else { error }
}

/// The same for blobs.
pub(crate) fn into_blob_read_error(error: BlobError) -> BlobError {
    if let BlobError::Unknown(cause) = error { BlobError::Unavailable(cause) } else { error }
}
