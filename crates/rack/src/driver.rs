//! The live driver of a rack: one thread that feeds events to the controller and carries out its
//! commands with real or simulated disks, and a thread for each running operation.
//!
//! ```text
//! submit --> inbox --> Rack::step --> SpinUp, SpinDown: the disk's stages, by their backend
//!              ^                  '--> Run: the task's work, on a thread of its own
//!              |                  '--> Refuse: the same work, with the error
//!              '------ done, a stage is over, time passed
//! ```
//!
//! The controller alone makes decisions, and all time comes from the one clock that is passed in.
//! The driver knows what the controller cannot: which disk is in a place, what caused a spin-up,
//! and who waits for what.

mod event_loop;
mod snapshot;
mod stages;
mod subscribers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fulgurite_disks::{Backend, GroupId, LedgerFile, Observed, PlaceId, SpinUp};
use fulgurite_rack_core::{Assignment, Rack};
use fulgurite_tier::driver::{SendError, inbox};
use fulgurite_tier::watch::Watch;
use fulgurite_units::{ByteCount, Clock, UnixTime};
use tokio::sync::oneshot;

pub(crate) use fulgurite_rack_core::OpKind as Kind;
pub use snapshot::{DiskSnapshot, GroupRoom, GroupSnapshot, GroupState, Snapshot};
pub use subscribers::Notification;

use self::event_loop::Loop;
use crate::limits::DRIVER_INBOX_MAX;
use crate::scrub::Scrubs;
use crate::work::{DiskContext, Group};
use crate::{RackError, Result};

/// Runs with the disks of a group while they spin, or with the error why they do not.
pub(crate) type Work = Box<dyn FnOnce(Result<&Group>) + Send>;

/// An operation to run in a group.
pub(crate) struct Task {
    /// The group.
    pub(crate) group: GroupId,
    /// The kind of operation.
    pub(crate) kind: Kind,
    /// Bytes of blobs that it reads or writes.
    pub(crate) bytes: ByteCount,
    /// Deadline, if a time was promised.
    pub(crate) due: Option<UnixTime>,
    /// The disks it can make do with; none for all there are.
    pub(crate) needs: Option<Needs>,
    /// The function to run.
    pub(crate) work: Work,
}

/// Disks that are enough for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The candidates.
    pub(crate) places: Vec<PlaceId>,
    /// How many of them are enough.
    pub(crate) enough: u32,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Task");
        shown.field("group", &self.group).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Messages to the driver's thread.
enum Message {
    Submit(Task),
    /// A stage of a disk has ended; its result may carry a remaining delay.
    Stage(stages::Ended),
    /// An operation is done.
    Worked(fulgurite_rack_core::OpId),
    /// A disk was given up.
    GiveUp(PlaceId),
    /// Another disk is in a place.
    Replaced(PlaceId),
    /// A group was fully verified at this time, or, if none, is to be verified.
    Verified(GroupId, Option<u64>),
    Snapshot(oneshot::Sender<Snapshot>),
    SpinUps(oneshot::Sender<Vec<SpinUp>>),
    /// Adds a subscriber to the controller's events and commands.
    Watch(oneshot::Sender<Watch<Notification>>),
    /// The disks in standby were polled.
    Polled(Vec<(PlaceId, Observed)>),
}

/// What a driver is started with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rack: Rack,
    pub(crate) assignment: Assignment,
    pub(crate) ctx: Arc<DiskContext>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) ledger: LedgerFile,
    pub(crate) clock: Clock,
    pub(crate) watts: fulgurite_rack_core::Watts,
    pub(crate) scrubs: Scrubs,
    pub(crate) rated_spin_ups: Option<u64>,
}

/// Counts as one until it is dropped.
struct CountGuard(Arc<AtomicUsize>);

impl CountGuard {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The handle of the driver's thread.
#[derive(Debug)]
pub(crate) struct Driver {
    thread: fulgurite_tier::driver::Driver<Message>,
    /// Reads that were submitted and are not done.
    reads: Arc<AtomicUsize>,
}

impl From<SendError> for RackError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Full => Self::Busy { detail: "too many requests are queued".to_owned() },
            SendError::Stopped => Self::Stopping,
        }
    }
}

impl Driver {
    /// Starts the thread. No disk is accessed before a task is submitted.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(parts: Parts) -> Result<Self> {
        let (inbox, messages) = inbox(DRIVER_INBOX_MAX, &parts.clock);
        let actor = Loop::new(parts, inbox);
        let thread = fulgurite_tier::driver::Driver::start("rack".to_owned(), actor, messages)
            .map_err(|error| RackError::Internal {
                detail: format!("cannot start a thread: {error}"),
            })?;
        Ok(Self { thread, reads: Arc::default() })
    }

    /// Submits a task to run when its group spins. Its work is called once, with an error if it
    /// cannot run; it is dropped if no thread can be started or the rack has stopped.
    ///
    /// # Errors
    /// [`RackError::Busy`] when the inbox is full; then its work is not called.
    pub(crate) fn submit(&self, mut task: Task) -> Result<()> {
        if task.kind == Kind::Read {
            let (counted, work) = (CountGuard::new(&self.reads), task.work);
            task.work = Box::new(move |ready| {
                work(ready);
                drop(counted);
            });
        }
        Ok(self.thread.inbox().try_send(Message::Submit(task))?)
    }

    /// Whether no read is running or waiting.
    pub(crate) fn is_calm(&self) -> bool {
        self.reads.load(Ordering::Acquire) == 0
    }

    /// Returns a snapshot of the rack.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot> {
        let (send, snapshot) = oneshot::channel();
        self.send(Message::Snapshot(send))?;
        snapshot.await.map_err(|_| RackError::Stopping)
    }

    /// Returns the last spin-ups, newest first.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) async fn spin_ups(&self) -> Result<Vec<SpinUp>> {
        let (send, spin_ups) = oneshot::channel();
        self.send(Message::SpinUps(send))?;
        spin_ups.await.map_err(|_| RackError::Stopping)
    }

    /// Adds a subscriber from now on.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) async fn watch(&self) -> Result<Watch<Notification>> {
        let (send, watch) = oneshot::channel();
        self.send(Message::Watch(send))?;
        watch.await.map_err(|_| RackError::Stopping)
    }

    /// Reports that a disk was given up.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn give_up(&self, place: PlaceId) -> Result<()> {
        self.send(Message::GiveUp(place))
    }

    /// Reports that a group was fully verified at this time, or, if none, has it verified without
    /// delay.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn verified(&self, group: GroupId, now_ms: Option<u64>) -> Result<()> {
        self.send(Message::Verified(group, now_ms))
    }

    /// Reports that another disk is in a place.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn replaced(&self, place: PlaceId) -> Result<()> {
        self.send(Message::Replaced(place))
    }

    fn send(&self, message: Message) -> Result<()> {
        Ok(self.thread.inbox().send(message)?)
    }

    /// Stops the thread: running tasks finish, waiting ones get an error. Returns when the disks
    /// are spun down.
    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}
