//! Sends parts to workers on other machines by NATS JetStream, and receives their answers.
//!
//! Jobs lie in a work-queue stream on the server's disk until a worker acknowledges one, which it
//! does after its answer lies in a second stream. If anything dies in between (worker, server,
//! connection), a job is delivered again and an answer may come twice, but never not at all:
//! duplicate answers are counted and dropped. A job that killed [`DELIVERIES_MAX`] workers is given
//! up. A part that no worker decodes in time is an error to its reader.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config as StreamConfig, RetentionPolicy, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, ServerAddr};
use fulgurite_decode::DecodeError;
use futures::StreamExt as _;
use serde::Deserialize;
use tokio::sync::Notify;

use super::job::{Answer, Job, JobOutcome, MediumSettings};
use super::mac::{MessageError, QueueKey};
use super::queue::{CLOSED, Failure, Next, Part, Shared, Urgency};

/// The stream of jobs, and the prefix of its subjects.
const JOBS: &str = "FULGURITE_DECODE_JOBS";
const JOB_SUBJECT: &str = "fulgurite.decode.job";

/// The stream of answers, and the prefix of its subjects.
const ANSWERS: &str = "FULGURITE_DECODE_ANSWERS";
const ANSWER_SUBJECT: &str = "fulgurite.decode.answer";

/// How long a part may be on the way; the server drops jobs and answers that are older.
pub(super) const PART_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// How long a worker may be silent about a job before it is redelivered.
pub(super) const ACK_WAIT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// Maximum deliveries of a job to workers.
pub(super) const DELIVERIES_MAX: i64 = 3;

/// Maximum number of parts on the way, and how many of them may be deferred.
const IN_FLIGHT_MAX: usize = 256;
const IN_FLIGHT_DEFERRED_MAX: usize = 128;

/// A worker that did not answer for this long is not counted.
const WORKER_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause after the server could not be reached, and between checks of the time.
const PAUSE: Duration = Duration::from_secs(1);

/// The address of the queue, and its credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct QueueAddress {
    server: ServerAddr,
    credentials: Option<String>,
    key: Option<String>,
}

impl QueueAddress {
    /// Sets the credentials, `USER:PASSWORD` or a token.
    #[must_use]
    pub fn with_credentials(self, credentials: Option<String>) -> Self {
        Self { credentials, ..self }
    }

    /// Sets the secret for the MACs of messages, which archives and workers share; without one it
    /// is derived from the credentials.
    #[must_use]
    pub fn with_key(self, key: Option<String>) -> Self {
        Self { key, ..self }
    }

    /// Whether the MACs of messages depend on any secret.
    #[must_use]
    pub const fn is_authenticated(&self) -> bool {
        self.key.is_some() || self.credentials.is_some()
    }

    /// Returns the key of messages.
    pub(super) fn queue_key(&self) -> QueueKey {
        QueueKey::new(self.key.as_deref().or(self.credentials.as_deref()).unwrap_or_default())
    }
}

impl FromStr for QueueAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "a decode queue is nats://HOST:PORT or tls://HOST:PORT";
        let server = ServerAddr::from_str(text).map_err(|_| FORM)?;
        // The client accepts anything as a host.
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(FORM);
        }
        if server.username().is_some() || server.password().is_some() {
            return Err("a decode queue's address has no credentials: they are a variable, \
                        FULGURITE_QUEUE_CREDENTIALS");
        }
        Ok(Self { server, credentials: None, key: None })
    }
}

impl std::fmt::Display for QueueAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}", self.server.scheme(), self.server.host(), self.server.port())
    }
}

impl std::fmt::Debug for QueueAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// A connection to a server with the streams and consumers that jobs need.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    pub(super) client: Client,
    pub(super) context: Context,
    jobs: Stream,
    answers: Stream,
}

impl QueueAddress {
    /// Connects, in the background if the server is not reachable.
    async fn connect(&self, name: &str) -> Result<Client, String> {
        let mut options = ConnectOptions::new().name(name).retry_on_initial_connect();
        options = match &self.credentials {
            Some(both) => match both.split_once(':') {
                Some((user, password)) => {
                    options.user_and_password(user.to_owned(), password.to_owned())
                }
                None => options.token(both.clone()),
            },
            None => options,
        };
        options.connect(self.server.clone()).await.map_err(|error| error.to_string())
    }

    /// Connects and creates what does not exist yet, as archives do and workers do not: of two
    /// clients that create the same at once, a server may refuse one.
    async fn open(&self, name: &str) -> Result<Queues, String> {
        let client = self.connect(name).await?;
        let context = jetstream::new(client.clone());
        let stream = |name: &str, subjects: String| StreamConfig {
            name: name.to_owned(),
            subjects: vec![subjects],
            retention: RetentionPolicy::WorkQueue,
            max_age: PART_TIMEOUT,
            ..StreamConfig::default()
        };
        let make = async |config: StreamConfig| {
            let name = config.name.clone();
            match context.get_or_create_stream(config).await {
                Ok(stream) => Ok(stream),
                // Another archive created it between the check and the creation, which the server
                // may call an overlap of subjects.
                Err(error) => context.get_stream(name).await.map_err(|_| error.to_string()),
            }
        };
        let jobs = make(stream(JOBS, format!("{JOB_SUBJECT}.*"))).await?;
        let answers = make(stream(ANSWERS, format!("{ANSWER_SUBJECT}.*"))).await?;
        // Consumers exist first, so that jobs are kept for workers that come later.
        for urgency in [Urgency::Urgent, Urgency::Deferred] {
            let config = pull::Config {
                durable_name: Some(urgency_name(urgency).to_owned()),
                ack_policy: AckPolicy::Explicit,
                ack_wait: ACK_WAIT,
                max_deliver: DELIVERIES_MAX,
                filter_subject: job_subject(urgency),
                ..pull::Config::default()
            };
            let made = jobs.get_or_create_consumer(urgency_name(urgency), config).await;
            made.map_err(|error| error.to_string())?;
        }
        Ok(Queues { client, context, jobs, answers })
    }

    /// Connects to what an archive created.
    pub(super) async fn find(&self, name: &str) -> Result<Queues, String> {
        let client = self.connect(name).await?;
        let context = jetstream::new(client.clone());
        let find = async |name| {
            let found = context.get_stream(name).await;
            found.map_err(|error| format!("{error}; no archive has created the stream {name} yet"))
        };
        let (jobs, answers) = (find(JOBS).await?, find(ANSWERS).await?);
        Ok(Queues { client, context, jobs, answers })
    }
}

impl Queues {
    /// Returns the consumer of the jobs of one urgency, for workers.
    pub(super) async fn jobs(&self, urgency: Urgency) -> Result<PullConsumer, String> {
        self.jobs.get_consumer(urgency_name(urgency)).await.map_err(|error| error.to_string())
    }

    /// Subscribes to the answers to one archive.
    async fn answers(&self, id: &str) -> Result<pull::Stream, String> {
        let name = format!("archive-{id}");
        let config = pull::Config {
            durable_name: Some(name.clone()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            filter_subject: answer_subject(id),
            inactive_threshold: PART_TIMEOUT,
            ..pull::Config::default()
        };
        let consumer: PullConsumer =
            self.answers.get_or_create_consumer(&name, config).await.map_err(|e| e.to_string())?;
        consumer.messages().await.map_err(|error| error.to_string())
    }
}

fn urgency_name(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::Urgent => "urgent",
        Urgency::Deferred => "deferred",
    }
}

fn job_subject(urgency: Urgency) -> String {
    format!("{JOB_SUBJECT}.{}", urgency_name(urgency))
}

fn answer_subject(id: &str) -> String {
    format!("{ANSWER_SUBJECT}.{id}")
}

/// The server's advisory about a message that was delivered too often.
#[derive(Debug, Deserialize)]
struct MaxDeliveriesAdvisory {
    stream_seq: u64,
}

/// Sends parts and takes answers, on a thread of its own.
#[derive(Debug)]
pub(super) struct Dispatcher {
    signal: Arc<Signal>,
    workers: Arc<Mutex<BTreeMap<String, Instant>>>,
    neighbors: usize,
}

#[derive(Debug, Default)]
struct Signal {
    wake: Notify,
    is_stopping: AtomicBool,
}

impl Dispatcher {
    pub(super) fn start(
        shared: Arc<Shared>,
        address: QueueAddress,
        medium: MediumSettings,
    ) -> Result<Self, DecodeError> {
        let neighbors = medium.neighbors()?;
        let (signal, workers) = (Arc::<Signal>::default(), Arc::default());
        let failed = |reason: String| DecodeError::EngineMissing {
            engine: "sender of the decode queue",
            reason,
            remedy: "check the limits that the system sets for this process",
        };
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| failed(error.to_string()))?;
        let sender = Sender {
            shared,
            medium,
            neighbors,
            id: hex::encode(id),
            key: address.queue_key(),
            signal: Arc::clone(&signal),
            workers: Arc::clone(&workers),
            in_flight: BTreeMap::new(),
            next: 0,
            failure: format!("no decode worker of {address} answered"),
        };
        let thread = std::thread::Builder::new().name("decode-queue".to_owned());
        let started = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(sender.run(&address)),
                Err(error) => sender.shared.refuse_all(&error.to_string()),
            }
        });
        started.map_err(|error| failed(error.to_string()))?;
        Ok(Self { signal, workers, neighbors })
    }

    /// Stops sending, and refuses what is on the way.
    pub(super) fn stop(&self) {
        self.signal.is_stopping.store(true, Ordering::Release);
        self.signal.wake.notify_one();
    }

    /// Wakes the sender, because there is something to send.
    pub(super) fn wake(&self) {
        self.signal.wake.notify_one();
    }

    /// Layers whose light is seen with a sector.
    pub(super) const fn neighbors(&self) -> usize {
        self.neighbors
    }

    /// Number of workers that answered recently.
    pub(super) fn workers(&self) -> u32 {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = workers.values().filter(|at| at.elapsed() < WORKER_TIMEOUT);
        u32::try_from(seen.count()).unwrap_or(u32::MAX)
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A part on the way.
#[derive(Debug)]
struct InFlightPart {
    part: Part,
    sent_at: Instant,
    /// Its sequence number in the stream of jobs.
    sequence: u64,
}

struct Sender {
    shared: Arc<Shared>,
    medium: MediumSettings,
    neighbors: usize,
    /// Identifies this start of the archive.
    id: String,
    key: QueueKey,
    signal: Arc<Signal>,
    workers: Arc<Mutex<BTreeMap<String, Instant>>>,
    in_flight: BTreeMap<u64, InFlightPart>,
    next: u64,
    /// Why answers may be missing.
    failure: String,
}

impl Sender {
    /// Runs the thread until the service is dropped.
    async fn run(mut self, address: &QueueAddress) {
        while !self.signal.is_stopping.load(Ordering::Acquire) {
            if let Err(error) = self.serve(address).await {
                self.failure = format!("the decode queue {address} cannot be used: {error}");
                tracing::warn!("{}", self.failure);
                self.give_up_late();
                tokio::time::sleep(PAUSE).await;
            }
        }
        self.shared.close(false);
        for sent in std::mem::take(&mut self.in_flight).into_values() {
            sent.part.answer(Err(Failure::Refused(CLOSED.to_owned())));
        }
    }

    /// Sends and receives until something goes wrong with the server.
    async fn serve(&mut self, address: &QueueAddress) -> Result<(), String> {
        let queues = address.open("fulgurite archive").await?;
        let advisories = format!("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{JOBS}.*");
        let subscribed = queues.client.subscribe(advisories).await;
        let mut advisories = subscribed.map_err(|error| error.to_string())?;
        let mut answers = queues.answers(&self.id).await?;
        self.failure = format!("no decode worker of {address} answered");
        while !self.signal.is_stopping.load(Ordering::Acquire) {
            let hold = self.send(&queues).await?;
            self.give_up_late();
            let signal = Arc::clone(&self.signal);
            tokio::select! {
                () = signal.wake.notified() => {}
                () = tokio::time::sleep(hold.unwrap_or(PAUSE).min(PAUSE)) => {}
                answer = answers.next() => {
                    let message = answer.ok_or("answers ended")?.map_err(|e| e.to_string())?;
                    self.take(&message.payload);
                    message.ack().await.map_err(|error| error.to_string())?;
                }
                Some(message) = advisories.next() => {
                    let advisory = serde_json::from_slice(&message.payload);
                    if let Ok(MaxDeliveriesAdvisory { stream_seq }) = advisory {
                        self.give_up_poison_job(stream_seq);
                        // The server keeps it, but no longer delivers it.
                        let _ = queues.jobs.delete_message(stream_seq).await;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends the parts that may be sent. Returns how long until more may be, if that is known.
    async fn send(&mut self, queues: &Queues) -> Result<Option<Duration>, String> {
        let hold = loop {
            let deferred = |sent: &&InFlightPart| sent.part.urgency == Urgency::Deferred;
            let deferred = self.in_flight.values().filter(deferred).count();
            if self.in_flight.len() >= IN_FLIGHT_MAX {
                break None;
            }
            let part = match self.shared.next_if(deferred < IN_FLIGHT_DEFERRED_MAX) {
                Next::Part(part) => part,
                Next::Wait(hold) => break hold,
            };
            self.next += 1;
            let subject = job_subject(part.urgency);
            let job = self.key.seal(&subject, &self.job(&part));
            let message = PublishMessage::build()
                .payload(job.into())
                .message_id(format!("{}.{}", self.id, self.next));
            let sent = queues.context.send_publish(subject, message).await;
            let stored = match sent {
                Ok(stored) => stored.await,
                Err(error) => Err(error),
            };
            match stored {
                Ok(stored) => {
                    let sequence = stored.sequence;
                    self.in_flight.insert(
                        self.next,
                        InFlightPart { part, sent_at: Instant::now(), sequence },
                    );
                }
                Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                    let reason = format!("the queue rejects messages of this size: {error}");
                    part.answer(Err(Failure::Refused(reason)));
                }
                Err(error) => {
                    self.shared.push(vec![part]);
                    return Err(error.to_string());
                }
            }
        };
        let oldest = self.in_flight.values().map(|sent| sent.part.queued).min();
        self.shared.set_in_flight(self.in_flight.len() as u64, oldest);
        Ok(hold)
    }

    /// Builds the job of a part with its neighbors.
    fn job(&self, part: &Part) -> Job {
        let extent = part.extent;
        let count = part.bytes.len() / extent.sector_bytes;
        let from = part.wanted.start.saturating_sub(self.neighbors);
        let until = (part.wanted.end + self.neighbors).min(count);
        let number = |sector: usize| u32::try_from(sector).unwrap_or(u32::MAX);
        Job {
            answer_to: answer_subject(&self.id),
            number: self.next,
            medium: self.medium.clone(),
            platter: extent.platter,
            track: extent.track,
            first: extent.layer(from),
            sector_bytes: number(extent.sector_bytes),
            wanted: number(part.wanted.start - from)..number(part.wanted.end - from),
            drive: part.drive,
            read: part.read,
            bytes: part.bytes[from * extent.sector_bytes..until * extent.sector_bytes].to_vec(),
        }
    }

    /// Handles an answer.
    fn take(&mut self, payload: &[u8]) {
        let answer = match self.key.open::<Answer>(&answer_subject(&self.id), payload) {
            Ok(answer) => answer,
            Err(reason) => {
                if reason == MessageError::Forged {
                    self.shared.counters.forged.fetch_add(1, Ordering::Relaxed);
                }
                tracing::warn!("an answer on the decode queue was dropped: {reason}");
                return;
            }
        };
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|_, seen| seen.elapsed() < WORKER_TIMEOUT);
        workers.insert(answer.worker, Instant::now());
        drop(workers);
        let Some(InFlightPart { part, .. }) = self.in_flight.remove(&answer.number) else {
            self.shared.counters.duplicates.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let took = Duration::from_micros(answer.busy_us);
        match answer.outcome {
            JobOutcome::Decoded(decoded) if part.fits(&decoded) => {
                self.shared.decoded(part, decoded, took);
            }
            // An answer that does not fit this part counts as a dead worker.
            JobOutcome::Decoded(_) | JobOutcome::Died => {
                self.shared.busy(took);
                self.shared.retry_or_fail(part);
            }
            JobOutcome::Refused(reason) => {
                self.shared.busy(took);
                part.answer(Err(Failure::Refused(reason)));
            }
        }
    }

    /// Gives up a job that reached its delivery limit without an answer.
    fn give_up_poison_job(&mut self, sequence: u64) {
        let found = self.in_flight.iter().find(|(_, sent)| sent.sequence == sequence);
        let Some(sent) = found.map(|(number, _)| *number).and_then(|n| self.in_flight.remove(&n))
        else {
            return;
        };
        tracing::error!(platter = %sent.part.extent.platter, track = %sent.part.extent.track,
            "decode workers died over a part, {DELIVERIES_MAX} times");
        self.shared.counters.deaths.fetch_add(DELIVERIES_MAX.unsigned_abs(), Ordering::Relaxed);
        sent.part.answer(Err(Failure::Dead));
    }

    /// Refuses parts that no worker decoded in time.
    fn give_up_late(&mut self) {
        self.shared.refuse_late(PART_TIMEOUT, &self.failure);
        let is_late = |sent: &mut InFlightPart| sent.sent_at.elapsed() > PART_TIMEOUT;
        for (_, sent) in self.in_flight.extract_if(.., |_, sent| is_late(sent)) {
            sent.part.answer(Err(Failure::Refused(self.failure.clone())));
        }
    }
}
