//! The live driver of the glass library: simulated mechanics, real reading.
//!
//! ```text
//! read / verify / store --> inbox --> Library::step --> Move, Crab, Pick, Mount, Seek ... : timer
//!                             ^                    '--> Read, VerifyPass: the request's work, on
//!                             '--------- Completed -----  a thread of its own
//! ```
//!
//! Mechanical operations take the paper's times (Silica, section 7.1) multiplied by `time_scale`;
//! at 0 they take none. Reading takes the time the bytes take, and at least the drive's own time
//! when it is scaled. The decisions are the controller's alone; what it is told and what it decides
//! can be written to a log.

mod log_file;
mod refusal;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use fulgurite_library::{
    Action, Command, CommandId, Event, Fault, Library, Machine, Mechanics, Movement, Outcome,
    Output, PanelIndex, RequestId, Throughput, TrackSpan,
};
use fulgurite_units::{
    ByteCount, Controller as _, Duration, Instant, Outbox, PlatterId, RandomStream, Seed,
    SlotIndex, TrackIndex,
};
use tokio::sync::oneshot;

use self::log_file::LogFile;
use self::refusal::Refusal;
use crate::config::LibraryOptions;
use crate::{ArchiveError, Result};

/// Orders waiting for the driver; one more waits at its sender.
const INBOX_MAX: usize = 1024;
/// By when a read shall be answered: the objective of Silica, section 7.2.
const OBJECTIVE: Duration = Duration::from_secs(15 * 3600);
/// How long the driver waits when nothing is under way.
const IDLE_WAIT: std::time::Duration = std::time::Duration::from_secs(3600);

/// What a drive does for a request once the platter is mounted and the track found.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// How a request will end.
#[derive(Debug)]
pub(crate) struct Answer {
    platter: PlatterId,
    ended: oneshot::Receiver<Result<(), Refusal>>,
}

/// Makes the event of a request, given its number and the time.
type MakeEvent = Box<dyn FnOnce(RequestId, Instant) -> Event + Send>;

enum Order {
    Request { make: MakeEvent, pending: Pending },
    Done { command: CommandId },
    Breaks(Machine),
    Works(Machine),
    Stop,
}

struct Pending {
    work: Option<Work>,
    done: oneshot::Sender<Result<(), Refusal>>,
}

/// The handle of the driver's thread.
#[derive(Clone, Debug)]
pub(crate) struct LiveLibrary {
    inbox: SyncSender<Order>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
    reading: Arc<Reading>,
}

/// Drives that are at work now.
#[derive(Debug, Default)]
struct Reading {
    count: Mutex<usize>,
    ended: Condvar,
}

impl Reading {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>) -> ReadingGuard {
        *self.lock() += 1;
        ReadingGuard(Arc::clone(self))
    }

    fn wait_for_none(&self) {
        let mut count = self.lock();
        while *count > 0 {
            count = self.ended.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Counts one drive until it is dropped.
struct ReadingGuard(Arc<Reading>);

impl Drop for ReadingGuard {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.ended.notify_all();
    }
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Request { .. } => "Request",
            Self::Done { .. } => "Done",
            Self::Breaks(_) => "Breaks",
            Self::Works(_) => "Works",
            Self::Stop => "Stop",
        })
    }
}

impl LiveLibrary {
    /// Starts the driver for platters whose tracks hold `track_size` user bytes.
    pub(crate) fn start(options: &LibraryOptions, track_size: ByteCount) -> Result<Self> {
        let refuse = |what: String| ArchiveError::InvalidArgument { what };
        if options.policy.movement == Movement::NoShuttles {
            return Err(refuse("library policy: a library needs shuttles".to_owned()));
        }
        let library = Library::with_policy(&options.shape, options.policy.clone())
            .map_err(|e| refuse(format!("library: {e}")))?;
        let log = LogFile::begin(options.log.as_deref(), &library)?;
        let (inbox, orders) = sync_channel(INBOX_MAX);
        let reading = Arc::<Reading>::default();
        let driver = Driver {
            library,
            mechanics: Mechanics::new(Throughput::PAPER, track_size),
            random: Seed::new(options.seed).child(b"mechanics").stream(),
            time_scale: options.time_scale,
            started: std::time::Instant::now(),
            next_request: 0,
            pending: BTreeMap::new(),
            under_way: BTreeMap::new(),
            broken: BTreeSet::new(),
            log,
            timers: BinaryHeap::new(),
            inbox: inbox.clone(),
            reading: Arc::clone(&reading),
        };
        let thread = std::thread::Builder::new()
            .name("library".to_owned())
            .spawn(move || driver.run(&orders))
            .map_err(|e| ArchiveError::Internal { what: format!("no thread: {e}") })?;
        Ok(Self { inbox, thread: Arc::new(Mutex::new(Some(thread))), reading })
    }

    fn request(
        &self,
        platter: PlatterId,
        make: impl FnOnce(RequestId, Instant) -> Event + Send + 'static,
        work: Option<Work>,
    ) -> Result<Answer> {
        let (done, ended) = oneshot::channel();
        let order = Order::Request { make: Box::new(make), pending: Pending { work, done } };
        self.inbox.send(order).map_err(|_| ArchiveError::Stopping)?;
        Ok(Answer { platter, ended })
    }

    /// Has a drive do `work` with tracks of a stored platter.
    pub(crate) fn read(
        &self,
        platter: PlatterId,
        slot: SlotIndex,
        tracks: TrackSpan,
        work: Work,
    ) -> Result<Answer> {
        self.request(
            platter,
            move |request, now| {
                let deadline = now + OBJECTIVE;
                Event::Read { request, platter, slot, tracks, deadline }
            },
            Some(work),
        )
    }

    /// Has a drive read a freshly written platter whole.
    pub(crate) fn verify(&self, platter: PlatterId, tracks: u32, work: Work) -> Result<Answer> {
        let tracks = TrackSpan::new(TrackIndex::new(0), tracks);
        let panel = PanelIndex::new(0);
        self.request(
            platter,
            move |request, _| Event::Verify { request, platter, panel, tracks },
            Some(work),
        )
    }

    /// Has a verified platter brought to its slot.
    pub(crate) fn store(&self, platter: PlatterId, slot: SlotIndex) -> Result<Answer> {
        self.request(platter, move |request, _| Event::Store { request, platter, slot }, None)
    }

    /// An emulated machine breaks: it stops where it is, and what it was doing is not answered.
    pub(crate) fn broke(&self, machine: Machine) -> Result<()> {
        self.inbox.send(Order::Breaks(machine)).map_err(|_| ArchiveError::Stopping)
    }

    /// A broken machine works again.
    pub(crate) fn repaired(&self, machine: Machine) -> Result<()> {
        self.inbox.send(Order::Works(machine)).map_err(|_| ArchiveError::Stopping)
    }

    /// Ends the driver; requests under way are answered with an error. Returns when no drive is
    /// at work any more.
    pub(crate) fn stop(&self) {
        // The driver may be gone already.
        let _ = self.inbox.send(Order::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the library's driver died");
        }
        self.reading.wait_for_none();
    }
}

/// Waits for an answer on a thread that may block.
pub(crate) fn wait(answer: Answer) -> Result<()> {
    let Answer { platter, ended } = answer;
    let ended = ended.blocking_recv().map_err(|_| ArchiveError::Stopping)?;
    ended.map_err(|refusal| refusal.of(platter))
}

struct Driver {
    library: Library,
    mechanics: Mechanics,
    random: RandomStream,
    time_scale: f64,
    started: std::time::Instant,
    next_request: u64,
    pending: BTreeMap<RequestId, Pending>,
    /// Commands not answered yet.
    under_way: BTreeMap<CommandId, Action>,
    broken: BTreeSet<Machine>,
    log: LogFile,
    timers: BinaryHeap<Reverse<(Instant, CommandId)>>,
    inbox: SyncSender<Order>,
    reading: Arc<Reading>,
}

impl Driver {
    fn now(&self) -> Instant {
        let passed = self.started.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            match orders.recv_timeout(self.wait()) {
                Ok(Order::Request { make, pending }) => {
                    let request = RequestId::new(self.next_request);
                    self.next_request += 1;
                    self.pending.insert(request, pending);
                    let event = make(request, self.now());
                    self.step(event);
                }
                Ok(Order::Done { command }) => self.complete(command),
                Ok(Order::Breaks(machine)) => {
                    if self.broken.insert(machine) {
                        self.step(Event::Broke { machine });
                    }
                }
                Ok(Order::Works(machine)) => {
                    if self.broken.remove(&machine) {
                        self.step(Event::Repaired { machine });
                    }
                }
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.log.stopped();
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            while let Some(&Reverse((due, command))) = self.timers.peek()
                && due <= self.now()
            {
                self.timers.pop();
                self.complete(command);
            }
            if self.library.deadline().is_some_and(|due| due <= self.now()) {
                self.step(Event::Timer);
            }
        }
    }

    /// How long nothing will happen by itself.
    fn wait(&self) -> std::time::Duration {
        let timer = self.timers.peek().map(|Reverse((due, _))| *due);
        let next = timer.into_iter().chain(self.library.deadline()).min();
        next.map_or(IDLE_WAIT, |due| due.since(self.now()).into())
    }

    /// A command was carried out, unless its machine broke in the meantime.
    fn complete(&mut self, command: CommandId) {
        if self.under_way.contains_key(&command) {
            self.step(Event::Completed { command });
        }
    }

    /// Answers end their commands, and so do machines that break.
    fn settle(&mut self, event: &Event) {
        match *event {
            Event::Completed { command } | Event::Failed { command, .. } => {
                self.under_way.remove(&command);
            }
            Event::Broke { machine } => {
                self.under_way.retain(|_, action| action.machine() != machine);
            }
            Event::Halted { .. }
            | Event::Passed { .. }
            | Event::Read { .. }
            | Event::Verify { .. }
            | Event::Store { .. }
            | Event::Cancel { .. }
            | Event::Repaired { .. }
            | Event::Battery { .. }
            | Event::Timer => {}
        }
    }

    /// Steps the controller until no command can be answered at once.
    fn step(&mut self, event: Event) {
        let mut events = vec![event];
        let mut out = Outbox::new();
        while let Some(event) = events.pop() {
            let now = self.now();
            self.log.event(now, &event);
            self.settle(&event);
            self.library.step(now, event, &mut out);
            for output in out.drain().collect::<Vec<_>>() {
                self.log.output(&output);
                match output {
                    Output::Do(command) => {
                        self.under_way.insert(command.id, command.action);
                        if let Some(answer) = self.execute(&command) {
                            events.push(answer);
                        }
                    }
                    // A pass reads whole platters at memory speed; customers wait for it.
                    Output::Halt { .. } => {}
                    // Nobody watches travels here.
                    Output::Traveled(_) => {}
                    Output::Finished { request, outcome } => self.finish(request, outcome),
                    Output::Rejected { request, reason } => {
                        self.answer(request, Err(Refusal::rejected(&reason)));
                    }
                }
            }
        }
        self.log.flush();
    }

    /// Begins a command; the answer, if it is already there.
    fn execute(&mut self, command: &Command) -> Option<Event> {
        let work = match command.action {
            Action::Read { request, .. } | Action::VerifyPass { request, .. } => {
                self.pending.get_mut(&request).and_then(|pending| pending.work.take())
            }
            Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. }
            | Action::Charge { .. }
            | Action::Mount { .. }
            | Action::Unmount { .. }
            | Action::Switch { .. }
            | Action::Seek { .. } => None,
        };
        let lasts = self.mechanics.duration(&command.action, &mut self.random).as_secs_f64();
        let lasts = Duration::from_secs_f64(lasts * self.time_scale);
        tracing::trace!(command = command.id.get(), action = ?command.action, ?lasts, "library");
        match work {
            Some(work) => self.work(command.id, work, lasts),
            None if lasts == Duration::ZERO => Some(Event::Completed { command: command.id }),
            None => {
                self.timers.push(Reverse((self.now() + lasts, command.id)));
                None
            }
        }
    }

    /// Runs a drive's work on a thread of its own: no more run at a time than there are drives.
    fn work(&self, command: CommandId, work: Work, lasts: Duration) -> Option<Event> {
        let inbox = self.inbox.clone();
        let started = std::time::Instant::now();
        let reading = self.reading.begin();
        let run = move || {
            work();
            drop(reading);
            let left = std::time::Duration::from(lasts).saturating_sub(started.elapsed());
            std::thread::sleep(left);
            // When the driver is gone the archive is stopping.
            let _ = inbox.send(Order::Done { command });
        };
        match std::thread::Builder::new().name("read-drive".to_owned()).spawn(run) {
            Ok(_) => None,
            Err(error) => {
                tracing::error!(%error, "a read drive cannot start");
                Some(Event::Failed { command, fault: Fault::DriveBroken })
            }
        }
    }

    fn finish(&mut self, request: RequestId, outcome: Outcome) {
        let answer = match outcome {
            Outcome::Read | Outcome::Verified | Outcome::Stored => Ok(()),
            Outcome::Canceled => Err(Refusal::Other("the request was canceled".to_owned())),
            Outcome::Failed(fault) => Err(Refusal::failed(fault)),
        };
        self.answer(request, answer);
    }

    fn answer(&mut self, request: RequestId, answer: Result<(), Refusal>) {
        if let Some(pending) = self.pending.remove(&request) {
            // A requester that went away needs no answer.
            let _ = pending.done.send(answer);
        }
    }
}

#[cfg(test)]
mod tests;
