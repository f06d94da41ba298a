//! The live driver of one tome: a thread that tells the core what happened and does what it says.
//!
//! ```text
//! clients, network --> inbox --> Tome::step --> commands, one after the other:
//!                        ^                       Write: labelled, synced before what follows
//!                        |                       Commit: on stable storage before what follows
//!     a stage of the disk is over,               Read: its answer is the next event
//!     time passed                                SpinUp: the gate, the ledger, then the disk
//!                                                Tell, Answer: only then
//! ```
//!
//! Commits of what came together share a sync (`held`): whatever is to be said, written to the disk
//! or done to it waits for the rows before it, and only reads do not.
//!
//! Whatever cannot be written or synced has the tome given up: its disk is put down, who waits is
//! told, and nothing more is done until its files can be reopened and written to (`recovery`).
//! The core's times are counted from 1970, so that ages go on over a start. Not here: which tomes
//! there are.

mod hand;
mod held;
mod looping;
mod recovery;
mod seats;
mod status;
mod told;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fulgurite_disks::{Backend, Guard, LedgerFile, Wake};
use fulgurite_tome::awake::Awake;
use fulgurite_tome::group::{Group, Move};
use fulgurite_tome::message::{Held, Message};
use fulgurite_tome::token::FromKeeper;
use fulgurite_tome::{GroupId, Member, Offset, RegionIndex, TomeId};
use fulgurite_units::{Clock, Duration, Seed};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

pub(crate) use recovery::{Health, Rejoin, Rejoined};
pub(crate) use seats::data_blocks;
pub use seats::{Checked, Seated};
pub use status::{Listed, Look, TomeStatus};

use self::hand::Ended;
use self::looping::Loop;
use crate::awake_store::AwakeStore;
use crate::fail_point::FailPoints;
use crate::identity::TomeIdentity;
use crate::injected::Injected;
use crate::limits::INBOX_MAX;
use crate::network::Network;
use crate::piece_store::Placed;
use crate::spin_gate::SpinGate;
use crate::watch::Watched;
use crate::{Result, TomesError};

/// Why a tome is given up that was taken out.
pub(crate) const RETIRED: &str = "it is taken out: its seats go to others";

/// What a member has of some offsets, in their order.
pub type Holdings = (Member, Vec<Held>);

/// Where an answer goes.
pub type Reply<T> = oneshot::Sender<Result<T>>;

/// What is done when something ended, whether anybody waits for it or not.
pub struct Done<T = ()>(Box<dyn FnOnce(Result<T>) + Send>);

impl<T> Done<T> {
    pub(crate) fn new(done: impl FnOnce(Result<T>) + Send + 'static) -> Self {
        Self(Box::new(done))
    }

    /// Tells how it ended.
    pub fn tell(self, result: Result<T>) {
        (self.0)(result);
    }
}

impl<T> std::fmt::Debug for Done<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Done")
    }
}

/// What a client wants of a tome.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each says what its fields are for")]
pub enum Ask {
    /// Done when it is local, with where it lies if that is in this process. What it takes of
    /// memory is held meanwhile. It goes to no group that has one of the tomes that are avoided.
    Put {
        name: String,
        bytes: Vec<u8>,
        avoided: BTreeSet<TomeId>,
        held: OwnedSemaphorePermit,
        done: Done<Option<Placed>>,
    },
    /// Answered with its bytes. Who put it may read it back.
    Get { name: String, is_own: bool, reply: Reply<Vec<u8>> },
    /// Done when its name is gone for good.
    Delete { name: String, done: Done },
    /// Answered when every parity has it.
    Protected { name: String, reply: Reply<()> },
    /// Answered at once.
    Status(oneshot::Sender<TomeStatus>),
    /// Answered at once with so many objects at most, by name, behind this one.
    Look { after: Option<String>, max: usize, reply: Reply<Look> },
    /// Answered with what it has of some offsets of a group. Refused while its disk does not turn
    /// when that may not be woken for it.
    Hold { group: GroupId, offsets: Vec<Offset>, may_wake: bool, reply: Reply<Holdings> },
    /// Answered when every block that was written was read.
    Scrub { reply: Reply<()> },
    /// Answered when the members of a group were compared.
    Check { group: GroupId, reply: Reply<Checked> },
    /// Answered at once with the last times that its disk was woken.
    Wakes(oneshot::Sender<Vec<Wake>>),
    /// A region is to take a seat; answered when it has begun, or had.
    Rebuild { planned: Move, group: Group, reply: Reply<()> },
    /// Answered at once; a rebuild does not wait for these, which are lost.
    Absent { tomes: BTreeSet<TomeId>, reply: Reply<()> },
    /// Answered at once with how a region stands in a group.
    Seat { region: RegionIndex, group: GroupId, reply: Reply<Seated> },
    /// A region that was made anew is told its objects; answered with the names of those that are
    /// not whole there.
    Adopt { region: RegionIndex, objects: Vec<(String, Placed)>, reply: Reply<Vec<String>> },
}

impl Ask {
    /// Answers that it is not done.
    pub fn refuse(self, error: TomesError) {
        // Who asked may have gone.
        match self {
            Self::Put { done, .. } => done.tell(Err(error)),
            Self::Delete { done, .. } => done.tell(Err(error)),
            Self::Protected { reply, .. } => drop(reply.send(Err(error))),
            Self::Get { reply, .. } => drop(reply.send(Err(error))),
            Self::Look { reply, .. } => drop(reply.send(Err(error))),
            Self::Rebuild { reply, .. } => drop(reply.send(Err(error))),
            Self::Absent { reply, .. } => drop(reply.send(Err(error))),
            Self::Seat { reply, .. } => drop(reply.send(Err(error))),
            Self::Adopt { reply, .. } => drop(reply.send(Err(error))),
            Self::Hold { reply, .. } => drop(reply.send(Err(error))),
            Self::Scrub { reply } => drop(reply.send(Err(error))),
            Self::Check { reply, .. } => drop(reply.send(Err(error))),
            Self::Status(_) | Self::Wakes(_) => {}
        }
    }
}

/// What the driver's thread is told.
#[derive(Debug)]
pub(crate) enum Letter {
    Told {
        from: TomeId,
        message: Message,
    },
    Keeper(FromKeeper),
    Ask(Ask),
    /// A stage of the disk is over, but for a time.
    Stage(Ended),
    /// The hands of the clock were turned: told once until it is heard.
    Turned(Arc<AtomicBool>),
    /// It is taken out of its set for good.
    Retired,
    Stop,
}

/// What a driver is started with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) identity: TomeIdentity,
    pub(crate) store: AwakeStore,
    pub(crate) awake: Awake,
    pub(crate) ledger: LedgerFile,
    pub(crate) guard: Guard,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) gate: Arc<SpinGate>,
    pub(crate) network: Arc<dyn Network>,
    /// Its set, when it was given up and is reopened.
    pub(crate) rejoin: Arc<dyn Rejoin>,
    pub(crate) watched: Watched,
    /// Wakes of its disk in a day, as far as they can wait.
    pub(crate) spin_ups_a_day: Option<u32>,
    /// How long its disk turns for nothing.
    pub(crate) idle: Duration,
    pub(crate) clock: Clock,
    /// Tokens of its set, where that is known.
    pub(crate) tokens: Option<u32>,
    /// Another at each start.
    pub(crate) seed: Seed,
    pub(crate) fail: Arc<FailPoints>,
    pub(crate) injected: Injected,
}

/// The inbox of a tome's thread, and what of it goes on.
#[derive(Debug)]
pub(crate) struct Driver {
    tome: TomeId,
    inbox: SyncSender<Letter>,
    thread: Mutex<Option<JoinHandle<()>>>,
    health: watch::Sender<Health>,
}

/// Has a thread look at its clock when whoever turns the hands did. However often that is, one
/// letter waits: others want the room.
pub(crate) fn listen(clock: &Clock, inbox: SyncSender<Letter>) {
    let waits = Arc::<AtomicBool>::default();
    clock.listen(move || {
        if waits.swap(true, Ordering::AcqRel) {
            return;
        }
        // Full is as good: it looks at the clock after each letter.
        if inbox.try_send(Letter::Turned(Arc::clone(&waits))).is_err() {
            waits.store(false, Ordering::Release);
        }
    });
}

impl Driver {
    /// Starts it. Its disk is not touched before something needs it. `inbox` makes what the network
    /// brings letters to.
    ///
    /// # Errors
    /// When there can be no thread, or the core refuses what was kept.
    pub(crate) fn start(parts: Parts, known: impl FnOnce(SyncSender<Letter>)) -> Result<Self> {
        let (inbox, letters) = sync_channel(INBOX_MAX);
        known(inbox.clone());
        listen(&parts.clock, inbox.clone());
        let tome = parts.identity.tome;
        let health = watch::Sender::new(Health::Well);
        let driver = Loop::new(parts, inbox.clone(), health.clone())?;
        let thread = std::thread::Builder::new()
            .name(format!("tome-{tome}"))
            .spawn(move || driver.run(&letters))
            .map_err(|error| TomesError::Invalid { what: format!("no thread: {error}") })?;
        Ok(Self { tome, inbox, thread: Mutex::new(Some(thread)), health })
    }

    /// Whether it works.
    pub(crate) fn health(&self) -> Health {
        *self.health.borrow()
    }

    /// Whether nothing new is asked of it, until it works again.
    pub(crate) fn is_given_up(&self) -> bool {
        self.health() != Health::Well
    }

    /// Returns when it is given up, and not only probed.
    pub(crate) async fn given_up(&self) {
        // The sender is here, so it cannot be gone.
        let _ = self.health.subscribe().wait_for(|health| *health == Health::GivenUp).await;
    }

    /// Returns when nobody tries whether its disk works: it does, or it is given up.
    pub(crate) async fn probed(&self) {
        let _ = self.health.subscribe().wait_for(|health| *health != Health::Probed).await;
    }

    /// Why there is no answer of it any more.
    pub(crate) fn gone(&self) -> TomesError {
        match &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            None => TomesError::Stopped,
            Some(_) => {
                self.health.send_replace(Health::GivenUp);
                let why = "its thread ended, and the log says why".to_owned();
                TomesError::GivenUp { tome: self.tome, why }
            }
        }
    }

    /// Asks for something.
    ///
    /// # Errors
    /// [`TomesError::Busy`] when too much waits; then nothing was asked for.
    pub(crate) fn ask(&self, ask: Ask) -> Result<()> {
        self.inbox.try_send(Letter::Ask(ask)).map_err(|refused| match refused {
            TrySendError::Full(_) => TomesError::Busy { tome: self.tome },
            TrySendError::Disconnected(_) => self.gone(),
        })
    }

    /// Gives it up for good: its disk is put down, and who waits is told so.
    pub(crate) fn retire(&self) {
        self.health.send_replace(Health::GivenUp);
        // Of one whose thread is gone there is nothing left to put down.
        let _ = self.inbox.send(Letter::Retired);
    }

    /// Has the disk put down, and ends the thread when it is; whoever waits is told so.
    pub(crate) fn stop(&self) {
        // It may be gone already.
        let _ = self.inbox.send(Letter::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!(tome = %self.tome, "the thread of a tome panicked");
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
    }
}
