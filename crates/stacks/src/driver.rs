//! The live driver of a rack: one thread that tells the controller what happened and does what it
//! says, with disks that turn, or are simulated to, and a thread for each operation that runs.
//!
//! ```text
//! submit --> inbox --> Rack::step --> SpinUp, SpinDown: the disk's stages, by their backend
//!              ^                  '--> Run: the task's work, on a thread of its own
//!              |                  '--> Refuse: the same work, told why not
//!              '------ done, a stage is over, time passed
//! ```
//!
//! Decisions are the controller's alone, and all time is that of the one clock that is handed in.
//! Here is what it cannot know: which disk is in a place, what a wake has cost, and who waits for
//! what.

mod looping;
mod snapshot;
mod stages;
mod watch;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fulgurite_disks::{Backend, GroupId, LedgerFile, Observed, PlaceId, Wake};
use fulgurite_rack::{Assignment, Rack};
use fulgurite_units::{ByteCount, Clock, UnixTime};
use tokio::sync::oneshot;

pub(crate) use fulgurite_rack::OpKind as Kind;
pub use snapshot::{DiskSnapshot, GroupRoom, GroupSnapshot, GroupState, Snapshot};
pub use watch::Seen;

use self::looping::Loop;
use self::watch::Watcher;
use crate::limits::DRIVER_INBOX_MAX;
use crate::scrub::Scrubs;
use crate::work::{Group, Shop};
use crate::{Result, StacksError};

/// What is done with the disks of a group while they spin, or told why it is not.
pub(crate) type Work = Box<dyn FnOnce(Result<&Group>) + Send>;

/// Something to be done in a group.
pub(crate) struct Task {
    /// Where.
    pub(crate) group: GroupId,
    /// What.
    pub(crate) kind: Kind,
    /// Bytes of blobs that it reads or writes.
    pub(crate) bytes: ByteCount,
    /// When it is due, if somebody was promised a time.
    pub(crate) due: Option<UnixTime>,
    /// Which disks it can do with; none for all that there are.
    pub(crate) needs: Option<Needs>,
    /// How.
    pub(crate) work: Work,
}

/// Disks that are enough for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Any of these.
    pub(crate) places: Vec<PlaceId>,
    /// So many of them.
    pub(crate) enough: u32,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Task");
        shown.field("group", &self.group).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// What the driver's thread is told.
enum Message {
    Submit(Task),
    /// A stage of a disk is over, but for this long.
    Stage(stages::Ended),
    /// An operation is done.
    Worked(fulgurite_rack::OpId),
    /// A disk is to be used no more.
    GiveUp(PlaceId),
    /// Another disk is in a place.
    Replaced(PlaceId),
    /// A group was whole verified, then; or, with none, is to be.
    Verified(GroupId, Option<u64>),
    Snapshot(oneshot::Sender<Snapshot>),
    Wakes(oneshot::Sender<Vec<Wake>>),
    /// Somebody is told what the controller is told, and what it says.
    Watch(Watcher),
    /// Disks that sleep were looked at.
    Looked(Vec<(PlaceId, Observed)>),
    /// The hands of the clock were turned.
    Turned,
    Stop,
}

/// What a driver is started with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rack: Rack,
    pub(crate) assignment: Assignment,
    pub(crate) shop: Arc<Shop>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) ledger: LedgerFile,
    pub(crate) clock: Clock,
    pub(crate) watts: fulgurite_rack::Watts,
    pub(crate) scrubs: Scrubs,
    pub(crate) rated_spin_ups: Option<u64>,
}

/// One of those that are counted, until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The handle of the driver's thread.
#[derive(Debug)]
pub(crate) struct Driver {
    inbox: SyncSender<Message>,
    /// Reads that were submitted and are not done.
    reads: Arc<AtomicUsize>,
    /// Nobody wants anything any more.
    is_left: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Driver {
    /// Starts it. No disk is touched before something is submitted.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn start(parts: Parts) -> Result<Self> {
        let (inbox, messages) = sync_channel(DRIVER_INBOX_MAX);
        let turned = inbox.clone();
        // Full is as good: it looks at the clock after each message.
        parts.clock.listen(move || drop(turned.try_send(Message::Turned)));
        let is_left = Arc::<AtomicBool>::default();
        let driver = Loop::new(parts, inbox.clone(), Arc::clone(&is_left));
        let thread = std::thread::Builder::new()
            .name("rack".to_owned())
            .spawn(move || driver.run(&messages))
            .map_err(|error| StacksError::Internal { what: format!("no thread: {error}") })?;
        let reads = Arc::default();
        Ok(Self { inbox, reads, is_left, thread: Mutex::new(Some(thread)) })
    }

    /// Has something done when its group spins. Its work is called once, whatever becomes of it.
    ///
    /// # Errors
    /// [`StacksError::Busy`] when too much waits to be looked at; then its work is not called.
    pub(crate) fn submit(&self, mut task: Task) -> Result<()> {
        if task.kind == Kind::Read {
            let (counted, work) = (Counted::new(&self.reads), task.work);
            task.work = Box::new(move |ready| {
                work(ready);
                drop(counted);
            });
        }
        self.inbox.try_send(Message::Submit(task)).map_err(|refused| match refused {
            TrySendError::Full(_) => {
                StacksError::Busy { what: "too much is asked for at once".to_owned() }
            }
            TrySendError::Disconnected(_) => StacksError::Stopping,
        })
    }

    /// Whether nobody reads, or waits for it.
    pub(crate) fn is_calm(&self) -> bool {
        self.reads.load(Ordering::Acquire) == 0
    }

    /// What goes on now.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot> {
        let (send, snapshot) = oneshot::channel();
        self.tell(Message::Snapshot(send))?;
        snapshot.await.map_err(|_| StacksError::Stopping)
    }

    /// The last wakes, the latest first.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) async fn wakes(&self) -> Result<Vec<Wake>> {
        let (send, wakes) = oneshot::channel();
        self.tell(Message::Wakes(send))?;
        wakes.await.map_err(|_| StacksError::Stopping)
    }

    /// Has somebody told everything from here on, until it says that it wants no more.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn watch(&self, watcher: Watcher) -> Result<()> {
        self.tell(Message::Watch(watcher))
    }

    /// A disk is used no more.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn give_up(&self, place: PlaceId) -> Result<()> {
        self.tell(Message::GiveUp(place))
    }

    /// A group was whole verified, then; or, with none, is to be without delay.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn verified(&self, group: GroupId, now_ms: Option<u64>) -> Result<()> {
        self.tell(Message::Verified(group, now_ms))
    }

    /// Another disk is in a place.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn replaced(&self, place: PlaceId) -> Result<()> {
        self.tell(Message::Replaced(place))
    }

    fn tell(&self, message: Message) -> Result<()> {
        self.inbox.send(message).map_err(|_| StacksError::Stopping)
    }

    /// Ends the thread when what runs has ended; what waits is told so. Returns when the disks are
    /// put down.
    pub(crate) fn stop(&self) {
        // It may be gone already.
        let _ = self.tell(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        // Work of it may have the last handle; a thread cannot wait for itself.
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            tracing::error!("the thread of the rack panicked");
        }
    }
}

impl Drop for Driver {
    /// Does not wait: whoever drops the last handle may be work of it, or its own thread.
    fn drop(&mut self) {
        self.is_left.store(true, Ordering::Release);
        // Full is as good: it looks whether it is left after each message.
        drop(self.inbox.try_send(Message::Turned));
    }
}
