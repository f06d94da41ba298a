//! The only writer. Runs closures serially on its own thread, and makes all that are waiting
//! durable with one synced batch (group commit).
//!
//! ```text
//!   submit --> queue --> run over what the group wrote so far --> apply, synced --> answer all
//!              (waits    (an error or a panic                     (once a group)
//!               for room) leaves no trace)
//! ```
//!
//! Transactions are serializable because they are serial. No result is returned before the batch of
//! its group is durable. If the batch fails, every closure of the group gets its error, including
//! those that failed or only read, because they may have seen rows that are now lost. Whether the
//! batch is durable is unknown until the store is reopened. A group that wrote nothing is answered
//! without a sync.
//!
//! The committer reopens the store itself, between two groups, after a batch failed or the store's
//! check, polled every [`TICK`] while idle, reports a failed background write. Until that succeeds
//! every closure is refused without being run. Retries back off and continue as long as the
//! committer lives. A store that fails again soon after it was reopened also backs off.
//!
//! ```text
//!              a batch fails, or the store's check
//!   usable ---------------------------------------> refusing --. try to reopen,
//!      ^                                               |    ^--' exponential backoff
//!      '-----------------------------------------------'
//!                    the store was reopened
//! ```
//!
//! A closure runs on the committer thread while everybody else waits. It reads, decides and writes
//! rows, and does no other I/O. It must not wait for the committer that runs it.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::error::panic_message;
use crate::limits::{
    GROUP_BYTES_MAX, GROUP_CLOSURES_MAX, QUEUE_CLOSURES_MAX, RELAPSE_WINDOW, REOPEN_BACKOFF_MAX,
    REOPEN_BACKOFF_MIN, TICK,
};
use crate::{Batch, CatalogError, CommitterMetrics, KeyValue, Transaction};

/// Runs closures serially over a store. Dropping it runs the queued closures, then stops.
pub struct Committer {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    metrics: Arc<CommitterMetrics>,
    refusal: Arc<Mutex<Option<String>>>,
}

/// Called before each attempt to reopen a store, with the error that made it unusable: frees space,
/// and returns whether to try now.
pub type BeforeReopen = Box<dyn FnMut(&CatalogError) -> bool + Send>;

impl Committer {
    /// Starts the committer thread. From here on nothing else may write to `store`.
    pub fn start(store: Arc<dyn KeyValue>) -> Result<Self, CatalogError> {
        Self::start_with(store, Box::new(|_| true))
    }

    /// Like `start`, with a function to call before the store is reopened.
    pub fn start_with(
        store: Arc<dyn KeyValue>,
        before_reopen: BeforeReopen,
    ) -> Result<Self, CatalogError> {
        let failed = |source| CatalogError::Io {
            action: "start the committer thread",
            source: Arc::new(source),
        };
        let (queue, jobs) = mpsc::channel(QUEUE_CLOSURES_MAX);
        let metrics = Arc::new(CommitterMetrics::default());
        let refusal = Arc::new(Mutex::new(None));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let mut commits = CommitLoop {
            store,
            jobs,
            runtime: runtime.map_err(failed)?,
            metrics: Arc::clone(&metrics),
            refusal: Arc::clone(&refusal),
            before_reopen,
            failure: None,
            last_reopen: None,
        };
        let thread = std::thread::Builder::new()
            .name("catalog-commit".to_owned())
            .spawn(move || commits.run())
            .map_err(failed)?;
        Ok(Self { queue: Some(queue), thread: Some(thread), metrics, refusal })
    }

    /// Returns why closures are refused at present; none if they are not.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reopens the store between two groups; closures queued earlier are committed first.
    ///
    /// # Panics
    /// If called from asynchronous code.
    pub fn reopen_blocking(&self) -> Result<(), CatalogError> {
        let (answer, reply) = oneshot::channel();
        if let Some(queue) = &self.queue {
            let _ = queue.blocking_send(Job::Reopen(answer));
        }
        reply.blocking_recv().unwrap_or(Err(CatalogError::Stopped))
    }

    /// Queues `work`, waiting while the queue is full, and returns the ticket of its result.
    ///
    /// Once queued it runs, even if the ticket is dropped. If this future is dropped before it is
    /// ready, `work` does not run.
    pub async fn submit<T, E, F>(&self, work: F) -> Ticket<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<CatalogError> + Send + 'static,
    {
        let (job, ticket) = job(work);
        if let Some(queue) = &self.queue {
            // If the thread is gone the job is dropped here, and the ticket returns an error.
            let _ = queue.send(Job::Work(job)).await;
        }
        ticket
    }

    /// Like [`Committer::submit`] for threads that may block.
    ///
    /// # Panics
    /// If called from asynchronous code.
    pub fn submit_blocking<T, E, F>(&self, work: F) -> Ticket<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<CatalogError> + Send + 'static,
    {
        let (job, ticket) = job(work);
        if let Some(queue) = &self.queue {
            let _ = queue.blocking_send(Job::Work(job));
        }
        ticket
    }

    /// Queues `work` and waits for its durable result.
    pub async fn commit<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<CatalogError> + Send + 'static,
    {
        self.submit(work).await.await
    }

    /// Like [`Committer::commit`] for threads that may block.
    ///
    /// # Panics
    /// If called from asynchronous code.
    pub fn commit_blocking<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<CatalogError> + Send + 'static,
    {
        self.submit_blocking(work).wait()
    }

    /// Counters of what it has done so far.
    #[must_use]
    pub fn metrics(&self) -> &CommitterMetrics {
        &self.metrics
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.queue = None;
        let Some(thread) = self.thread.take() else { return };
        // A closure may hold the last handle; its thread cannot join itself.
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            tracing::error!("the catalog committer thread panicked");
        }
    }
}

impl fmt::Debug for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

/// The result of a queued closure, once its group is durable.
#[must_use = "the result says whether the closure was committed"]
pub struct Ticket<T, E> {
    reply: oneshot::Receiver<Result<T, E>>,
}

impl<T, E: From<CatalogError>> Ticket<T, E> {
    /// Waits for the result on a thread that may block.
    ///
    /// # Panics
    /// If called from asynchronous code.
    pub fn wait(self) -> Result<T, E> {
        self.reply.blocking_recv().unwrap_or_else(|_| Err(CatalogError::Stopped.into()))
    }
}

impl<T, E: From<CatalogError>> Future for Ticket<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = Pin::new(&mut self.reply).poll(context);
        reply.map(|reply| reply.unwrap_or_else(|_| Err(CatalogError::Stopped.into())))
    }
}

impl<T, E> fmt::Debug for Ticket<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

/// A job for the committer thread.
enum Job {
    Work(Box<dyn Work>),
    Reopen(ReopenSender),
}

/// Returns the result of reopening the store.
type ReopenSender = oneshot::Sender<Result<(), CatalogError>>;

/// A type-erased closure, with the channel for its result.
trait Work: Send {
    fn run(self: Box<Self>, transaction: &mut Transaction<'_>) -> (End, Answer);

    /// Fails it without running it.
    fn refuse(self: Box<Self>, error: CatalogError);
}

/// Sends the closure's result, or the error of its group.
type Answer = Box<dyn FnOnce(Result<(), CatalogError>) + Send>;

/// How a closure ended.
enum End {
    Accepted,
    Rejected,
    Panicked,
}

struct Closure<F, T, E> {
    work: F,
    send: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Work for Closure<F, T, E>
where
    F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<CatalogError> + Send + 'static,
{
    fn run(self: Box<Self>, transaction: &mut Transaction<'_>) -> (End, Answer) {
        let Self { work, send } = *self;
        // Unwind safe: a transaction that panicked is dropped unread.
        let (end, result) = match catch_unwind(AssertUnwindSafe(|| work(transaction))) {
            Ok(Ok(value)) => (End::Accepted, Ok(value)),
            Ok(Err(error)) => (End::Rejected, Err(error)),
            Err(payload) => {
                let message = panic_message(&*payload);
                (End::Panicked, Err(CatalogError::Panicked { message }.into()))
            }
        };
        let answer: Answer = Box::new(move |durable| {
            // The caller may be gone; the commit stands.
            let _ = send.send(durable.map_err(E::from).and(result));
        });
        (end, answer)
    }

    fn refuse(self: Box<Self>, error: CatalogError) {
        let _ = self.send.send(Err(error.into()));
    }
}

fn job<T, E, F>(work: F) -> (Box<dyn Work>, Ticket<T, E>)
where
    F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<CatalogError> + Send + 'static,
{
    let (send, reply) = oneshot::channel();
    (Box::new(Closure { work, send }), Ticket { reply })
}

/// Why nothing is committed, and when reopening is retried.
struct Failure {
    error: CatalogError,
    backoff: Duration,
    next_try: Instant,
}

/// State owned by the committer thread.
struct CommitLoop {
    store: Arc<dyn KeyValue>,
    jobs: mpsc::Receiver<Job>,
    /// Lets the thread wait for a job with a timeout; nothing else runs in it.
    runtime: Runtime,
    metrics: Arc<CommitterMetrics>,
    refusal: Arc<Mutex<Option<String>>>,
    before_reopen: BeforeReopen,
    failure: Option<Failure>,
    /// When the store last became usable again, and what the next backoff would have been.
    last_reopen: Option<(Instant, Duration)>,
}

/// What the committer thread does next.
enum Next {
    Job(Job),
    Tick,
    Closed,
}

impl CommitLoop {
    fn run(&mut self) {
        loop {
            let next = self.next();
            self.reopen_if_due();
            match next {
                Next::Job(Job::Reopen(answer)) => {
                    // The caller may be gone.
                    let _ = answer.send(self.reopen());
                }
                Next::Job(Job::Work(work)) => match &self.failure {
                    Some(failure) => work.refuse(CatalogError::poisoned(&failure.error)),
                    None => self.commit_group(work),
                },
                Next::Tick if self.failure.is_none() => {
                    if let Err(error) = self.store.check() {
                        self.fail(error);
                    }
                }
                Next::Tick => {}
                Next::Closed => return,
            }
        }
    }

    fn next(&mut self) -> Next {
        // The timeout is needed only when the queue is empty.
        if let Ok(job) = self.jobs.try_recv() {
            return Next::Job(job);
        }
        let timeout = match &self.failure {
            Some(failure) => failure.next_try.saturating_duration_since(Instant::now()),
            None => TICK,
        };
        let jobs = &mut self.jobs;
        match self.runtime.block_on(async { tokio::time::timeout(timeout, jobs.recv()).await }) {
            Ok(Some(job)) => Next::Job(job),
            Ok(None) => Next::Closed,
            Err(_) => Next::Tick,
        }
    }

    fn commit_group(&mut self, first: Box<dyn Work>) {
        let (batch, answers, reopen_sender) = self.run_group(first);
        let durable = apply(&*self.store, batch, &self.metrics);
        self.metrics.record_group(answers.len());
        if let Err(error) = &durable {
            // Set before the results are sent, so that a caller with a result sees it.
            self.fail(error.clone());
        }
        for answer in answers {
            answer(durable.clone());
        }
        if let Some(answer) = reopen_sender {
            let _ = answer.send(self.reopen());
        }
    }

    /// Runs `first` and further queued closures, up to the limits of a group or a request to
    /// reopen.
    fn run_group(&mut self, first: Box<dyn Work>) -> (Batch, Vec<Answer>, Option<ReopenSender>) {
        let base = self.store.snapshot();
        let mut batch = Batch::new();
        let mut answers = Vec::new();
        let mut next = Some(first);
        let mut reopen_sender = None;
        while let Some(work) = next.take() {
            let mut transaction = Transaction::new(&*base, self.store.spaces(), &batch);
            let (end, answer) = work.run(&mut transaction);
            let writes = transaction.into_writes();
            match end {
                End::Accepted => batch.absorb(writes),
                End::Rejected => self.metrics.record_rejected_closure(),
                End::Panicked => {
                    self.metrics.record_rejected_closure();
                    self.metrics.record_panicked_closure();
                }
            }
            answers.push(answer);
            if answers.len() >= GROUP_CLOSURES_MAX || batch.bytes() >= GROUP_BYTES_MAX {
                break;
            }
            match self.jobs.try_recv() {
                Ok(Job::Work(work)) => next = Some(work),
                Ok(Job::Reopen(answer)) => reopen_sender = Some(answer),
                Err(_) => {}
            }
        }
        assert!(
            !answers.is_empty() && answers.len() <= GROUP_CLOSURES_MAX,
            "the group is within its limits"
        );
        (batch, answers, reopen_sender)
    }

    /// Starts refusing closures, until the store is reopened.
    fn fail(&mut self, error: CatalogError) {
        let reason = error.chain();
        tracing::error!(error = reason, "the catalog accepts no writes; reopening it");
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        self.metrics.record_failure();
        // With a disk that stays full, the store opens and its next write fails: readers would be
        // blocked by one reopening after another.
        let relapsed = self.last_reopen.filter(|(at, _)| at.elapsed() < RELAPSE_WINDOW);
        let backoff = relapsed.map_or(REOPEN_BACKOFF_MIN, |(_, backoff)| backoff);
        self.failure = Some(Failure { error, backoff, next_try: Instant::now() });
        if relapsed.is_some() {
            self.back_off();
        }
    }

    fn reopen_if_due(&mut self) {
        let Some(failure) = &self.failure else { return };
        if failure.next_try > Instant::now() {
            return;
        }
        if (self.before_reopen)(&failure.error) {
            // The result is recorded in `failure`.
            let _ = self.reopen();
        } else {
            self.back_off();
        }
    }

    /// Reopens the store. Afterwards it is usable, or keeps refusing and is retried.
    fn reopen(&mut self) -> Result<(), CatalogError> {
        let store = &self.store;
        let result = catch_unwind(AssertUnwindSafe(|| store.reopen())).unwrap_or_else(|payload| {
            Err(CatalogError::Engine { message: panic_message(&*payload) })
        });
        match (&result, &mut self.failure) {
            (Ok(()), Some(_)) => {
                tracing::info!("the catalog was reopened and accepts writes");
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = None;
                self.metrics.record_reopen();
                let backoff = self.failure.take().map(|failure| failure.backoff);
                self.last_reopen = backoff.map(|backoff| (Instant::now(), backoff));
            }
            (Err(error), Some(failure)) => {
                tracing::warn!(error = error.chain(), "the catalog cannot be reopened yet");
                failure.error = error.clone();
                let reason = Some(error.chain());
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = reason;
                self.back_off();
            }
            // The store is in use by a reader and was not touched.
            (Err(CatalogError::InUse), None) | (Ok(()), None) => {}
            (Err(error), None) => self.fail(error.clone()),
        }
        result
    }

    fn back_off(&mut self) {
        if let Some(failure) = &mut self.failure {
            failure.next_try = Instant::now() + failure.backoff;
            failure.backoff = (failure.backoff * 2).min(REOPEN_BACKOFF_MAX);
        }
    }
}

fn apply(
    store: &dyn KeyValue,
    batch: Batch,
    metrics: &CommitterMetrics,
) -> Result<(), CatalogError> {
    if batch.is_empty() {
        return Ok(());
    }
    let (rows, bytes) = (batch.row_count(), batch.bytes());
    // A panic of the backend becomes an error, because the callers must be answered.
    let result = catch_unwind(AssertUnwindSafe(|| store.apply(batch)))
        .unwrap_or_else(|payload| Err(CatalogError::Engine { message: panic_message(&*payload) }));
    match &result {
        Ok(()) => metrics.record_synced_batch(rows, bytes),
        Err(error) => {
            metrics.record_failed_batch();
            tracing::error!(rows, bytes, %error, "a group of the catalog was not committed");
        }
    }
    result
}
