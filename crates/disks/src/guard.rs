//! The guard: the only access to the files of a disk, and the power state of each disk.
//!
//! ```text
//! guard.enter(place) --> Lease --> open, create, list, rename, remove ...   only while Active
//!        |                 |
//!        '- Asleep         '- while one exists, its disk is not spun down (InUse)
//! ```
//!
//! Listing a folder or querying a size spins up a disk just as reading a file does, so all of these
//! operations are here. Not here: which disk is spun up when, and what is stored on it.

mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pace::Pacer;
use crate::{DisksError, PlaceId, Power, Result};

pub use files::{DiskFile, DiskFolder, Entry, Space};

/// Tracks the power state of each disk, and refuses access to the files of one that is not active.
/// Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Guard(Arc<Mutex<BTreeMap<PlaceId, Slot>>>);

#[derive(Debug)]
struct Slot {
    root: PathBuf,
    pacer: Option<Pacer>,
    power: Power,
    /// How many leases were granted.
    leases_granted: u64,
    /// Shared by all leases since the disk became active; replaced after a spin-down.
    period: Arc<ActivePeriod>,
}

/// One period in which a disk is active.
#[derive(Debug)]
struct ActivePeriod {
    place: PlaceId,
    root: PathBuf,
    pacer: Option<Pacer>,
    /// Its power state, as an index into `Power::ALL`; read before each operation.
    power: AtomicU8,
}

/// Permission to use the files of a disk. While a lease exists the disk is not spun down.
#[derive(Clone, Debug)]
pub struct Lease(Arc<ActivePeriod>);

impl Guard {
    /// Creates a guard without places.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a place whose disk has its files below `root`, in standby. A known place keeps its
    /// state.
    pub fn add(&self, place: PlaceId, root: impl Into<PathBuf>) {
        self.put(place, root.into(), None);
    }

    /// Adds a simulated disk, whose files are read no faster than a real disk would read them.
    pub fn add_paced(&self, place: PlaceId, root: impl Into<PathBuf>, pacer: Pacer) {
        self.put(place, root.into(), Some(pacer));
    }

    fn put(&self, place: PlaceId, root: PathBuf, pacer: Option<Pacer>) {
        self.lock().entry(place).or_insert_with(|| Slot {
            period: ActivePeriod::new(place, &root, pacer.clone(), Power::Standby),
            root,
            pacer,
            power: Power::Standby,
            leases_granted: 0,
        });
    }

    /// Returns the power state of a disk; none if there is no such place.
    #[must_use]
    pub fn power(&self, place: PlaceId) -> Option<Power> {
        self.lock().get(&place).map(|slot| slot.power)
    }

    /// Returns the power states of all disks, in order of place.
    #[must_use]
    pub fn powers(&self) -> Vec<(PlaceId, Power)> {
        self.lock().iter().map(|(&place, slot)| (place, slot.power)).collect()
    }

    /// Returns how many leases of a disk were granted.
    #[must_use]
    pub fn leases_granted(&self, place: PlaceId) -> u64 {
        self.lock().get(&place).map_or(0, |slot| slot.leases_granted)
    }

    /// Returns the number of leases of a disk; each open file or folder counts.
    #[must_use]
    pub fn leases(&self, place: PlaceId) -> usize {
        self.lock().get(&place).map_or(0, Slot::leases)
    }

    /// Changes the power state of a disk. A disk in use is not unmounted. A disk that failed, was
    /// unplugged or lost power is out at once, and operations on it fail.
    ///
    /// # Errors
    /// When there is no such place, it is in use, or the transition is not allowed.
    pub fn turn(&self, place: PlaceId, to: Power) -> Result<()> {
        let mut slots = self.lock();
        let slot = slots.get_mut(&place).ok_or(DisksError::UnknownPlace { place })?;
        if !slot.power.can_become(to) {
            return Err(DisksError::InvalidTransition { place, from: slot.power, to });
        }
        let leases = slot.leases();
        if to == Power::Unmounting && leases > 0 {
            return Err(DisksError::InUse { place, leases });
        }
        assert!(slot.power == Power::Active || leases == 0, "only an active disk has leases");
        slot.period.set(to);
        slot.power = to;
        // Old leases stay bound to the disk that is out, whatever happens in its place.
        if to == Power::Active || to.is_out_of_service() {
            slot.period = ActivePeriod::new(place, &slot.root, slot.pacer.clone(), to);
        }
        Ok(())
    }

    /// Grants a lease of an active disk, without touching any file.
    ///
    /// # Errors
    /// When it is not active ([`DisksError::Asleep`]), or there is no such place.
    pub fn acquire(&self, place: PlaceId) -> Result<Lease> {
        let mut slots = self.lock();
        let slot = slots.get_mut(&place).ok_or(DisksError::UnknownPlace { place })?;
        if slot.power != Power::Active {
            return Err(DisksError::Asleep { place, power: slot.power });
        }
        slot.leases_granted += 1;
        Ok(Lease(Arc::clone(&slot.period)))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlaceId, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Returns the number of leases; the guard itself holds one reference.
    fn leases(&self) -> usize {
        Arc::strong_count(&self.period) - 1
    }
}

impl ActivePeriod {
    fn new(place: PlaceId, root: &Path, pacer: Option<Pacer>, power: Power) -> Arc<Self> {
        let period = Self { place, root: root.to_owned(), pacer, power: AtomicU8::new(0) };
        period.set(power);
        Arc::new(period)
    }

    fn set(&self, power: Power) {
        self.power.store(power as u8, Ordering::Release);
    }

    fn power(&self) -> Power {
        let index = usize::from(self.power.load(Ordering::Acquire));
        Power::ALL.get(index).copied().unwrap_or(Power::Failed)
    }
}

impl Lease {
    /// Place of the disk.
    #[must_use]
    pub fn place(&self) -> PlaceId {
        self.0.place
    }

    /// Returns an error if the disk is not active any more.
    pub(crate) fn check_active(&self) -> Result<()> {
        let power = self.0.power();
        if power == Power::Active {
            return Ok(());
        }
        Err(DisksError::Gone { place: self.0.place, power })
    }
}
