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
//! those that failed or only read, because they may have seen rows that are now lost, and so does
//! every later one: whether the batch is durable is unknown until the store is opened again. A
//! group that wrote nothing is answered without a sync.
//!
//! A closure runs on the committer thread while everybody else waits: it reads, decides and
//! writes rows, and does no other I/O. It must not wait for the committer that runs it.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use crate::error::panic_message;
use crate::limits::{GROUP_BYTES_MAX, GROUP_CLOSURES_MAX, QUEUE_CLOSURES_MAX};
use crate::{Batch, CatalogError, CommitterMetrics, KeyValue, Transaction};

/// Runs closures serially over a store. Dropping it runs what is queued, then stops.
pub struct Committer {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    metrics: Arc<CommitterMetrics>,
}

impl Committer {
    /// Starts the committer thread. From here on nobody else may write to `store`.
    pub fn start(store: Arc<dyn KeyValue>) -> Result<Self, CatalogError> {
        let (queue, jobs) = mpsc::channel(QUEUE_CLOSURES_MAX);
        let metrics = Arc::new(CommitterMetrics::default());
        let loop_metrics = Arc::clone(&metrics);
        let thread = std::thread::Builder::new()
            .name("catalog-commit".to_owned())
            .spawn(move || commit_loop(&*store, jobs, &loop_metrics))
            .map_err(|source| CatalogError::Io {
                action: "start the committer thread",
                source: Arc::new(source),
            })?;
        Ok(Self { queue: Some(queue), thread: Some(thread), metrics })
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
            let _ = queue.send(job).await;
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
            let _ = queue.blocking_send(job);
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

/// A closure with its types hidden, and how to answer it.
type Job = Box<dyn FnOnce(&mut Transaction<'_>) -> (End, Answer) + Send>;

/// Sends the closure's result, or the error of its group.
type Answer = Box<dyn FnOnce(Result<(), CatalogError>) + Send>;

/// How a closure ended.
enum End {
    Accepted,
    Rejected,
    Panicked,
}

fn job<T, E, F>(work: F) -> (Job, Ticket<T, E>)
where
    F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<CatalogError> + Send + 'static,
{
    let (send, reply) = oneshot::channel();
    let job = move |transaction: &mut Transaction<'_>| {
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
    };
    (Box::new(job), Ticket { reply })
}

fn commit_loop(store: &dyn KeyValue, mut jobs: mpsc::Receiver<Job>, metrics: &CommitterMetrics) {
    let mut usable = Ok(());
    while let Some(first) = jobs.blocking_recv() {
        let (batch, answers) = run_group(store, first, &mut jobs, metrics);
        let durable = usable.clone().and_then(|()| apply(store, batch, metrics));
        if durable.is_err() {
            usable = Err(CatalogError::Poisoned);
        }
        metrics.group_answered(answers.len());
        for answer in answers {
            answer(durable.clone());
        }
    }
}

/// Runs `first` and what else is queued, up to the limits of a group.
fn run_group(
    store: &dyn KeyValue,
    first: Job,
    jobs: &mut mpsc::Receiver<Job>,
    metrics: &CommitterMetrics,
) -> (Batch, Vec<Answer>) {
    let base = store.snapshot();
    let mut batch = Batch::new();
    let mut answers = Vec::new();
    let mut next = Some(first);
    while let Some(job) = next {
        let mut transaction = Transaction::new(&*base, store.spaces(), &batch);
        let (end, answer) = job(&mut transaction);
        let writes = transaction.into_writes();
        match end {
            End::Accepted => batch.absorb(writes),
            End::Rejected => metrics.closure_rejected(),
            End::Panicked => {
                metrics.closure_rejected();
                metrics.closure_panicked();
            }
        }
        answers.push(answer);
        let full = answers.len() >= GROUP_CLOSURES_MAX || batch.bytes() >= GROUP_BYTES_MAX;
        next = if full { None } else { jobs.try_recv().ok() };
    }
    assert!(!answers.is_empty() && answers.len() <= GROUP_CLOSURES_MAX, "a group in its limits");
    (batch, answers)
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
