//! The queue of parts of tracks: urgent ones first, deferred ones when they are due.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fulgurite_platter::SectorExtent;

use super::Energy;
use super::counters::{Counters, DecodeStatus};
use super::job::Decoded;

/// Why a part is refused when the archive stops.
pub(super) const CLOSED: &str = "the archive is being stopped";

/// The priority of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A reader waits for it.
    Urgent,
    /// Nothing waits for it: verification.
    Deferred,
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) extent: SectorExtent,
    /// The whole track, as written.
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) wanted: Range<usize>,
    pub(super) drive: u32,
    pub(super) read: u64,
    /// Whether a worker has died over it.
    pub(super) has_failed: bool,
    pub(super) queued: Instant,
    /// The start of the cheaper hour that it waits for.
    pub(super) release: Option<Instant>,
    pub(super) urgency: Urgency,
    pub(super) reply: mpsc::Sender<(Range<usize>, Outcome)>,
}

/// The outcome of a part.
pub(super) type Outcome = Result<Decoded, Failure>;

/// Why a part was not decoded.
#[derive(Debug)]
pub(super) enum Failure {
    /// Its worker died, more than once.
    Dead,
    /// It cannot be decoded at all, for this reason.
    Refused(String),
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Next {
    Part(Part),
    /// Nothing to do for this long, unless something comes; `None` is forever.
    Wait(Option<Duration>),
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    urgent: VecDeque<Part>,
    deferred: VecDeque<Part>,
    /// Number of parts with workers on other machines, and since when the oldest of them waits.
    in_flight: (u64, Option<Instant>),
    /// Which parts are refused while the archive stops.
    closed: Option<Closed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    Held,
    All,
}

/// State shared by the service's callers and workers.
#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    pub(super) counters: Counters,
    energy: Energy,
}

impl Shared {
    pub(super) fn new(names: Vec<String>, energy: Energy) -> Self {
        Self { queue: Mutex::default(), counters: Counters::new(names), energy }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether deferred parts may wait for a cheaper hour.
    pub(super) fn can_hold(&self) -> bool {
        !self.energy.tariff.within.is_zero()
    }

    /// Refuses from now on parts that are held, or all.
    pub(super) fn close(&self, held_only: bool) {
        let mut queue = self.lock();
        queue.closed = Some(if held_only { Closed::Held } else { Closed::All });
        let waiting: Vec<Part> = std::mem::take(&mut queue.urgent)
            .into_iter()
            .chain(std::mem::take(&mut queue.deferred))
            .collect();
        drop(queue);
        self.push(waiting);
    }

    pub(super) fn push(&self, parts: Vec<Part>) {
        let mut queue = self.lock();
        let now = Instant::now();
        for part in parts {
            let is_refused = match queue.closed {
                None => false,
                Some(Closed::Held) => part.release.is_some_and(|at| at > now),
                Some(Closed::All) => true,
            };
            if is_refused {
                part.answer(Err(Failure::Refused(CLOSED.to_owned())));
                continue;
            }
            match part.urgency {
                Urgency::Urgent => queue.urgent.push_back(part),
                Urgency::Deferred => queue.deferred.push_back(part),
            }
        }
    }

    /// Returns until when this many more deferred parts wait for a cheaper hour, after those
    /// already waiting.
    pub(super) fn release(&self, parts: usize) -> Option<Instant> {
        let waiting = parts + self.lock().deferred.len();
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let work = waiting as f64 * self.counters.part_seconds();
        let wait = self.energy.tariff.wait(unix_seconds(), work);
        (!wait.is_zero()).then(|| Instant::now() + wait)
    }

    /// Returns the next part for a worker.
    pub(super) fn next(&self) -> Next {
        self.next_if(true)
    }

    /// Returns the next part for a worker; a deferred one only if allowed.
    pub(super) fn next_if(&self, may_be_deferred: bool) -> Next {
        self.next_at(Instant::now(), may_be_deferred)
    }

    /// Returns the next part for a worker at this time.
    pub(super) fn next_at(&self, now: Instant, may_be_deferred: bool) -> Next {
        let mut queue = self.lock();
        if let Some(part) = queue.urgent.pop_front() {
            return Next::Part(part);
        }
        if !may_be_deferred {
            return Next::Wait(None);
        }
        // A later part may be due earlier, because it got another hour.
        let is_due = |part: &Part| part.release.is_none_or(|at| at <= now);
        if let Some(due) = queue.deferred.iter().position(is_due) {
            return queue.deferred.remove(due).map_or(Next::Wait(None), Next::Part);
        }
        let earliest = queue.deferred.iter().filter_map(|part| part.release).min();
        Next::Wait(earliest.map(|at| at.saturating_duration_since(now)))
    }

    /// Returns how many parts a worker could take now.
    pub(super) fn due(&self) -> usize {
        let queue = self.lock();
        let now = Instant::now();
        let due = queue.deferred.iter().filter(|part| part.release.is_none_or(|at| at <= now));
        queue.urgent.len() + due.count()
    }

    /// Whether no part waits, due or not.
    pub(super) fn is_empty(&self) -> bool {
        let queue = self.lock();
        queue.urgent.is_empty() && queue.deferred.is_empty()
    }

    /// Records which parts are with workers on other machines.
    pub(super) fn set_in_flight(&self, parts: u64, oldest: Option<Instant>) {
        self.lock().in_flight = (parts, oldest);
    }

    /// Answers a decoded part and counts its time.
    pub(super) fn decoded(&self, part: Part, decoded: Decoded, took: Duration) {
        self.busy(took);
        self.counters.decoded(&decoded);
        part.answer(Ok(decoded));
    }

    /// Counts busy time of a worker.
    pub(super) fn busy(&self, took: Duration) {
        self.counters.busy(took, self.energy.tariff.price(unix_seconds()));
    }

    /// Handles a worker that died over a part: the part is retried once, then it is lost.
    pub(super) fn retry_or_fail(&self, mut part: Part) {
        self.counters.deaths.fetch_add(1, Ordering::Relaxed);
        let SectorExtent { platter, track, .. } = part.extent;
        tracing::error!(%platter, %track, "a decode worker died");
        if part.has_failed {
            part.answer(Err(Failure::Dead));
        } else {
            part.has_failed = true;
            self.push(vec![part]);
        }
    }

    /// Refuses parts that were due for this long and were not decoded.
    pub(super) fn refuse_late(&self, wait_max: Duration, reason: &str) {
        let mut queue = self.lock();
        let now = Instant::now();
        let since = |part: &Part| part.release.unwrap_or(part.queued);
        let is_late = |part: &Part| now.saturating_duration_since(since(part)) > wait_max;
        let mut late = Vec::new();
        let Queue { urgent, deferred, .. } = &mut *queue;
        for waiting in [urgent, deferred] {
            while let Some(number) = waiting.iter().position(is_late) {
                late.extend(waiting.remove(number));
            }
        }
        drop(queue);
        for part in late {
            part.answer(Err(Failure::Refused(reason.to_owned())));
        }
    }

    /// Refuses all queued parts, because nothing will ever decode them.
    pub(super) fn refuse_all(&self, reason: &str) {
        let mut queue = self.lock();
        let Queue { urgent, deferred, .. } = &mut *queue;
        let parts: Vec<Part> = urgent.drain(..).chain(deferred.drain(..)).collect();
        drop(queue);
        for part in parts {
            part.answer(Err(Failure::Refused(reason.to_owned())));
        }
    }

    pub(super) fn status(&self, workers: u32, workers_max: Option<u32>) -> DecodeStatus {
        let queue = self.lock();
        let now = Instant::now();
        let is_held = |part: &Part| part.release.is_some_and(|at| at > now);
        let due = queue.urgent.iter().chain(queue.deferred.iter().filter(|part| !is_held(part)));
        // A held part counts as late only after its hour has begun.
        let since = due.map(|part| part.release.unwrap_or(part.queued)).chain(queue.in_flight.1);
        let oldest = since.min().map(|at| now.saturating_duration_since(at));
        let prices = &self.energy.tariff.prices;
        #[expect(clippy::cast_precision_loss, reason = "24")]
        let mean = prices.iter().sum::<f64>() / prices.len() as f64;
        DecodeStatus {
            workers,
            workers_max,
            queued: (queue.urgent.len() as u64, queue.deferred.len() as u64),
            held: queue.deferred.iter().filter(|part| is_held(part)).count() as u64,
            in_flight: queue.in_flight.0,
            oldest_seconds: oldest.unwrap_or_default().as_secs_f64(),
            ..self.counters.status(self.energy.watts, mean)
        }
    }
}

impl Part {
    /// Whether `decoded` can be the answer to this part.
    pub(super) fn fits(&self, decoded: &Decoded) -> bool {
        let count = self.wanted.len();
        decoded.sectors.len() == count && decoded.bytes.len() == count * self.extent.sector_bytes
    }

    pub(super) fn answer(self, outcome: Outcome) {
        // The receiver is gone if another part was refused.
        let _ = self.reply.send((self.wanted, outcome));
    }
}

fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
