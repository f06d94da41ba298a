//! Where the stacks of a blob go: who is asked, and what with.

use fulgurite_disks::{PlaceId, Space};
use fulgurite_units::ByteCount;

use super::{Group, Shop};
use crate::format::Coding;
use crate::index::RoomRow;
use crate::{Result, StacksError};

/// A disk that a stack may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its place.
    pub place: PlaceId,
    /// What may still be written to it.
    pub free: ByteCount,
}

/// Chooses places for stacks.
pub trait Choose: Send + Sync + std::fmt::Debug {
    /// Places for `count` stacks among `rooms`, of a group that `taken` have stacks of the blob in
    /// already. Fewer when there are not as many.
    fn choose(&self, rooms: &[Room], taken: &[PlaceId], count: usize) -> Vec<PlaceId>;
}

impl Shop {
    /// The disks of a group that have room for a stack, and what they have.
    pub(crate) fn rooms(&self, group: &Group, stack: ByteCount) -> Vec<Room> {
        let room = |&place: &PlaceId| {
            let room = self.look_for_room(place).ok()?;
            Some(Room { place, free: room.free })
        };
        let rooms = group.usable.iter().filter_map(room);
        rooms.filter(|room| room.free >= stack).collect()
    }

    /// What room an active disk has; it is remembered for when it sleeps.
    pub(crate) fn look_for_room(&self, place: PlaceId) -> fulgurite_disks::Result<RoomRow> {
        let space = self.guard.enter(place)?.space()?;
        let Space { free, total, file_system } = space;
        let room = RoomRow { free, total, file_system, at_ms: self.clock.now().as_millis() };
        self.places.set_room(place, Some(room));
        Ok(room)
    }

    /// Places for all stacks of a blob.
    pub(crate) fn places(
        &self,
        group: &Group,
        coding: Coding,
        stack: ByteCount,
    ) -> Result<Vec<PlaceId>> {
        let rooms = self.rooms(group, stack);
        let (count, have) = (usize::from(coding.stacks()), rooms.len());
        let chosen = self.choose.choose(&rooms, &[], count);
        if chosen.len() == count {
            return Ok(chosen);
        }
        let what = format!(
            "{} has {have} disks with room for a stack of {stack}, and a blob in {coding} stacks \
             needs {count}",
            group.name()
        );
        Err(StacksError::Full { what })
    }
}
