//! Workers that are threads of this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fulgurite_decode::{DecodeError, VoxelReader};

use super::job::Decoded;
use super::queue::{Failure, Next, Part, Shared};

/// How long a worker waits for work before it ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates a worker's decoders.
pub(crate) type MakeReader = Box<dyn Fn() -> Result<VoxelReader, DecodeError> + Send + Sync>;

/// Number of running threads, and how many of them wait for work.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    all: usize,
    idle: usize,
}

/// The pool of threads. They end by themselves.
#[derive(Debug)]
pub(super) struct Threads(Arc<Pool>);

struct Pool {
    shared: Arc<Shared>,
    make: MakeReader,
    threads_max: usize,
    running: Mutex<Running>,
    wake: Condvar,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("running", &self.running).finish_non_exhaustive()
    }
}

impl Threads {
    pub(super) fn new(shared: Arc<Shared>, make: MakeReader, threads_max: usize) -> Self {
        let running = Mutex::default();
        Self(Arc::new(Pool {
            shared,
            make,
            threads_max: threads_max.max(1),
            running,
            wake: Condvar::new(),
        }))
    }

    /// Returns the number of running threads, and the maximum.
    pub(super) fn count(&self) -> (u32, u32) {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        (count(self.0.lock().all), count(self.0.threads_max))
    }

    /// Starts as many threads as the work needs and the maximum allows.
    pub(super) fn wake(&self) {
        self.0.wake();
    }
}

impl Pool {
    fn lock(&self) -> std::sync::MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(self: &Arc<Self>) {
        let mut running = self.lock();
        // One thread if everything is held: it waits for the hour.
        let wanted = self.shared.due().max(usize::from(!self.shared.is_empty()));
        let more = wanted.saturating_sub(running.idle).min(self.threads_max - running.all);
        for _ in 0..more {
            let pool = Arc::clone(self);
            let worker = std::thread::Builder::new().name("decode".to_owned());
            match worker.spawn(move || pool.work()) {
                Ok(_) => running.all += 1,
                Err(error) if running.all == 0 => {
                    let reason = format!("no decode worker can be started: {error}");
                    tracing::error!("{reason}");
                    self.shared.refuse_all(&reason);
                }
                Err(_) => break,
            }
        }
        drop(running);
        self.wake.notify_all();
    }

    /// Runs a worker.
    fn work(self: &Arc<Self>) {
        let mut reader = None;
        while let Some(part) = self.next() {
            let started = Instant::now();
            let mut worker = match reader.take().map_or_else(|| self.new_reader(), Ok) {
                Ok(worker) => worker,
                Err(reason) => {
                    part.answer(Err(Failure::Refused(reason)));
                    continue;
                }
            };
            let decoded = catch_unwind(AssertUnwindSafe(|| decode(&part, &mut worker)));
            let took = started.elapsed();
            match decoded {
                Ok(Ok(decoded)) => {
                    reader = Some(worker);
                    self.shared.decoded(part, decoded, took);
                }
                Ok(Err(error)) => {
                    self.shared.busy(took);
                    part.answer(Err(Failure::Refused(error.to_string())));
                }
                Err(_) => {
                    self.shared.busy(took);
                    self.shared.retry_or_fail(part);
                    self.wake();
                }
            }
        }
    }

    /// Creates a worker's decoders. A panic here is a bug, and says nothing about the sectors.
    fn new_reader(&self) -> Result<VoxelReader, String> {
        match catch_unwind(AssertUnwindSafe(|| (self.make)())) {
            Ok(new_reader) => new_reader.map_err(|error| error.to_string()),
            Err(_) => {
                self.shared.counters.deaths.fetch_add(1, Ordering::Relaxed);
                let reason = "a decode worker panicked before it started".to_owned();
                tracing::error!("{reason}");
                Err(reason)
            }
        }
    }

    /// Returns the next part, or `None` after a time without any; then the worker ends.
    fn next(self: &Arc<Self>) -> Option<Part> {
        let mut running = self.lock();
        let mut has_begun = false;
        loop {
            let due = match self.shared.next() {
                Next::Part(part) => {
                    drop(running);
                    // When the hour has begun, all threads may work.
                    if has_begun {
                        self.wake();
                    }
                    return Some(part);
                }
                Next::Wait(due) => due,
            };
            running.idle += 1;
            let wait = due.unwrap_or(IDLE_TIMEOUT);
            let waited = self.wake.wait_timeout(running, wait);
            let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            running = guard;
            running.idle -= 1;
            has_begun = due.is_some();
            if waited.timed_out() && self.shared.is_empty() {
                running.all -= 1;
                return None;
            }
        }
    }
}

fn decode(part: &Part, worker: &mut VoxelReader) -> Result<Decoded, DecodeError> {
    let mut bytes = part.bytes.to_vec();
    let wanted = part.wanted.clone();
    let outcomes = worker.read(part.extent, &mut bytes, wanted.clone(), part.drive, part.read)?;
    let size = part.extent.sector_bytes;
    let bytes = bytes[wanted.start * size..wanted.end * size].to_vec();
    Ok(Decoded::new(worker, &outcomes, bytes))
}
