//! Finds space for the stacks of a blob and has the policy choose their places.

use fulgurite_disks::{PlaceId, Space};
use fulgurite_units::ByteCount;

use super::{DiskContext, Group};
use crate::format::Coding;
use crate::index::RoomRow;
use crate::{RackError, Result};

/// A disk that can take a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its place.
    pub place: PlaceId,
    /// Its free bytes.
    pub free: ByteCount,
}

/// Placement policy for stacks.
pub trait PlacementPolicy: Send + Sync + std::fmt::Debug {
    /// Chooses places for `count` stacks among `rooms`. The places in `taken` already have stacks
    /// of the blob. Returns fewer when there are not enough.
    fn choose(&self, rooms: &[Room], taken: &[PlaceId], count: usize) -> Vec<PlaceId>;
}

impl DiskContext {
    /// Returns the disks of a group that have space for a stack.
    pub(crate) fn rooms(&self, group: &Group, stack: ByteCount) -> Vec<Room> {
        let room = |&place: &PlaceId| {
            let room = self.query_space(place).ok()?;
            Some(Room { place, free: room.free })
        };
        let rooms = group.usable.iter().filter_map(room);
        rooms.filter(|room| room.free >= stack).collect()
    }

    /// Queries the space of an active disk, and remembers it for when the disk sleeps.
    pub(crate) fn query_space(&self, place: PlaceId) -> fulgurite_disks::Result<RoomRow> {
        let space = self.guard.acquire(place)?.space()?;
        let Space { free, total, file_system } = space;
        let room = RoomRow { free, total, file_system, at_ms: self.clock.now().as_millis() };
        self.places.set_room(place, Some(room));
        Ok(room)
    }

    /// Chooses places for all stacks of a blob.
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
        let detail = format!(
            "{} has {have} disks with space for a stack of {stack}, but a blob in {coding} stacks \
             needs {count}",
            group.name()
        );
        Err(RackError::Full { detail })
    }
}
