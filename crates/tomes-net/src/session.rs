//! Sessions between a set and a remote tome: one lasts while the tome answers, and another begins
//! when it does again.
//!
//! ```text
//! away --> connected --> introduced --> greeted --> listed --> here --> away, and so on
//! ```
//!
//! Before the next session begins, all requests of the previous one have ended: so the listing is
//! valid. Messages and tokens are carried from the greeting on: a tome whose disk failed needs a
//! token to probe it, and lists its objects when it works. Not here: the requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_tome::TomeId;
use fulgurite_tomes::{Charge, Greeting, Listed};
use fulgurite_units::{Clock, TomeSetId, UnixTime};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::client::Client;
use crate::dial::{Rest, Rests, dial};
use crate::encoding::{self, decode, encode};
use crate::limits::{ASKS_MAX, PAGE_MAX, ROUTE_MAX};
use crate::tls::{Name, Tls};
use crate::wire::{FromSet, ListRequest, Listed as Wire, ToSet};
use crate::{NetError, Result};

/// A remote tome.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) tome: TomeId,
    pub(crate) address: String,
    pub(crate) tls: Tls,
    pub(crate) rests: Rests,
    pub(crate) clock: Clock,
    pub(crate) state: Mutex<State>,
    /// A permit for each request without an answer.
    pub(crate) asks: Arc<Semaphore>,
    pub(crate) stopping: watch::Sender<bool>,
}

/// Whether it answers.
#[derive(Debug)]
pub(crate) enum State {
    Away { since: UnixTime, why: String },
    Here(Here),
}

/// A session in progress.
#[derive(Clone, Debug)]
pub(crate) struct Here {
    pub(crate) client: Client,
    pub(crate) session: u64,
    /// Becomes true at its end.
    pub(crate) over: watch::Receiver<bool>,
}

impl Seat {
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
            State::Here(_) => {
                tracing::warn!(tome = %self.tome, "no answer of {}: {why}", self.address);
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
pub(crate) async fn run(seat: Arc<Seat>, charge: Arc<Charge>, mut said: mpsc::Receiver<FromSet>) {
    let mut rest = Rest::new(seat.rests);
    loop {
        rest.begin();
        let mut was_there = false;
        let ended = tokio::select! {
            ended = session(&seat, &charge, &mut said, &mut was_there) => ended,
            () = seat.stopped() => Err(NetError::Ended { what: "its set is stopped".to_owned() }),
        };
        let why = match ended {
            Ok(()) => "the connection ended".to_owned(),
            Err(error) => fulgurite_units::error_chain(&error),
        };
        tracing::debug!(tome = %seat.tome, "a session ended: {why}");
        seat.away(why);
        // Requests without an answer fail now or soon: the session is over.
        let all = u32::try_from(ASKS_MAX).unwrap_or(u32::MAX);
        drop(seat.asks.acquire_many(all).await);
        if *seat.stopping.borrow() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(rest.ended(was_there)) => {}
            () = seat.stopped() => return,
        }
    }
}

async fn session(
    seat: &Seat,
    charge: &Arc<Charge>,
    said: &mut mpsc::Receiver<FromSet>,
    was_there: &mut bool,
) -> Result<()> {
    let mut client = Client::new(dial(&seat.address, Name::Tome(seat.tome), &seat.tls).await?);
    let introduction = encode("an introduction", &charge.introduction()?)?;
    let (saying, stream) = mpsc::channel(ROUTE_MAX);
    // The first message always fits.
    let _ = saying.try_send(FromSet { introduction, ..FromSet::default() });
    let mut heard = client.session(ReceiverStream::new(stream)).await.map_err(|e| why(seat, &e))?;
    let first = heard.message().await.map_err(|e| why(seat, &e))?;
    let first = first.ok_or(NetError::Ended { what: "no greeting".to_owned() })?;
    let greeting: Greeting = decode("a greeting", &first.greeting)?;
    // Messages from before the session are dropped: they were for the previous one.
    while said.try_recv().is_ok() {}
    let objects = tokio::select! {
        objects = list(seat, &mut client) => objects?,
        ended = talk(seat, charge, said, &saying, &mut heard) => return ended,
    };
    let (count, of) = (objects.len(), Arc::clone(charge));
    // New objects are persisted, which takes disk time.
    let listed = tokio::task::spawn_blocking(move || of.listed(&greeting, &objects));
    listed.await.map_err(|error| NetError::Ended { what: format!("its objects: {error}") })??;
    *was_there = true;
    let (over, is_over) = watch::channel(false);
    tracing::info!(tome = %seat.tome, objects = count, "answers at {}", seat.address);
    *seat.state() = State::Here(Here { client, session: first.session, over: is_over });
    let ended = talk(seat, charge, said, &saying, &mut heard).await;
    // There may be no receiver.
    let _ = over.send(true);
    ended
}

/// Lists all its objects.
async fn list(seat: &Seat, client: &mut Client) -> Result<Vec<Listed>> {
    let mut objects: Vec<Listed> = Vec::new();
    loop {
        let after = objects.last().map(|object| object.name.clone());
        let max = u32::try_from(PAGE_MAX).unwrap_or(u32::MAX);
        let page = client.list(ListRequest { after: after.clone(), max }).await;
        let page = page.map_err(|e| why(seat, &e))?.objects;
        let (is_last, first) = (page.len() < PAGE_MAX, page.first().map(|o| o.name.clone()));
        if first.is_some_and(|first| after.is_some_and(|after| first <= after)) {
            return Err(NetError::Undecoded { what: "a page of names" });
        }
        for Wire { name, blocks, placed } in page {
            let placed = match &placed[..] {
                [] => None,
                placed => Some(decode("where an object lies", placed)?),
            };
            objects.push(Listed { name, blocks, placed });
        }
        if is_last {
            return Ok(objects);
        }
    }
}

/// Carries messages both ways until one side ends.
async fn talk(
    seat: &Seat,
    charge: &Charge,
    said: &mut mpsc::Receiver<FromSet>,
    saying: &mpsc::Sender<FromSet>,
    heard: &mut Streaming<ToSet>,
) -> Result<()> {
    loop {
        // Reserve first: messages for a stalled connection stay in the queue that counts drops.
        let next = async {
            let room = saying.reserve().await.ok()?;
            Some((room, said.recv().await?))
        };
        tokio::select! {
            next = next => match next {
                Some((room, next)) => room.send(next),
                None => return Ok(()),
            },
            next = heard.message() => match next.map_err(|e| why(seat, &e))? {
                Some(next) => hear(seat, charge, next)?,
                None => return Ok(()),
            },
        }
    }
}

/// Delivers a message or token of the tome, which may speak only for itself.
fn hear(seat: &Seat, charge: &Charge, said: ToSet) -> Result<()> {
    if !said.token.is_empty() {
        charge.told_keeper(decode("a token", &said.token)?);
    }
    if let Some(letter) = said.letter {
        if letter.set != seat.set().to_bytes() || letter.from != seat.tome.get() {
            let what = "a letter is from another than its sender".to_owned();
            return Err(NetError::Refused { what });
        }
        charge.told(TomeId::new(letter.to), encoding::message(&letter.body)?);
    }
    Ok(())
}

fn why(seat: &Seat, status: &Status) -> NetError {
    NetError::Tomes(crate::failure::error(seat.tome, status))
}
