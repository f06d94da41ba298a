//! Operations on the blobs of a group while its disks spin: write, read, repair, garbage
//! collection, recovery.
//!
//! ```text
//! on_disk     a disk's files as stacks need them, and faults that tests inject
//! identity    identity of a disk: fulgurite-disk.json
//! identify    identifies a mounted disk, initializes a new one
//! window      direct I/O for stacks
//! write       writes a blob to its places, reads it back, commits it
//! read        reads a blob for a client
//! repair_blob verifies a whole blob, rebuilds lost stacks
//! scrub       a piece of a group's verification
//! gc          garbage collection
//! find        searches the disks of a group for the content of a lost index
//! unrepaired  blobs that could not be repaired, for subscribers
//! starts      start counts of disks, which detect older copies
//! ```
//!
//! Each is called by a driver that keeps the disks of one group active. None of them decides when
//! it runs, and none opens a file except through the guard of the disks, which refuses a sleeping
//! disk.

mod find;
mod gc;
mod identify;
mod identity;
mod on_disk;
mod place;
mod read;
mod repair_blob;
mod scrub;
mod starts;
mod unrepaired;
mod window;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_disks::{GroupId, Guard, PlaceId};
use fulgurite_units::{BlobId, Clock, RackId};

pub use find::Found;
pub use gc::{GcReport, gc};
pub use identify::Identification;
pub(crate) use identity::read_identity;
pub use identity::{DISK_FILE, DiskIdentity};
pub use on_disk::{Failing, Injected};
pub use place::{PlacementPolicy, Room};
pub use read::read;
pub use repair_blob::{RepairResult, repair_blob};
pub(crate) use scrub::{piece_blobs, scrub};
pub use starts::Starts;
pub(crate) use starts::count;
pub(crate) use unrepaired::UnrepairedBlob;
pub use unrepaired::UnrepairedBlobs;
pub use write::{Job, write};

pub use find::find;
pub use identify::{identify, initialize};

use crate::FailPoints;
use crate::blob::ReadMode;
use crate::index::{DiskRow, Index, RoomRow};

/// Folder of a disk for its stacks.
pub(crate) const STACKS: &str = "stacks";

/// Shared context of these operations.
#[derive(Debug)]
pub struct DiskContext {
    /// Id of the rack.
    pub rack: RackId,
    /// Access to the disks.
    pub guard: Guard,
    /// The rack's index.
    pub index: Arc<Index>,
    /// Fail point at which the process is killed, for tests.
    pub fail: FailPoints,
    /// Injected faults of disks, for tests.
    pub injected: Injected,
    /// Chooses the places of a blob's stacks.
    pub choose: Box<dyn PlacementPolicy>,
    /// Which stacks clients' reads use.
    pub reads: ReadMode,
    /// The rack's places.
    pub places: Places,
    /// Blobs that are complete although the index lists them as unwanted.
    pub complete: CompleteBlobs,
    /// The current start.
    pub starts: Starts,
    /// Blobs that could not be repaired.
    pub unrepaired: UnrepairedBlobs,
    /// The one clock.
    pub clock: Clock,
}

/// Blobs that a garbage collection found complete, with their keys: at most as many as were being
/// written when the rack was opened.
#[derive(Debug, Default)]
pub struct CompleteBlobs(Mutex<BTreeMap<BlobId, String>>);

impl CompleteBlobs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<BlobId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The places of a rack, and the disk in each according to the index.
#[derive(Debug, Default)]
pub struct Places(Mutex<BTreeMap<PlaceId, Place>>);

#[derive(Clone, Debug)]
struct Place {
    group: GroupId,
    /// None if the disk was not initialized for the rack yet.
    disk: Option<DiskRow>,
    /// Its space when it was last queried.
    room: Option<RoomRow>,
}

impl Places {
    /// Adds a place of a group, with the disk and the space that the index has for it.
    pub fn add(
        &self,
        place: PlaceId,
        group: GroupId,
        disk: Option<DiskRow>,
        room: Option<RoomRow>,
    ) {
        self.lock().insert(place, Place { group, disk, room });
    }

    /// Returns the space of a place's disk when it was last queried.
    #[must_use]
    pub fn room(&self, place: PlaceId) -> Option<RoomRow> {
        self.lock().get(&place).and_then(|place| place.room)
    }

    pub(crate) fn set_room(&self, place: PlaceId, room: Option<RoomRow>) {
        if let Some(place) = self.lock().get_mut(&place) {
            place.room = room;
        }
    }

    /// Returns the group of a place.
    #[must_use]
    pub fn group(&self, place: PlaceId) -> Option<GroupId> {
        self.lock().get(&place).map(|place| place.group)
    }

    /// Whether the disk of a place was given up, so that nothing on it counts any more.
    #[must_use]
    pub fn is_given_up(&self, place: PlaceId) -> bool {
        let places = self.lock();
        let disk = places.get(&place).and_then(|place| place.disk.as_ref());
        disk.is_some_and(|disk| disk.is_given_up)
    }

    /// Whether the disk of a place belongs to no rack yet, according to the index.
    #[must_use]
    pub fn is_new(&self, place: PlaceId) -> bool {
        self.lock().get(&place).is_some_and(|place| place.disk.is_none())
    }

    /// Returns how many places have a disk that belongs to no rack yet.
    #[must_use]
    pub fn new_count(&self) -> usize {
        self.lock().values().filter(|place| place.disk.is_none()).count()
    }

    /// Returns how many places have a disk that belongs to the rack.
    pub(crate) fn count_known(&self) -> usize {
        self.lock().values().filter(|place| place.disk.is_some()).count()
    }

    /// Returns the places whose disk was given up.
    pub(crate) fn given_up(&self) -> Vec<PlaceId> {
        let places = self.lock();
        let is_given_up = |place: &Place| place.disk.as_ref().is_some_and(|disk| disk.is_given_up);
        places.iter().filter(|(_, place)| is_given_up(place)).map(|(&at, _)| at).collect()
    }

    fn disk(&self, place: PlaceId) -> Option<DiskRow> {
        self.lock().get(&place).and_then(|place| place.disk.clone())
    }

    pub(crate) fn set_disk(&self, place: PlaceId, disk: Option<DiskRow>) {
        if let Some(place) = self.lock().get_mut(&place) {
            place.disk = disk;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlaceId, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskContext {
    /// Whether all disks of a group, except those given up, can be used now.
    fn all_are_usable(&self, group: &Group) -> bool {
        let places = self.places.lock();
        let of_group = places.iter().filter(|(_, place)| place.group == group.id);
        let given_up = |place: &Place| place.disk.as_ref().is_some_and(|disk| disk.is_given_up);
        let mut needed = of_group.filter(|(_, place)| !given_up(place));
        needed.all(|(at, _)| group.usable.contains(at))
    }

    /// Creates a group with these disks active.
    #[must_use]
    pub fn group(&self, id: GroupId, active: Vec<PlaceId>) -> Group {
        let mut group = Group { id, ..Group::default() };
        for place in active {
            match self.places.disk(place) {
                Some(disk) if disk.is_given_up => {}
                Some(_) => group.usable.push(place),
                None => group.new.push(place),
            }
        }
        group
    }
}

/// A group while its disks are active.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Id of the group.
    pub id: GroupId,
    /// Places that can be used: active, with the disk that belongs there.
    pub usable: Vec<PlaceId>,
    /// Places whose disk is active but not initialized for the rack yet.
    pub new: Vec<PlaceId>,
    /// Places whose disk was left spun down because it was not needed.
    pub asleep: Vec<PlaceId>,
    /// Failures of its other places.
    pub failures: BTreeMap<PlaceId, String>,
}

impl Group {
    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> String {
        group_name(self.id)
    }
}

/// The name of a group in messages.
pub(crate) fn group_name(group: GroupId) -> String {
    format!("group {group}")
}

/// The name of a place's disk in messages.
pub(crate) fn disk_name(place: PlaceId) -> String {
    format!("disk {place}")
}
