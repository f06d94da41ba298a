//! The only writer: runs closures one after the other on its own thread and makes all that were
//! waiting durable with one synced batch (group commit).
//!
//! ```text
//!   submit --> queue --> run over what the group wrote so far --> apply, synced --> answer all
//!              (waits    (an error or a panic                     (once a group)
//!               for room) leaves no trace)
//! ```
//!
//! Transactions are serializable because they are serial. No answer leaves before the batch of
//! its group is durable; if the batch fails, every closure of the group gets its error, also
//! those that failed or only read, because they may have seen rows that are now lost: whether the
//! batch is durable is unknown until the store is opened anew. A group that wrote nothing is
//! answered without a sync.
//!
//! The committer opens the store anew itself, between two groups, when a batch failed or when the
//! store says, asked every [`TICK`], that a write behind the batches did. Until that succeeds every
//! closure is refused without being run; tries go on with growing pauses for as long as the
//! committer lives. A store that fails again soon after it was opened is paused for as well.
//!
//! ```text
//!              a batch fails, or the store's check
//!   usable ---------------------------------------> refusing --. try to reopen,
//!      ^                                               |    ^--' pause, longer each time
//!      '-----------------------------------------------'
//!                    the store was opened anew
//! ```
//!
//! A closure runs on the committer thread while everybody else waits: it reads, decides and
//! writes rows, and does no other I/O. It must not wait for the committer that runs it.

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
    GROUP_BYTES_MAX, GROUP_CLOSURES_MAX, QUEUE_CLOSURES_MAX, RELAPSE_WITHIN, REOPEN_PAUSE_MAX,
    REOPEN_PAUSE_MIN, TICK,
};
use crate::{Batch, CatalogError, CommitterMetrics, KeyValue, Transaction};

/// Runs closures serially over a store. Dropping it runs what is queued, then stops.
pub struct Committer {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    metrics: Arc<CommitterMetrics>,
    refusal: Arc<Mutex<Option<String>>>,
}

/// Asked before each try to open a store anew, with what made it unusable: make room and say
/// whether to try now.
pub type BeforeReopen = Box<dyn FnMut(&CatalogError) -> bool + Send>;

impl Committer {
    /// Starts the committer thread. From here on nobody else may write to `store`.
    pub fn start(store: Arc<dyn KeyValue>) -> Result<Self, CatalogError> {
        Self::start_with(store, Box::new(|_| true))
    }

    /// The same, with somebody to ask before the store is opened anew.
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
            shown: Arc::clone(&refusal),
            before_reopen,
            failure: None,
            mended: None,
        };
        let thread = std::thread::Builder::new()
            .name("catalog-commit".to_owned())
            .spawn(move || commits.run())
            .map_err(failed)?;
        Ok(Self { queue: Some(queue), thread: Some(thread), metrics, refusal })
    }

    /// Why closures are refused at present; nothing when they are not.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the store anew between two groups: what is queued before it is committed before.
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
    /// Once queued it runs, also if the ticket is dropped; if this future is dropped before it
    /// is ready, `work` does not run.
    pub async fn submit<T, E, F>(&self, work: F) -> Ticket<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<CatalogError> + Send + 'static,
    {
        let (job, ticket) = job(work);
        if let Some(queue) = &self.queue {
            // If the thread is gone the job is dropped here, and the ticket says so.
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

    /// What it has done so far.
    #[must_use]
    pub fn metrics(&self) -> &CommitterMetrics {
        &self.metrics
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.queue = None;
        let Some(thread) = self.thread.take() else { return };
        // A closure may hold the last handle; its thread cannot wait for itself.
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

/// What the committer thread is handed.
enum Job {
    Work(Box<dyn Work>),
    Reopen(Reopened),
}

/// Tells how opening the store anew went.
type Reopened = oneshot::Sender<Result<(), CatalogError>>;

/// A closure with its types hidden, and how to answer it.
trait Work: Send {
    fn run(self: Box<Self>, transaction: &mut Transaction<'_>) -> (End, Answer);

    /// Answers it without running it.
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
            // The caller may have stopped waiting; the commit stands.
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

/// Why nothing is committed, and when the store is tried again.
struct Failure {
    error: CatalogError,
    pause: Duration,
    next_try: Instant,
}

/// What the committer thread owns.
struct CommitLoop {
    store: Arc<dyn KeyValue>,
    jobs: mpsc::Receiver<Job>,
    /// Lets the thread wait for a job and the clock at once; nothing else runs in it.
    runtime: Runtime,
    metrics: Arc<CommitterMetrics>,
    shown: Arc<Mutex<Option<String>>>,
    before_reopen: BeforeReopen,
    failure: Option<Failure>,
    /// When the store was last usable again, and what the next pause had been.
    mended: Option<(Instant, Duration)>,
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
            self.mend_if_due();
            match next {
                Next::Job(Job::Reopen(answer)) => {
                    // Whoever asked may have stopped waiting.
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
        // The clock is asked for only when nothing waits.
        if let Ok(job) = self.jobs.try_recv() {
            return Next::Job(job);
        }
        let patience = match &self.failure {
            Some(failure) => failure.next_try.saturating_duration_since(Instant::now()),
            None => TICK,
        };
        let jobs = &mut self.jobs;
        match self.runtime.block_on(async { tokio::time::timeout(patience, jobs.recv()).await }) {
            Ok(Some(job)) => Next::Job(job),
            Ok(None) => Next::Closed,
            Err(_) => Next::Tick,
        }
    }

    fn commit_group(&mut self, first: Box<dyn Work>) {
        let (batch, answers, asked) = self.run_group(first);
        let durable = apply(&*self.store, batch, &self.metrics);
        self.metrics.group_answered(answers.len());
        if let Err(error) = &durable {
            // Said before the answers, so that whoever got one sees it.
            self.fail(error.clone());
        }
        for answer in answers {
            answer(durable.clone());
        }
        if let Some(answer) = asked {
            let _ = answer.send(self.reopen());
        }
    }

    /// Runs `first` and what else is queued, up to the limits of a group or a wish to reopen.
    fn run_group(&mut self, first: Box<dyn Work>) -> (Batch, Vec<Answer>, Option<Reopened>) {
        let base = self.store.snapshot();
        let mut batch = Batch::new();
        let mut answers = Vec::new();
        let mut next = Some(first);
        let mut asked = None;
        while let Some(work) = next.take() {
            let mut transaction = Transaction::new(&*base, self.store.spaces(), &batch);
            let (end, answer) = work.run(&mut transaction);
            let writes = transaction.into_writes();
            match end {
                End::Accepted => batch.absorb(writes),
                End::Rejected => self.metrics.closure_rejected(),
                End::Panicked => {
                    self.metrics.closure_rejected();
                    self.metrics.closure_panicked();
                }
            }
            answers.push(answer);
            if answers.len() >= GROUP_CLOSURES_MAX || batch.bytes() >= GROUP_BYTES_MAX {
                break;
            }
            match self.jobs.try_recv() {
                Ok(Job::Work(work)) => next = Some(work),
                Ok(Job::Reopen(answer)) => asked = Some(answer),
                Err(_) => {}
            }
        }
        assert!(!answers.is_empty() && answers.len() <= GROUP_CLOSURES_MAX, "a group in limits");
        (batch, answers, asked)
    }

    /// From now on closures are refused, until the store was opened anew.
    fn fail(&mut self, error: CatalogError) {
        let reason = error.chain();
        tracing::error!(error = reason, "the catalog takes no writes; it is opened anew");
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        self.metrics.became_unusable();
        // A disk that stays full lets the store be opened and fails its next write: readers would
        // be held up by one opening after the other.
        let relapsed = self.mended.filter(|(at, _)| at.elapsed() < RELAPSE_WITHIN);
        let pause = relapsed.map_or(REOPEN_PAUSE_MIN, |(_, pause)| pause);
        self.failure = Some(Failure { error, pause, next_try: Instant::now() });
        if relapsed.is_some() {
            self.try_later();
        }
    }

    fn mend_if_due(&mut self) {
        let Some(failure) = &self.failure else { return };
        if failure.next_try > Instant::now() {
            return;
        }
        if (self.before_reopen)(&failure.error) {
            // What it answers is noted in the failure.
            let _ = self.reopen();
        } else {
            self.try_later();
        }
    }

    /// Opens the store anew. Afterwards it is usable, or refuses and is tried again.
    fn reopen(&mut self) -> Result<(), CatalogError> {
        let store = &self.store;
        let result = catch_unwind(AssertUnwindSafe(|| store.reopen())).unwrap_or_else(|payload| {
            Err(CatalogError::Engine { message: panic_message(&*payload) })
        });
        match (&result, &mut self.failure) {
            (Ok(()), Some(_)) => {
                tracing::info!("the catalog was opened anew and takes writes");
                *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = None;
                self.metrics.was_mended();
                let pause = self.failure.take().map(|failure| failure.pause);
                self.mended = pause.map(|pause| (Instant::now(), pause));
            }
            (Err(error), Some(failure)) => {
                tracing::warn!(error = error.chain(), "the catalog cannot be opened anew yet");
                failure.error = error.clone();
                let reason = Some(error.chain());
                *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = reason;
                self.try_later();
            }
            // Nothing was tried: somebody reads from the store, and it is as it was.
            (Err(CatalogError::InUse), None) | (Ok(()), None) => {}
            (Err(error), None) => self.fail(error.clone()),
        }
        result
    }

    fn try_later(&mut self) {
        if let Some(failure) = &mut self.failure {
            failure.next_try = Instant::now() + failure.pause;
            failure.pause = (failure.pause * 2).min(REOPEN_PAUSE_MAX);
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
    // A backend that panics is an error like any other here: the callers must be answered.
    let result = catch_unwind(AssertUnwindSafe(|| store.apply(batch)))
        .unwrap_or_else(|payload| Err(CatalogError::Engine { message: panic_message(&*payload) }));
    match &result {
        Ok(()) => metrics.batch_synced(rows, bytes),
        Err(error) => {
            metrics.batch_failed();
            tracing::error!(rows, bytes, %error, "a group of the catalog was not committed");
        }
    }
    result
}
