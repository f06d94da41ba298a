//! A standalone tome: its metadata store, its disk and its driver, on any network.
//!
//! Its set is in another process, and forwards all client requests. When a set reconnects (after a
//! restart, or a lost connection), a new session begins: requests of the previous one that are
//! still in the network are refused from then on, and its puts in progress are reported by name. So
//! a list of names in a session misses none that is added later. Not here: the transport, and
//! access control.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_tome::TomeId;
use fulgurite_tome::message::Message;
use fulgurite_tome::token::FromKeeper;
use fulgurite_units::TomeSetId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::driver::{Ask, Done, Driver, Letter, Look, Reply, TomeStatus};
use crate::identity::TomeIdentity;
use crate::introduction::{Greeting, Introduction};
use crate::limits::{PUT_BYTES_MAX, PUT_GRAIN_BYTES, PUTS_MAX};
use crate::piece_store::Placed;
use crate::question::{Question, Said};
use crate::set::{Local, LoneOptions, put_room, start_alone};
use crate::{Result, TomesError};

/// A standalone tome.
#[derive(Debug)]
pub struct LoneTome {
    identity: TomeIdentity,
    driver: Driver,
    local: Arc<Local>,
    room: Arc<Semaphore>,
    puts: Arc<Mutex<Puts>>,
}

/// The number of a set's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(pub u64);

#[derive(Debug, Default)]
struct Puts {
    session: u64,
    under_way: BTreeSet<String>,
}

impl LoneTome {
    /// Opens an existing tome with its member slots. With an introduction, adds member slots that
    /// it does not know yet, and creates what is missing if permitted.
    ///
    /// # Errors
    /// When there is none, it belongs to another tome or has another layout, or another process has
    /// it.
    pub fn open(options: LoneOptions, introduction: Option<&Introduction>) -> Result<Self> {
        if let Some(introduction) = introduction {
            meant(options.set, options.tome, introduction)?;
        }
        let (identity, driver, local) = start_alone(options, introduction)?;
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
    pub async fn greet(&self, introduction: &Introduction) -> Result<(Session, Greeting)> {
        meant(self.identity.set, self.identity.tome, introduction)?;
        let (own, told) = (self.identity.layout.parts(), introduction.layout.parts());
        if own != told {
            let what = format!("divided as {own:?}, and {told:?} is what its set has");
            return Err(TomesError::WrongDisk { tome: self.identity.tome, what });
        }
        // Puts in progress first: one that ends meanwhile is found by a later listing.
        let (session, under_way) = {
            let mut puts = lock(&self.puts);
            puts.session += 1;
            (Session(puts.session), puts.under_way.iter().cloned().collect())
        };
        let look = self.look(None, 0).await?;
        Ok((session, Greeting { data_blocks: look.data_blocks, under_way }))
    }

    /// Returns when the tome is given up. When it works again, a set must start another session, to
    /// learn what it has.
    pub async fn given_up(&self) {
        self.driver.given_up().await;
    }

    /// Returns once its disk is not being probed.
    pub async fn probed(&self) {
        self.driver.probed().await;
    }

    /// Reserves memory for this many bytes, before they are received.
    ///
    /// # Errors
    /// Kind `Invalid` when it is more than the limit, and [`TomesError::Stopped`].
    pub async fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        if bytes > PUT_BYTES_MAX.get() {
            let what = format!("{bytes} bytes are more than are put at once");
            return Err(TomesError::Invalid { what });
        }
        let grains = u32::try_from(bytes.div_ceil(PUT_GRAIN_BYTES.get())).unwrap_or(u32::MAX);
        let held = Arc::clone(&self.room).acquire_many_owned(grains).await;
        held.map_err(|_| TomesError::Stopped)
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
        held: OwnedSemaphorePermit,
    ) -> Result<Option<Placed>> {
        self.begin_put(session, &name)?;
        let (puts, named) = (Arc::clone(&self.puts), name.clone());
        let put = |reply: Reply<Option<Placed>>| {
            let done = Done::new(move |done| {
                lock(&puts).under_way.remove(&named);
                // The requester may be gone.
                let _ = reply.send(done);
            });
            Ask::Put { name: name.clone(), bytes, avoided, held, done }
        };
        let done = self.asked(put).await;
        if matches!(done, Err(TomesError::Busy { .. })) {
            // The request was not sent.
            lock(&self.puts).under_way.remove(&name);
        }
        done
    }

    /// Reads an object. Its disk is spun up; `is_own` marks a read-back by the writer.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::get`].
    pub async fn get(&self, name: String, is_own: bool) -> Result<Vec<u8>> {
        self.asked(|reply| Ask::Get { name, is_own, reply }).await
    }

    /// Removes an object; returns when its name is removed durably.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::delete`].
    pub async fn delete(&self, name: String) -> Result<()> {
        let delete = |reply: Reply<()>| {
            // The requester may be gone.
            let done = Done::new(move |done| drop(reply.send(done)));
            Ask::Delete { name, done }
        };
        self.asked(delete).await
    }

    /// Returns when every parity of its groups has an object.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::protected`].
    pub async fn protected(&self, name: String) -> Result<()> {
        self.asked(|reply| Ask::Protected { name, reply }).await
    }

    /// Answers any other query of its set.
    ///
    /// # Errors
    /// Those of the query, and kind `Unavailable` when it is given up or stopped.
    pub async fn answer(&self, question: Question) -> Result<Said> {
        Ok(match question {
            Question::Hold { group, offsets, may_wake } => {
                let hold = |reply| Ask::Hold { group, offsets, may_wake, reply };
                let (member, held) = self.asked(hold).await?;
                Said::Held(member, held)
            }
            Question::Scrub => {
                self.asked(|reply| Ask::Scrub { reply }).await?;
                Said::Done
            }
            Question::Check { group } => {
                Said::Checked(self.asked(|reply| Ask::Check { group, reply }).await?)
            }
            Question::Wakes => {
                let (reply, answer) = oneshot::channel();
                self.driver.ask(Ask::Wakes(reply))?;
                let wakes = answer.await.map_err(|_| self.driver.gone())?;
                Said::Wakes(
                    wakes.into_iter().map(|wake| (wake.at, wake.places, wake.cause)).collect(),
                )
            }
            Question::Rebuild { planned, group } => {
                self.asked(|reply| Ask::Rebuild { planned, group, reply }).await?;
                Said::Done
            }
            Question::Absent { tomes } => {
                self.asked(|reply| Ask::Absent { tomes, reply }).await?;
                Said::Done
            }
            Question::Seat { region, group } => {
                Said::Seat(self.asked(|reply| Ask::Seat { region, group, reply }).await?)
            }
            Question::Adopt { region, objects } => {
                Said::Names(self.asked(|reply| Ask::Adopt { region, objects, reply }).await?)
            }
            Question::DataBlocks => {
                let look = self.look(None, 0).await?;
                Said::Room { data_blocks: look.data_blocks, regions: look.regions }
            }
        })
    }

    /// Lists at most this many objects by name, after this one; needs no spin-up.
    ///
    /// # Errors
    /// Kind `Unavailable` when it is given up or stopped.
    pub async fn look(&self, after: Option<String>, max: usize) -> Result<Look> {
        self.asked(|reply| Ask::Look { after, max, reply }).await
    }

    /// Returns its status; needs no spin-up.
    ///
    /// # Errors
    /// Kind `Unavailable` when its thread is gone.
    pub async fn status(&self) -> Result<TomeStatus> {
        let (reply, answer) = oneshot::channel();
        self.driver.ask(Ask::Status(reply))?;
        answer.await.map_err(|_| self.driver.gone())
    }

    /// Delivers a message of another tome; never blocks, and drops it when too many wait.
    pub fn told(&self, from: TomeId, message: Message) {
        self.local.bring(self.identity.tome, Letter::Told { from, message });
    }

    /// Delivers a message of the token manager, likewise.
    pub fn told_by_keeper(&self, message: FromKeeper) {
        self.local.bring(self.identity.tome, Letter::Keeper(message));
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
            let why = "its set came again after this was sent".to_owned();
            return Err(TomesError::Away { tome, why });
        }
        if puts.under_way.contains(name) {
            let name = name.to_owned();
            return Err(fulgurite_tome::TomeError::ObjectExists { name }.into());
        }
        if puts.under_way.len() >= PUTS_MAX {
            return Err(TomesError::Busy { tome });
        }
        puts.under_way.insert(name.to_owned());
        Ok(())
    }

    async fn asked<T>(&self, ask: impl FnOnce(Reply<T>) -> Ask) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.driver.ask(ask(reply))?;
        answer.await.unwrap_or_else(|_| Err(self.driver.gone()))
    }
}

/// Checks that an introduction is for this tome.
fn meant(set: TomeSetId, tome: TomeId, introduction: &Introduction) -> Result<()> {
    if (introduction.set, introduction.tome) == (set, tome) {
        return Ok(());
    }
    let what = format!(
        "tome {tome} of set {set}, and tome {} of set {} is meant",
        introduction.tome, introduction.set
    );
    Err(TomesError::WrongDisk { tome, what })
}

fn lock(puts: &Mutex<Puts>) -> MutexGuard<'_, Puts> {
    puts.lock().unwrap_or_else(PoisonError::into_inner)
}
