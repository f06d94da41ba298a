//! A tome in another process, for its set: each request is a call, and each ends, whatever happens
//! to the connection.
//!
//! Not here: when a session begins ([`crate::remote::session`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_disks::Power;
use fulgurite_rpc::{Client, chunks, collect};
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::metadata::Scrubbed;
use fulgurite_tome_core::token::{FromTokenManager, TokenId};
use fulgurite_tome_core::{Spending, TomeId, Unprotected};
use fulgurite_units::{ByteCount, Clock, Duration, UnixTime};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::limits::PUT_BYTES_MAX;
use crate::remote::NetError;
use crate::remote::dial::BackoffLimits;
use crate::remote::encoding::{decode, encode};
use crate::remote::failure::error;
use crate::remote::limits::{PART_BYTES, QUERY_TIMEOUT, REPLY_BYTES_MAX, REQUESTS_MAX};
use crate::remote::peer_network::encode_message;
use crate::remote::queue::{QueueReceiver, QueueSender, queue};
use crate::remote::session::{ActiveSession, RemotePeer, State, run};
use crate::remote::tls::Tls;
use crate::remote::wire::{FromSet, Named, Nothing, PutPart, QueryPart, StatusReply, calls};
use crate::{
    ObjectLocation, RemoteHandle, SetLink, TomeQuery, TomeReply, TomeRequest, TomeStatus,
    TomesError,
};

/// Options of a remote tome.
#[derive(Debug)]
pub struct RemoteOptions {
    /// The tome.
    pub tome: TomeId,
    /// Its host and port.
    pub address: String,
    /// Certificate of the process of the set.
    pub tls: Tls,
    /// Backoff between connections.
    pub backoff_limits: BackoffLimits,
    /// Clock for the time since when it does not answer.
    pub clock: Clock,
    /// Runtime of the calls.
    pub runtime: Handle,
}

/// A tome in another process.
#[derive(Debug)]
pub struct RemoteTome {
    peer: Arc<RemotePeer>,
    outgoing: QueueSender<FromSet>,
    /// Taken by `begin`.
    waiting: Mutex<Option<QueueReceiver<FromSet>>>,
    lost: AtomicU64,
    runtime: Handle,
}

impl RemoteTome {
    /// Returns the tome at this address. It does not connect before its set calls `begin`.
    #[must_use]
    pub fn new(options: RemoteOptions) -> Self {
        let RemoteOptions { tome, address, tls, backoff_limits, clock, runtime } = options;
        let (outgoing, waiting) = queue();
        let why = "it has not answered yet".to_owned();
        let state = Mutex::new(State::Away { since: clock.now(), why });
        let request_permits = Arc::new(Semaphore::new(REQUESTS_MAX));
        let (stopping, _) = watch::channel(false);
        let peer = RemotePeer {
            tome,
            address,
            tls,
            backoff_limits,
            clock,
            state,
            request_permits,
            stopping,
        };
        let (peer, waiting) = (Arc::new(peer), Mutex::new(Some(waiting)));
        Self { peer, outgoing, waiting, lost: AtomicU64::new(0), runtime }
    }

    /// Number of messages dropped before they were sent.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn enqueue(&self, outgoing: FromSet) {
        if !self.outgoing.send(outgoing) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl RemoteHandle for RemoteTome {
    fn begin(&self, set_link: SetLink) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(waiting) = waiting else {
            tracing::error!(tome = %self.peer.tome, "started twice: it belongs to one set");
            return;
        };
        self.runtime.spawn(run(Arc::clone(&self.peer), Arc::new(set_link), waiting));
    }

    fn send_request(&self, request: TomeRequest) {
        let tome = self.peer.tome;
        let active = match &*self.peer.state() {
            State::ActiveSession(active) => Ok(active.clone()),
            State::Away { why, .. } => Err(why.clone()),
        };
        let active = match active {
            Ok(active) => active,
            Err(why) => return request.refuse(TomesError::Away { tome, why }),
        };
        let Ok(permit) = Arc::clone(&self.peer.request_permits).try_acquire_owned() else {
            return request.refuse(TomesError::Busy { tome });
        };
        self.runtime.spawn(async move {
            answer(tome, active, request).await;
            drop(permit);
        });
    }

    fn send(&self, from: TomeId, message: Message) {
        if let Some(letter) = encode_message(self.peer.set(), from, self.peer.tome, &message) {
            self.enqueue(FromSet { letter: Some(letter), ..FromSet::default() });
        }
    }

    fn send_to_holder(&self, message: FromTokenManager) {
        match encode("a token", &message) {
            Ok(token) => self.enqueue(FromSet { token, ..FromSet::default() }),
            Err(error) => tracing::error!("{error}"),
        }
    }

    fn away(&self) -> Option<String> {
        match &*self.peer.state() {
            State::ActiveSession(_) => None,
            State::Away { since, why } => {
                let (address, now) = (&self.peer.address, self.peer.clock.now());
                let seconds = now.as_millis().saturating_sub(since.as_millis()) / 1000;
                Some(format!("no answer from {address} for {seconds} s: {why}"))
            }
        }
    }

    fn stop(&self) {
        self.peer.stopping.send_replace(true);
    }
}

/// Answers every request, with an error if need be.
#[expect(clippy::wildcard_enum_match_arm, reason = "further requests are not sent as calls")]
async fn answer(tome: TomeId, active: ActiveSession, request: TomeRequest) {
    let ActiveSession { mut client, session, over } = active;
    // The requester may be gone.
    match request {
        TomeRequest::Put { name, bytes, avoided, permit, done } => {
            let avoided = avoided.into_iter().map(TomeId::get).collect();
            let first = PutPart { session, name, avoided, ..PutPart::default() };
            let put = put(tome, &mut client, first, bytes);
            done.send(until(tome, over, put).await);
            drop(permit);
        }
        TomeRequest::Get { name, is_own, reply } => {
            let got = get(tome, &mut client, Named { name, is_own, session });
            let _ = reply.send(until(tome, over, got).await);
        }
        TomeRequest::Delete { name, done } => {
            let delete = client.unary::<calls::Delete>(Named { name, is_own: false, session });
            let delete = async { delete.await.map_err(|e| error(tome, &e)) };
            done.send(until(tome, over, in_time(tome, delete)).await.map(drop));
        }
        TomeRequest::Protected { name, reply } => {
            let protected =
                client.unary::<calls::Protected>(Named { name, is_own: false, session });
            let protected = async { protected.await.map_err(|e| error(tome, &e)) };
            let _ = reply.send(until(tome, over, protected).await.map(drop));
        }
        TomeRequest::Status(reply) => {
            let status = client.unary::<calls::Status>(Nothing {});
            let status = async { status.await.map_err(|e| error(tome, &e)) };
            let status = until(tome, over, in_time(tome, status)).await;
            if let Some(status) = status.ok().and_then(|status| status_of(tome, status)) {
                let _ = reply.send(status);
            }
        }
        other => match other.into_query() {
            Ok((query, requester)) => {
                let may_wait = matches!(
                    query,
                    TomeQuery::Hold { .. } | TomeQuery::Scrub | TomeQuery::Check { .. }
                );
                let reply = send_query(tome, &mut client, session, query);
                requester.send(match may_wait {
                    true => until(tome, over, reply).await,
                    false => until(tome, over, in_time(tome, reply)).await,
                });
            }
            Err(other) => {
                let what = "this request cannot be sent to a remote tome".to_owned();
                other.refuse(TomesError::Invalid { what });
            }
        },
    }
}

/// Sends a query and returns the reply.
async fn send_query(
    tome: TomeId,
    client: &mut Client,
    session: u64,
    query: TomeQuery,
) -> Result<TomeReply, TomesError> {
    let unanswered = |why: String| TomesError::Unanswered { tome, why };
    let bytes = encode("a query", &query).map_err(|e| unanswered(e.to_string()))?;
    let first = QueryPart { session, ..QueryPart::default() };
    let parts = chunks(bytes, PART_BYTES).map(|bytes| QueryPart { bytes, ..QueryPart::default() });
    let parts = tokio_stream::iter(std::iter::once(first).chain(parts));
    let reply = client.streaming::<calls::Ask>(parts).await;
    let mut reply = reply.map_err(|e| error(tome, &e))?;
    let bytes = collect(&mut reply, REPLY_BYTES_MAX, |chunk| chunk.bytes).await;
    let bytes = bytes.map_err(|e| error(tome, &e))?;
    decode("an answer", &bytes).map_err(|e| unanswered(e.to_string()))
}

/// Runs a call until its end or that of the session.
async fn until<T>(
    tome: TomeId,
    mut over: watch::Receiver<bool>,
    call: impl Future<Output = Result<T, TomesError>>,
) -> Result<T, TomesError> {
    tokio::select! {
        done = call => done,
        _ = over.wait_for(|is_over| *is_over) => {
            let why = "the connection ended".to_owned();
            Err(TomesError::Unanswered { tome, why })
        }
    }
}

/// Runs a call that waits for no disk: the thread that moves member slots waits for its answer.
async fn in_time<T>(
    tome: TomeId,
    call: impl Future<Output = Result<T, TomesError>>,
) -> Result<T, TomesError> {
    let timed_out = |_| Err(TomesError::Unanswered { tome, why: "no answer in time".to_owned() });
    tokio::time::timeout(QUERY_TIMEOUT, call).await.unwrap_or_else(timed_out)
}

async fn put(
    tome: TomeId,
    client: &mut Client,
    first: PutPart,
    bytes: Vec<u8>,
) -> Result<Option<ObjectLocation>, TomesError> {
    let first = PutPart { length: bytes.len() as u64, ..first };
    let parts = chunks(Bytes::from(bytes), PART_BYTES);
    let parts = parts.map(|bytes| PutPart { bytes, ..PutPart::default() });
    let parts = tokio_stream::iter(std::iter::once(first).chain(parts));
    let done = client.client_streaming::<calls::Put>(parts).await;
    let placed = done.map_err(|e| error(tome, &e))?.placed;
    let unknown = |error: NetError| TomesError::Unanswered { tome, why: error.to_string() };
    decode("an object location", &placed).map(Some).map_err(unknown)
}

async fn get(tome: TomeId, client: &mut Client, named: Named) -> Result<Vec<u8>, TomesError> {
    let parts = client.server_streaming::<calls::Get>(named).await;
    let mut parts = parts.map_err(|e| error(tome, &e))?;
    let bytes_max = usize::try_from(PUT_BYTES_MAX.get()).unwrap_or(usize::MAX);
    let bytes = collect(&mut parts, bytes_max, |chunk| chunk.bytes).await;
    bytes.map_err(|e| error(tome, &e))
}

/// Decodes a status; returns `None` if it is none of this version.
fn status_of(tome: TomeId, reply: StatusReply) -> Option<TomeStatus> {
    let power = usize::try_from(reply.power).ok().and_then(|index| Power::ALL.get(index).copied());
    Some(TomeStatus {
        tome,
        power: power?,
        token: reply.token.map(TokenId),
        objects: reply.objects,
        unprotected: Unprotected {
            bytes: ByteCount::new(reply.unprotected_bytes),
            age: Duration::from_nanos(reply.unprotected_ns),
        },
        scrubbed: Scrubbed {
            next: reply.scrub_next,
            spent: Duration::from_nanos(reply.scrub_spent_ns),
            passes: reply.scrub_passes,
        },
        to_scrub: reply.to_scrub,
        blocks: reply.blocks,
        spin_ups: reply.spin_ups,
        spin_ups_by_cause: reply.spin_ups_by.try_into().ok()?,
        spin_ups_last_day: reply.spin_ups_of_a_day,
        scrub_began: reply.scrub_began.map(UnixTime::from_millis),
        bad: reply.bad,
        spending: reply.spending.map(budget_of),
        healed: reply.healed,
        failure: reply.failure,
        away: None,
        alarms: reply.alarms,
    })
}

fn budget_of(reply: crate::remote::wire::Spending) -> Spending {
    Spending {
        per_day: reply.per_day,
        left: reply.left,
        deferred_for: reply.put_off_ns.map(Duration::from_nanos),
        overdrawn: reply.overdrawn,
    }
}
