//! How long disks that are directories would take to read: reads of their files return no sooner.
//!
//! ```text
//! read, what is ahead --> seek, unless the head stands there --> bytes, one after the other
//!                      '--------- of each open file -----------------------------------'
//! ```
//!
//! What was asked for ahead comes while others are read, as from a disk, and comes once: what an
//! open file has read is in memory. Opened again it is read again, though the system that has the
//! directories may have kept it. Not here: writes, and two files of a disk that are read at the
//! same time, of which each has a head of its own.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fulgurite_units::{ByteCount, Clock, Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::limits::{PACED_AHEAD_BYTES, PACED_RUNS_MAX};

/// How fast a disk reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Until its head is at another place.
    pub seek: Duration,
    /// What it reads from there on.
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

/// Has reads wait as long as a disk takes. Clones are the same.
#[derive(Clone)]
pub struct Pacer {
    pace: Pace,
    clock: Clock,
    turned: Arc<(Mutex<()>, Condvar)>,
}

/// An open file, and what of it a disk would have read by when.
#[derive(Debug)]
pub(crate) struct Paced {
    pacer: Pacer,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the disk has read all that it was asked for.
    free: Instant,
    /// Where its head is then.
    head: Option<u64>,
    /// What was asked for, in that order.
    runs: Vec<Run>,
    /// What comes next is asked for ahead.
    in_order: bool,
}

/// Bytes that are read one after the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: u64,
    until: u64,
    begins: Instant,
}

impl Pacer {
    /// Reads take so long by this clock.
    #[must_use]
    pub fn new(clock: Clock, pace: Pace) -> Self {
        let turned = Arc::<(Mutex<()>, Condvar)>::default();
        let listener = Arc::downgrade(&turned);
        clock.listen(move || {
            if let Some(turned) = listener.upgrade() {
                turned.1.notify_all();
            }
        });
        Self { pace, clock, turned }
    }

    /// For a file that was just opened.
    pub(crate) fn file(&self) -> Paced {
        let state =
            State { free: self.clock.passed(), head: None, runs: Vec::new(), in_order: false };
        Paced { pacer: self.clone(), state: Mutex::new(state) }
    }

    fn wait_until(&self, at: Instant) {
        let (hands, turned) = &*self.turned;
        let mut held = hands.lock().unwrap_or_else(PoisonError::into_inner);
        while self.clock.passed() < at {
            held = match self.clock.sleep_until(at) {
                Some(left) => {
                    let waited = turned.wait_timeout(held, left.into());
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => turned.wait(held).unwrap_or_else(PoisonError::into_inner),
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
    /// The disk is asked for bytes that nobody waits for yet.
    pub(crate) fn ahead(&self, from: u64, bytes: u64) {
        let now = self.pacer.clock.passed();
        self.lock().ready(self.pacer.pace, now, from, from.saturating_add(bytes));
    }

    /// From now on the disk is asked for what comes next while somebody reads.
    pub(crate) fn read_in_order(&self) {
        self.lock().in_order = true;
    }

    /// Returns when the disk has read these bytes.
    pub(crate) fn read(&self, from: u64, bytes: u64) {
        let now = self.pacer.clock.passed();
        let until = from.saturating_add(bytes);
        let ready = self.lock().read(self.pacer.pace, now, from, until);
        self.pacer.wait_until(ready);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// When these bytes are read; what of them nobody asked for is asked for.
    fn ready(&mut self, pace: Pace, now: Instant, from: u64, until: u64) -> Instant {
        let (mut at, mut ready) = (from, now);
        while at < until {
            let run = match self.run_of(at) {
                Some(run) => run,
                None => self.ask(pace, now, at, self.next_known(at).min(until)),
            };
            let end = run.until.min(until);
            ready = ready.max(run.begins + pace.transfer(end - run.from));
            at = end;
        }
        ready
    }

    /// The same, and what comes next is asked for if that was wanted.
    fn read(&mut self, pace: Pace, now: Instant, from: u64, until: u64) -> Instant {
        let ready = self.ready(pace, now, from, until);
        if self.in_order {
            self.ready(pace, now, until, until.saturating_add(PACED_AHEAD_BYTES));
        }
        ready
    }

    fn run_of(&self, at: u64) -> Option<Run> {
        self.runs.iter().copied().find(|run| (run.from..run.until).contains(&at))
    }

    /// Where the next bytes are that were asked for already.
    fn next_known(&self, at: u64) -> u64 {
        let after = self.runs.iter().map(|run| run.from).filter(|from| *from > at);
        after.min().unwrap_or(u64::MAX)
    }

    fn ask(&mut self, pace: Pace, now: Instant, from: u64, until: u64) -> Run {
        let seek = if self.head == Some(from) { Duration::ZERO } else { pace.seek };
        let begins = self.free.max(now) + seek;
        self.free = begins + pace.transfer(until - from);
        self.head = Some(until);
        if self.runs.len() == PACED_RUNS_MAX {
            // What is out of memory is read again.
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
        State { free: Instant::ZERO, head: None, runs: Vec::new(), in_order: false }
    }

    #[test]
    fn a_read_takes_a_seek_and_its_bytes_and_the_next_one_only_its_bytes() {
        let mut state = state();
        assert_eq!(state.ready(PACE, at(10), 0, 5_000), at(19));
        assert_eq!(state.ready(PACE, at(19), 5_000, 6_000), at(20));
        assert_eq!(state.ready(PACE, at(30), 90_000, 91_000), at(35), "elsewhere");
        assert_eq!(state.ready(PACE, at(40), 1_000, 6_000), at(40), "it was read");
    }

    #[test]
    fn what_was_asked_for_ahead_comes_meanwhile() {
        let mut state = state();
        state.ready(PACE, at(0), 10_000, 60_000);
        assert_eq!(state.ready(PACE, at(1), 10_000, 20_000), at(14));
        assert_eq!(state.ready(PACE, at(40), 20_000, 30_000), at(40), "it is here");
        assert_eq!(state.ready(PACE, at(41), 50_000, 60_000), at(54));
        // Beyond it the head stands already, and behind what comes before it.
        assert_eq!(state.ready(PACE, at(42), 55_000, 61_000), at(55));
        assert_eq!(state.ready(PACE, at(60), 5_000, 11_000), at(69), "5 kB are new");
    }

    #[test]
    fn who_reads_in_order_finds_the_next_bytes_read() {
        let mut state = State { in_order: true, ..state() };
        assert_eq!(state.read(PACE, at(0), 0, 10_000), at(14));
        assert_eq!(state.read(PACE, at(100), 10_000, 20_000), at(100));
        assert_eq!(state.read(PACE, at(100), 90_000, 120_000), at(124), "the disk is not so far");
    }

    #[test]
    fn what_is_out_of_memory_is_read_again() {
        let mut state = state();
        let mut now = at(0);
        for place in 0..=u64::try_from(PACED_RUNS_MAX).unwrap() {
            now = state.ready(PACE, now, place * 10_000, place * 10_000 + 1_000);
        }
        assert_eq!(state.ready(PACE, now, 0, 1_000), now + Duration::from_millis(5));
        assert_eq!(state.runs.len(), PACED_RUNS_MAX);
    }
}
