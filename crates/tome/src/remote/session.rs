//! Sessions between a set and a remote tome: one lasts while the tome answers, and another begins
//! when it does again.
//!
//! ```text
//! away --> connected --> handshake sent --> reply received --> objects listed --> active --> away
//! ```
//!
//! Before the next session begins, all requests of the previous one have ended: so the listing is
//! valid. Messages and tokens are carried from the handshake reply on: a tome whose disk failed
//! needs a token to probe it, and lists its objects when it works. Not here: the requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_rpc::Client;
use fulgurite_tome_core::TomeId;
use fulgurite_units::{Clock, TomeSetId, UnixTime};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::limits::NAME_BYTES_MAX;
use crate::remote::dial::{Backoff, BackoffLimits, dial};
use crate::remote::encoding::{self, decode, encode};
use crate::remote::limits::{GREETING_TIMEOUT, PAGE_MAX, REQUESTS_MAX};
use crate::remote::queue::QueueReceiver;
use crate::remote::tls::{PeerName, Tls};
use crate::remote::wire::{FromSet, ListRequest, Listed as WireObject, ToSet, calls};
use crate::remote::{NetError, Result};
use crate::{HandshakeReply, ListedObject, SetLink};

/// A remote tome.
#[derive(Debug)]
pub(crate) struct RemotePeer {
    pub(crate) tome: TomeId,
    pub(crate) address: String,
    pub(crate) tls: Tls,
    pub(crate) backoff_limits: BackoffLimits,
    pub(crate) clock: Clock,
    pub(crate) state: Mutex<State>,
    /// A permit for each request without an answer.
    pub(crate) request_permits: Arc<Semaphore>,
    pub(crate) stopping: watch::Sender<bool>,
}

/// Whether it answers.
#[derive(Debug)]
pub(crate) enum State {
    Away { since: UnixTime, why: String },
    ActiveSession(ActiveSession),
}

/// A session in progress.
#[derive(Clone, Debug)]
pub(crate) struct ActiveSession {
    pub(crate) client: Client,
    pub(crate) session: u64,
    /// Becomes true at its end.
    pub(crate) over: watch::Receiver<bool>,
}

impl RemotePeer {
    pub(crate) fn set(&self) -> TomeSetId {
        self.tls.set()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that it does not answer, since now or earlier.
    fn away(&self, why: String) {
        let now = self.clock.now();
        let mut state = self.state();
        let since = match &*state {
            State::Away { since, .. } => *since,
            State::ActiveSession(_) => {
                tracing::warn!(tome = %self.tome, "no answer from {}: {why}", self.address);
                now
            }
        };
        *state = State::Away { since, why };
    }

    async fn stopped(&self) {
        // The sender is held here, so the channel is open.
        let _ = self.stopping.subscribe().wait_for(|is_stopping| *is_stopping).await;
    }
}

/// Runs one session after the other, until it is stopped.
pub(crate) async fn run(
    peer: Arc<RemotePeer>,
    set_link: Arc<SetLink>,
    mut queue: QueueReceiver<FromSet>,
) {
    let mut backoff = Backoff::new(peer.backoff_limits);
    loop {
        backoff.begin();
        let mut was_there = false;
        let ended = tokio::select! {
            ended = session(&peer, &set_link, &mut queue, &mut was_there) => ended,
            () = peer.stopped() => Err(NetError::Ended { what: "its set is stopped".to_owned() }),
        };
        let why = match ended {
            Ok(()) => "the connection ended".to_owned(),
            Err(error) => fulgurite_units::error_chain(&error),
        };
        tracing::debug!(tome = %peer.tome, "a session ended: {why}");
        peer.away(why);
        // Requests without an answer fail now or soon: the session is over.
        let all = u32::try_from(REQUESTS_MAX).unwrap_or(u32::MAX);
        drop(peer.request_permits.acquire_many(all).await);
        if *peer.stopping.borrow() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.end(was_there)) => {}
            () = peer.stopped() => return,
        }
    }
}

async fn session(
    peer: &RemotePeer,
    set_link: &Arc<SetLink>,
    queue: &mut QueueReceiver<FromSet>,
    was_there: &mut bool,
) -> Result<()> {
    let mut client = dial(&peer.address, PeerName::Tome(peer.tome), &peer.tls).await?;
    let handshake = encode("a handshake", &set_link.handshake()?)?;
    let (outgoing, stream) = mpsc::channel(1);
    // The first message always fits.
    let _ = outgoing.try_send(FromSet { introduction: handshake, ..FromSet::default() });
    let greeting = async {
        let mut incoming = client.streaming::<calls::Session>(ReceiverStream::new(stream)).await?;
        Ok((incoming.message().await?, incoming))
    };
    let none = || NetError::Ended { what: "no handshake reply".to_owned() };
    let greeting = timeout(GREETING_TIMEOUT, greeting).await.map_err(|_| none())?;
    let (first, mut incoming) = greeting.map_err(|e| net_error(peer, &e))?;
    let first = first.ok_or_else(none)?;
    let reply: HandshakeReply = decode("a handshake reply", &first.greeting)?;
    // Messages from before the session are dropped: they were for the previous one.
    queue.clear();
    let objects = tokio::select! {
        objects = list(peer, &mut client) => objects?,
        ended = exchange(peer, set_link, queue, &outgoing, &mut incoming) => return ended,
    };
    let (count, link) = (objects.len(), Arc::clone(set_link));
    // New objects are persisted, which takes disk time.
    let listed = tokio::task::spawn_blocking(move || link.listed(&reply, &objects));
    listed.await.map_err(|error| NetError::Ended {
        what: format!("cannot record its objects: {error}"),
    })??;
    *was_there = true;
    let (over, is_over) = watch::channel(false);
    tracing::info!(tome = %peer.tome, objects = count, "answers at {}", peer.address);
    *peer.state() =
        State::ActiveSession(ActiveSession { client, session: first.session, over: is_over });
    let ended = exchange(peer, set_link, queue, &outgoing, &mut incoming).await;
    // There may be no receiver.
    let _ = over.send(true);
    ended
}

/// Lists all its objects. The names are in order, so that the list ends.
async fn list(peer: &RemotePeer, client: &mut Client) -> Result<Vec<ListedObject>> {
    let mut objects: Vec<ListedObject> = Vec::new();
    loop {
        let after = objects.last().map(|object| object.name.clone());
        let max = u32::try_from(PAGE_MAX).unwrap_or(u32::MAX);
        let page = client.unary::<calls::List>(ListRequest { after, max }).await;
        let page = page.map_err(|e| net_error(peer, &e))?.objects;
        let is_last = page.len() < PAGE_MAX;
        add_page(&mut objects, page)?;
        if is_last {
            return Ok(objects);
        }
    }
}

/// Adds a page of a list.
pub(crate) fn add_page(objects: &mut Vec<ListedObject>, page: Vec<WireObject>) -> Result<()> {
    let undecoded = || NetError::Undecoded { what: "a page of names" };
    if page.len() > PAGE_MAX {
        return Err(undecoded());
    }
    for WireObject { name, blocks, placed } in page {
        let is_next = objects.last().is_none_or(|last| last.name < name);
        if !is_next || name.len() > NAME_BYTES_MAX {
            return Err(undecoded());
        }
        let placed = Some(decode("an object location", &placed)?);
        objects.push(ListedObject { name, blocks, placed });
    }
    Ok(())
}

/// Carries messages both ways until one side ends.
async fn exchange(
    peer: &RemotePeer,
    set_link: &SetLink,
    queue: &mut QueueReceiver<FromSet>,
    outgoing: &mpsc::Sender<FromSet>,
    incoming: &mut Streaming<ToSet>,
) -> Result<()> {
    loop {
        // Reserve first: messages for a stalled connection stay in the queue that counts drops.
        let next = async {
            let room = outgoing.reserve().await.ok()?;
            Some((room, queue.next().await?))
        };
        tokio::select! {
            next = next => match next {
                Some((room, next)) => room.send(next),
                None => return Ok(()),
            },
            next = incoming.message() => match next.map_err(|e| net_error(peer, &e))? {
                Some(next) => receive(peer, set_link, next)?,
                None => return Ok(()),
            },
        }
    }
}

/// Delivers a message or token of the tome, which may speak only for itself.
fn receive(peer: &RemotePeer, set_link: &SetLink, message: ToSet) -> Result<()> {
    if !message.token.is_empty() {
        set_link.deliver_to_token_manager(decode("a token", &message.token)?);
    }
    if let Some(letter) = message.letter {
        if letter.set[..] != peer.set().to_bytes() || letter.from != peer.tome.get() {
            let what = "a message claims to be from another tome".to_owned();
            return Err(NetError::Refused { what });
        }
        set_link.deliver(TomeId::new(letter.to), encoding::message(&letter.body)?);
    }
    Ok(())
}

fn net_error(peer: &RemotePeer, status: &Status) -> NetError {
    NetError::Tomes(crate::remote::failure::error(peer.tome, status))
}
