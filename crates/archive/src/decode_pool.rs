//! The decode service: a pool of workers between the drives, which take images, and the readers,
//! which want bytes.
//!
//! ```text
//! drive's track --parts--> urgent   --+--> worker: voxels, images, decoders (crate decode)
//!                          deferred --+        |
//!        bytes, margins, lost sectors <--------'
//! ```
//!
//! Urgent parts go first: a restore never waits for verification, but for the parts that are being
//! decoded. Workers start when there is work and end when there was none for a while. The queue is
//! bounded by its callers: each waits for its own parts, and there are as many callers as drives.
//! A part whose worker dies is given to another one, once; then its sectors count as lost, which is
//! what the erasure codes are for.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use fulgurite_decode::{DecodeError, SectorOutcome, VoxelReader};
use fulgurite_glass::{GlassError, SectorReading, SectorsAt};
use serde::{Deserialize, Serialize};

/// How long a worker without work waits for some.
const IDLE: Duration = Duration::from_secs(10);

/// Parts of a track for each worker, so that none waits long for the last one.
const PARTS_PER_WORKER: usize = 2;

/// Makes a worker's decoders.
pub(crate) type MakeReader = Box<dyn Fn() -> Result<VoxelReader, DecodeError> + Send + Sync>;

/// What a part is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A reader waits.
    Urgent,
    /// Nobody waits: verification.
    Deferred,
}

/// The decode service, for operators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecodeStatus {
    /// Workers that run now, and at most.
    pub workers: (u32, u32),
    /// Parts of tracks that wait: urgent ones, deferred ones.
    pub queued: (u64, u64),
    /// Seconds that the oldest of them waits.
    pub oldest_seconds: f64,
    /// Sectors decoded since start, by the decoder that read them.
    pub sectors: Vec<(String, u64)>,
    /// Sectors that none could read.
    pub lost: u64,
    /// Sectors whose images were taken more than once.
    pub reread: u64,
    /// Voxels decoded since start, each time they were.
    pub voxels: u64,
    /// Seconds that workers were busy, of all workers together.
    pub busy_seconds: f64,
    /// Workers that died over a part.
    pub deaths: u64,
}

struct Part {
    at: SectorsAt,
    images: Arc<Vec<u8>>,
    wanted: Range<usize>,
    drive: u32,
    read: u64,
    has_failed: bool,
    queued: Instant,
    urgency: Urgency,
    reply: mpsc::Sender<Answer>,
}

/// What became of the sectors of a part, and the bytes of those that were read.
type Decoded = Result<(Vec<SectorOutcome>, Vec<u8>), Failure>;

type Answer = (Range<usize>, Decoded);

/// Why a part did not come back.
enum Failure {
    /// Its worker died, twice.
    Dead,
    /// It cannot be decoded at all.
    Refused(DecodeError),
}

#[derive(Default)]
struct Queue {
    urgent: VecDeque<Part>,
    deferred: VecDeque<Part>,
    workers: usize,
    idle: usize,
}

struct Counters {
    names: Vec<String>,
    by_decoder: Vec<AtomicU64>,
    lost: AtomicU64,
    reread: AtomicU64,
    voxels: AtomicU64,
    busy_us: AtomicU64,
    deaths: AtomicU64,
}

struct Shared {
    make: MakeReader,
    workers_max: usize,
    queue: Mutex<Queue>,
    wake: Condvar,
    counters: Counters,
}

/// The pool. Its workers end by themselves.
pub(crate) struct DecodePool {
    shared: Arc<Shared>,
    drives: u32,
    reads: AtomicU64,
}

impl std::fmt::Debug for DecodePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecodePool").field("status", &self.status()).finish()
    }
}

impl DecodePool {
    /// A pool of up to so many workers, for so many drives.
    ///
    /// # Errors
    /// When a worker cannot be made.
    pub(crate) fn new(
        make: MakeReader,
        workers_max: usize,
        drives: u32,
    ) -> Result<Self, DecodeError> {
        let names: Vec<String> = make()?.decoders().into_iter().map(str::to_owned).collect();
        let counters = Counters {
            by_decoder: names.iter().map(|_| AtomicU64::new(0)).collect(),
            names,
            lost: AtomicU64::new(0),
            reread: AtomicU64::new(0),
            voxels: AtomicU64::new(0),
            busy_us: AtomicU64::new(0),
            deaths: AtomicU64::new(0),
        };
        let shared = Shared {
            make,
            workers_max: workers_max.max(1),
            queue: Mutex::default(),
            wake: Condvar::new(),
            counters,
        };
        Ok(Self { shared: Arc::new(shared), drives: drives.max(1), reads: AtomicU64::new(0) })
    }

    /// Reads sectors, as [`fulgurite_glass::Medium::read`] does, and waits for them.
    pub(crate) fn read(
        &self,
        at: SectorsAt,
        images: &mut [u8],
        readings: &mut Vec<SectorReading>,
        urgency: Urgency,
    ) -> Result<(), GlassError> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        // Which drive it is does not follow the place: a platter is read by all of them in turn.
        let drive = u32::try_from(read % u64::from(self.drives)).unwrap_or(0);
        let count = images.len() / at.sector_bytes;
        let each = count.div_ceil(self.shared.workers_max * PARTS_PER_WORKER).max(1);
        let written = Arc::new(images.to_vec());
        let (reply, answers) = mpsc::channel();
        let parts = (0..count).step_by(each).map(|first| Part {
            at,
            images: Arc::clone(&written),
            wanted: first..(first + each).min(count),
            drive,
            read,
            has_failed: false,
            queued: Instant::now(),
            urgency,
            reply: reply.clone(),
        });
        let parts: Vec<Part> = parts.collect();
        drop(reply);
        let from = readings.len();
        readings.resize(from + count, SectorReading::Lost);
        self.shared.push(parts);
        for (wanted, answer) in answers {
            match answer {
                Ok((outcomes, bytes)) => {
                    images[wanted.start * at.sector_bytes..][..bytes.len()].copy_from_slice(&bytes);
                    for (number, outcome) in wanted.zip(outcomes) {
                        readings[from + number] = outcome.reading;
                    }
                }
                // They stay lost.
                Err(Failure::Dead) => {}
                Err(Failure::Refused(error)) => {
                    let reason = error.to_string();
                    return Err(GlassError::Medium { platter: at.platter, reason });
                }
            }
        }
        Ok(())
    }

    /// What it is doing, and has done.
    pub(crate) fn status(&self) -> DecodeStatus {
        let queue = self.shared.lock();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let oldest = [queue.urgent.front(), queue.deferred.front()];
        let oldest = oldest.into_iter().flatten().map(|part| part.queued.elapsed()).max();
        let counters = &self.shared.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DecodeStatus {
            workers: (count(queue.workers), count(self.shared.workers_max)),
            queued: (queue.urgent.len() as u64, queue.deferred.len() as u64),
            oldest_seconds: oldest.unwrap_or_default().as_secs_f64(),
            sectors: counters
                .names
                .iter()
                .cloned()
                .zip(counters.by_decoder.iter().map(get))
                .collect(),
            lost: get(&counters.lost),
            reread: get(&counters.reread),
            voxels: get(&counters.voxels),
            busy_seconds: Duration::from_micros(get(&counters.busy_us)).as_secs_f64(),
            deaths: get(&counters.deaths),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues parts, and starts as many workers as they need and may be.
    fn push(self: &Arc<Self>, parts: Vec<Part>) {
        let mut queue = self.lock();
        for part in parts {
            match part.urgency {
                Urgency::Urgent => queue.urgent.push_back(part),
                Urgency::Deferred => queue.deferred.push_back(part),
            }
        }
        let waiting = queue.urgent.len() + queue.deferred.len();
        let more = waiting.saturating_sub(queue.idle).min(self.workers_max - queue.workers);
        for _ in 0..more {
            let shared = Arc::clone(self);
            let worker = std::thread::Builder::new().name("decode".to_owned());
            match worker.spawn(move || shared.work()) {
                Ok(_) => queue.workers += 1,
                Err(error) if queue.workers == 0 => {
                    tracing::error!(%error, "no decode worker can be started");
                    fail_all(&mut queue);
                }
                Err(_) => break,
            }
        }
        drop(queue);
        self.wake.notify_all();
    }

    /// A worker's life.
    fn work(self: &Arc<Self>) {
        let mut reader = None;
        while let Some(part) = self.next() {
            let started = Instant::now();
            let made = match reader.take() {
                Some(made) => Ok(made),
                None => (self.make)(),
            };
            let mut worker = match made {
                Ok(worker) => worker,
                Err(error) => {
                    part.answer(Err(Failure::Refused(error)));
                    continue;
                }
            };
            let decoded = catch_unwind(AssertUnwindSafe(|| part.decode(&mut worker)));
            let busy = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.counters.busy_us.fetch_add(busy, Ordering::Relaxed);
            match decoded {
                Ok((answer, voxels)) => {
                    reader = Some(worker);
                    self.count(&answer, voxels);
                    part.answer(answer);
                }
                Err(_) => self.retry(part),
            }
        }
    }

    /// The next part, or nothing when there was none for a while; then the worker ends.
    fn next(&self) -> Option<Part> {
        let mut queue = self.lock();
        loop {
            if let Some(part) = queue.urgent.pop_front() {
                return Some(part);
            }
            if let Some(part) = queue.deferred.pop_front() {
                return Some(part);
            }
            queue.idle += 1;
            let (guard, waited) =
                self.wake.wait_timeout(queue, IDLE).unwrap_or_else(PoisonError::into_inner);
            queue = guard;
            queue.idle -= 1;
            if waited.timed_out() && queue.urgent.is_empty() && queue.deferred.is_empty() {
                queue.workers -= 1;
                return None;
            }
        }
    }

    /// A worker died over a part: once more, and then it is lost.
    fn retry(self: &Arc<Self>, mut part: Part) {
        self.counters.deaths.fetch_add(1, Ordering::Relaxed);
        tracing::error!(platter = %part.at.platter, track = %part.at.track, "a decode worker died");
        if part.has_failed {
            part.answer(Err(Failure::Dead));
        } else {
            part.has_failed = true;
            self.push(vec![part]);
        }
    }

    fn count(&self, answer: &Decoded, voxels: usize) {
        let Ok((outcomes, _)) = answer else { return };
        let counters = &self.counters;
        for outcome in outcomes {
            let by = match outcome.reading {
                SectorReading::Lost => &counters.lost,
                SectorReading::Read { .. } => &counters.by_decoder[outcome.decoder],
            };
            by.fetch_add(1, Ordering::Relaxed);
            counters.reread.fetch_add(u64::from(outcome.reads > 1), Ordering::Relaxed);
            let decoded = voxels as u64 * u64::from(outcome.decodes);
            counters.voxels.fetch_add(decoded, Ordering::Relaxed);
        }
    }
}

impl Part {
    fn decode(&self, worker: &mut VoxelReader) -> (Decoded, usize) {
        let mut images = self.images.to_vec();
        let wanted = self.wanted.clone();
        let outcomes = worker.read(self.at, &mut images, wanted.clone(), self.drive, self.read);
        let voxels = worker.frame().map_or(0, |frame| frame.shape().voxels());
        let bytes = wanted.start * self.at.sector_bytes..wanted.end * self.at.sector_bytes;
        let answer = outcomes.map(|outcomes| (outcomes, images[bytes].to_vec()));
        (answer.map_err(Failure::Refused), voxels)
    }

    fn answer(self, answer: Decoded) {
        // Nobody listens any more when another part was refused.
        let _ = self.reply.send((self.wanted, answer));
    }
}

/// Nobody will ever decode what is queued.
fn fail_all(queue: &mut Queue) {
    let parts: Vec<Part> = queue.urgent.drain(..).chain(queue.deferred.drain(..)).collect();
    for part in parts {
        part.answer(Err(Failure::Dead));
    }
}

#[cfg(test)]
mod tests;
