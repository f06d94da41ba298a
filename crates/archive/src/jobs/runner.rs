//! The threads of the jobs: each waits for its bell or its time, runs its job, and says how it
//! went.
//!
//! ```text
//! anybody --ring, order--> Bell: Turns::step --Run--> thread: Job::run --Ended--> Turns::step
//! clock   --the deadline--'                                 '--- doing --> shown in the status
//! ```
//!
//! When a job runs is decided by [`Turns`]; here is nothing but its clock, its lock and its thread.
//! This is the only loop of a background thread in the archive.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use fulgurite_platters::Panics;
use fulgurite_units::{Clock, Controller as _, Instant, Outbox, UnixTime, error_chain};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::turns::{Command, Event, Next, Outcome, Pace, State, Turns};
use crate::limits::ORDERS_MAX;
use crate::status::{JobState, JobStatus};
use crate::{ArchiveError, Result};

/// Work that is done in the background, a piece at a time.
pub(crate) trait Job: Send {
    /// What it is called in the status; its thread, too.
    fn name(&self) -> String;

    /// How often it looks by itself, and how it rests.
    fn pace(&self) -> Pace;

    /// What is so for as long as it fails.
    fn failing(&self) -> &'static str;

    /// Looks whether there is something to do, and does a piece of it. One that can be cut short
    /// asks the ground between its steps whether the archive stops. Nothing that a restart would
    /// miss is kept here: what is to be done is in rows.
    ///
    /// # Errors
    /// What it cannot do; it is tried again after a rest.
    fn run(&mut self, turn: &Turn<'_>) -> Result<Next, Failed>;

    /// It never runs again.
    fn stopped(&mut self) {}
}

/// Why a run failed.
#[derive(Debug)]
pub(crate) struct Failed(Outcome);

impl Failed {
    /// That of an error which somebody else gets.
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

/// What is done when the run is over, and shown as over.
type Afterwards = Box<dyn FnOnce() + Send>;

/// One run of a job.
pub(crate) struct Turn<'a> {
    /// When it began.
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
    /// Shows what is done. A run that says nothing has looked and found nothing to do.
    pub(crate) fn doing(&self, what: impl Into<String>) {
        self.bell.show(|board| board.doing = Some(what.into()));
    }

    /// Shows what was begun and goes on elsewhere when the run is over; none when nothing does.
    pub(crate) fn under_way(&self, what: Option<String>) {
        self.bell.show(|board| board.under_way = what);
    }

    /// Has something done behind the run, so that who is answered then sees it as over.
    pub(crate) fn afterwards(&self, then: impl FnOnce() + Send + 'static) {
        lock(&self.afterwards).push(Box::new(then));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a job's bell and its thread share.
#[derive(Debug, Default)]
struct Board {
    /// None until it is started.
    turns: Option<Turns>,
    /// It is to run.
    is_called: bool,
    doing: Option<String>,
    under_way: Option<String>,
    runs: u64,
    last_run: Option<UnixTime>,
}

impl Board {
    /// Has the machine take an event; what it tells people comes back.
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

/// How a job is called. Clones are of the same job.
#[derive(Clone, Debug)]
pub(crate) struct Bell(Arc<Post>);

impl Bell {
    /// The bell of a job that goes by this clock.
    pub(crate) fn new(clock: &Clock) -> Self {
        let post = Post { clock: clock.clone(), board: Mutex::default(), changed: Condvar::new() };
        let bell = Self(Arc::new(post));
        let turned = Arc::downgrade(&bell.0);
        clock.listen(move || {
            if let Some(post) = turned.upgrade() {
                // Under the lock, or it would be missed by who is about to wait.
                let _board = lock(&post.board);
                post.changed.notify_all();
            }
        });
        bell
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        lock(&self.0.board)
    }

    /// Has something shown; work that is shown where none was is counted.
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

    /// There may be something to do.
    pub(crate) fn ring(&self) {
        self.tell(Event::Rung);
    }

    /// The operator wants something done now.
    pub(crate) fn order(&self) {
        self.tell(Event::Ordered);
    }

    /// Waits until the job is to run; `None` when never again.
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
            // To look whether there is something to do is no work to speak of.
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

/// Who ordered something, and is told. The order is open for as long as this is there.
#[derive(Debug)]
pub(crate) struct Reply<R> {
    to: oneshot::Sender<Result<R>>,
    open: OwnedSemaphorePermit,
}

impl<R> Reply<R> {
    /// Whether somebody waits for it. An order of which nobody would be told is not begun.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.to.is_closed()
    }

    /// Tells how the order ended. Who went away needs no answer.
    pub(crate) fn send(self, outcome: Result<R>) {
        // First, so that who is told can order again.
        drop(self.open);
        drop(self.to.send(outcome));
    }
}

/// Something sent to a job, which is called for it.
#[derive(Debug)]
pub(crate) struct Mail<T> {
    to: mpsc::Sender<T>,
    bell: Bell,
    /// Orders that may still be opened.
    orders: Arc<Semaphore>,
}

impl<T> Clone for Mail<T> {
    fn clone(&self) -> Self {
        let orders = Arc::clone(&self.orders);
        Self { to: self.to.clone(), bell: self.bell.clone(), orders }
    }
}

impl<T> Mail<T> {
    /// Mail to the job of a bell, and where the job finds it.
    pub(crate) fn new(bell: &Bell) -> (Self, mpsc::Receiver<T>) {
        let (to, inbox) = mpsc::channel();
        let orders = Arc::new(Semaphore::new(ORDERS_MAX));
        (Self { to, bell: bell.clone(), orders }, inbox)
    }

    /// The bell that is rung.
    pub(crate) const fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Sends, and rings. Nobody reads what is sent to a job that stopped.
    pub(crate) fn send(&self, message: T) {
        if self.to.send(message).is_ok() {
            self.bell.ring();
        }
    }

    /// Sends an order, which waits for no rest; where its outcome comes. Who drops that is not
    /// waited for.
    ///
    /// # Errors
    /// When as many orders are open as may be, or the job stopped.
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

/// The jobs that were started, and their threads.
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

    /// Starts a job that nothing but its tick has run.
    pub(crate) fn start(&self, job: impl Job + 'static) -> Result<()> {
        self.start_at(&Bell::new(&self.clock), job)
    }

    /// Starts the job of a bell.
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

    /// Every job, in the order in which they were started.
    pub(crate) fn shown(&self) -> Vec<JobStatus> {
        lock(&self.started).iter().map(|(name, bell)| bell.shown(name)).collect()
    }

    /// Has every job end behind what it is doing.
    pub(crate) fn stop(&self) {
        lock(&self.started).iter().for_each(|(_, bell)| bell.tell(Event::Stop));
    }

    /// Waits for their ends; how many died of it.
    pub(crate) fn join(&self) -> usize {
        let threads: Vec<_> = lock(&self.threads).drain(..).collect();
        threads.into_iter().map(JoinHandle::join).filter(std::result::Result::is_err).count()
    }
}

/// Runs a job once, and takes down how it went.
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
