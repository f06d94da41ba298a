//! A standalone tome: its metadata store, its disk and its driver, on any network.
//!
//! Its set is in another process, and forwards all client requests. When a set reconnects (after a
//! restart, or a lost connection), a new session begins: changes of the previous one that are still
//! in the network are refused from then on, and its puts in progress are reported by name. So a
//! list of names in a session misses none that is added later, and no late removal takes an object
//! that was put again. Not here: the transport, and access control.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_tome_core::TomeId;
use fulgurite_tome_core::message::Message;
use fulgurite_tome_core::token::FromTokenManager;
use fulgurite_units::TomeSetId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, oneshot};

use crate::driver::{Done, Driver, DriverMessage, ObjectPage, Reply, TomeRequest, TomeStatus};
use crate::handshake::{HandshakeReply, SetHandshake};
use crate::identity::TomeIdentity;
use crate::limits::{PUT_BYTES_MAX, PUT_GRAIN_BYTES, PUTS_MAX};
use crate::piece_store::ObjectLocation;
use crate::query::{TomeQuery, TomeReply};
use crate::set::{Local, StandaloneOptions, put_room, start_standalone};
use crate::{Result, TomesError};

/// A standalone tome.
#[derive(Debug)]
pub struct StandaloneTome {
    identity: TomeIdentity,
    driver: Driver,
    local: Arc<Local>,
    room: Arc<Semaphore>,
    puts: Arc<Mutex<Puts>>,
}

/// The number of a set's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(pub u64);

impl Session {
    /// Returns the error for a request of this session after a later one began.
    pub(crate) fn over(self, tome: TomeId) -> TomesError {
        let why = "its set has started another session since".to_owned();
        TomesError::Away { tome, why }
    }
}

#[derive(Debug, Default)]
struct Puts {
    session: u64,
    under_way: BTreeSet<String>,
}

impl StandaloneTome {
    /// Opens an existing tome with its member slots. With a handshake, adds member slots that
    /// it does not know yet, and creates what is missing if permitted.
    ///
    /// # Errors
    /// When there is none, it belongs to another tome or has another layout, or another process has
    /// it.
    pub fn open(options: StandaloneOptions, handshake: Option<&SetHandshake>) -> Result<Self> {
        if let Some(handshake) = handshake {
            check_addressee(options.set, options.tome, handshake)?;
        }
        let (identity, driver, local) = start_standalone(options, handshake)?;
        let puts = Arc::default();
        Ok(Self { identity, driver, local, room: put_room(), puts })
    }

    /// Returns its set and number.
    #[must_use]
    pub const fn identity(&self) -> &TomeIdentity {
        &self.identity
    }

    /// Starts a session: requests of the previous one that have not begun yet are refused from now
    /// on.
    ///
    /// # Errors
    /// Kind `Conflict` for another set, tome or layout.
    pub async fn begin_session(
        &self,
        handshake: &SetHandshake,
    ) -> Result<(Session, HandshakeReply)> {
        check_addressee(self.identity.set, self.identity.tome, handshake)?;
        let (own, expected) = (self.identity.layout.parts(), handshake.layout.parts());
        if own != expected {
            let what = format!("its layout is {own:?}, and that of its set is {expected:?}");
            return Err(TomesError::WrongDisk { tome: self.identity.tome, what });
        }
        // Puts in progress first: one that ends meanwhile is found by a later listing.
        let (session, under_way) = {
            let mut puts = lock(&self.puts);
            puts.session += 1;
            (Session(puts.session), puts.under_way.iter().cloned().collect())
        };
        let object_page = self.object_page(None, 0).await?;
        Ok((session, HandshakeReply { data_blocks: object_page.data_blocks, under_way }))
    }

    /// Returns when the tome is given up. When it works again, a set must start another session, to
    /// learn what it has.
    pub async fn wait_until_given_up(&self) {
        self.driver.wait_until_given_up().await;
    }

    /// Returns once its disk is not being probed.
    pub async fn wait_until_probed(&self) {
        self.driver.wait_until_probed().await;
    }

    /// Reserves memory for this many bytes, before they are received. It does not wait: bytes of
    /// puts that wait would fill the window of their connection, and nothing else could pass it.
    ///
    /// # Errors
    /// Kind `Invalid` when it is more than the limit, [`TomesError::Busy`] when too much is in use,
    /// and [`TomesError::Stopped`].
    pub fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        if bytes > PUT_BYTES_MAX.get() {
            let what = format!("{bytes} bytes are more than the limit for puts");
            return Err(TomesError::Invalid { what });
        }
        let grains = u32::try_from(bytes.div_ceil(PUT_GRAIN_BYTES.get())).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.room).try_acquire_many_owned(grains);
        permit.map_err(|refused| match refused {
            TryAcquireError::NoPermits => TomesError::Busy { tome: self.identity.tome },
            TryAcquireError::Closed => TomesError::Stopped,
        })
    }

    /// Puts an object of a session, to no group that has an avoided tome; it is `local` when this
    /// returns. Returns its location.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::put`], and [`TomesError::Away`] when the session is over.
    pub async fn put(
        &self,
        session: Session,
        name: String,
        (bytes, avoided): (Vec<u8>, BTreeSet<TomeId>),
        permit: OwnedSemaphorePermit,
    ) -> Result<Option<ObjectLocation>> {
        self.begin_put(session, &name)?;
        let (puts, started) = (Arc::clone(&self.puts), name.clone());
        let put = |reply: Reply<Option<ObjectLocation>>| {
            let done = Done::new(move |done| {
                lock(&puts).under_way.remove(&started);
                // The requester may be gone.
                let _ = reply.send(done);
            });
            TomeRequest::Put { name, bytes, avoided, permit, done }
        };
        self.call(put).await
    }

    /// Reads an object. Its disk is spun up; `is_own` marks a read-back by the writer.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::get`].
    pub async fn get(&self, name: String, is_own: bool) -> Result<Vec<u8>> {
        self.call(|reply| TomeRequest::Get { name, is_own, reply }).await
    }

    /// Removes an object for a session; returns when its name is removed durably.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::delete`], and [`TomesError::Away`] when the session is over.
    pub async fn delete(&self, session: Session, name: String) -> Result<()> {
        let delete = |reply: Reply<()>| {
            // The requester may be gone.
            let done = Done::new(move |done| drop(reply.send(done)));
            TomeRequest::Delete { name, done }
        };
        self.call_in(session, delete).await
    }

    /// Returns when every parity of its groups has an object.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::protected`].
    pub async fn protected(&self, name: String) -> Result<()> {
        self.call(|reply| TomeRequest::Protected { name, reply }).await
    }

    /// Answers any other query of a session.
    ///
    /// # Errors
    /// Those of the query, [`TomesError::Away`] when the session is over, and kind `Unavailable`
    /// when it is given up or stopped.
    pub async fn answer(&self, session: Session, query: TomeQuery) -> Result<TomeReply> {
        Ok(match query {
            TomeQuery::Hold { group, offsets, may_spin_up } => {
                let hold = |reply| TomeRequest::Hold { group, offsets, may_spin_up, reply };
                let (member, held) = self.call_in(session, hold).await?;
                TomeReply::Held(member, held)
            }
            TomeQuery::Scrub => {
                self.call_in(session, |reply| TomeRequest::Scrub { reply }).await?;
                TomeReply::Done
            }
            TomeQuery::Check { group } => {
                let check = |reply| TomeRequest::Check { group, reply };
                TomeReply::Checked(self.call_in(session, check).await?)
            }
            TomeQuery::SpinUps => {
                let (reply, answer) = oneshot::channel();
                self.driver.send_request(TomeRequest::SpinUps(reply))?;
                let spin_ups = answer.await.map_err(|_| self.driver.unavailable_error())?;
                TomeReply::SpinUps(
                    spin_ups
                        .into_iter()
                        .map(|spin_up| (spin_up.at, spin_up.places, spin_up.cause))
                        .collect(),
                )
            }
            TomeQuery::Rebuild { planned, group } => {
                let rebuild = |reply| TomeRequest::Rebuild { planned, group, reply };
                self.call_in(session, rebuild).await?;
                TomeReply::Done
            }
            TomeQuery::Absent { tomes } => {
                self.call_in(session, |reply| TomeRequest::Absent { tomes, reply }).await?;
                TomeReply::Done
            }
            TomeQuery::MemberSlot { region, group } => {
                let member_slot = |reply| TomeRequest::MemberSlot { region, group, reply };
                TomeReply::MemberSlot(self.call_in(session, member_slot).await?)
            }
            TomeQuery::Adopt { region, objects } => {
                let adopt = |reply| TomeRequest::Adopt { region, objects, reply };
                TomeReply::Names(self.call_in(session, adopt).await?)
            }
            TomeQuery::DataBlocks => {
                let object_page = self.object_page(None, 0).await?;
                TomeReply::Room {
                    data_blocks: object_page.data_blocks,
                    regions: object_page.regions,
                }
            }
        })
    }

    /// Lists at most this many objects by name, after this one; needs no spin-up.
    ///
    /// # Errors
    /// Kind `Unavailable` when it is given up or stopped.
    pub async fn object_page(&self, after: Option<String>, max: usize) -> Result<ObjectPage> {
        self.call(|reply| TomeRequest::ObjectPage { after, max, reply }).await
    }

    /// Returns its status; needs no spin-up.
    ///
    /// # Errors
    /// Kind `Unavailable` when its thread is gone.
    pub async fn status(&self) -> Result<TomeStatus> {
        let (reply, answer) = oneshot::channel();
        self.driver.send_request(TomeRequest::Status(reply))?;
        answer.await.map_err(|_| self.driver.unavailable_error())
    }

    /// Delivers a message of another tome; never blocks, and drops it when too many wait.
    pub fn deliver(&self, from: TomeId, message: Message) {
        self.local.deliver(self.identity.tome, DriverMessage::Received { from, message });
    }

    /// Delivers a message of the token manager, likewise.
    pub fn deliver_from_token_manager(&self, message: FromTokenManager) {
        self.local.deliver(self.identity.tome, DriverMessage::TokenManager(message));
    }

    /// Number of puts in progress.
    #[must_use]
    pub fn puts_under_way(&self) -> usize {
        lock(&self.puts).under_way.len()
    }

    /// Spins the disk down, and returns when it stands still. Waiting requests fail.
    pub fn stop(&self) {
        self.room.close();
        self.driver.stop();
    }

    fn begin_put(&self, session: Session, name: &str) -> Result<()> {
        let tome = self.identity.tome;
        let mut puts = lock(&self.puts);
        if puts.session != session.0 {
            return Err(session.over(tome));
        }
        if puts.under_way.contains(name) {
            let name = name.to_owned();
            return Err(fulgurite_tome_core::TomeError::ObjectExists { name }.into());
        }
        if puts.under_way.len() >= PUTS_MAX {
            return Err(TomesError::Busy { tome });
        }
        puts.under_way.insert(name.to_owned());
        Ok(())
    }

    /// Makes a request of a session. It waits at the driver before any request of a later session.
    async fn call_in<T>(
        &self,
        session: Session,
        request: impl FnOnce(Reply<T>) -> TomeRequest,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        {
            let puts = lock(&self.puts);
            if puts.session != session.0 {
                return Err(session.over(self.identity.tome));
            }
            self.driver.send_request(request(reply))?;
        }
        answer.await.unwrap_or_else(|_| Err(self.driver.unavailable_error()))
    }

    async fn call<T>(&self, request: impl FnOnce(Reply<T>) -> TomeRequest) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.driver.send_request(request(reply))?;
        answer.await.unwrap_or_else(|_| Err(self.driver.unavailable_error()))
    }
}

/// Checks that a handshake is for this tome.
fn check_addressee(set: TomeSetId, tome: TomeId, handshake: &SetHandshake) -> Result<()> {
    if (handshake.set, handshake.tome) == (set, tome) {
        return Ok(());
    }
    let what = format!(
        "it is tome {tome} of set {set}, and the handshake is for tome {} of set {}",
        handshake.tome, handshake.set
    );
    Err(TomesError::WrongDisk { tome, what })
}

fn lock(puts: &Mutex<Puts>) -> MutexGuard<'_, Puts> {
    puts.lock().unwrap_or_else(PoisonError::into_inner)
}
