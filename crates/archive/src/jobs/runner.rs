//! The threads of the jobs: each waits until it is notified or due, runs its job, and reports the
//! outcome.
//!
//! ```text
//! anybody --ring, order--> Bell: Turns::step --Run--> thread: Job::run --Ended--> Turns::step
//! clock   --the deadline--'                                 '--- doing --> shown in the status
//! ```
//!
//! [`Turns`] decides when a job runs; this module only adds a clock, a lock and a thread. It has
//! the only loop of a background thread in the archive.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use fulgurite_platters::Panics;
use fulgurite_units::{Clock, Controller as _, Instant, Outbox, UnixTime, error_chain};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::turns::{Command, Event, Next, Outcome, Pace, State, Turns};
use crate::limits::ORDERS_MAX;
use crate::status::{JobState, JobStatus};
use crate::{ArchiveError, Result};

/// Background work, done a piece at a time.
pub(crate) trait Job: Send {
    /// Name of the job in the status, and of its thread.
    fn name(&self) -> String;

    /// Returns how often it polls, and how it backs off.
    fn pace(&self) -> Pace;

    /// Returns the consequence while it keeps failing.
    fn failing(&self) -> &'static str;

    /// Checks for work, and does a piece of it. A job that can be interrupted checks between its
    /// steps whether the archive is stopping. It holds no state that a restart would lose: pending
    /// work is in rows.
    ///
    /// # Errors
    /// Why it failed; it is retried after a backoff.
    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed>;

    /// Called when it will never run again.
    fn stopped(&mut self) {}
}

/// Why a run failed.
#[derive(Debug)]
pub(crate) struct Failed(Outcome);

impl Failed {
    /// Creates it from an error that is reported elsewhere as well.
    pub(crate) fn of(error: &ArchiveError) -> Self {
        let is_stop = matches!(error, ArchiveError::Stopping);
        Self(if is_stop { Outcome::Stopping } else { Outcome::Failed(error_chain(error)) })
    }
}

impl From<ArchiveError> for Failed {
    fn from(error: ArchiveError) -> Self {
        Self::of(&error)
    }
}

impl From<fulgurite_platters::PlattersError> for Failed {
    fn from(error: fulgurite_platters::PlattersError) -> Self {
        Self::of(&error.into())
    }
}

/// Runs after a run has ended and its end is shown.
type Afterwards = Box<dyn FnOnce() + Send>;

/// One run of a job.
pub(crate) struct Turn<'a> {
    /// Start of the run.
    pub(crate) now: Instant,
    bell: &'a Bell,
    afterwards: Mutex<Vec<Afterwards>>,
}

impl std::fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Turn<'_> {
    /// Shows what the run is doing. A run that shows nothing has found nothing to do.
    pub(crate) fn doing(&self, what: impl Into<String>) {
        self.bell.show(|board| board.doing = Some(what.into()));
    }

    /// Shows work that continues elsewhere after this run; `None` clears it.
    pub(crate) fn under_way(&self, what: Option<String>) {
        self.bell.show(|board| board.under_way = what);
    }

    /// Defers `then` until after the run, so that the receiver of a reply sees the run as finished.
    pub(crate) fn afterwards(&self, then: impl FnOnce() + Send + 'static) {
        lock(&self.afterwards).push(Box::new(then));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State shared by a job's handle and its thread.
#[derive(Debug, Default)]
struct Board {
    /// `None` until the job is started.
    turns: Option<Turns>,
    /// Whether the job is to run.
    is_called: bool,
    doing: Option<String>,
    under_way: Option<String>,
    runs: u64,
    last_run: Option<UnixTime>,
}

impl Board {
    /// Passes an event to the state machine and returns its commands.
    fn step(&mut self, now: Instant, event: Event) -> Vec<Command> {
        let mut out = Outbox::new();
        if let Some(turns) = &mut self.turns {
            turns.step(now, event, &mut out);
        }
        let commands: Vec<Command> = out.drain().collect();
        self.is_called |= commands.contains(&Command::Run);
        commands
    }

    fn shows(&self) -> Option<&String> {
        self.doing.as_ref().or(self.under_way.as_ref())
    }

    fn state(&self) -> State {
        self.turns.as_ref().map_or(State::Ended, Turns::state)
    }
}

#[derive(Debug)]
struct Post {
    clock: Clock,
    board: Mutex<Board>,
    changed: Condvar,
}

/// Handle of a job. Clones refer to the same job.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<Post>);

impl Bell {
    /// Creates the handle of a job that uses this clock.
    pub(crate) fn new(clock: &Clock) -> Self {
        let post = Post { clock: clock.clone(), board: Mutex::default(), changed: Condvar::new() };
        let bell = Self(Arc::new(post));
        let turned = Arc::downgrade(&bell.0);
        clock.listen(move || {
            if let Some(post) = turned.upgrade() {
                // Taking the lock prevents a missed wakeup of a thread that is about to wait.
                let _board = lock(&post.board);
                post.changed.notify_all();
            }
        });
        bell
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        lock(&self.0.board)
    }

    /// Changes what is shown; counts a run when something is shown where nothing was.
    fn show(&self, change: impl FnOnce(&mut Board)) {
        let at = self.0.clock.now();
        let mut board = self.lock();
        let was_shown = board.shows().is_some();
        change(&mut board);
        if !was_shown && board.shows().is_some() {
            (board.runs, board.last_run) = (board.runs + 1, Some(at));
        }
    }

    fn tell(&self, event: Event) {
        let now = self.0.clock.passed();
        self.lock().step(now, event);
        self.0.changed.notify_all();
    }

    /// Notifies the job that there may be work.
    pub(crate) fn ring(&self) {
        self.tell(Event::Rung);
    }

    /// Runs the job now, for an operator's order.
    pub(crate) fn order(&self) {
        self.tell(Event::Ordered);
    }

    /// Waits until the job is to run; `None` when it never will again.
    fn wait(&self) -> Option<Instant> {
        let mut board = self.lock();
        loop {
            let now = self.0.clock.passed();
            board.step(now, Event::Timer);
            if std::mem::take(&mut board.is_called) {
                return Some(now);
            }
            if board.state() == State::Ended {
                return None;
            }
            let deadline = board.turns.as_ref().and_then(Turns::deadline);
            let sleep = deadline.and_then(|at| self.0.clock.sleep_until(at));
            board = match sleep {
                Some(sleep) => {
                    let woken = self.0.changed.wait_timeout(board, sleep.into());
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.0.changed.wait(board).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn shown(&self, name: &str) -> JobStatus {
        let now = self.0.clock.passed();
        let board = self.lock();
        let (state, retry) = match board.state() {
            // Polling for work does not count as running.
            State::Running | State::Idle { .. } if board.shows().is_none() => {
                (JobState::Idle, None)
            }
            State::Running | State::Idle { .. } => (JobState::Running, None),
            State::Resting { until } => (JobState::Resting, Some(until.since(now))),
            State::Ended => (JobState::Stopped, None),
        };
        JobStatus {
            name: name.to_owned(),
            state,
            doing: board.shows().cloned(),
            trouble: board.turns.as_ref().and_then(Turns::trouble).map(str::to_owned),
            retry_seconds: retry.map(|left| left.as_nanos() / 1_000_000_000),
            runs: board.runs,
            failures: board.turns.as_ref().map_or(0, Turns::failures),
            last_run: board.last_run,
        }
    }
}

/// The caller's end of an order, which receives its outcome. The order is open until this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Reply<R> {
    to: oneshot::Sender<Result<R>>,
    open: OwnedSemaphorePermit,
}

impl<R> Reply<R> {
    /// Whether the caller still waits. An order whose caller has gone is not started.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.to.is_closed()
    }

    /// Sends the outcome. A caller that has gone needs none.
    pub(crate) fn send(self, outcome: Result<R>) {
        // First, so that the caller can place another order on receipt.
        drop(self.open);
        drop(self.to.send(outcome));
    }
}

/// Sends messages to a job and notifies it.
#[derive(Debug)]
pub(crate) struct Mail<T> {
    to: mpsc::Sender<T>,
    bell: Bell,
    /// Permits for further open orders.
    orders: Arc<Semaphore>,
}

impl<T> Clone for Mail<T> {
    fn clone(&self) -> Self {
        let orders = Arc::clone(&self.orders);
        Self { to: self.to.clone(), bell: self.bell.clone(), orders }
    }
}

impl<T> Mail<T> {
    /// Creates a channel to the job of this handle; returns its sending and receiving ends.
    pub(crate) fn new(bell: &Bell) -> (Self, mpsc::Receiver<T>) {
        let (to, inbox) = mpsc::channel();
        let orders = Arc::new(Semaphore::new(ORDERS_MAX));
        (Self { to, bell: bell.clone(), orders }, inbox)
    }

    /// Returns the handle of the job.
    pub(crate) const fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Sends a message and notifies the job. A message to a stopped job is dropped.
    pub(crate) fn send(&self, message: T) {
        if self.to.send(message).is_ok() {
            self.bell.ring();
        }
    }

    /// Sends an order, which skips any backoff, and returns the channel for its outcome. Dropping
    /// that channel cancels an order that has not started.
    ///
    /// # Errors
    /// When too many orders are open, or the job stopped.
    pub(crate) fn order<R>(
        &self,
        order: impl FnOnce(Reply<R>) -> T,
    ) -> Result<oneshot::Receiver<Result<R>>> {
        let open = Arc::clone(&self.orders).try_acquire_owned().map_err(|_| {
            let what = format!("{ORDERS_MAX} orders; order again when one has ended");
            ArchiveError::Busy { what }
        })?;
        let (to, outcome) = oneshot::channel();
        self.to.send(order(Reply { to, open })).map_err(|_| ArchiveError::Stopping)?;
        self.bell.order();
        Ok(outcome)
    }
}

/// The running jobs with their threads.
#[derive(Debug)]
pub(crate) struct Runner {
    clock: Clock,
    panics: Arc<Panics>,
    started: Mutex<Vec<(String, Bell)>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Runner {
    pub(crate) fn new(clock: &Clock, panics: &Arc<Panics>) -> Self {
        let (clock, panics) = (clock.clone(), Arc::clone(panics));
        Self { clock, panics, started: Mutex::default(), threads: Mutex::default() }
    }

    /// Starts a job that runs only periodically.
    pub(crate) fn start(&self, job: impl Job + 'static) -> Result<()> {
        self.start_at(&Bell::new(&self.clock), job)
    }

    /// Starts the job of a handle.
    #[expect(clippy::disallowed_methods, reason = "this is where the threads of jobs begin")]
    pub(crate) fn start_at(&self, bell: &Bell, mut job: impl Job + 'static) -> Result<()> {
        let name = job.name();
        bell.lock().turns = Some(Turns::new(job.pace()));
        let (panics, of) = (Arc::clone(&self.panics), bell.clone());
        let work = move || {
            while let Some(now) = of.wait() {
                run(&of, now, &panics, &mut job);
            }
            job.stopped();
        };
        let thread = std::thread::Builder::new().name(name.clone()).spawn(work);
        let thread =
            thread.map_err(|e| ArchiveError::Internal { what: format!("no thread: {e}") })?;
        lock(&self.started).push((name, bell.clone()));
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Returns the status of every job, in start order.
    pub(crate) fn shown(&self) -> Vec<JobStatus> {
        lock(&self.started).iter().map(|(name, bell)| bell.shown(name)).collect()
    }

    /// Stops every job after its current run.
    pub(crate) fn stop(&self) {
        lock(&self.started).iter().for_each(|(_, bell)| bell.tell(Event::Stop));
    }

    /// Waits for all threads, and returns how many panicked.
    pub(crate) fn join(&self) -> usize {
        let threads: Vec<_> = lock(&self.threads).drain(..).collect();
        threads.into_iter().map(JoinHandle::join).filter(std::result::Result::is_err).count()
    }
}

/// Runs a job once and records the outcome.
fn run(bell: &Bell, now: Instant, panics: &Panics, job: &mut impl Job) {
    let turn = Turn { now, bell, afterwards: Mutex::default() };
    let ran = panics.catch(&job.name(), || job.run(&turn));
    let outcome = match ran.map_err(Failed::from).flatten() {
        Ok(next) => Outcome::Done(next),
        Err(Failed(outcome)) => outcome,
    };
    let said = {
        let now = bell.0.clock.passed();
        let mut board = bell.lock();
        board.doing = None;
        if !matches!(outcome, Outcome::Done(_)) {
            board.under_way = None;
        }
        board.step(now, Event::Ended(outcome))
    };
    let name = job.name();
    for command in said {
        match command {
            Command::Tell(error) => {
                tracing::error!(job = name, error, "{}; it is tried again", job.failing());
            }
            Command::Recovered => tracing::info!(job = name, "it goes on after its trouble"),
            Command::Run | Command::End => {}
        }
    }
    let afterwards = turn.afterwards.into_inner().unwrap_or_else(PoisonError::into_inner);
    afterwards.into_iter().for_each(|then| then());
}

#[cfg(test)]
mod tests;
