//! Failures of sealing: sets that wait for a retry, and bodies of sets that were given up and wait
//! for other platters. The failure of one set stops no other.
//!
//! ```text
//! a step fails:  disk, room, library, stop ... -> the set waits, then goes on where it was
//!                the set's own fault, < FAULTS -> the same, and the fault counts
//!                                     = FAULTS -> given up: its bodies wait for another set
//! ```
//!
//! Retries use exponential backoff, up to an hour: nothing waits forever, and an operator's order
//! waits for nothing. Faults are counted in the catalog; the rest is in memory, so that a start
//! tries everything at once.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_units::{Duration, Instant, SetId, UnixTime};

use crate::limits::{SEAL_RETRY, SEAL_RETRY_MAX, SETS_WAITING_MAX};
use crate::status::SealFailure;

/// A set, or bodies, waiting for a retry.
#[derive(Clone, Debug)]
struct Failure {
    tries: u32,
    error: String,
    since: UnixTime,
    retry_at: Instant,
    /// Ciphertext bytes.
    bytes: u64,
    /// Places of its bodies in the queue.
    places: Places,
}

/// Places in the queue.
#[derive(Clone, Debug)]
pub(super) enum Places {
    /// The original places, in order.
    List(Arc<[u64]>),
    /// New places, contiguous.
    Ranges(Vec<RangeInclusive<u64>>),
}

impl Places {
    fn last(&self) -> u64 {
        let last = match self {
            Self::List(all) => all.last().copied(),
            Self::Ranges(all) => all.iter().map(|range| *range.end()).max(),
        };
        last.unwrap_or(0)
    }

    fn contain(&self, place: u64) -> bool {
        match self {
            Self::List(all) => all.binary_search(&place).is_ok(),
            Self::Ranges(all) => all.iter().any(|range| range.contains(&place)),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    sets: BTreeMap<SetId, Failure>,
    given_up: Vec<Failure>,
    replanned: u64,
}

/// The failures of sealing, shared with status reports.
#[derive(Debug, Default)]
pub(crate) struct SealFailures(Mutex<State>);

/// Places in the queue that planning skips.
#[derive(Clone, Debug, Default)]
pub struct Excluded {
    places: Vec<Places>,
    /// Ciphertext bytes of their bodies.
    pub bytes: u64,
}

impl Excluded {
    /// Whether the body in this place is skipped.
    #[must_use]
    pub fn contains(&self, place: u64) -> bool {
        self.places.iter().any(|places| places.contain(place))
    }

    /// Whether nothing is skipped.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// Returns the backoff after this many failed tries in a row.
fn backoff_after(tries: u32) -> Duration {
    let doubled = SEAL_RETRY.as_nanos().saturating_mul(1 << tries.saturating_sub(1).min(16));
    Duration::from_nanos(doubled).min(SEAL_RETRY_MAX)
}

impl SealFailures {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a set could not go on and waits.
    pub(super) fn record_wait(
        &self,
        set: SetId,
        error: &str,
        (wall, now): (UnixTime, Instant),
        (bytes, places): (u64, Arc<[u64]>),
    ) {
        let mut state = self.lock();
        let before = state.sets.get(&set).map(|old| (old.tries, old.since));
        let (tries, since) = before.map_or((1, wall), |(tries, since)| (tries + 1, since));
        let (error, retry_at) = (error.to_owned(), now + backoff_after(tries));
        let places = Places::List(places);
        state.sets.insert(set, Failure { tries, error, since, retry_at, bytes, places });
    }

    /// Records that a set was given up and that its bodies have new places in the queue. If they
    /// were given up before, they wait longer.
    pub(super) fn record_give_up(
        &self,
        set: SetId,
        error: &str,
        (wall, now): (UnixTime, Instant),
        (bytes, old, new): (u64, &[u64], Vec<RangeInclusive<u64>>),
    ) {
        let mut state = self.lock();
        state.sets.remove(&set);
        state.replanned += 1;
        let again = |failure: &mut Failure| old.iter().any(|place| failure.places.contain(*place));
        let before: Vec<Failure> = state.given_up.extract_if(.., again).collect();
        if new.is_empty() {
            return;
        }
        let tries = 1 + before.iter().map(|failure| failure.tries).max().unwrap_or(0);
        let since = before.iter().map(|failure| failure.since).min().unwrap_or(wall);
        let (error, retry_at) = (error.to_owned(), now + backoff_after(tries));
        let places = Places::Ranges(new);
        state.given_up.push(Failure { tries, error, since, retry_at, bytes, places });
    }

    /// Forgets a set that was finished or no longer exists.
    pub(super) fn forget_set(&self, set: SetId) {
        self.lock().sets.remove(&set);
    }

    /// Records that everything up to the place `until` that was not [`Self::excluded`] at this time
    /// is planned. That includes bodies that were given up before and had waited by `now`; without
    /// a time, all of them.
    pub(super) fn record_planned(&self, now: Option<Instant>, until: u64) {
        let waits = |failure: &Failure| now.is_some_and(|now| failure.retry_at > now);
        self.lock().given_up.retain(|failure| waits(failure) || failure.places.last() > until);
    }

    /// Whether a set has to wait now.
    pub(super) fn is_waiting(&self, set: SetId, now: Instant) -> bool {
        self.lock().sets.get(&set).is_some_and(|failure| failure.retry_at > now)
    }

    /// Whether bodies that were given up have waited long enough.
    pub(super) fn is_any_due(&self, now: Instant) -> bool {
        self.lock().given_up.iter().any(|failure| failure.retry_at <= now)
    }

    /// Whether so many wait that no more sets may be started. Bodies that were given up count only
    /// while they still wait at `now`, and never without a time.
    pub(super) fn is_full(&self, now: Option<Instant>) -> bool {
        let state = self.lock();
        let waits = |failure: &&Failure| now.is_some_and(|now| failure.retry_at > now);
        state.sets.len() + state.given_up.iter().filter(waits).count() >= SETS_WAITING_MAX
    }

    /// Returns what planning skips: bodies of sets that wait, and bodies that were given up and
    /// still wait at `now`. Without a time only the former.
    pub(super) fn excluded(&self, now: Option<Instant>) -> Excluded {
        let state = self.lock();
        let given_up =
            state.given_up.iter().filter(|failure| now.is_some_and(|now| failure.retry_at > now));
        let all: Vec<&Failure> = state.sets.values().chain(given_up).collect();
        Excluded {
            places: all.iter().map(|failure| failure.places.clone()).collect(),
            bytes: all.iter().map(|failure| failure.bytes).sum(),
        }
    }

    /// Returns the failure of the one that has waited longest, if any waits.
    pub(crate) fn oldest(&self) -> Option<String> {
        let state = self.lock();
        let all = state.sets.values().chain(&state.given_up);
        all.min_by_key(|failure| failure.since).map(|failure| failure.error.clone())
    }

    /// Returns the failures for status reports, the oldest first, and how many sets were given up
    /// since start.
    pub(crate) fn status(&self, now: Instant) -> (Vec<SealFailure>, u64) {
        let state = self.lock();
        let show = |set: Option<SetId>, failure: &Failure| SealFailure {
            set,
            tries: failure.tries,
            error: failure.error.clone(),
            since: failure.since,
            retry_seconds: failure.retry_at.since(now).as_nanos() / 1_000_000_000,
            bytes: failure.bytes,
        };
        let sets = state.sets.iter().map(|(set, failure)| show(Some(*set), failure));
        let mut all: Vec<SealFailure> =
            sets.chain(state.given_up.iter().map(|failure| show(None, failure))).collect();
        all.sort_by_key(|failure| failure.since);
        (all, state.replanned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: UnixTime = UnixTime::from_millis(7_000);

    fn set(number: u8) -> SetId {
        SetId::from_bytes([number; 16])
    }

    #[test]
    fn backoff_doubles_up_to_its_maximum() {
        assert_eq!(backoff_after(1), SEAL_RETRY);
        assert_eq!(backoff_after(2), SEAL_RETRY + SEAL_RETRY);
        assert_eq!(backoff_after(40), SEAL_RETRY_MAX);
        assert_eq!(backoff_after(u32::MAX), SEAL_RETRY_MAX);
        let (failures, now) = (SealFailures::default(), Instant::from_nanos(5));
        for _ in 0..3 {
            failures.record_wait(set(1), "disk", (WALL, now), (10, Arc::from([3, 5])));
        }
        let wait = backoff_after(3);
        let almost = Duration::from_nanos(wait.as_nanos() - 1);
        assert!(failures.is_waiting(set(1), now + almost));
        assert!(!failures.is_waiting(set(1), now + wait));
        assert!(!failures.is_waiting(set(2), now));
        let (status, _) = failures.status(now);
        assert_eq!((status.len(), status[0].tries, status[0].retry_seconds), (1, 3, 40));
        failures.forget_set(set(1));
        assert!(failures.status(now).0.is_empty());
    }

    #[test]
    fn planning_skips_only_waiting_bodies() {
        let (failures, now) = (SealFailures::default(), Instant::from_nanos(5));
        failures.record_wait(set(1), "disk", (WALL, now), (10, Arc::from([3, 5])));
        failures.record_give_up(set(2), "bad", (WALL, now), (4, &[8], vec![20..=21, 24..=24]));
        let found = |excluded: Excluded| -> Vec<u64> {
            (0..30).filter(|place| excluded.contains(*place)).collect()
        };
        assert_eq!(found(failures.excluded(Some(now))), [3, 5, 20, 21, 24]);
        assert_eq!(failures.excluded(Some(now)).bytes, 14);
        // An order does not wait for bodies that were given up; started sets keep their bodies.
        assert_eq!(found(failures.excluded(None)), [3, 5]);
        let later = now + SEAL_RETRY;
        assert!(failures.is_any_due(later) && !failures.is_any_due(now));
        assert_eq!(found(failures.excluded(Some(later))), [3, 5]);
        // Given up again, they wait twice as long.
        failures.record_give_up(set(3), "bad", (WALL, now), (4, &[21, 24], vec![30..=31]));
        let (status, replanned) = failures.status(now);
        assert_eq!((status.len(), replanned), (2, 2));
        assert!(status.iter().any(|failure| failure.set.is_none() && failure.tries == 2));
        assert!(!failures.is_any_due(later) && failures.is_any_due(later + SEAL_RETRY));
        // They were given up after what was planned, and so were not part of it.
        failures.record_planned(None, 29);
        assert!(failures.is_any_due(later + SEAL_RETRY));
        failures.record_planned(Some(later + SEAL_RETRY), 31);
        failures.forget_set(set(1));
        assert!(failures.status(now).0.is_empty() && failures.excluded(Some(now)).is_empty());
    }

    #[test]
    fn too_many_failures_block_new_sets() {
        let (failures, now) = (SealFailures::default(), Instant::from_nanos(5));
        for number in 0..SETS_WAITING_MAX {
            assert!(!failures.is_full(Some(now)));
            let id = set(u8::try_from(number).unwrap());
            failures.record_wait(id, "disk", (WALL, now), (1, Arc::from([1])));
        }
        assert!(failures.is_full(Some(now)) && failures.is_full(None));
        // Bodies that were given up block new sets only while they wait, and never an order.
        for number in 0..SETS_WAITING_MAX {
            let id = set(u8::try_from(number).unwrap());
            let place = number as u64;
            failures.record_give_up(
                id,
                "bad",
                (WALL, now),
                (1, &[place], vec![90 + place..=90 + place]),
            );
        }
        assert!(failures.is_full(Some(now)) && !failures.is_full(None));
        assert!(!failures.is_full(Some(now + SEAL_RETRY)));
    }
}
