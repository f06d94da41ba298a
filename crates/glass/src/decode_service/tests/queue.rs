//! The queue over a real NATS server: workers come late, die or answer twice; the server dies.

use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use async_nats::jetstream::consumer::PullConsumer;
use fulgurite_decode::EngineChoice;
use futures::StreamExt as _;

use super::super::job::{Answer, Job, JobOutcome};
use super::super::mac::{MessageError, QueueKey};
use super::super::nats::{ACK_WAIT, DELIVERIES_MAX};
use super::*;
use crate::injected::InjectedDamage;

/// A server of this test alone, with its store.
struct Server {
    child: Child,
    port: u16,
    store: tempfile::TempDir,
}

impl Server {
    /// Returns `None`, and prints a line, if there is no server to start.
    #[expect(clippy::print_stderr, reason = "what is skipped is said")]
    fn start() -> Option<Self> {
        if Command::new("nats-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            let needed = std::env::var_os("FULGURITE_TEST_SERVERS").is_some();
            assert!(!needed, "nats-server is not installed");
            eprintln!("skipped: nats-server is not installed");
            return None;
        }
        let store = tempfile::tempdir().unwrap();
        // The server takes a free port and reports it: one found free here could be taken by the
        // time it is bound.
        let child = Self::spawn("-1", &store);
        let ports_file = store.path().join(format!("nats-server_{}.ports", child.id()));
        let mut server = Self { child, port: 0, store };
        while server.port == 0 {
            assert!(server.child.try_wait().unwrap().is_none(), "nats-server ended");
            std::thread::sleep(Duration::from_millis(10));
            // Until the file exists and is complete.
            let Ok(text) = std::fs::read_to_string(&ports_file) else { continue };
            let Ok(ports) = serde_json::from_str::<serde_json::Value>(&text) else { continue };
            let port = ports["nats"][0].as_str().and_then(|nats| nats.rsplit(':').next());
            server.port = port.unwrap().parse().unwrap();
        }
        Some(server)
    }

    fn spawn(port: &str, store: &tempfile::TempDir) -> Child {
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", port, "-js", "-sd"]).arg(store.path());
        command.arg("--ports_file_dir").arg(store.path());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn address(&self) -> QueueAddress {
        let address: QueueAddress = format!("nats://127.0.0.1:{}", self.port).parse().unwrap();
        address.with_key(Some("the queue's key".to_owned()))
    }

    /// Kills the server without any time to react, as a power cut would.
    fn crash(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = Self::spawn(&self.port.to_string(), &self.store);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

fn medium() -> MediumSettings {
    MediumSettings {
        preset: "easy".to_owned(),
        seed: 1,
        reads_max: 1,
        model: None,
        damage: InjectedDamage::default(),
    }
}

fn service(server: &Server, medium: MediumSettings) -> DecodeService {
    DecodeService::remote(server.address(), medium, 3, ENERGY).unwrap()
}

/// A worker on a thread of its own, until it is dropped or stopped.
struct Worker {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<WorkerTotals>>,
}

impl Worker {
    fn start(server: &Server) -> Self {
        let (worker, stop) = DecodeWorker::new(WorkerOptions {
            queue: server.address(),
            threads: 2,
            name: "test".to_owned(),
            models: Vec::new(),
            engine: EngineChoice::BuiltIn,
            idle_exit: None,
        });
        let work = move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.unwrap().block_on(worker.run()).unwrap()
        };
        Self { stop, thread: Some(std::thread::spawn(work)) }
    }

    fn stop(mut self) -> WorkerTotals {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Runs a client that takes urgent jobs by hand. It waits for a job first: requests to a consumer
/// that is just being created are lost by the server.
fn with_manual_worker<T>(
    server: &Server,
    service: &DecodeService,
    act: impl AsyncFnOnce(&async_nats::jetstream::Context, &PullConsumer) -> T,
) -> T {
    stored(service, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let queues = server.address().find("by hand").await.unwrap();
        let jobs = queues.jobs(Urgency::Urgent).await.unwrap();
        act(&queues.context, &jobs).await
    })
}

async fn take(jobs: &PullConsumer) -> async_nats::jetstream::Message {
    let mut taken = jobs.batch().max_messages(1).expires(ACK_WAIT * 20).messages().await.unwrap();
    match taken.next().await {
        Some(message) => message.unwrap(),
        None => panic!("no job came: {:?}", jobs.clone().info().await),
    }
}

/// Waits until this many jobs are in the queue.
fn stored(service: &DecodeService, count: u64) {
    while service.status().in_flight < count {
        std::thread::sleep(Duration::from_millis(10));
    }
}

type Read = (Result<(), PlatterError>, Vec<u8>, Vec<SectorReading>);

/// Reads this many sectors on a thread of its own.
fn read(service: &Arc<DecodeService>, sectors: usize) -> JoinHandle<Read> {
    let service = Arc::clone(service);
    std::thread::spawn(move || {
        let (mut bytes, mut readings) = (written(sectors), Vec::new());
        let result = service.read(extent(), &mut bytes, &mut readings, Urgency::Urgent);
        (result, bytes, readings)
    })
}

/// Urgent and deferred parts, with a worker that starts when they already wait.
#[test]
fn remote_workers_return_decoded_bytes() {
    let Some(server) = Server::start() else { return };
    let service = Arc::new(service(&server, medium()));
    let reading = read(&service, 14);
    stored(&service, 7);
    assert!(!reading.is_finished(), "no worker is there to decode");
    assert_eq!(service.status().workers, 0);
    let worker = Worker::start(&server);
    let (result, bytes, readings) = reading.join().unwrap();
    result.unwrap();
    assert_eq!((bytes, readings.len(), lost(&readings)), (written(14), 14, 0));
    let (mut bytes, mut readings) = (written(3), Vec::new());
    service.read(extent(), &mut bytes, &mut readings, Urgency::Deferred).unwrap();
    assert_eq!((bytes, lost(&readings)), (written(3), 0));
    let status = service.status();
    assert_eq!((status.queued, status.deaths, status.duplicates), ((0, 0), 0, 0), "{status:?}");
    assert_eq!((status.parts, status.sectors[0].1), (7 + 3, 17), "{status:?}");
    assert!(status.workers >= 1 && status.busy_seconds > 0.0, "{status:?}");
    let totals = worker.stop();
    assert_eq!((totals.jobs, totals.sectors, totals.lost, totals.refused), (10, 17, 0, 0));
    assert_eq!(totals.voxels, status.voxels);
}

/// The sectors are decoded as by threads of this process: a part is sent with its neighbors.
#[test]
fn remote_workers_and_threads_decode_alike() {
    let Some(server) = Server::start() else { return };
    let medium = MediumSettings { preset: "nominal".to_owned(), ..medium() };
    let make = {
        let medium = medium.clone();
        move || medium.reader(&[], &EngineChoice::BuiltIn)
    };
    let threads = DecodeService::threads(Box::new(make), 2, 3, ENERGY).unwrap();
    let remote = service(&server, medium);
    let worker = Worker::start(&server);
    let read = |service: &DecodeService| {
        let (mut bytes, mut readings) = (written(10), Vec::new());
        service.read(extent(), &mut bytes, &mut readings, Urgency::Urgent).unwrap();
        readings
    };
    let readings = read(&threads);
    assert!(readings.iter().any(|reading| *reading != readings[0]), "their margins differ");
    assert_eq!(readings, read(&remote));
    worker.stop();
}

/// A worker that takes a job and disappears: another one gets it. One that answers twice, or
/// answers a job that was never sent, changes nothing.
#[test]
fn dead_workers_and_duplicate_answers_lose_nothing() {
    let Some(server) = Server::start() else { return };
    let service = Arc::new(service(&server, medium()));
    let reading = read(&service, 4);
    with_manual_worker(&server, &service, async |context, jobs| {
        // Taken, and then silent.
        take(jobs).await;
        let message = take(jobs).await;
        let key = QueueKey::new("the queue's key");
        let job: Job = key.open(&message.subject, &message.payload).unwrap();
        let mut reader = job.medium.reader(&[], &EngineChoice::BuiltIn).unwrap();
        let outcome = JobOutcome::Decoded(job.decode(&mut reader).unwrap());
        let answer = |number| Answer {
            number,
            worker: "twice".to_owned(),
            busy_us: 1,
            outcome: outcome.clone(),
        };
        for number in [job.number, job.number, 1_000_000] {
            let bytes = key.seal(&job.answer_to, &answer(number)).into();
            context.publish(job.answer_to.clone(), bytes).await.unwrap().await.unwrap();
        }
        // Sealed with another key, sealed for another subject, and noise.
        let forged = QueueKey::new("another").seal(&job.answer_to, &answer(job.number));
        let overheard = key.seal("fulgurite.decode.answer.other", &answer(job.number));
        for bytes in [forged, overheard, vec![9, 9]] {
            context.publish(job.answer_to.clone(), bytes.into()).await.unwrap().await.unwrap();
        }
        message.double_ack().await.unwrap();
    });
    let worker = Worker::start(&server);
    let (result, bytes, readings) = reading.join().unwrap();
    result.unwrap();
    assert_eq!((bytes, lost(&readings)), (written(4), 0));
    let status = service.status();
    assert_eq!((status.duplicates, status.deaths, status.parts), (2, 0, 4), "{status:?}");
    assert_eq!(status.forged, 2, "{status:?}");
    assert_eq!(worker.stop().jobs, 3);
}

/// A job that takes longer than a worker may be silent stays with its worker.
#[test]
fn long_jobs_are_not_redelivered() {
    let Some(server) = Server::start() else { return };
    let medium = MediumSettings { preset: "nominal".to_owned(), ..medium() };
    let service = service(&server, medium);
    let worker = Worker::start(&server);
    let extent = SectorExtent { sector_bytes: 6 * BYTES, ..extent() };
    let (mut bytes, mut readings) = (written(6 * 480), Vec::new());
    service.read(extent, &mut bytes, &mut readings, Urgency::Urgent).unwrap();
    let status = service.status();
    // On a machine that decodes one within `ACK_WAIT` this proves less, but still holds.
    assert_eq!((status.parts, status.duplicates, status.deaths), (8, 0, 0), "{status:?}");
    assert_eq!(worker.stop().jobs, 8);
}

/// A job that kills every worker is lost alone, after the maximum number of deliveries.
#[test]
fn poisoned_job_affects_no_other() {
    let Some(server) = Server::start() else { return };
    let service = Arc::new(service(&server, medium()));
    let reading = read(&service, 1);
    with_manual_worker(&server, &service, async |_, jobs| {
        for _ in 0..DELIVERIES_MAX {
            take(jobs).await;
        }
    });
    // The server only notices when a worker polls again.
    let worker = Worker::start(&server);
    let (result, _, readings) = reading.join().unwrap();
    result.unwrap();
    assert_eq!(lost(&readings), 1);
    assert_eq!(service.status().deaths, DELIVERIES_MAX.unsigned_abs());
    let (result, _, readings) = read(&service, 3).join().unwrap();
    result.unwrap();
    assert_eq!(lost(&readings), 0);
    assert_eq!(worker.stop().jobs, 3, "the other one is gone");
}

/// The server dies with jobs and answers in it, and restarts: everything arrives.
#[test]
fn server_crash_loses_no_jobs() {
    let Some(mut server) = Server::start() else { return };
    let service = Arc::new(service(&server, medium()));
    let reading = read(&service, 16);
    stored(&service, 8);
    server.crash();
    let worker = Worker::start(&server);
    std::thread::sleep(Duration::from_millis(200));
    server.start_again();
    let (result, bytes, readings) = reading.join().unwrap();
    result.unwrap();
    assert_eq!((bytes, lost(&readings)), (written(16), 0));
    worker.stop();
}

/// Stopping does not wait for answers.
#[test]
fn stopping_service_refuses_jobs_in_flight() {
    let Some(server) = Server::start() else { return };
    let service = Arc::new(service(&server, medium()));
    let reading = read(&service, 2);
    stored(&service, 2);
    service.stop();
    let (result, _, _) = reading.join().unwrap();
    assert!(result.unwrap_err().to_string().contains(CLOSED));
    let (result, _, _) = read(&service, 1).join().unwrap();
    result.unwrap_err();
}

/// A model that no worker has is an error that names it, not lost data.
#[test]
fn model_missing_on_all_workers_is_an_error() {
    let Some(server) = Server::start() else { return };
    let model = Some("0123456789abcdef".to_owned());
    let service = Arc::new(service(&server, MediumSettings { model, ..medium() }));
    let worker = Worker::start(&server);
    let (result, _, _) = read(&service, 1).join().unwrap();
    let PlatterError::Medium { reason, .. } = result.unwrap_err() else { panic!("another error") };
    assert!(reason.contains("no model 0123456789abcdef is loaded"), "{reason}");
    assert!(worker.stop().refused > 0);
}

#[test]
fn queue_addresses_never_show_secrets() {
    let address = |text: &str| text.parse::<QueueAddress>();
    let formatted = |text| format!("{0} {0:?}", address(text).unwrap());
    assert_eq!(formatted("nats://queue:4333"), "nats://queue:4333 nats://queue:4333");
    assert_eq!(formatted("queue"), "nats://queue:4222 nats://queue:4222");
    assert!(address("nats://me:secret@queue").unwrap_err().contains("CREDENTIALS"));
    assert!(address("nats://token@queue").unwrap_err().contains("CREDENTIALS"));
    for wrong in ["\u{7f}", "my queue", ""] {
        assert!(address(wrong).unwrap_err().contains("nats://HOST:PORT"), "{wrong:?}");
    }
    assert!(address("http://queue").unwrap_err().contains("nats://HOST:PORT"));
    let with = address("nats://queue").unwrap().with_credentials(Some("me:secret".to_owned()));
    assert!(!format!("{with} {with:?}").contains("secret"));
}

/// Messages of other versions, truncated ones and ones with a changed bit are rejected.
#[test]
fn truncated_or_altered_messages_are_rejected() {
    let answer = Answer {
        number: 7,
        worker: "w".to_owned(),
        busy_us: 3,
        outcome: JobOutcome::Refused("no".to_owned()),
    };
    let key = QueueKey::new("key");
    let open = |bytes: &[u8]| key.open::<Answer>("subject", bytes);
    let bytes = key.seal("subject", &answer);
    assert_eq!(open(&bytes), Ok(answer));
    for end in 0..bytes.len() {
        assert_eq!(open(&bytes[..end]), Err(MessageError::Forged), "{end}");
    }
    assert_eq!(open(&[bytes.as_slice(), &[0]].concat()), Err(MessageError::Forged));
    let other = [&[bytes[0] + 1], &bytes[1..]].concat();
    assert_eq!(open(&other), Err(MessageError::OtherVersion));
    for bit in 8..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(open(&changed), Err(MessageError::Forged), "{bit}");
    }
    let of_another = QueueKey::new("other").open::<Answer>("subject", &bytes);
    assert_eq!(of_another, Err(MessageError::Forged));
    assert_eq!(key.open::<Answer>("subjec", &bytes), Err(MessageError::Forged));
    assert_eq!(key.open::<Job>("subject", &bytes), Err(MessageError::Malformed));
}

/// A job that asks for more than it carries is refused by any worker.
#[test]
fn inconsistent_jobs_are_refused() {
    let job = Job {
        answer_to: String::new(),
        number: 1,
        medium: medium(),
        platter: extent().platter,
        track: extent().track,
        first: extent().first,
        sector_bytes: u32::try_from(BYTES).unwrap(),
        wanted: 0..1,
        drive: 0,
        read: 0,
        bytes: written(1),
    };
    let mut reader = job.medium.reader(&[], &EngineChoice::BuiltIn).unwrap();
    assert_eq!(job.decode(&mut reader).unwrap().bytes, written(1));
    for (wanted, sector_bytes) in [(0..2, 640), (1..1, 640), (0..1, 0), (0..1, 641)] {
        let wrong = Job { wanted, sector_bytes, ..job.clone() };
        wrong.decode(&mut reader).unwrap_err();
    }
}
