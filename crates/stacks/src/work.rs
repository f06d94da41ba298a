//! What is done with the blobs of a group while its disks spin: written, read, mended, swept,
//! found.
//!
//! ```text
//! on_disk    a disk's files as stacks want them, and faults that tests inject
//! identity   which disk it is: fulgurite-disk.json
//! arrive     a disk that was just mounted, and one that is made the rack's
//! window     a stack read past the system's memory
//! write      a blob to its places, read back, committed
//! read       a blob to whoever asked, from all of its stacks
//! mend       stacks that are lost, made anew; a blob checked whole
//! scrub      a piece of a group's verification
//! sweep      what nobody wants goes
//! find       what lies on the disks of a group, for an index that was lost
//! unmended   blobs that could not be made whole, for whoever watches
//! starts     which start each disk knows of, by which older copies are known
//! ```
//!
//! Each is called by a driver that has the disks of one group active. None of them decides when;
//! and none opens a file but through the guard of the disks, which refuses one that sleeps.

mod arrive;
mod find;
mod identity;
mod mend;
mod on_disk;
mod place;
mod read;
mod scrub;
mod starts;
mod sweep;
mod unmended;
mod window;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulgurite_disks::{GroupId, Guard, PlaceId};
use fulgurite_units::{BlobId, Clock, RackId};

pub use arrive::Arrival;
pub use find::Found;
pub(crate) use identity::read_identity;
pub use identity::{DISK_FILE, DiskIdentity};
pub use mend::{Mended, mend};
pub use on_disk::{Failing, Injected};
pub use place::{Choose, Room};
pub use read::read;
pub(crate) use scrub::{piece_of, scrub};
pub use starts::Starts;
pub(crate) use starts::count;
pub use sweep::{Swept, sweep};
pub use unmended::Unmended;
pub(crate) use unmended::UnmendedBlob;
pub use write::{Job, write};

pub use arrive::{arrive, initialize};
pub use find::find;

use crate::blob::How;
use crate::fail_point::FailPoints;
use crate::index::{DiskRow, Index, RoomRow};

/// The folder of a disk that has its stacks.
pub(crate) const STACKS: &str = "stacks";

/// What all of it works with.
#[derive(Debug)]
pub struct Shop {
    /// Which rack.
    pub rack: RackId,
    /// The way to the disks.
    pub guard: Guard,
    /// The rack's index.
    pub index: Arc<Index>,
    /// Where the process may be killed, for tests.
    pub fail: FailPoints,
    /// Faults of disks that tests want.
    pub injected: Injected,
    /// Chooses the places of a blob's stacks.
    pub choose: Box<dyn Choose>,
    /// Which stacks clients' reads look at.
    pub reads: How,
    /// The rack's places.
    pub places: Places,
    /// Blobs that are whole and unwanted, as far as the index knows.
    pub whole: WholeBlobs,
    /// Which start this is.
    pub starts: Starts,
    /// Blobs that could not be made whole.
    pub unmended: Unmended,
    /// The one clock.
    pub clock: Clock,
}

/// Blobs that a sweep found whole, with their keys: no more than were being written when the rack
/// was opened.
#[derive(Debug, Default)]
pub struct WholeBlobs(Mutex<BTreeMap<BlobId, String>>);

impl WholeBlobs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<BlobId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The places of a rack, and which disk is in each as far as the index says.
#[derive(Debug, Default)]
pub struct Places(Mutex<BTreeMap<PlaceId, Place>>);

#[derive(Clone, Debug)]
struct Place {
    group: GroupId,
    /// None of a disk that was not made one of the rack yet.
    disk: Option<DiskRow>,
    /// What room it had when it was last looked at.
    room: Option<RoomRow>,
}

impl Places {
    /// A place of a group, with the disk and the room that the index has for it.
    pub fn add(
        &self,
        place: PlaceId,
        group: GroupId,
        disk: Option<DiskRow>,
        room: Option<RoomRow>,
    ) {
        self.lock().insert(place, Place { group, disk, room });
    }

    /// What room the disk of a place had when it was last looked at.
    #[must_use]
    pub fn room(&self, place: PlaceId) -> Option<RoomRow> {
        self.lock().get(&place).and_then(|place| place.room)
    }

    pub(crate) fn set_room(&self, place: PlaceId, room: Option<RoomRow>) {
        if let Some(place) = self.lock().get_mut(&place) {
            place.room = room;
        }
    }

    /// The group of a place.
    #[must_use]
    pub fn group(&self, place: PlaceId) -> Option<GroupId> {
        self.lock().get(&place).map(|place| place.group)
    }

    /// Whether the disk of a place was given up: nothing on it counts any more.
    #[must_use]
    pub fn is_given_up(&self, place: PlaceId) -> bool {
        let places = self.lock();
        let disk = places.get(&place).and_then(|place| place.disk.as_ref());
        disk.is_some_and(|disk| disk.is_given_up)
    }

    /// Whether the disk of a place is no rack's yet, as far as the index knows.
    #[must_use]
    pub fn is_new(&self, place: PlaceId) -> bool {
        self.lock().get(&place).is_some_and(|place| place.disk.is_none())
    }

    /// How many places have a disk that is no rack's yet.
    #[must_use]
    pub fn new_count(&self) -> usize {
        self.lock().values().filter(|place| place.disk.is_none()).count()
    }

    /// Places whose disk is the rack's.
    pub(crate) fn count_known(&self) -> usize {
        self.lock().values().filter(|place| place.disk.is_some()).count()
    }

    /// Places whose disk was given up.
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

impl Shop {
    /// Whether each disk of a group that was not given up can be used now.
    fn all_are_usable(&self, group: &Group) -> bool {
        let places = self.places.lock();
        let of_group = places.iter().filter(|(_, place)| place.group == group.id);
        let given_up = |place: &Place| place.disk.as_ref().is_some_and(|disk| disk.is_given_up);
        let mut needed = of_group.filter(|(_, place)| !given_up(place));
        needed.all(|(at, _)| group.usable.contains(at))
    }

    /// A group with these disks active.
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
    /// Which group.
    pub id: GroupId,
    /// Its places that can be used: active, with the disk that belongs there.
    pub usable: Vec<PlaceId>,
    /// Its places whose disk is active and not made one of the rack yet.
    pub new: Vec<PlaceId>,
    /// Its places whose disk sleeps on since it was not needed.
    pub asleep: Vec<PlaceId>,
    /// What is wrong with others of its places.
    pub troubles: BTreeMap<PlaceId, String>,
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
