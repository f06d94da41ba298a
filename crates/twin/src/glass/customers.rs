//! The customers of a run whose reads are restores: what the run knows of them besides the
//! controller.

use std::collections::BTreeMap;

use fulgurite_restore::{Event, Place, RestoreId, Retrieval};
use fulgurite_units::{Duration, Instant, PlatterId, UnixTime};

use super::restore_driver::{Part, Places, RestoreDriver};
use super::supply::{Supply, number_of, stored_id};
use super::utilization::ReadUtilization;
use crate::engine::histogram::Histogram;
use crate::glass::result::RestoreResult;
use crate::glass::scenario::Scenario;

/// Restores in progress, and statistics of finished ones.
#[derive(Debug)]
pub(crate) struct Customers {
    pub(crate) restore_driver: RestoreDriver,
    pub(crate) busy: ReadUtilization,
    /// The file and the retrieval class of each restore.
    files: BTreeMap<RestoreId, (u32, Retrieval)>,
    took: BTreeMap<Retrieval, Histogram>,
    pub(crate) visits: u64,
    next: u64,
    /// When the controller's timer fires.
    pub(crate) timer: Option<Instant>,
    /// The last repair. What is unavailable after it stays unavailable.
    last_repair: Instant,
}

impl Customers {
    pub(crate) fn new(scenario: &Scenario, drives: usize) -> Option<Self> {
        let restores = scenario.restores.as_ref()?;
        let mut restore_driver = RestoreDriver::new(drives, 0);
        restore_driver.pass_event(Event::Room { bytes: restores.room });
        let repairs = scenario.faults.iter().map(|fault| fault.repaired_at.unwrap_or(fault.at));
        Some(Self {
            restore_driver,
            busy: ReadUtilization::new(&scenario.library),
            files: BTreeMap::new(),
            took: BTreeMap::new(),
            visits: 0,
            next: 0,
            timer: None,
            last_repair: Instant::ZERO + repairs.max().unwrap_or(Duration::ZERO),
        })
    }

    /// Requests a restore.
    pub(crate) fn request(
        &mut self,
        file: u32,
        retrieval: Retrieval,
        now: Instant,
        parts: Vec<Part>,
    ) {
        let restore = RestoreId::new(self.next);
        self.next += 1;
        self.files.insert(restore, (file, retrieval));
        self.restore_driver.request_restore(restore, retrieval, unix(now), parts);
    }

    /// Ends a restore and returns its file. Counts its duration if `took` gives one.
    pub(crate) fn restored(
        &mut self,
        restore: RestoreId,
        took: impl FnOnce(u32) -> Option<Duration>,
    ) -> Option<u32> {
        let (file, retrieval) = self.files.remove(&restore)?;
        if let Some(took) = took(file) {
            self.took.entry(retrieval).or_default().add(took);
        }
        Some(file)
    }

    /// Gives up a restore that failed too often and returns its file; `None` while a future repair
    /// may still help.
    pub(crate) fn give_up(&mut self, restore: RestoreId, now: Instant) -> Option<u32> {
        if now <= self.last_repair {
            return None;
        }
        self.restore_driver.cancel(restore);
        self.files.remove(&restore).map(|(file, _)| file)
    }

    pub(crate) fn result(&self) -> RestoreResult {
        let quantiles =
            |retrieval| self.took.get(&retrieval).map(Histogram::quantiles).unwrap_or_default();
        let busy = self.busy.shares();
        RestoreResult {
            expedited: quantiles(Retrieval::Expedited),
            standard: quantiles(Retrieval::Standard),
            bulk: quantiles(Retrieval::Bulk),
            visits: self.visits,
            busy: busy.drives,
            shuttles_busy: busy.shuttles,
        }
    }
}

impl Places for Supply {
    fn is_available(&self, place: Place) -> bool {
        !self.is_unavailable(platter_of(place))
    }

    fn is_usable(&self, _: Place) -> bool {
        true
    }

    fn recovery_sources(&mut self, place: Place) -> (Vec<Place>, usize) {
        let (recovery_sources, needed) = self.all_recovery_sources(platter_of(place));
        (recovery_sources.into_iter().map(place_of).collect(), needed)
    }
}

/// Returns the place of a stored platter, named as in an archive.
pub(crate) fn place_of(platter: u32) -> Place {
    Place::new(u128::from_le_bytes(stored_id(platter).to_bytes()))
}

/// Returns the number of a stored platter.
pub(crate) fn platter_of(place: Place) -> u32 {
    number_of(PlatterId::from_bytes(place.get().to_le_bytes()))
}

/// Converts a time of a run to Unix time; a run begins at 0.
fn unix(at: Instant) -> UnixTime {
    UnixTime::from_millis(at.as_nanos() / 1_000_000)
}

/// Converts Unix time back to a time of a run.
pub(crate) const fn instant(at: UnixTime) -> Instant {
    Instant::from_nanos(at.as_millis().saturating_mul(1_000_000))
}
