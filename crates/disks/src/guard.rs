//! The guard: the only way to the files of a disk, and the power that each disk has.
//!
//! ```text
//! guard.enter(place) --> Lease --> open, create, list, rename, remove ...   only while Active
//!        |                 |
//!        '- Asleep         '- as long as one lives, its disk is not put down (InUse)
//! ```
//!
//! A listing, a look at a size or a read of a folder wakes a disk as well as a read of a file does,
//! so all of them are here. What is not: which disk is woken when, and what lies on it.

mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pace::Pacer;
use crate::{DisksError, PlaceId, Power, Result};

pub use files::{DiskFile, DiskFolder, Entry, Space};

/// Knows what each disk does, and lets nobody to the files of one that is not active. Clones are
/// the same guard.
#[derive(Clone, Debug, Default)]
pub struct Guard(Arc<Mutex<BTreeMap<PlaceId, Slot>>>);

#[derive(Debug)]
struct Slot {
    root: PathBuf,
    pacer: Option<Pacer>,
    power: Power,
    /// Times that somebody was let in.
    entered: u64,
    /// What all leases since the disk became active have; another one after it was put down.
    stay: Arc<Stay>,
}

/// One time that a disk is active, from when it was until it is no more.
#[derive(Debug)]
struct Stay {
    place: PlaceId,
    root: PathBuf,
    pacer: Option<Pacer>,
    /// The power it has, as `Power::ALL` counts; read before each operation.
    power: AtomicU8,
}

/// Whoever has it may use the files of a disk; as long as one lives the disk is not put down.
#[derive(Clone, Debug)]
pub struct Lease(Arc<Stay>);

impl Guard {
    /// Guards nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A place whose disk has its files below `root`. It is taken to stand still, or to be what it
    /// was if the place is known.
    pub fn add(&self, place: PlaceId, root: impl Into<PathBuf>) {
        self.put(place, root.into(), None);
    }

    /// The same of a simulated disk, whose files are read no faster than one would read them.
    pub fn add_paced(&self, place: PlaceId, root: impl Into<PathBuf>, pacer: Pacer) {
        self.put(place, root.into(), Some(pacer));
    }

    fn put(&self, place: PlaceId, root: PathBuf, pacer: Option<Pacer>) {
        self.lock().entry(place).or_insert_with(|| Slot {
            stay: Stay::new(place, &root, pacer.clone(), Power::Standby),
            root,
            pacer,
            power: Power::Standby,
            entered: 0,
        });
    }

    /// What a disk does; none where there is no such place.
    #[must_use]
    pub fn power(&self, place: PlaceId) -> Option<Power> {
        self.lock().get(&place).map(|slot| slot.power)
    }

    /// What all of them do, in the order of their places.
    #[must_use]
    pub fn powers(&self) -> Vec<(PlaceId, Power)> {
        self.lock().iter().map(|(&place, slot)| (place, slot.power)).collect()
    }

    /// Times that somebody was let to a disk's files.
    #[must_use]
    pub fn entered(&self, place: PlaceId) -> u64 {
        self.lock().get(&place).map_or(0, |slot| slot.entered)
    }

    /// Leases of a disk that somebody has; files and folders that are open count, each.
    #[must_use]
    pub fn leases(&self, place: PlaceId) -> usize {
        self.lock().get(&place).map_or(0, Slot::leases)
    }

    /// A disk does something else from now on. One that somebody uses is not put away; one that
    /// failed, was pulled out or lost its power is out at once, and whoever uses it is told so.
    ///
    /// # Errors
    /// When there is no such place, it is in use, or no disk goes from what it does to that.
    pub fn turn(&self, place: PlaceId, to: Power) -> Result<()> {
        let mut slots = self.lock();
        let slot = slots.get_mut(&place).ok_or(DisksError::NoPlace { place })?;
        if !slot.power.may_become(to) {
            return Err(DisksError::NoStep { place, from: slot.power, to });
        }
        let leases = slot.leases();
        if to == Power::Unmounting && leases > 0 {
            return Err(DisksError::InUse { place, leases });
        }
        assert!(slot.power == Power::Active || leases == 0, "nobody is let to a disk that sleeps");
        slot.stay.set(to);
        slot.power = to;
        // Leases of before stay those of a disk that is out, whatever becomes of its place.
        if to == Power::Active || to.is_out() {
            slot.stay = Stay::new(place, &slot.root, slot.pacer.clone(), to);
        }
        Ok(())
    }

    /// Lets somebody to the files of a disk that is active, and touches none of them.
    ///
    /// # Errors
    /// When it is not active ([`DisksError::Asleep`]), or there is no such place.
    pub fn enter(&self, place: PlaceId) -> Result<Lease> {
        let mut slots = self.lock();
        let slot = slots.get_mut(&place).ok_or(DisksError::NoPlace { place })?;
        if slot.power != Power::Active {
            return Err(DisksError::Asleep { place, power: slot.power });
        }
        slot.entered += 1;
        Ok(Lease(Arc::clone(&slot.stay)))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlaceId, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The guard has one of its own.
    fn leases(&self) -> usize {
        Arc::strong_count(&self.stay) - 1
    }
}

impl Stay {
    fn new(place: PlaceId, root: &Path, pacer: Option<Pacer>, power: Power) -> Arc<Self> {
        let stay = Self { place, root: root.to_owned(), pacer, power: AtomicU8::new(0) };
        stay.set(power);
        Arc::new(stay)
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
    /// Whose files these are.
    #[must_use]
    pub fn place(&self) -> PlaceId {
        self.0.place
    }

    /// Refuses what would be done to a disk that is not active any more.
    pub(crate) fn hold(&self) -> Result<()> {
        let power = self.0.power();
        if power == Power::Active {
            return Ok(());
        }
        Err(DisksError::Gone { place: self.0.place, power })
    }
}
