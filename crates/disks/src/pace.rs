//! Simulates the read speed of disks that are directories: reads of their files return no sooner.
//!
//! ```text
//! read, prefetched bytes --> seek, unless the head is there --> bytes, sequentially
//!                      '--------- for each open file --------------------------'
//! ```
//!
//! Prefetched bytes arrive while others are read, as from a disk, and only once: what an open file
//! has read stays in memory. After reopening it is read again, although the host may have it in its
//! page cache. Not modeled: writes, and concurrent reads of two files of a disk, each of which has
//! a head of its own.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fulgurite_units::{ByteCount, Clock, Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::limits::{PACED_AHEAD_BYTES, PACED_RUNS_MAX};

/// Read speed of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Seek time.
    pub seek: Duration,
    /// Transfer rate after the seek.
    pub bytes_per_second: ByteCount,
}

impl Pace {
    /// A disk of Pelican (OSDI 2014, section 4.2).
    pub const PELICAN: Self = Self {
        seek: Duration::from_nanos(4_200_000),
        bytes_per_second: ByteCount::new(105_000_000),
    };

    fn transfer(self, bytes: u64) -> Duration {
        let rate = u128::from(self.bytes_per_second.get().max(1));
        let ns = u128::from(bytes) * 1_000_000_000 / rate;
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// Delays reads as long as a disk would take. Clones are equivalent.
#[derive(Clone)]
pub struct Pacer {
    pace: Pace,
    clock: Clock,
    advanced: Arc<(Mutex<()>, Condvar)>,
}

/// An open file, and when a disk would have read which parts of it.
#[derive(Debug)]
pub(crate) struct Paced {
    pacer: Pacer,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the disk has read everything that was requested.
    free: Instant,
    /// Position of its head then.
    head: Option<u64>,
    /// Requested ranges, in order.
    runs: Vec<Run>,
    /// Whether it reads ahead.
    is_sequential: bool,
}

/// A range of bytes that is read sequentially.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: u64,
    until: u64,
    begins: Instant,
}

impl Pacer {
    /// Creates a pacer that uses this clock.
    #[must_use]
    pub fn new(clock: Clock, pace: Pace) -> Self {
        let advanced = Arc::<(Mutex<()>, Condvar)>::default();
        let listener = Arc::downgrade(&advanced);
        clock.listen(move || {
            if let Some(advanced) = listener.upgrade() {
                advanced.1.notify_all();
            }
        });
        Self { pace, clock, advanced }
    }

    /// Creates the state of a file that was just opened.
    pub(crate) fn file(&self) -> Paced {
        let state =
            State { free: self.clock.passed(), head: None, runs: Vec::new(), is_sequential: false };
        Paced { pacer: self.clone(), state: Mutex::new(state) }
    }

    fn wait_until(&self, at: Instant) {
        let (mutex, advanced) = &*self.advanced;
        let mut guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        while self.clock.passed() < at {
            guard = match self.clock.sleep_until(at) {
                Some(left) => {
                    let waited = advanced.wait_timeout(guard, left.into());
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => advanced.wait(guard).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer").field("pace", &self.pace).finish_non_exhaustive()
    }
}

impl Paced {
    /// Prefetches bytes.
    pub(crate) fn prefetch(&self, from: u64, bytes: u64) {
        let now = self.pacer.clock.passed();
        self.lock().ready_at(self.pacer.pace, now, from, from.saturating_add(bytes));
    }

    /// Enables read-ahead.
    pub(crate) fn advise_sequential(&self) {
        self.lock().is_sequential = true;
    }

    /// Blocks until the disk has read these bytes.
    pub(crate) fn read(&self, from: u64, bytes: u64) {
        let now = self.pacer.clock.passed();
        let until = from.saturating_add(bytes);
        let ready_at = self.lock().read(self.pacer.pace, now, from, until);
        self.pacer.wait_until(ready_at);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns when these bytes have been read; requests those that were not.
    fn ready_at(&mut self, pace: Pace, now: Instant, from: u64, until: u64) -> Instant {
        let (mut at, mut ready_at) = (from, now);
        while at < until {
            let run = match self.run_at(at) {
                Some(run) => run,
                None => self.request(pace, now, at, self.next_requested(at).min(until)),
            };
            let end = run.until.min(until);
            ready_at = ready_at.max(run.begins + pace.transfer(end - run.from));
            at = end;
        }
        ready_at
    }

    /// Like `ready_at`, and reads ahead if enabled.
    fn read(&mut self, pace: Pace, now: Instant, from: u64, until: u64) -> Instant {
        let ready_at = self.ready_at(pace, now, from, until);
        if self.is_sequential {
            self.ready_at(pace, now, until, until.saturating_add(PACED_AHEAD_BYTES));
        }
        ready_at
    }

    fn run_at(&self, at: u64) -> Option<Run> {
        self.runs.iter().copied().find(|run| (run.from..run.until).contains(&at))
    }

    /// Returns where the next requested bytes begin.
    fn next_requested(&self, at: u64) -> u64 {
        let after = self.runs.iter().map(|run| run.from).filter(|from| *from > at);
        after.min().unwrap_or(u64::MAX)
    }

    fn request(&mut self, pace: Pace, now: Instant, from: u64, until: u64) -> Run {
        let seek = if self.head == Some(from) { Duration::ZERO } else { pace.seek };
        let begins = self.free.max(now) + seek;
        self.free = begins + pace.transfer(until - from);
        self.head = Some(until);
        if self.runs.len() == PACED_RUNS_MAX {
            // A range that is dropped from memory is read again.
            self.runs.remove(0);
        }
        let run = Run { from, until, begins };
        self.runs.push(run);
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace =
        Pace { seek: Duration::from_millis(4), bytes_per_second: ByteCount::new(1_000_000) };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn state() -> State {
        State { free: Instant::ZERO, head: None, runs: Vec::new(), is_sequential: false }
    }

    #[test]
    fn sequential_reads_seek_only_once() {
        let mut state = state();
        assert_eq!(state.ready_at(PACE, at(10), 0, 5_000), at(19));
        assert_eq!(state.ready_at(PACE, at(19), 5_000, 6_000), at(20));
        assert_eq!(state.ready_at(PACE, at(30), 90_000, 91_000), at(35), "elsewhere");
        assert_eq!(state.ready_at(PACE, at(40), 1_000, 6_000), at(40), "already in memory");
    }

    #[test]
    fn prefetched_bytes_arrive_meanwhile() {
        let mut state = state();
        state.ready_at(PACE, at(0), 10_000, 60_000);
        assert_eq!(state.ready_at(PACE, at(1), 10_000, 20_000), at(14));
        assert_eq!(state.ready_at(PACE, at(40), 20_000, 30_000), at(40), "already in memory");
        assert_eq!(state.ready_at(PACE, at(41), 50_000, 60_000), at(54));
        // The head is already at the end of the range, so there is no seek.
        assert_eq!(state.ready_at(PACE, at(42), 55_000, 61_000), at(55));
        assert_eq!(
            state.ready_at(PACE, at(60), 5_000, 11_000),
            at(69),
            "only 5 kB are read from the disk"
        );
    }

    #[test]
    fn sequential_reads_are_read_ahead() {
        let mut state = State { is_sequential: true, ..state() };
        assert_eq!(state.read(PACE, at(0), 0, 10_000), at(14));
        assert_eq!(state.read(PACE, at(100), 10_000, 20_000), at(100));
        assert_eq!(
            state.read(PACE, at(100), 90_000, 120_000),
            at(124),
            "the disk has not read that far"
        );
    }

    #[test]
    fn evicted_range_is_read_again() {
        let mut state = state();
        let mut now = at(0);
        for place in 0..=u64::try_from(PACED_RUNS_MAX).unwrap() {
            now = state.ready_at(PACE, now, place * 10_000, place * 10_000 + 1_000);
        }
        assert_eq!(state.ready_at(PACE, now, 0, 1_000), now + Duration::from_millis(5));
        assert_eq!(state.runs.len(), PACED_RUNS_MAX);
    }
}
