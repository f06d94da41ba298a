//! One tome by itself: its awake store, its disk and its driver, on whatever network it is given.
//!
//! Its set is in another process, and asks for all that clients want. When a set comes again (it
//! began anew, or lost the connection), another session begins: what the one before still has under
//! way in the network is refused from then on, and puts that this tome has begun are told by name.
//! So whoever lists the names of a session misses none that comes later. Not here: what carries
//! messages, and who may ask.

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

/// A tome by itself.
#[derive(Debug)]
pub struct LoneTome {
    identity: TomeIdentity,
    driver: Driver,
    local: Arc<Local>,
    room: Arc<Semaphore>,
    puts: Arc<Mutex<Puts>>,
}

/// A number for each time that a set comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(pub u64);

#[derive(Debug, Default)]
struct Puts {
    session: u64,
    under_way: BTreeSet<String>,
}

impl LoneTome {
    /// Opens what was made, with seats as they were; with an introduction, takes seats that it does
    /// not know yet, and makes what there is not if that is allowed.
    ///
    /// # Errors
    /// When there is none, it is another's or divided otherwise, or another process has it.
    pub fn open(options: LoneOptions, introduction: Option<&Introduction>) -> Result<Self> {
        if let Some(introduction) = introduction {
            meant(options.set, options.tome, introduction)?;
        }
        let (identity, driver, local) = start_alone(options, introduction)?;
        let puts = Arc::default();
        Ok(Self { identity, driver, local, room: put_room(), puts })
    }

    /// Which tome of which set it is.
    #[must_use]
    pub const fn identity(&self) -> &TomeIdentity {
        &self.identity
    }

    /// A set comes: what a session before has not said yet is refused from now on.
    ///
    /// # Errors
    /// Kind `Conflict` when another set, tome or layout is meant.
    pub async fn greet(&self, introduction: &Introduction) -> Result<(Session, Greeting)> {
        meant(self.identity.set, self.identity.tome, introduction)?;
        let (own, told) = (self.identity.layout.parts(), introduction.layout.parts());
        if own != told {
            let what = format!("divided as {own:?}, and {told:?} is what its set has");
            return Err(TomesError::WrongDisk { tome: self.identity.tome, what });
        }
        // First who is under way: who is done by then is found by whoever looks after that.
        let (session, under_way) = {
            let mut puts = lock(&self.puts);
            puts.session += 1;
            (Session(puts.session), puts.under_way.iter().cloned().collect())
        };
        let look = self.look(None, 0).await?;
        Ok((session, Greeting { data_blocks: look.data_blocks, under_way }))
    }

    /// Returns when the tome is given up: whoever has a session begins another one when it works
    /// again, and hears then what it has.
    pub async fn given_up(&self) {
        self.driver.given_up().await;
    }

    /// Returns when it is known whether its disk works again, if that is being tried.
    pub async fn probed(&self) {
        self.driver.probed().await;
    }

    /// Room for so many bytes, which is to be taken before they are.
    ///
    /// # Errors
    /// Kind `Invalid` when there never is, and [`TomesError::Stopped`].
    pub async fn room(&self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        if bytes > PUT_BYTES_MAX.get() {
            let what = format!("{bytes} bytes are more than are put at once");
            return Err(TomesError::Invalid { what });
        }
        let grains = u32::try_from(bytes.div_ceil(PUT_GRAIN_BYTES.get())).unwrap_or(u32::MAX);
        let held = Arc::clone(&self.room).acquire_many_owned(grains).await;
        held.map_err(|_| TomesError::Stopped)
    }

    /// Puts an object of a session, to no group that has one of the tomes that are avoided; it is
    /// `local` when this returns, and lies as it says.
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
                // Who asked may have gone.
                let _ = reply.send(done);
            });
            Ask::Put { name: name.clone(), bytes, avoided, held, done }
        };
        let done = self.asked(put).await;
        if matches!(done, Err(TomesError::Busy { .. })) {
            // It was not asked for.
            lock(&self.puts).under_way.remove(&name);
        }
        done
    }

    /// The bytes of an object. The disk is woken; `is_own` says that who put it reads it back.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::get`].
    pub async fn get(&self, name: String, is_own: bool) -> Result<Vec<u8>> {
        self.asked(|reply| Ask::Get { name, is_own, reply }).await
    }

    /// Removes an object; returns when its name is gone for good.
    ///
    /// # Errors
    /// As those of [`crate::TomeSet::delete`].
    pub async fn delete(&self, name: String) -> Result<()> {
        let delete = |reply: Reply<()>| {
            // Who asked may have gone.
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

    /// Whatever else its set asks.
    ///
    /// # Errors
    /// As what is asked has them, and kind `Unavailable` when it is given up or stopped.
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

    /// So many objects at most, by name, behind this one; no disk is woken.
    ///
    /// # Errors
    /// Kind `Unavailable` when it is given up or stopped.
    pub async fn look(&self, after: Option<String>, max: usize) -> Result<Look> {
        self.asked(|reply| Ask::Look { after, max, reply }).await
    }

    /// What goes on; no disk is woken.
    ///
    /// # Errors
    /// Kind `Unavailable` when its thread is gone.
    pub async fn status(&self) -> Result<TomeStatus> {
        let (reply, answer) = oneshot::channel();
        self.driver.ask(Ask::Status(reply))?;
        answer.await.map_err(|_| self.driver.gone())
    }

    /// A message of another tome; it never waits, and is lost when too many wait.
    pub fn told(&self, from: TomeId, message: Message) {
        self.local.bring(self.identity.tome, Letter::Told { from, message });
    }

    /// A message of the keeper of tokens, likewise.
    pub fn told_by_keeper(&self, message: FromKeeper) {
        self.local.bring(self.identity.tome, Letter::Keeper(message));
    }

    /// How many objects are being put.
    #[must_use]
    pub fn puts_under_way(&self) -> usize {
        lock(&self.puts).under_way.len()
    }

    /// Has the disk put down, and returns when it is. Who waits is told so.
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

/// Whether the tome is meant.
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
