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
//! when it is scaled. The controller alone decides; its events and decisions can be written to a
//! log.
//!
//! A verification that the library halts pauses after its next track and continues when the library
//! says so; what it found until then is kept with its request. Work that panics fails its request.
//! A controller that panics - a bug of ours - ends everything in progress, and the library
//! continues as after a start, with all platters at home.
//!
//! Subscribers receive every event (`watch`); the driver never waits for them.

mod log_file;
mod read_deadline;
mod refusal;
mod watch;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_glass_core::control::limits::REPORT_UM;
use fulgurite_glass_core::control::{
    Action, Command, CommandId, Event, Fault, Library, LibraryShape, Machine, Mechanics, Movement,
    Outcome, Output, RailPosition, RequestId, Throughput, TrackSpan,
};
use fulgurite_tier::driver::{Actor, Core, Driver, Panicked, SendError, inbox};
use fulgurite_units::{
    ByteCount, Clock, Duration, Instant, PlatterId, RandomStream, Seed, SlotIndex, TrackIndex,
    UnixTime,
};
use tokio::sync::oneshot;

use self::log_file::LogFile;
pub use self::log_file::begin_log;
pub(crate) use self::read_deadline::ReadDeadline;
use self::refusal::Refusal;
use self::watch::LibraryPublisher;
pub use self::watch::{LibrarySnapshot, LibraryStep, LibraryWatch, Seen, WatchEnd};
pub(crate) use self::work::{Halt, Pace, Pass, Read, Verify};
use self::work::{Work, WorkEnd};
use crate::config::LibraryOptions;
use crate::limits::{DRIVER_INBOX_MAX, WATCH_STEPS_MAX};
use crate::panics::Panics;
use crate::{GlassError, Result};

/// The pending result of a request.
#[derive(Debug)]
pub(crate) struct Ticket {
    platter: PlatterId,
    ended: oneshot::Receiver<Result<(), Refusal>>,
    /// Held while the request's new platter is not verified.
    unverified: Option<UnverifiedGuard>,
}

impl Ticket {
    /// Waits for the result without blocking a thread.
    ///
    /// # Errors
    /// Why the request failed.
    pub(crate) async fn ended(self) -> Result<()> {
        let Self { platter, ended, unverified } = self;
        let ended = ended.await.map_err(|_| GlassError::Stopping)?;
        drop(unverified);
        ended.map_err(|refusal| refusal.into_error(platter))
    }
}

/// Builds the event of a request from its number and the time.
type MakeEvent = Box<dyn FnOnce(RequestId, Instant) -> Event + Send>;

enum Message {
    Request { make: MakeEvent, pending: Pending },
    WorkDone(WorkDone),
    Break(Machine),
    Repair(Machine),
    Subscribe(oneshot::Sender<LibraryWatch>),
}

struct Pending {
    /// What a drive does for it; taken while a drive does it.
    work: Option<Work>,
    /// The real cause, if a drive failure was reported to the library instead.
    cause: Option<Refusal>,
    done: oneshot::Sender<Result<(), Refusal>>,
}

/// A finished command of a drive's thread.
struct WorkDone {
    /// The incarnation of the controller that gave the command.
    incarnation: u64,
    command: CommandId,
    request: RequestId,
    ended: WorkEnd,
    /// What is left to do of it, later.
    work: Option<Work>,
}

/// What happens to a command when its alarm rings.
#[derive(Clone, Copy, Debug)]
enum Alarm {
    /// The command is completed.
    Done,
    /// Its shuttle passes this position.
    Passes(RailPosition),
}

/// The handle of the driver's thread.
#[derive(Clone, Debug)]
pub(crate) struct LiveLibrary {
    driver: Arc<Driver<Message>>,
    unverified: Arc<Unverified>,
    shape: Arc<LibraryShape>,
}

/// New platters that wait for verification, and since when.
#[derive(Debug)]
pub(crate) struct Unverified {
    since: Mutex<BTreeMap<PlatterId, std::time::Instant>>,
    /// How long one may wait by the policy.
    within: Duration,
}

impl Unverified {
    fn new(within: Duration) -> Self {
        Self { since: Mutex::default(), within }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlatterId, std::time::Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>, platter: PlatterId) -> UnverifiedGuard {
        self.lock().insert(platter, std::time::Instant::now());
        UnverifiedGuard { all: Arc::clone(self), platter }
    }

    /// Returns how many there are now, how long the oldest has waited, and a warning if that
    /// exceeds the limit. Uses the real clock of the live library, which tests do not control: a
    /// drive takes as long as it takes.
    #[must_use]
    pub(crate) fn status(&self) -> (usize, Option<Duration>, Option<String>) {
        let now = std::time::Instant::now();
        let (count, oldest) = self.waiting(now);
        (count, oldest, self.warning(now))
    }

    fn waiting(&self, now: std::time::Instant) -> (usize, Option<Duration>) {
        let since = self.lock();
        let oldest = since.values().min().map(|begun| now.saturating_duration_since(*begun));
        let nanos = |age: std::time::Duration| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        (since.len(), oldest.map(|age| Duration::from_nanos(nanos(age))))
    }

    /// Returns a warning if one waits longer than it may.
    fn warning(&self, now: std::time::Instant) -> Option<String> {
        let oldest = self.waiting(now).1.filter(|age| *age > self.within)?;
        let hours = |time: Duration| time.as_secs_f64() / 3600.0;
        Some(format!(
            "a new platter has waited {:.1} h to be verified, and may wait {:.1} h: too few drives \
             work, or decoding is behind; what is on it stays staged",
            hours(oldest),
            hours(self.within)
        ))
    }
}

/// Counts one new platter as waiting until it is dropped.
#[derive(Debug)]
struct UnverifiedGuard {
    all: Arc<Unverified>,
    platter: PlatterId,
}

impl Drop for UnverifiedGuard {
    fn drop(&mut self) {
        self.all.lock().remove(&self.platter);
    }
}

impl LiveLibrary {
    /// Starts the driver for platters whose tracks hold `track_size` user bytes.
    ///
    /// # Errors
    /// When the options are invalid, or the log cannot be started.
    pub(crate) fn start(
        options: &LibraryOptions,
        track_size: ByteCount,
        panics: &Arc<Panics>,
    ) -> Result<Self> {
        let refuse = |what: String| GlassError::InvalidArgument { what };
        if options.policy.movement == Movement::NoShuttles {
            return Err(refuse("library policy: a library needs shuttles".to_owned()));
        }
        let library = Library::with_policy(&options.shape, options.policy.clone())
            .map_err(|e| refuse(format!("library: {e}")))?;
        let log = LogFile::begin(options.log.as_deref(), &library)?;
        let started = std::time::Instant::now();
        let passed = move || {
            let nanos = u64::try_from(started.elapsed().as_nanos());
            Instant::from_nanos(nanos.unwrap_or(u64::MAX))
        };
        let clock = Clock::new(UnixTime::default, passed);
        let (inbox, messages) = inbox(DRIVER_INBOX_MAX, &clock);
        let actor = LibraryActor {
            core: Core::new(library, clock, inbox),
            mechanics: Mechanics::new(Throughput::PAPER, track_size)
                .with_time_scale(options.time_scale),
            random: Seed::new(options.seed).child(b"mechanics").stream(),
            incarnation: 0,
            next_request: 0,
            pending: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            halts: BTreeMap::new(),
            working: 0,
            broken: BTreeSet::new(),
            log,
            publisher: LibraryPublisher::new(WATCH_STEPS_MAX, options.time_scale),
            panics: Arc::clone(panics),
        };
        let driver = Driver::start("library".to_owned(), actor, messages)
            .map_err(|e| GlassError::Internal { what: format!("no thread: {e}") })?;
        let shape = Arc::new(options.shape.clone());
        let unverified = Arc::new(Unverified::new(options.policy.verify_within));
        Ok(Self { driver: Arc::new(driver), unverified, shape })
    }

    fn send(&self, message: Message) -> Result<()> {
        self.driver.inbox().send(message).map_err(|_: SendError| GlassError::Stopping)
    }

    /// New platters that are not verified yet.
    #[must_use]
    pub(crate) fn unverified(&self) -> &Unverified {
        &self.unverified
    }

    fn request(
        &self,
        platter: PlatterId,
        make: impl FnOnce(RequestId, Instant) -> Event + Send + 'static,
        work: Option<Work>,
    ) -> Result<Ticket> {
        let (done, ended) = oneshot::channel();
        let pending = Pending { work, cause: None, done };
        let message = Message::Request { make: Box::new(make), pending };
        self.send(message)?;
        Ok(Ticket { platter, ended, unverified: None })
    }

    /// Has a drive do `work` with tracks of a stored platter. Reads are served in the order of
    /// their deadlines, then of their arrival.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn read(
        &self,
        platter: PlatterId,
        slot: SlotIndex,
        tracks: TrackSpan,
        due: ReadDeadline,
        work: Read,
    ) -> Result<Ticket> {
        self.request(
            platter,
            move |request, now| {
                let deadline = due.to_library_time(now);
                Event::Read { request, platter, slot, tracks, deadline }
            },
            Some(Work::Read(work)),
        )
    }

    /// Has a drive read a freshly written platter completely. The platter comes out at the eject
    /// bay of the panel where its slot is: shuttles never change panels.
    ///
    /// # Errors
    /// When it is stopping, or has no such slot.
    pub(crate) fn verify(
        &self,
        platter: PlatterId,
        slot: SlotIndex,
        tracks: u32,
        work: Verify,
    ) -> Result<Ticket> {
        let tracks = TrackSpan::new(TrackIndex::new(0), tracks);
        let panel = self.shape.address(slot).map(|address| address.panel).ok_or_else(|| {
            let what = format!("platter {platter} cannot go to slot {slot}, which does not exist");
            GlassError::Internal { what }
        })?;
        let unverified = Some(self.unverified.begin(platter));
        let answer = self.request(
            platter,
            move |request, _| Event::Verify { request, platter, panel, tracks },
            Some(Work::Verify(work)),
        )?;
        Ok(Ticket { unverified, ..answer })
    }

    /// Has a verified platter brought to its slot.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn store(&self, platter: PlatterId, slot: SlotIndex) -> Result<Ticket> {
        self.request(platter, move |request, _| Event::Store { request, platter, slot }, None)
    }

    /// Breaks an emulated machine: it stops where it is, and its current command gets no answer.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn broke(&self, machine: Machine) -> Result<()> {
        self.send(Message::Break(machine))
    }

    /// Repairs a broken machine.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn repaired(&self, machine: Machine) -> Result<()> {
        self.send(Message::Repair(machine))
    }

    /// Subscribes to the library's events from now on, on a thread that may block.
    ///
    /// # Errors
    /// When it is stopping.
    pub(crate) fn watch(&self) -> Result<LibraryWatch> {
        let (send, watch) = oneshot::channel();
        self.send(Message::Subscribe(send))?;
        watch.blocking_recv().map_err(|_| GlassError::Stopping)
    }

    /// Stops the driver; pending requests end with an error. Returns when no drive is working any
    /// more.
    pub(crate) fn stop(&self) {
        self.driver.stop();
    }
}

/// Waits for a result on a thread that may block.
///
/// # Errors
/// Why the request failed.
pub(crate) fn wait(answer: Ticket) -> Result<()> {
    let Ticket { platter, ended, unverified } = answer;
    let ended = ended.blocking_recv().map_err(|_| GlassError::Stopping)?;
    drop(unverified);
    ended.map_err(|refusal| refusal.into_error(platter))
}

struct LibraryActor {
    core: Core<Self>,
    mechanics: Mechanics,
    random: RandomStream,
    /// Incarnation of the controller, raised when it is replaced.
    incarnation: u64,
    next_request: u64,
    pending: BTreeMap<RequestId, Pending>,
    /// Commands not answered yet.
    in_flight: BTreeMap<CommandId, Action>,
    /// How working drives are asked to pause.
    halts: BTreeMap<CommandId, Arc<Halt>>,
    /// Number of drives that are working now.
    working: usize,
    broken: BTreeSet<Machine>,
    log: LogFile,
    publisher: LibraryPublisher,
    panics: Arc<Panics>,
}

impl Actor for LibraryActor {
    type Controller = Library;
    type Message = Message;
    type Alarm = (CommandId, Alarm);

    const TIMER: Event = Event::Timer;

    fn core(&mut self) -> &mut Core<Self> {
        &mut self.core
    }

    fn handle(&mut self, message: Message) {
        match message {
            // Dropping it tells the requester.
            Message::Request { .. } if self.core.is_stopping() => {}
            Message::Request { make, pending } => {
                let request = RequestId::new(self.next_request);
                self.next_request += 1;
                self.pending.insert(request, pending);
                let event = make(request, self.core.now());
                self.core.queue(event);
            }
            Message::WorkDone(work_done) => self.work_done(work_done),
            Message::Break(machine) => {
                if self.broken.insert(machine) {
                    self.core.queue(Event::Broke { machine });
                }
            }
            Message::Repair(machine) => {
                if self.broken.remove(&machine) {
                    self.core.queue(Event::Repaired { machine });
                }
            }
            Message::Subscribe(send) => {
                drop(send.send(self.publisher.watch(&self.core.controller, self.core.now())));
            }
        }
    }

    fn ring(&mut self, (command, alarm): (CommandId, Alarm)) {
        let event = match alarm {
            Alarm::Done => Event::Completed { command },
            Alarm::Passes(at) => Event::Passed { command, at },
        };
        self.answer_command(event, command);
    }

    fn apply(&mut self, event: Event) {
        let now = self.core.now();
        self.log.event(now, &event);
        self.retire_commands(&event);
        let outputs = self.core.step(now, event);
        self.publisher.step(now, event, &outputs);
        for output in outputs {
            self.log.output(&output);
            match output {
                Output::Do(command) => {
                    self.in_flight.insert(command.id, command.action);
                    if let Some(answer) = self.execute(&command) {
                        self.core.queue(answer);
                    }
                }
                // Work that reads nothing just takes its time.
                Output::Halt { command } => {
                    if let Some(halt) = self.halts.get(&command) {
                        halt.request();
                    }
                }
                // Travel reports are not used here.
                Output::Traveled(_) => {}
                Output::Finished { request, outcome } => self.finish(request, outcome),
                Output::Rejected { request, reason } => {
                    self.answer(request, Err(Refusal::rejected(&reason)));
                }
            }
        }
    }

    fn end_turn(&mut self) {
        self.log.flush();
    }

    /// Only waits for the drives: the log ends here, so the controller decides nothing more.
    fn stop(&mut self) {
        self.core.end();
        self.pending.clear();
        self.in_flight.clear();
        self.halts.values().for_each(|halt| halt.request());
        self.log.stopped();
    }

    fn is_idle(&self) -> bool {
        self.working == 0
    }

    fn recover(&mut self, panicked: &Panicked) -> bool {
        let panics = Arc::clone(&self.panics);
        drop(panics.record("the library's controller", panicked));
        panics.catch("the library's driver", || self.restart()).is_ok()
    }
}

impl LibraryActor {
    /// Replaces the controller after a panic, when its state cannot be trusted: everything in
    /// progress ends with an error, and a new controller begins with all platters at home.
    fn restart(&mut self) {
        let library = &self.core.controller;
        let (shape, policy) = (library.shape().clone(), library.policy().clone());
        self.log.failed();
        self.incarnation += 1;
        for (_, pending) in std::mem::take(&mut self.pending) {
            let reason = "the library's controller panicked and was restarted".to_owned();
            let _ = pending.done.send(Err(Refusal::Other(reason)));
        }
        std::mem::take(&mut self.halts).values().for_each(|halt| halt.request());
        self.in_flight.clear();
        self.core.clear();
        self.core.controller = Library::with_policy(&shape, policy)
            .unwrap_or_else(|error| unreachable!("it was made from these before: {error}"));
        self.publisher.restart(&self.core.controller, self.core.now());
        // Applied here: another panic ends the thread.
        for machine in self.broken.clone() {
            self.step(Event::Broke { machine });
        }
    }

    /// Gives the controller an event of a command, unless its machine broke meanwhile.
    fn answer_command(&mut self, event: Event, command: CommandId) {
        if self.in_flight.contains_key(&command) {
            self.core.queue(event);
        }
    }

    /// Handles the end of a drive's work on a command, complete or halted.
    fn work_done(&mut self, work_done: WorkDone) {
        let WorkDone { incarnation, command, request, ended, work } = work_done;
        self.working -= 1;
        if incarnation != self.incarnation {
            return;
        }
        self.halts.remove(&command);
        let event = match ended {
            WorkEnd::Complete => Event::Completed { command },
            WorkEnd::Halted(tracks_done) => Event::Halted { command, tracks_done },
            // The platter and the drive may both be good: only the request fails.
            WorkEnd::Died(_) => Event::Failed { command, fault: Fault::Unreadable },
        };
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.work = work;
            if let WorkEnd::Died(what) = ended {
                pending.cause = Some(Refusal::Other(what));
            }
        }
        self.answer_command(event, command);
    }

    /// Removes commands that end: with their answer, or with a machine that breaks.
    fn retire_commands(&mut self, event: &Event) {
        match *event {
            Event::Completed { command }
            | Event::Halted { command, .. }
            | Event::Failed { command, .. } => {
                self.in_flight.remove(&command);
            }
            Event::Broke { machine } => {
                let ends = |_: &CommandId, action: &mut Action| action.machine() == machine;
                for (command, _) in self.in_flight.extract_if(.., ends) {
                    // The rest of what its drive was reading is no longer needed.
                    if let Some(halt) = self.halts.remove(&command) {
                        halt.request();
                    }
                }
            }
            Event::Passed { .. }
            | Event::Read { .. }
            | Event::Verify { .. }
            | Event::Store { .. }
            | Event::Cancel { .. }
            | Event::Repaired { .. }
            | Event::Battery { .. }
            | Event::Timer => {}
        }
    }

    /// Starts a command; returns the answer, if it is already known.
    fn execute(&mut self, command: &Command) -> Option<Event> {
        let duration = self.mechanics.duration(&command.action, &mut self.random);
        tracing::trace!(command = command.id.get(), action = ?command.action, ?duration, "library");
        if let Action::Read { request, tracks, .. } | Action::VerifyPass { request, tracks, .. } =
            command.action
            && let Some(work) =
                self.pending.get_mut(&request).and_then(|pending| pending.work.take())
        {
            return self.work(command.id, request, work, tracks, duration);
        }
        if duration == Duration::ZERO {
            return Some(Event::Completed { command: command.id });
        }
        let now = self.core.now();
        self.report(now, command);
        self.core.set_alarm(now + duration, (command.id, Alarm::Done));
        None
    }

    /// Sets alarms for the positions that a shuttle has to report.
    fn report(&mut self, now: Instant, command: &Command) {
        let Action::Move { from, to, reports: true, .. } = command.action else { return };
        let meters = from.meters_to(to);
        for step in 1..from.get().abs_diff(to.get()).div_ceil(REPORT_UM) {
            let part = step * REPORT_UM;
            let at = if from < to { from.get() + part } else { from.get() - part };
            let at = RailPosition::new(at);
            let Some(after) = self.mechanics.passes(meters, from.meters_to(at)) else { return };
            self.core.set_alarm(now + after, (command.id, Alarm::Passes(at)));
        }
    }

    /// Runs a drive's work on its own thread: no more run at a time than there are drives.
    fn work(
        &mut self,
        command: CommandId,
        request: RequestId,
        work: Work,
        tracks: TrackSpan,
        duration: Duration,
    ) -> Option<Event> {
        let (panics, incarnation) = (Arc::clone(&self.panics), self.incarnation);
        let halt = Arc::<Halt>::default();
        let pace = Pace::new(Arc::clone(&halt), tracks, duration.into());
        let run = move || match work {
            Work::Read(read) => {
                read();
                (pace.end(Pass::Complete), None)
            }
            Work::Verify(mut verify) => {
                let pass = verify(&pace);
                (pace.end(pass), Some(Work::Verify(verify)))
            }
        };
        let spawned = self.core.spawn("read-drive".to_owned(), run, move |done| {
            let (ended, work) = done.unwrap_or_else(|panicked| {
                let error = panics.record("a read drive", &panicked);
                (WorkEnd::Died(error.to_string()), None)
            });
            Message::WorkDone(WorkDone { incarnation, command, request, ended, work })
        });
        match spawned {
            Ok(()) => {
                self.working += 1;
                self.halts.insert(command, halt);
                None
            }
            Err(error) => {
                tracing::error!(%error, "a read drive cannot start");
                if let Some(pending) = self.pending.get_mut(&request) {
                    pending.cause = Some(Refusal::Busy(format!("a read drive: {error}")));
                }
                Some(Event::Failed { command, fault: Fault::Unreadable })
            }
        }
    }

    fn finish(&mut self, request: RequestId, outcome: Outcome) {
        let cause = self.pending.get_mut(&request).and_then(|pending| pending.cause.take());
        let answer = match (outcome, cause) {
            (Outcome::Failed(_), Some(reason)) => Err(reason),
            (outcome, _) => ended(outcome),
        };
        self.answer(request, answer);
    }

    fn answer(&mut self, request: RequestId, answer: Result<(), Refusal>) {
        if let Some(pending) = self.pending.remove(&request) {
            // The requester may be gone.
            let _ = pending.done.send(answer);
        }
    }
}

/// Converts an outcome for its requester.
fn ended(outcome: Outcome) -> Result<(), Refusal> {
    match outcome {
        Outcome::Read | Outcome::Verified | Outcome::Stored => Ok(()),
        Outcome::Canceled => Err(Refusal::Other("the request was canceled".to_owned())),
        Outcome::Failed(fault) => Err(Refusal::failed(fault)),
    }
}

#[cfg(test)]
mod tests;
