//! The calls that a tome serves, and to whom.
//!
//! | call | permitted to |
//! | --- | --- |
//! | messages (`Letters`) | a tome with a process of its own, for its own messages |
//! | a session | the process of the set, for messages of tomes that are there |
//! | all others | the process of the set |
//!
//! The certificate of a peer identifies it. Not here: sockets.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fulgurite_rpc::{Replies, chunks, collect, collect_exactly};
use fulgurite_tome_core::TomeId;
use fulgurite_units::{Duration, TomeSetId, UnixTime};
use futures::stream::{self, StreamExt as _};
use tokio::sync::watch;
use tonic::{Request, Status, Streaming};

use crate::remote::encoding::{self, decode, encode};
use crate::remote::failure::status;
use crate::remote::limits::{PAGE_MAX, PART_BYTES, REPLY_BYTES_MAX};
use crate::remote::peer_network::PeerNetwork;
use crate::remote::queue::{QueueReceiver, queue};
use crate::remote::tls::PeerName;
use crate::remote::wire::{
    Chunk, FromSet, Letter, ListReply, ListRequest, Listed, Named, Nothing, PutPart, PutReply,
    QueryPart, StatusReply, ToSet, Tome,
};
use crate::remote::{NetError, Result};
use crate::{Session, SetHandshake, StandaloneTome, TomeStatus, TomesError};

/// Opens the tome; with a handshake, creates it if that permits.
pub(crate) type Open = dyn Fn(Option<&SetHandshake>) -> crate::Result<StandaloneTome> + Send + Sync;

/// A tome that is served.
pub(crate) struct Served {
    pub(crate) set: TomeSetId,
    pub(crate) tome: TomeId,
    /// Tomes in the process of the set.
    pub(crate) tomes_at_set: BTreeSet<TomeId>,
    pub(crate) peer_network: Arc<PeerNetwork>,
    pub(crate) open: Arc<Open>,
    /// The tome, once it is open.
    pub(crate) standalone: Mutex<Option<Arc<StandaloneTome>>>,
    /// Held while it is being opened.
    pub(crate) opening: tokio::sync::Mutex<()>,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("tome", &self.tome).finish_non_exhaustive()
    }
}

type RpcResult<T> = Result<T, Status>;

impl Served {
    /// Returns the tome, if it is open.
    pub(crate) fn standalone(&self) -> Option<Arc<StandaloneTome>> {
        self.standalone.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the tome, and opens it if needed.
    pub(crate) async fn opened(
        self: &Arc<Self>,
        set_handshake: Option<SetHandshake>,
    ) -> crate::Result<Arc<StandaloneTome>> {
        let _one = self.opening.lock().await;
        if let Some(standalone) = self.standalone() {
            return Ok(standalone);
        }
        let open = Arc::clone(&self.open);
        let opened = tokio::task::spawn_blocking(move || open(set_handshake.as_ref())).await;
        let standalone = Arc::new(opened.map_err(|_| TomesError::Stopped)??);
        if *self.stopping.borrow() {
            return Err(TomesError::Stopped);
        }
        *self.standalone.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(&standalone));
        Ok(standalone)
    }

    /// Delivers a message that is for this tome and from one that the sender may speak for.
    fn deliver(&self, letter: &Letter, may_be_from: impl Fn(TomeId) -> bool) -> RpcResult<()> {
        let from = TomeId::new(letter.from);
        if letter.set[..] != self.set.to_bytes() || letter.to != self.tome.get() {
            return Err(refused("the message is for another tome or set"));
        }
        if !may_be_from(from) {
            tracing::warn!(tome = %self.tome, "a message falsely claims to be from tome {from}");
            return Err(refused("the message claims to be from another tome"));
        }
        let message = encoding::message(&letter.body).map_err(invalid)?;
        // A tome that is not open yet loses it.
        if let Some(standalone) = self.standalone() {
            standalone.deliver(from, message);
        }
        Ok(())
    }

    /// Receives the messages of a session until it is over.
    async fn listen(
        &self,
        standalone: &StandaloneTome,
        mut incoming: Streaming<FromSet>,
    ) -> RpcResult<()> {
        let mut stopping = self.stopping.clone();
        loop {
            let message = tokio::select! {
                message = incoming.message() => message?,
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return Ok(()),
                () = standalone.wait_until_given_up() => {
                    return Err(Status::unavailable("the tome failed, until it works again"));
                }
            };
            let Some(FromSet { token, letter, .. }) = message else { return Ok(()) };
            if !token.is_empty() {
                standalone.deliver_from_token_manager(decode("a token", &token).map_err(invalid)?);
            }
            if let Some(letter) = letter {
                self.deliver(&letter, |claimed| self.tomes_at_set.contains(&claimed))?;
            }
        }
    }

    /// Returns the tome, if the set sent the request.
    fn authorize<T>(&self, request: &Request<T>) -> RpcResult<Arc<StandaloneTome>> {
        require_token_manager(request)?;
        let why = "no set has begun a session with it yet".to_owned();
        let away = TomesError::Away { tome: self.tome, why };
        self.standalone().ok_or_else(|| status(&away))
    }
}

impl Tome for Served {
    async fn letters(self: &Arc<Self>, letters: Request<Streaming<Letter>>) -> RpcResult<Nothing> {
        let from = match peer_name(&letters)? {
            PeerName::Tome(tome) => tome,
            PeerName::TokenManager => return Err(refused("the set sends messages in its session")),
        };
        let mut letters = letters.into_inner();
        let mut stopping = self.stopping.clone();
        loop {
            let letter = tokio::select! {
                letter = letters.message() => letter?,
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return Ok(Nothing {}),
            };
            let Some(letter) = letter else { return Ok(Nothing {}) };
            self.deliver(&letter, |claimed| claimed == from)?;
        }
    }

    async fn session(
        self: &Arc<Self>,
        incoming: Request<Streaming<FromSet>>,
    ) -> RpcResult<Replies<ToSet>> {
        require_token_manager(&incoming)?;
        let mut incoming = incoming.into_inner();
        let first = incoming.message().await?.ok_or_else(|| refused("the handshake is missing"))?;
        let set_handshake = encoding::handshake(&first.introduction).map_err(invalid)?;
        let standalone = self.opened(Some(set_handshake.clone())).await.map_err(|e| status(&e))?;
        let (session, reply) =
            standalone.begin_session(&set_handshake).await.map_err(|e| status(&e))?;
        let (answers, waiting) = queue();
        let greeting = encode("a handshake reply", &reply).map_err(invalid)?;
        let greeting = ToSet { greeting, session: session.0, ..ToSet::default() };
        answers.send(greeting);
        if !self.peer_network.session_started(session.0, answers) {
            return Err(status(&session.over(self.tome)));
        }
        tracing::info!(tome = %self.tome, session = session.0, "the set is connected");
        let served = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = served.listen(&standalone, incoming).await {
                tracing::info!(tome = %served.tome, "the set disconnected: {}", error.message());
            }
            served.peer_network.end_session(session.0);
        });
        let next = async |mut waiting: QueueReceiver<_>| Some((Ok(waiting.next().await?), waiting));
        Ok(stream::unfold(waiting, next).boxed())
    }

    async fn put(self: &Arc<Self>, parts: Request<Streaming<PutPart>>) -> RpcResult<PutReply> {
        let standalone = self.authorize(&parts)?;
        let mut parts = parts.into_inner();
        let first = parts.message().await?.ok_or_else(|| refused("the put has no content"))?;
        let permit = standalone.room(first.length).map_err(|e| status(&e))?;
        let length = usize::try_from(first.length).unwrap_or(usize::MAX);
        let bytes = collect_exactly(&mut parts, length, |part| part.bytes).await?.into();
        let avoided = first.avoided.into_iter().map(TomeId::new).collect();
        let done =
            standalone.put(Session(first.session), first.name, (bytes, avoided), permit).await;
        let placed = done.map_err(|e| status(&e))?;
        let placed = placed.map(|placed| encode("an object location", &placed)).transpose();
        Ok(PutReply { placed: placed.map_err(invalid)?.unwrap_or_default() })
    }

    /// Answers any other query of the set.
    async fn ask(
        self: &Arc<Self>,
        parts: Request<Streaming<QueryPart>>,
    ) -> RpcResult<Replies<Chunk>> {
        let standalone = self.authorize(&parts)?;
        let mut parts = parts.into_inner();
        let first = parts.message().await?.ok_or_else(|| refused("the query has no content"))?;
        let query = collect(&mut parts, REPLY_BYTES_MAX, |part| part.bytes).await?;
        let query = encoding::query(&query).map_err(invalid)?;
        let reply = standalone.answer(Session(first.session), query).await;
        let reply = reply.map_err(|e| status(&e))?;
        Ok(in_chunks(encode("an answer", &reply).map_err(invalid)?))
    }

    async fn get(self: &Arc<Self>, named: Request<Named>) -> RpcResult<Replies<Chunk>> {
        let standalone = self.authorize(&named)?;
        let Named { name, is_own, .. } = named.into_inner();
        let object = standalone.get(name, is_own).await.map_err(|e| status(&e))?;
        Ok(in_chunks(object.into()))
    }

    async fn delete(self: &Arc<Self>, named: Request<Named>) -> RpcResult<Nothing> {
        let standalone = self.authorize(&named)?;
        let Named { name, session, .. } = named.into_inner();
        let done = standalone.delete(Session(session), name).await;
        done.map(|()| Nothing {}).map_err(|e| status(&e))
    }

    async fn protected(self: &Arc<Self>, named: Request<Named>) -> RpcResult<Nothing> {
        let done = self.authorize(&named)?.protected(named.into_inner().name).await;
        done.map(|()| Nothing {}).map_err(|e| status(&e))
    }

    async fn status(self: &Arc<Self>, request: Request<Nothing>) -> RpcResult<StatusReply> {
        let tome_status = self.authorize(&request)?.status().await.map_err(|e| status(&e))?;
        Ok(status_reply(tome_status))
    }

    async fn list(self: &Arc<Self>, request: Request<ListRequest>) -> RpcResult<ListReply> {
        let standalone = self.authorize(&request)?;
        // Its set sends no other request before that.
        standalone.wait_until_probed().await;
        let ListRequest { after, max } = request.into_inner();
        let max = usize::try_from(max).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let object_page = standalone.object_page(after, max).await.map_err(|e| status(&e))?;
        let objects = object_page.objects.into_iter();
        let listed = |object: crate::ListedObject| {
            let placed = object.placed.map(|placed| encode("an object location", &placed));
            let placed = placed.transpose().map_err(invalid)?.unwrap_or_default();
            Ok(Listed { name: object.name, blocks: object.blocks, placed })
        };
        Ok(ListReply { objects: objects.map(listed).collect::<RpcResult<_>>()? })
    }
}

/// Returns bytes as a stream of chunks.
fn in_chunks(bytes: Bytes) -> Replies<Chunk> {
    stream::iter(chunks(bytes, PART_BYTES).map(|bytes| Ok(Chunk { bytes }))).boxed()
}

/// Returns the sender's name, from its certificate.
fn peer_name<T>(request: &Request<T>) -> RpcResult<PeerName> {
    let name = request.extensions().get::<PeerName>().copied();
    name.ok_or_else(|| refused("the peer is unknown"))
}

fn require_token_manager<T>(request: &Request<T>) -> RpcResult<()> {
    match peer_name(request)? {
        PeerName::TokenManager => Ok(()),
        PeerName::Tome(_) => Err(refused("only the set may send this request")),
    }
}

fn refused(what: &'static str) -> Status {
    Status::permission_denied(what)
}

fn invalid(error: NetError) -> Status {
    Status::invalid_argument(error.to_string())
}

fn status_reply(status: TomeStatus) -> StatusReply {
    let power = fulgurite_disks::Power::ALL.iter().position(|power| *power == status.power);
    StatusReply {
        power: power.and_then(|index| u32::try_from(index).ok()).unwrap_or(u32::MAX),
        token: status.token.map(|token| token.0),
        objects: status.objects,
        unprotected_bytes: status.unprotected.bytes.get(),
        unprotected_ns: status.unprotected.age.as_nanos(),
        scrub_next: status.scrubbed.next,
        scrub_spent_ns: status.scrubbed.spent.as_nanos(),
        scrub_passes: status.scrubbed.passes,
        spin_ups: status.spin_ups,
        spin_ups_by: status.spin_ups_by_cause.to_vec(),
        spin_ups_of_a_day: status.spin_ups_last_day,
        scrub_began: status.scrub_began.map(UnixTime::as_millis),
        bad: status.bad,
        spending: status.spending.map(budget_reply),
        healed: status.healed,
        to_scrub: status.to_scrub,
        blocks: status.blocks,
        failure: status.failure,
        alarms: status.alarms,
    }
}

fn budget_reply(spending: fulgurite_tome_core::Spending) -> crate::remote::wire::Spending {
    crate::remote::wire::Spending {
        per_day: spending.per_day,
        left: spending.left,
        put_off_ns: spending.deferred_for.map(Duration::as_nanos),
        overdrawn: spending.overdrawn,
    }
}
