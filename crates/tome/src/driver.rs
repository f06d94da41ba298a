//! The live driver of one tome: a thread that passes events to the core and carries out its
//! commands.
//!
//! ```text
//! clients, network --> inbox --> Tome::step --> commands, one after the other:
//!                        ^                       Write: labelled, synced before what follows
//!                        |                       Commit: durable before what follows
//!     a disk stage has ended,                    Read: its answer is the next event
//!     time passed                                SpinUp: the gate, the ledger, then the disk
//!                                                Send, Answer: only then
//! ```
//!
//! Commits for events that arrived together share a sync (`commit_batch`): messages, disk
//! writes and other disk commands wait for the rows before them; only reads do not.
//!
//! When a write or sync fails, the tome is given up: its disk is spun down, waiting requests fail,
//! and nothing more is done until its files can be reopened and written to (`recovery`). The core's
//! times count from 1970, so that ages continue across a start. Not here: which tomes there are.

mod commit_batch;
mod disk_worker;
mod event_loop;
mod member_slots;
mod recovery;
mod reports;
mod status;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fulgurite_disks::{Backend, Guard, LedgerFile, SpinUp};
use fulgurite_tome_core::group::{Group, Move};
use fulgurite_tome_core::message::{Held, Message};
use fulgurite_tome_core::metadata::TomeMetadata;
use fulgurite_tome_core::token::FromTokenManager;
use fulgurite_tome_core::{GroupId, Member, Offset, RegionIndex, TomeId};
use fulgurite_units::{Clock, Duration, Seed};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

pub(crate) use member_slots::data_blocks;
pub use member_slots::{Checked, MembershipStatus};
pub(crate) use recovery::{Health, Rejoin, RejoinOutcome};
pub use status::{ListedObject, ObjectPage, TomeStatus};

use self::disk_worker::StageEnd;
use self::event_loop::Loop;
use crate::FailPoints;
use crate::faults::FaultInjector;
use crate::identity::TomeIdentity;
use crate::limits::INBOX_MAX;
use crate::metadata_store::MetadataStore;
use crate::network::Network;
use crate::piece_store::ObjectLocation;
use crate::spin_gate::SpinGate;
use crate::watch::EventPublisher;
use crate::{Result, TomesError};

/// Why a retired tome is given up.
pub(crate) const RETIRED: &str = "it is retired: its member slots move to other tomes";

/// A member's holdings at some offsets, in their order.
pub type Holdings = (Member, Vec<Held>);

/// Channel for an answer.
pub type Reply<T> = oneshot::Sender<Result<T>>;

/// A callback that runs when an operation ended, whether its requester still waits or not.
pub struct Done<T = ()>(Box<dyn FnOnce(Result<T>) + Send>);

impl<T> Done<T> {
    pub(crate) fn new(done: impl FnOnce(Result<T>) + Send + 'static) -> Self {
        Self(Box::new(done))
    }

    /// Calls back with the result.
    pub fn send(self, result: Result<T>) {
        (self.0)(result);
    }
}

impl<T> std::fmt::Debug for Done<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Done")
    }
}

/// A client's request to a tome.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each says what its fields are for")]
pub enum TomeRequest {
    /// Done when the object is local, with its location if the tome is in this process. Its memory
    /// permit is held meanwhile. It goes to no group that has one of the avoided tomes.
    Put {
        name: String,
        bytes: Vec<u8>,
        avoided: BTreeSet<TomeId>,
        permit: OwnedSemaphorePermit,
        done: Done<Option<ObjectLocation>>,
    },
    /// Answered with its bytes. `is_own` marks a read-back by the writer.
    Get { name: String, is_own: bool, reply: Reply<Vec<u8>> },
    /// Done when its name is removed durably.
    Delete { name: String, done: Done },
    /// Answered when every parity has it.
    Protected { name: String, reply: Reply<()> },
    /// Answered at once.
    Status(oneshot::Sender<TomeStatus>),
    /// Answered at once with at most this many objects by name, after this one.
    ObjectPage { after: Option<String>, max: usize, reply: Reply<ObjectPage> },
    /// Answered with what it knows of some offsets of a group. Refused while its disk stands still,
    /// unless it may be spun up.
    Hold { group: GroupId, offsets: Vec<Offset>, may_spin_up: bool, reply: Reply<Holdings> },
    /// Answered when every written block was read.
    Scrub { reply: Reply<()> },
    /// Answered when the members of a group were compared.
    Check { group: GroupId, reply: Reply<Checked> },
    /// Answered at once with the latest spin-ups of its disk.
    SpinUps(oneshot::Sender<Vec<SpinUp>>),
    /// Rebuild a region for a member slot; answered when it has begun, or had.
    Rebuild { planned: Move, group: Group, reply: Reply<()> },
    /// Answered at once; a rebuild does not wait for these lost tomes.
    Absent { tomes: BTreeSet<TomeId>, reply: Reply<()> },
    /// Answered at once with the membership of a region in a group.
    MemberSlot { region: RegionIndex, group: GroupId, reply: Reply<MembershipStatus> },
    /// Gives a rebuilt region its objects.
    Adopt {
        region: RegionIndex,
        objects: Vec<(String, ObjectLocation)>,
        /// The names of those that are not intact there.
        reply: Reply<Vec<String>>,
    },
}

impl TomeRequest {
    /// Fails the request.
    pub fn refuse(self, error: TomesError) {
        // The requester may be gone.
        match self {
            Self::Put { done, .. } => done.send(Err(error)),
            Self::Delete { done, .. } => done.send(Err(error)),
            Self::Protected { reply, .. } => drop(reply.send(Err(error))),
            Self::Get { reply, .. } => drop(reply.send(Err(error))),
            Self::ObjectPage { reply, .. } => drop(reply.send(Err(error))),
            Self::Rebuild { reply, .. } => drop(reply.send(Err(error))),
            Self::Absent { reply, .. } => drop(reply.send(Err(error))),
            Self::MemberSlot { reply, .. } => drop(reply.send(Err(error))),
            Self::Adopt { reply, .. } => drop(reply.send(Err(error))),
            Self::Hold { reply, .. } => drop(reply.send(Err(error))),
            Self::Scrub { reply } => drop(reply.send(Err(error))),
            Self::Check { reply, .. } => drop(reply.send(Err(error))),
            Self::Status(_) | Self::SpinUps(_) => {}
        }
    }
}

/// A message to the driver's thread.
#[derive(Debug)]
pub(crate) enum DriverMessage {
    Received {
        from: TomeId,
        message: Message,
    },
    TokenManager(FromTokenManager),
    TomeRequest(TomeRequest),
    /// A disk stage has ended, except for a remaining wait.
    Stage(StageEnd),
    /// The manual clock was advanced: sent once until it is received.
    ClockAdvanced(Arc<AtomicBool>),
    /// It is retired from its set for good.
    Retired,
    Stop,
}

/// Parameters of a driver.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) identity: TomeIdentity,
    pub(crate) store: MetadataStore,
    pub(crate) metadata: TomeMetadata,
    pub(crate) ledger: LedgerFile,
    pub(crate) guard: Guard,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) gate: Arc<SpinGate>,
    pub(crate) network: Arc<dyn Network>,
    /// How its set takes it back when it is reopened after a failure.
    pub(crate) rejoin: Arc<dyn Rejoin>,
    pub(crate) events: EventPublisher,
    /// Budget of deferrable spin-ups in a day.
    pub(crate) spin_ups_a_day: Option<u32>,
    /// How long its disk may idle.
    pub(crate) idle: Duration,
    pub(crate) clock: Clock,
    /// Number of tokens of its set, if known.
    pub(crate) tokens: Option<u32>,
    /// Different at each start.
    pub(crate) seed: Seed,
    pub(crate) fail: Arc<FailPoints>,
    pub(crate) faults: FaultInjector,
}

/// Handle of a tome's thread: its inbox and its health.
#[derive(Debug)]
pub(crate) struct Driver {
    tome: TomeId,
    inbox: SyncSender<DriverMessage>,
    thread: Mutex<Option<JoinHandle<()>>>,
    health: watch::Sender<Health>,
}

/// Notifies a thread when the manual clock is advanced. At most one such message waits, so that
/// others find room.
pub(crate) fn listen(clock: &Clock, inbox: SyncSender<DriverMessage>) {
    let waits = Arc::<AtomicBool>::default();
    clock.listen(move || {
        if waits.swap(true, Ordering::AcqRel) {
            return;
        }
        // A full inbox is as good: the thread checks its clock after each message.
        if inbox.try_send(DriverMessage::ClockAdvanced(Arc::clone(&waits))).is_err() {
            waits.store(false, Ordering::Release);
        }
    });
}

impl Driver {
    /// Starts the thread. Its disk is not touched before it is needed. `register` receives the
    /// inbox, to which the network delivers messages.
    ///
    /// # Errors
    /// When no thread can be started, or the core rejects the stored state.
    pub(crate) fn start(
        parts: Parts,
        register: impl FnOnce(SyncSender<DriverMessage>),
    ) -> Result<Self> {
        let (inbox, messages) = sync_channel(INBOX_MAX);
        register(inbox.clone());
        listen(&parts.clock, inbox.clone());
        let tome = parts.identity.tome;
        let health = watch::Sender::new(Health::Healthy);
        let driver = Loop::new(parts, inbox.clone(), health.clone())?;
        let thread = std::thread::Builder::new()
            .name(format!("tome-{tome}"))
            .spawn(move || driver.run(&messages))
            .map_err(|error| TomesError::Invalid { what: format!("no thread: {error}") })?;
        Ok(Self { tome, inbox, thread: Mutex::new(Some(thread)), health })
    }

    /// Returns its health.
    pub(crate) fn health(&self) -> Health {
        *self.health.borrow()
    }

    /// Whether it gets no new requests until it works again.
    pub(crate) fn is_given_up(&self) -> bool {
        self.health() != Health::Healthy
    }

    /// Returns when it is given up, not just probed.
    pub(crate) async fn wait_until_given_up(&self) {
        // The sender is held here, so the channel is open.
        let _ = self.health.subscribe().wait_for(|health| *health == Health::GivenUp).await;
    }

    /// Returns when its disk is not being probed: it works, or it is given up.
    pub(crate) async fn wait_until_probed(&self) {
        let _ = self.health.subscribe().wait_for(|health| *health != Health::Probing).await;
    }

    /// Returns why it no longer answers.
    pub(crate) fn unavailable_error(&self) -> TomesError {
        match &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            None => TomesError::Stopped,
            Some(_) => {
                self.health.send_replace(Health::GivenUp);
                let why = "its thread ended: see the log".to_owned();
                TomesError::GivenUp { tome: self.tome, why }
            }
        }
    }

    /// Sends a request. One that was not sent is refused, and the error returned as well.
    ///
    /// # Errors
    /// [`TomesError::Busy`] when too many wait.
    pub(crate) fn send_request(&self, request: TomeRequest) -> Result<()> {
        let refused = self.inbox.try_send(DriverMessage::TomeRequest(request));
        let error = |is_busy| match is_busy {
            true => TomesError::Busy { tome: self.tome },
            false => self.unavailable_error(),
        };
        refused.map_err(|refused| {
            let is_busy = matches!(refused, TrySendError::Full(_));
            let (TrySendError::Full(message) | TrySendError::Disconnected(message)) = refused;
            if let DriverMessage::TomeRequest(request) = message {
                request.refuse(error(is_busy));
            }
            error(is_busy)
        })
    }

    /// Retires it for good: its disk is spun down, and waiting requests fail.
    pub(crate) fn retire(&self) {
        self.health.send_replace(Health::GivenUp);
        // If the thread is gone, there is nothing left to spin down.
        let _ = self.inbox.send(DriverMessage::Retired);
    }

    /// Spins the disk down, and ends the thread afterwards; waiting requests fail.
    pub(crate) fn stop(&self) {
        // It may be gone already.
        let _ = self.inbox.send(DriverMessage::Stop);
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
