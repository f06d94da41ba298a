//! Undecided versions that this program saw: a site has accepted a value for the version, and no
//! site that answered knows it to be decided.
//!
//! Reads, listings, writes and repairs record them. The next of these that learns that the version,
//! or a later one, was decided removes the record. So only requested objects are covered: others
//! may have undecided versions that are not known here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fulgurite_geo_core::{OpEvent, Row, Version};
use fulgurite_units::{Clock, UnixTime};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::objects::limits::UNDECIDED_MAX;

/// Undecided versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndecidedReport {
    /// Number of objects that have one.
    pub versions: u64,
    /// Age of the oldest of them by its proposer's clock; 0 if there is none.
    pub oldest_seconds: u64,
    /// Keys of these objects, the first ones only.
    pub objects: Vec<String>,
}

/// A version for which a site has accepted a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) version: Version,
    /// Time of the earliest known proposal, if it has one.
    pub(crate) time: UnixTime,
}

impl Open {
    /// Returns the last version that rows have accepted without knowing it to be decided.
    pub(crate) fn from_rows<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<Self> {
        let open = rows.into_iter().flat_map(|row| &row.open);
        let accepted = open.filter_map(|(version, instance)| {
            let time = instance.accepted.as_ref()?.value.time;
            Some(Self { version: *version, time })
        });
        accepted.reduce(Self::merge)
    }

    /// Adds what a row in an event has.
    pub(crate) fn observe(open: &mut Option<Self>, event: &OpEvent) {
        let OpEvent::Answered { answer: Some((_, row)), .. } = event else { return };
        *open = open.iter().copied().chain(Self::from_rows([row])).reduce(Self::merge);
    }

    /// Merges two: the later version wins; for the same version, the earliest proposal. A no-op has
    /// no time.
    fn merge(self, other: Self) -> Self {
        let unknown = UnixTime::default();
        match self.version.cmp(&other.version) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Equal if self.time == unknown => other,
            std::cmp::Ordering::Equal if other.time == unknown => self,
            std::cmp::Ordering::Equal => Self { time: self.time.min(other.time), ..self },
        }
    }

    /// Returns since when it has been undecided, as far as is known now.
    pub(crate) fn since(self, now: UnixTime) -> UnixTime {
        if self.time == UnixTime::default() { now } else { self.time.min(now) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Sighting {
    version: Version,
    since: UnixTime,
    seen_at: Instant,
}

/// The recorded undecided versions; bounded.
pub(crate) struct Undecided {
    clock: Clock,
    sightings: Mutex<BTreeMap<String, Sighting>>,
    /// Their number, so that a caller with nothing to add need not lock.
    count: AtomicUsize,
}

impl Undecided {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, sightings: Mutex::default(), count: AtomicUsize::new(0) }
    }

    fn sightings(&self) -> MutexGuard<'_, BTreeMap<String, Sighting>> {
        self.sightings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what was found of an object: its open version, if any, and the last version that is
    /// known to be decided.
    pub(crate) fn record(&self, object: &str, open: Option<Open>, last: Version) {
        let open = open.filter(|open| open.version > last);
        if open.is_none() && self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut all = self.sightings();
        if all.get(object).is_some_and(|sighting| sighting.version <= last) {
            all.remove(object);
        }
        if let Some(open) = open {
            let (version, since) = (open.version, open.since(self.clock.now()));
            let sighting = all.get(object).copied();
            let sighting = sighting.filter(|sighting| sighting.version >= version);
            let sighting =
                sighting.unwrap_or_else(|| Sighting { version, since, seen_at: Instant::now() });
            if all.contains_key(object) || all.len() < UNDECIDED_MAX {
                let since = if sighting.version == version {
                    sighting.since.min(since)
                } else {
                    sighting.since
                };
                all.insert(object.to_owned(), Sighting { since, ..sighting });
            }
        }
        self.count.store(all.len(), Ordering::Relaxed);
    }

    /// Returns the undecided versions, with the keys of up to `named` objects in order.
    pub(crate) fn undecided_report(&self, named: usize) -> UndecidedReport {
        let (now, all) = (self.clock.now(), self.sightings());
        let ages =
            all.values().map(|sighting| now.since(sighting.since).as_nanos() / 1_000_000_000);
        UndecidedReport {
            versions: all.len() as u64,
            oldest_seconds: ages.max().unwrap_or(0),
            objects: all.keys().take(named).cloned().collect(),
        }
    }

    /// Returns objects with a version first seen so long ago that its proposer has given up.
    pub(crate) fn since(&self, age: Duration) -> Vec<String> {
        let all = self.sightings();
        let old = all.iter().filter(|(_, sighting)| sighting.seen_at.elapsed() >= age);
        old.map(|(object, _)| object.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(version: u64, seconds: u64) -> Option<Open> {
        Some(Open { version: Version(version), time: UnixTime::from_millis(seconds * 1000) })
    }

    fn seen(undecided: &Undecided) -> (u64, u64) {
        let report = undecided.undecided_report(1);
        (report.versions, report.oldest_seconds)
    }

    #[tokio::test]
    async fn oldest_version_counts_until_decided() {
        let clock = Clock::new(
            || UnixTime::from_millis(1_000_000),
            || fulgurite_units::Instant::from_nanos(0),
        );
        let undecided = Undecided::new(clock);
        undecided.record("a", None, Version(7));
        assert_eq!(seen(&undecided), (0, 0));
        undecided.record("a", open(8, 900), Version(7));
        undecided.record("b", open(2, 990), Version(1));
        assert_eq!(seen(&undecided), (2, 100));
        // Seen again with a later value: the age counts from the first.
        undecided.record("a", open(8, 950), Version(7));
        assert_eq!(seen(&undecided), (2, 100));
        undecided.record("a", open(8, 900), Version(8));
        assert_eq!(seen(&undecided), (1, 10));
        // A later version is proposed only when the one before is decided.
        undecided.record("b", open(3, 995), Version(1));
        assert_eq!(seen(&undecided), (1, 5));
        // A clock that is ahead, and a no-op, which has no time.
        undecided.record("b", open(4, 5_000), Version(3));
        undecided.record("c", open(4, 0), Version(3));
        assert_eq!(seen(&undecided), (2, 0));
        undecided.record("b", None, Version(9));
        undecided.record("c", None, Version(4));
        assert_eq!(seen(&undecided), (0, 0));
    }

    #[tokio::test]
    async fn undecided_versions_are_bounded() {
        let now = || UnixTime::from_millis(1_000_000);
        let undecided = Undecided::new(Clock::new(now, || fulgurite_units::Instant::from_nanos(0)));
        for number in 0..UNDECIDED_MAX + 10 {
            undecided.record(&number.to_string(), open(1, 990), Version(0));
        }
        undecided.record("0", open(1, 980), Version(0));
        assert_eq!(seen(&undecided), (UNDECIDED_MAX as u64, 20));
        assert_eq!(undecided.since(Duration::ZERO).len(), UNDECIDED_MAX);
        assert_eq!(undecided.since(Duration::from_secs(3600)).len(), 0);
    }
}
