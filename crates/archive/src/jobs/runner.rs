//! The threads of the jobs: each waits until it is notified or due, runs its job, and reports the
//! outcome.
//!
//! ```text
//! anybody --notify, order--> JobHandle --Event--> JobSchedule::step --Run--> thread: Job::run
//! clock   --deadline--------'                          ^                            |
//!                                                      '----------- Ended ----------'
//! ```
//!
//! [`JobSchedule`] decides when a job runs; this module only adds a clock, a lock and a thread. It
//! has the only loop of a background thread in the archive.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use fulgurite_glass::Panics;
use fulgurite_units::{Clock, Controller as _, Instant, Outbox, UnixTime, error_chain};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::schedule::{Command, Event, JobSchedule, Next, Outcome, Pace, State};
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
    fn run(&mut self, run: &JobRun<'_>) -> Result<Next, Failed>;

    /// Called when it will never run again.
    fn on_stop(&mut self) {}
}

/// Why a run failed.
#[derive(Debug)]
pub(crate) struct Failed(Outcome);

impl Failed {
    /// Creates it from an error that is reported elsewhere as well.
    pub(crate) fn from_error(error: &ArchiveError) -> Self {
        let is_stop = matches!(error, ArchiveError::Stopping);
        Self(if is_stop { Outcome::Stopping } else { Outcome::Failed(error_chain(error)) })
    }
}

impl From<ArchiveError> for Failed {
    fn from(error: ArchiveError) -> Self {
        Self::from_error(&error)
    }
}

impl From<fulgurite_glass::GlassError> for Failed {
    fn from(error: fulgurite_glass::GlassError) -> Self {
        Self::from_error(&error.into())
    }
}

/// Runs after a run has ended and its end is shown.
type AfterRun = Box<dyn FnOnce() + Send>;

/// One run of a job.
pub(crate) struct JobRun<'a> {
    /// Start of the run.
    pub(crate) now: Instant,
    handle: &'a JobHandle,
    after_run: Mutex<Vec<AfterRun>>,
}

impl std::fmt::Debug for JobRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobRun").field("now", &self.now).finish_non_exhaustive()
    }
}

impl JobRun<'_> {
    /// Shows what the run is doing. A run that shows nothing has found nothing to do.
    pub(crate) fn doing(&self, what: impl Into<String>) {
        self.handle.update(|record| record.doing = Some(what.into()));
    }

    /// Shows work that continues elsewhere after this run; `None` clears it.
    pub(crate) fn ongoing(&self, what: Option<String>) {
        self.handle.update(|record| record.ongoing = what);
    }

    /// Defers `then` until after the run, so that the receiver of a reply sees the run as finished.
    pub(crate) fn after_run(&self, then: impl FnOnce() + Send + 'static) {
        lock(&self.after_run).push(Box::new(then));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State shared by a job's handle and its thread.
#[derive(Debug, Default)]
struct JobRecord {
    /// `None` until the job is started.
    schedule: Option<JobSchedule>,
    /// Whether the job is to run.
    is_run_pending: bool,
    doing: Option<String>,
    ongoing: Option<String>,
    runs: u64,
    last_run: Option<UnixTime>,
}

impl JobRecord {
    /// Passes an event to the state machine and returns its commands.
    fn step(&mut self, now: Instant, event: Event) -> Vec<Command> {
        let mut out = Outbox::new();
        if let Some(schedule) = &mut self.schedule {
            schedule.step(now, event, &mut out);
        }
        let commands: Vec<Command> = out.drain().collect();
        self.is_run_pending |= commands.contains(&Command::Run);
        commands
    }

    fn activity(&self) -> Option<&String> {
        self.doing.as_ref().or(self.ongoing.as_ref())
    }

    fn state(&self) -> State {
        self.schedule.as_ref().map_or(State::Ended, JobSchedule::state)
    }
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    record: Mutex<JobRecord>,
    changed: Condvar,
}

/// Handle of a job. Clones refer to the same job.
#[derive(Clone, Debug)]
pub(crate) struct JobHandle(Arc<Inner>);

impl JobHandle {
    /// Creates the handle of a job that uses this clock.
    pub(crate) fn new(clock: &Clock) -> Self {
        let inner =
            Inner { clock: clock.clone(), record: Mutex::default(), changed: Condvar::new() };
        let handle = Self(Arc::new(inner));
        let weak = Arc::downgrade(&handle.0);
        clock.listen(move || {
            if let Some(inner) = weak.upgrade() {
                // Taking the lock prevents a missed wakeup of a thread that is about to wait.
                let _record = lock(&inner.record);
                inner.changed.notify_all();
            }
        });
        handle
    }

    fn lock(&self) -> MutexGuard<'_, JobRecord> {
        lock(&self.0.record)
    }

    /// Changes what is shown; counts a run when something is shown where nothing was.
    fn update(&self, change: impl FnOnce(&mut JobRecord)) {
        let at = self.0.clock.now();
        let mut record = self.lock();
        let was_active = record.activity().is_some();
        change(&mut record);
        if !was_active && record.activity().is_some() {
            (record.runs, record.last_run) = (record.runs + 1, Some(at));
        }
    }

    fn dispatch(&self, event: Event) {
        let now = self.0.clock.passed();
        self.lock().step(now, event);
        self.0.changed.notify_all();
    }

    /// Notifies the job that there may be work.
    pub(crate) fn notify(&self) {
        self.dispatch(Event::Notified);
    }

    /// Runs the job now, for an operator's order.
    pub(crate) fn order(&self) {
        self.dispatch(Event::Ordered);
    }

    /// Waits until the job is to run; `None` when it never will again.
    fn wait(&self) -> Option<Instant> {
        let mut record = self.lock();
        loop {
            let now = self.0.clock.passed();
            record.step(now, Event::Timer);
            if std::mem::take(&mut record.is_run_pending) {
                return Some(now);
            }
            if record.state() == State::Ended {
                return None;
            }
            let deadline = record.schedule.as_ref().and_then(JobSchedule::deadline);
            let sleep = deadline.and_then(|at| self.0.clock.sleep_until(at));
            record = match sleep {
                Some(sleep) => {
                    let waited = self.0.changed.wait_timeout(record, sleep.into());
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.0.changed.wait(record).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn status(&self, name: &str) -> JobStatus {
        let now = self.0.clock.passed();
        let record = self.lock();
        let (state, retry) = match record.state() {
            // Polling for work does not count as running.
            State::Running | State::Idle { .. } if record.activity().is_none() => {
                (JobState::Idle, None)
            }
            State::Running | State::Idle { .. } => (JobState::Running, None),
            State::Resting { until } => (JobState::Resting, Some(until.since(now))),
            State::Ended => (JobState::Stopped, None),
        };
        JobStatus {
            name: name.to_owned(),
            state,
            doing: record.activity().cloned(),
            failure: record.schedule.as_ref().and_then(JobSchedule::failure).map(str::to_owned),
            retry_seconds: retry.map(|left| left.as_nanos() / 1_000_000_000),
            runs: record.runs,
            failures: record.schedule.as_ref().map_or(0, JobSchedule::failures),
            last_run: record.last_run,
        }
    }
}

/// The caller's end of an order, which receives its outcome. The order is open until this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Reply<R> {
    sender: oneshot::Sender<Result<R>>,
    open: OwnedSemaphorePermit,
}

impl<R> Reply<R> {
    /// Whether the caller still waits. An order whose caller has gone is not started.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends the outcome. A caller that has gone needs none.
    pub(crate) fn send(self, outcome: Result<R>) {
        // First, so that the caller can place another order on receipt.
        drop(self.open);
        drop(self.sender.send(outcome));
    }
}

/// Sends messages to a job and notifies it.
#[derive(Debug)]
pub(crate) struct JobSender<T> {
    sender: mpsc::Sender<T>,
    handle: JobHandle,
    /// Permits for further open orders.
    orders: Arc<Semaphore>,
}

impl<T> Clone for JobSender<T> {
    fn clone(&self) -> Self {
        let orders = Arc::clone(&self.orders);
        Self { sender: self.sender.clone(), handle: self.handle.clone(), orders }
    }
}

impl<T> JobSender<T> {
    /// Creates a channel to the job of this handle; returns its sending and receiving ends.
    pub(crate) fn new(handle: &JobHandle) -> (Self, mpsc::Receiver<T>) {
        let (sender, inbox) = mpsc::channel();
        let orders = Arc::new(Semaphore::new(ORDERS_MAX));
        (Self { sender, handle: handle.clone(), orders }, inbox)
    }

    /// Returns the handle of the job.
    pub(crate) const fn handle(&self) -> &JobHandle {
        &self.handle
    }

    /// Sends a message and notifies the job. A message to a stopped job is dropped.
    pub(crate) fn send(&self, message: T) {
        if self.sender.send(message).is_ok() {
            self.handle.notify();
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
        let (sender, outcome) = oneshot::channel();
        self.sender.send(order(Reply { sender, open })).map_err(|_| ArchiveError::Stopping)?;
        self.handle.order();
        Ok(outcome)
    }
}

/// The running jobs with their threads.
#[derive(Debug)]
pub(crate) struct Runner {
    clock: Clock,
    panics: Arc<Panics>,
    started: Mutex<Vec<(String, JobHandle)>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Runner {
    pub(crate) fn new(clock: &Clock, panics: &Arc<Panics>) -> Self {
        let (clock, panics) = (clock.clone(), Arc::clone(panics));
        Self { clock, panics, started: Mutex::default(), threads: Mutex::default() }
    }

    /// Starts a job that runs only periodically.
    pub(crate) fn start(&self, job: impl Job + 'static) -> Result<()> {
        self.start_at(&JobHandle::new(&self.clock), job)
    }

    /// Starts the job of a handle.
    #[expect(clippy::disallowed_methods, reason = "this is where the threads of jobs begin")]
    pub(crate) fn start_at(&self, handle: &JobHandle, mut job: impl Job + 'static) -> Result<()> {
        let name = job.name();
        handle.lock().schedule = Some(JobSchedule::new(job.pace()));
        let (panics, of) = (Arc::clone(&self.panics), handle.clone());
        let work = move || {
            while let Some(now) = of.wait() {
                run(&of, now, &panics, &mut job);
            }
            job.on_stop();
        };
        let thread = std::thread::Builder::new().name(name.clone()).spawn(work);
        let thread =
            thread.map_err(|e| ArchiveError::Internal { what: format!("no thread: {e}") })?;
        lock(&self.started).push((name, handle.clone()));
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Returns the status of every job, in start order.
    pub(crate) fn status(&self) -> Vec<JobStatus> {
        lock(&self.started).iter().map(|(name, handle)| handle.status(name)).collect()
    }

    /// Stops every job after its current run.
    pub(crate) fn stop(&self) {
        lock(&self.started).iter().for_each(|(_, handle)| handle.dispatch(Event::Stop));
    }

    /// Waits for all threads, and returns how many panicked.
    pub(crate) fn join(&self) -> usize {
        let threads: Vec<_> = lock(&self.threads).drain(..).collect();
        threads.into_iter().map(JoinHandle::join).filter(std::result::Result::is_err).count()
    }
}

/// Runs a job once and records the outcome.
fn run(handle: &JobHandle, now: Instant, panics: &Panics, job: &mut impl Job) {
    let run = JobRun { now, handle, after_run: Mutex::default() };
    let ran = panics.catch(&job.name(), || job.run(&run));
    let outcome = match ran.map_err(Failed::from).flatten() {
        Ok(next) => Outcome::Done(next),
        Err(Failed(outcome)) => outcome,
    };
    let commands = {
        let now = handle.0.clock.passed();
        let mut record = handle.lock();
        record.doing = None;
        if !matches!(outcome, Outcome::Done(_)) {
            record.ongoing = None;
        }
        record.step(now, Event::Ended(outcome))
    };
    let name = job.name();
    for command in commands {
        match command {
            Command::Report(error) => {
                tracing::error!(job = name, error, "{}; the job retries", job.failing());
            }
            Command::ReportRecovery => tracing::info!(job = name, "the job works again"),
            Command::Run | Command::End => {}
        }
    }
    let after_run = run.after_run.into_inner().unwrap_or_else(PoisonError::into_inner);
    after_run.into_iter().for_each(|then| then());
}

#[cfg(test)]
mod tests;
