//! A worker on another machine: takes jobs, decodes them, answers. It stores nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use fulgurite_decode::{EngineChoice, Model, VoxelReader};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::job::{Answer, Job, JobOutcome, MediumSettings, names};
use super::nats::{ACK_WAIT, DELIVERIES_MAX, QueueAddress, Queues};
use super::queue::Urgency;

/// How long an idle worker polls for urgent jobs before it polls for others again.
const POLL_WAIT: Duration = Duration::from_millis(500);

/// How long a server may take to answer a poll.
const POLL_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after the server could not be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// Delay before a job that needs another model is redelivered to other workers.
const NAK_DELAY: Duration = Duration::from_secs(2);

/// The options of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The queue.
    pub queue: QueueAddress,
    /// Number of jobs that it decodes at the same time.
    pub threads: usize,
    /// Its name in the archive's counts; the threads are numbered.
    pub name: String,
    /// Learned decoders that it has.
    pub models: Vec<Arc<Model>>,
    /// The engine that runs them.
    pub engine: EngineChoice,
    /// Time without a job after which it ends; `None` is never.
    pub idle_exit: Option<Duration>,
}

/// Totals of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerTotals {
    /// Jobs that were decoded.
    pub jobs: u64,
    /// Sectors of these jobs.
    pub sectors: u64,
    /// Sectors that could not be read.
    pub lost: u64,
    /// Voxels of the sectors, counting repeats.
    pub voxels: u64,
    /// Jobs that could not be decoded.
    pub refused: u64,
    /// Busy seconds of all threads together.
    pub busy_seconds: f64,
}

/// A decode worker.
#[derive(Debug)]
pub struct DecodeWorker {
    options: WorkerOptions,
    stop: Arc<Stop>,
}

/// Stops a worker after its current jobs.
#[derive(Debug, Default)]
pub struct Stop {
    is_stopping: AtomicBool,
    wake: Notify,
}

impl Stop {
    /// Stops the worker from taking more jobs.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }
}

/// A reader and its settings: the next job is mostly of the same archive.
type CachedReader = (MediumSettings, VoxelReader);

impl DecodeWorker {
    /// Creates a worker, and the handle that stops it.
    #[must_use]
    pub fn new(options: WorkerOptions) -> (Self, Arc<Stop>) {
        let stop = Arc::<Stop>::default();
        (Self { options, stop: Arc::clone(&stop) }, stop)
    }

    /// Works until it is stopped, or was idle for too long.
    ///
    /// # Errors
    /// When one of its threads dies other than over a job.
    pub fn run(self) -> BoxFuture<'static, Result<WorkerTotals, String>> {
        Box::pin(async move {
            let worker = Arc::new(self);
            let threads = (0..worker.options.threads.max(1)).map(|number| {
                let worker = Arc::clone(&worker);
                tokio::spawn(async move { worker.thread(number).await })
            });
            let threads: Vec<_> = threads.collect();
            let mut totals = WorkerTotals::default();
            for thread in threads {
                totals.add(thread.await.map_err(|error| error.to_string())?);
            }
            Ok(totals)
        })
    }

    /// Decodes one job after the other.
    async fn thread(&self, number: usize) -> WorkerTotals {
        let name = format!("{}/{number}", self.options.name);
        let mut thread =
            Thread { name, reader: None, failure: String::new(), totals: WorkerTotals::default() };
        let mut last_job = Instant::now();
        while !self.stop.is_stopping() && !self.is_idle_since(last_job) {
            if let Err(error) = self.serve(&mut thread, &mut last_job).await {
                // Logged once: it may be long until an archive comes.
                if thread.failure != error {
                    let queue = &self.options.queue;
                    tracing::warn!("the decode queue {queue} cannot be used: {error}");
                    thread.failure = error;
                }
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = self.stop.wake.notified() => {}
                }
            }
        }
        thread.totals
    }

    fn is_idle_since(&self, last_job: Instant) -> bool {
        self.options.idle_exit.is_some_and(|most| last_job.elapsed() >= most)
    }

    /// Works until it has to stop, or something goes wrong with the server.
    async fn serve(&self, thread: &mut Thread, last_job: &mut Instant) -> Result<(), String> {
        let queues = self.options.queue.find(&thread.name).await?;
        let urgent = queues.jobs(Urgency::Urgent).await?;
        let deferred = queues.jobs(Urgency::Deferred).await?;
        thread.failure.clear();
        while !self.stop.is_stopping() && !self.is_idle_since(*last_job) {
            let job = match poll(&urgent, None).await? {
                Some(job) => Some(job),
                None => match poll(&deferred, None).await? {
                    Some(job) => Some(job),
                    None => poll(&urgent, Some(POLL_WAIT)).await?,
                },
            };
            if let Some(job) = job {
                self.job(thread, &queues, &job).await?;
                *last_job = Instant::now();
            }
        }
        Ok(())
    }

    /// Decodes a job and answers; only then is it acknowledged.
    async fn job(
        &self,
        thread: &mut Thread,
        queues: &Queues,
        message: &Message,
    ) -> Result<(), String> {
        let ack = async |kind| message.double_ack_with(kind).await.map_err(|e| e.to_string());
        let key = self.options.queue.queue_key();
        let job = match key.open::<Job>(&message.subject, &message.payload) {
            Ok(job) => job,
            Err(reason) => {
                tracing::warn!("a job on the decode queue was dropped: {reason}");
                thread.totals.refused += 1;
                return ack(AckKind::Term).await;
            }
        };
        let delivered = message.info().map_or(1, |info| info.delivered);
        let models = &self.options.models;
        let is_last = delivered >= DELIVERIES_MAX;
        if !job.medium.is_served_by(models) && !is_last {
            return ack(AckKind::Nak(Some(NAK_DELAY))).await;
        }
        let (answer_to, number) = (job.answer_to.clone(), job.number);
        let started = Instant::now();
        let decoding = {
            let (models, engine) = (models.clone(), self.options.engine.clone());
            let reader = thread.reader.take();
            tokio::task::spawn_blocking(move || decode(&job, reader, &models, &engine))
        };
        tokio::pin!(decoding);
        let decoded = loop {
            tokio::select! {
                decoded = &mut decoding => break decoded,
                // Needs no confirmation: the next one comes soon.
                () = tokio::time::sleep(ACK_WAIT / 3) => {
                    let sent = message.ack_with(AckKind::Progress).await;
                    sent.map_err(|error| error.to_string())?;
                }
            }
        };
        let (outcome, reader) = decoded.map_err(|error| error.to_string())?;
        thread.reader = reader;
        let took = started.elapsed();
        thread.totals.count(&outcome, took);
        let busy_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let answer = Answer { number, worker: thread.name.clone(), busy_us, outcome };
        let answer = key.seal(&answer_to, &answer);
        let stored = queues.context.publish(answer_to, answer.into()).await;
        stored.map_err(|error| error.to_string())?.await.map_err(|error| error.to_string())?;
        ack(AckKind::Ack).await
    }
}

/// A thread of a worker.
struct Thread {
    name: String,
    reader: Option<CachedReader>,
    /// The last error logged about the queue.
    failure: String,
    totals: WorkerTotals,
}

impl WorkerTotals {
    fn count(&mut self, outcome: &JobOutcome, took: Duration) {
        self.busy_seconds += took.as_secs_f64();
        match outcome {
            JobOutcome::Decoded(decoded) => {
                self.jobs += 1;
                self.sectors += decoded.sectors.len() as u64;
                let lost = decoded.sectors.iter().filter(|sector| sector.read.is_none());
                self.lost += lost.count() as u64;
                let decodes = decoded.sectors.iter().map(|sector| u64::from(sector.decodes));
                self.voxels += decoded.voxels * decodes.sum::<u64>();
            }
            JobOutcome::Died | JobOutcome::Refused(_) => self.refused += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.sectors += other.sectors;
        self.lost += other.lost;
        self.voxels += other.voxels;
        self.refused += other.refused;
        self.busy_seconds += other.busy_seconds;
    }
}

/// Polls for a job, waiting up to `within` for one.
async fn poll(jobs: &PullConsumer, within: Option<Duration>) -> Result<Option<Message>, String> {
    let polling = async {
        let polled = match within {
            None => jobs.fetch().max_messages(1).messages().await,
            Some(within) => jobs.batch().max_messages(1).expires(within).messages().await,
        };
        let mut messages = polled.map_err(|error| error.to_string())?;
        messages.next().await.transpose().map_err(|error| error.to_string())
    };
    // A server that dies during the poll never answers it.
    let limit = within.unwrap_or_default() + POLL_TIMEOUT;
    tokio::time::timeout(limit, polling).await.map_err(|_| "it does not answer".to_owned())?
}

/// Decodes a job, reusing the last reader if its settings are the same.
fn decode(
    job: &Job,
    reader: Option<CachedReader>,
    models: &[Arc<Model>],
    engine: &EngineChoice,
) -> (JobOutcome, Option<CachedReader>) {
    let reused = reader.filter(|(settings, _)| *settings == job.medium);
    let made = reused.map_or_else(
        || Ok((job.medium.clone(), job.medium.reader(models, engine)?)),
        Ok::<_, fulgurite_decode::DecodeError>,
    );
    let (settings, mut reader) = match made {
        Ok(made) => made,
        Err(error) => {
            let reason = format!("{error}; this worker has the models: {}", names(models));
            return (JobOutcome::Refused(reason), None);
        }
    };
    match catch_unwind(AssertUnwindSafe(|| job.decode(&mut reader))) {
        Ok(Ok(decoded)) => (JobOutcome::Decoded(decoded), Some((settings, reader))),
        Ok(Err(reason)) => (JobOutcome::Refused(reason), Some((settings, reader))),
        Err(_) => (JobOutcome::Died, None),
    }
}
