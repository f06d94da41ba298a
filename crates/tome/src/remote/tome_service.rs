//! The calls that a tome serves, and to whom.
//!
//! | call | permitted to |
//! | --- | --- |
//! | letters | a tome with a process of its own, for its own messages |
//! | a session | the process of the set, for messages of tomes that are there |
//! | all others | the process of the set |
//!
//! The certificate of a peer identifies it. Not here: sockets.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use fulgurite_tome_core::TomeId;
use fulgurite_units::{Duration, TomeSetId, UnixTime};
use tokio::sync::{mpsc, watch};
use tonic::{Request, Status, Streaming};

use crate::remote::encoding::{self, decode, encode};
use crate::remote::failure::status;
use crate::remote::limits::{PAGE_MAX, PART_BYTES, REPLY_BYTES_MAX, ROUTE_MAX};
use crate::remote::peer_network::PeerNetwork;
use crate::remote::tls::PeerName;
use crate::remote::wire::{
    Bytes, FromSet, Letter, ListReply, ListRequest, Listed, Named, Nothing, PutPart, PutReply,
    StatusReply, ToSet,
};
use crate::remote::{NetError, Result};
use crate::{Session, SetHandshake, StandaloneTome, TomeStatus, TomesError};

/// Opens the tome; with an introduction, creates it if that permits.
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
        introduction: Option<SetHandshake>,
    ) -> crate::Result<Arc<StandaloneTome>> {
        let _one = self.opening.lock().await;
        if let Some(standalone) = self.standalone() {
            return Ok(standalone);
        }
        let open = Arc::clone(&self.open);
        let opened = tokio::task::spawn_blocking(move || open(introduction.as_ref())).await;
        let standalone = Arc::new(opened.map_err(|_| TomesError::Stopped)??);
        if *self.stopping.borrow() {
            return Err(TomesError::Stopped);
        }
        *self.standalone.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(&standalone));
        Ok(standalone)
    }

    pub(crate) async fn letters(&self, letters: Request<Streaming<Letter>>) -> RpcResult<Nothing> {
        let from = match peer_name(&letters)? {
            PeerName::Tome(tome) => tome,
            PeerName::TokenManager => return Err(refused("the set sends letters in its sessions")),
        };
        let mut letters = letters.into_inner();
        let mut stopping = self.stopping.clone();
        loop {
            let letter = tokio::select! {
                letter = letters.message() => letter?,
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return Ok(Nothing {}),
            };
            let Some(letter) = letter else { return Ok(Nothing {}) };
            self.take(&letter, |claimed| claimed == from)?;
        }
    }

    /// Delivers a message that is for this tome and from one that the sender may speak for.
    fn take(&self, letter: &Letter, may_be_from: impl Fn(TomeId) -> bool) -> RpcResult<()> {
        let from = TomeId::new(letter.from);
        if letter.set != self.set.to_bytes() || letter.to != self.tome.get() {
            return Err(refused("a letter is for another tome or set"));
        }
        if !may_be_from(from) {
            tracing::warn!(tome = %self.tome, "a letter claims to be from tome {from}, and is not");
            return Err(refused("a letter is from another tome than its sender"));
        }
        let message = encoding::message(&letter.body).map_err(invalid)?;
        // A tome that is not open yet loses it.
        if let Some(standalone) = self.standalone() {
            standalone.told(from, message);
        }
        Ok(())
    }

    pub(crate) async fn session(
        self: &Arc<Self>,
        said: Request<Streaming<FromSet>>,
    ) -> RpcResult<mpsc::Receiver<RpcResult<ToSet>>> {
        require_token_manager(&said)?;
        let mut said = said.into_inner();
        let first = said.message().await?.ok_or_else(|| refused("nobody is introduced"))?;
        let introduction = encoding::introduction(&first.introduction).map_err(invalid)?;
        let standalone = self.opened(Some(introduction.clone())).await.map_err(|e| status(&e))?;
        let (session, greeting) =
            standalone.begin_session(&introduction).await.map_err(|e| status(&e))?;
        let (answers, answered) = mpsc::channel(ROUTE_MAX);
        let greeting = encode("a greeting", &greeting).map_err(invalid)?;
        let greeting = ToSet { greeting, session: session.0, ..ToSet::default() };
        // The first message always fits.
        let _ = answers.try_send(Ok(greeting));
        tracing::info!(tome = %self.tome, session = session.0, "the set is there");
        self.peer_network.session_started(session.0, answers);
        let served = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = served.listen(&standalone, said).await {
                tracing::info!(tome = %served.tome, "the set is gone: {}", error.message());
            }
            served.peer_network.left(session.0);
        });
        Ok(answered)
    }

    /// Receives the messages of a session until it is over.
    async fn listen(
        &self,
        standalone: &StandaloneTome,
        mut said: Streaming<FromSet>,
    ) -> RpcResult<()> {
        let mut stopping = self.stopping.clone();
        loop {
            let message = tokio::select! {
                message = said.message() => message?,
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return Ok(()),
                () = standalone.given_up() => {
                    return Err(Status::unavailable("the tome is given up until it works again"));
                }
            };
            let Some(FromSet { token, letter, .. }) = message else { return Ok(()) };
            if !token.is_empty() {
                standalone.deliver_from_token_manager(decode("a token", &token).map_err(invalid)?);
            }
            if let Some(letter) = letter {
                self.take(&letter, |claimed| self.tomes_at_set.contains(&claimed))?;
            }
        }
    }

    pub(crate) async fn put(&self, parts: Request<Streaming<PutPart>>) -> RpcResult<PutReply> {
        let standalone = self.asked(&parts)?;
        let mut parts = parts.into_inner();
        let first = parts.message().await?.ok_or_else(|| refused("nothing is put"))?;
        let held = standalone.room(first.length).await.map_err(|e| status(&e))?;
        let length = usize::try_from(first.length).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(length);
        while let Some(part) = parts.message().await? {
            if part.bytes.len() > length - bytes.len() {
                return Err(Status::invalid_argument("more comes than was said"));
            }
            bytes.extend(part.bytes);
        }
        if bytes.len() != length {
            return Err(Status::invalid_argument("less comes than was said"));
        }
        let avoided = first.avoided.into_iter().map(TomeId::new).collect();
        let done = standalone.put(Session(first.session), first.name, (bytes, avoided), held).await;
        let placed = done.map_err(|e| status(&e))?;
        let placed = placed.map(|placed| encode("where an object lies", &placed)).transpose();
        Ok(PutReply { placed: placed.map_err(invalid)?.unwrap_or_default() })
    }

    /// Answers any other query of the set.
    pub(crate) async fn ask(
        &self,
        parts: Request<Streaming<Bytes>>,
    ) -> RpcResult<mpsc::Receiver<RpcResult<Bytes>>> {
        let standalone = self.asked(&parts)?;
        let query = join_parts(&mut parts.into_inner()).await?;
        let query = encoding::query(&query).map_err(invalid)?;
        let said = standalone.answer(query).await.map_err(|e| status(&e))?;
        Ok(in_parts(encode("an answer", &said).map_err(invalid)?))
    }

    pub(crate) async fn get(
        &self,
        named: Request<Named>,
    ) -> RpcResult<mpsc::Receiver<RpcResult<Bytes>>> {
        let standalone = self.asked(&named)?;
        let Named { name, is_own } = named.into_inner();
        let object = standalone.get(name, is_own).await.map_err(|e| status(&e))?;
        Ok(in_parts(object))
    }

    pub(crate) async fn delete(&self, named: Request<Named>) -> RpcResult<Nothing> {
        let done = self.asked(&named)?.delete(named.into_inner().name).await;
        done.map(|()| Nothing {}).map_err(|e| status(&e))
    }

    pub(crate) async fn protected(&self, named: Request<Named>) -> RpcResult<Nothing> {
        let done = self.asked(&named)?.protected(named.into_inner().name).await;
        done.map(|()| Nothing {}).map_err(|e| status(&e))
    }

    pub(crate) async fn status(&self, asked: Request<Nothing>) -> RpcResult<StatusReply> {
        let told = self.asked(&asked)?.status().await.map_err(|e| status(&e))?;
        Ok(status_reply(told))
    }

    pub(crate) async fn list(&self, asked: Request<ListRequest>) -> RpcResult<ListReply> {
        let standalone = self.asked(&asked)?;
        // Its set sends no other request before that.
        standalone.probed().await;
        let ListRequest { after, max } = asked.into_inner();
        let max = usize::try_from(max).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let object_page = standalone.object_page(after, max).await.map_err(|e| status(&e))?;
        let objects = object_page.objects.into_iter();
        let listed = |object: crate::Listed| {
            let placed = object.placed.map(|placed| encode("where an object lies", &placed));
            let placed = placed.transpose().map_err(invalid)?.unwrap_or_default();
            Ok(Listed { name: object.name, blocks: object.blocks, placed })
        };
        Ok(ListReply { objects: objects.map(listed).collect::<RpcResult<_>>()? })
    }

    /// Returns the tome, if the set sent the request.
    fn asked<T>(&self, request: &Request<T>) -> RpcResult<Arc<StandaloneTome>> {
        require_token_manager(request)?;
        let why = "no set has begun a session with it yet".to_owned();
        let away = TomesError::Away { tome: self.tome, why };
        self.standalone().ok_or_else(|| status(&away))
    }
}

/// Splits bytes into parts.
fn in_parts(bytes: Vec<u8>) -> mpsc::Receiver<RpcResult<Bytes>> {
    let (parts, stream) = mpsc::channel(1);
    tokio::spawn(async move {
        for part in bytes.chunks(PART_BYTES) {
            // The requester may be gone.
            if parts.send(Ok(Bytes { bytes: part.to_vec() })).await.is_err() {
                return;
            }
        }
    });
    stream
}

/// Joins received parts, up to the limit.
pub(crate) async fn join_parts(parts: &mut Streaming<Bytes>) -> RpcResult<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(part) = parts.message().await? {
        if bytes.len() + part.bytes.len() > REPLY_BYTES_MAX {
            return Err(Status::resource_exhausted("more comes than anything is long"));
        }
        bytes.extend(part.bytes);
    }
    Ok(bytes)
}

/// Returns the sender's name, from its certificate.
fn peer_name<T>(request: &Request<T>) -> RpcResult<PeerName> {
    let name = request.extensions().get::<PeerName>().copied();
    name.ok_or_else(|| refused("nobody knows who that is"))
}

fn require_token_manager<T>(request: &Request<T>) -> RpcResult<()> {
    match peer_name(request)? {
        PeerName::TokenManager => Ok(()),
        PeerName::Tome(_) => Err(refused("only the set may ask for that")),
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
        wakes: status.wakes,
        wakes_by: status.wakes_by.to_vec(),
        wakes_of_a_day: status.wakes_of_a_day,
        scrub_began: status.scrub_began.map(UnixTime::as_millis),
        bad: status.bad,
        spending: status.spending.map(budget_reply),
        healed: status.healed,
        to_scrub: status.to_scrub,
        blocks: status.blocks,
        trouble: status.trouble,
        alarms: status.alarms,
    }
}

fn budget_reply(of: fulgurite_tome_core::Spending) -> crate::remote::wire::Spending {
    crate::remote::wire::Spending {
        per_day: of.per_day,
        left: of.left,
        put_off_ns: of.deferred_for.map(Duration::as_nanos),
        overdrawn: of.overdrawn,
    }
}
