//! Rows about member slots that move: the membership of a region is one row, and rows of what it
//! discards are removed.
//!
//! Not here: what the rows mean ([`Membership`]).

use fulgurite_catalog::{Direction, KeyRange, ReadView as _, Space};
use fulgurite_tome_core::membership::Membership;
use fulgurite_tome_core::membership_state::MembershipState;
use fulgurite_tome_core::metadata::Row;
use fulgurite_tome_core::{Member, RegionId, RegionIndex, Version};

use super::Changes;
use crate::Result;
use crate::load::damaged;
use crate::rows::{
    BLOCKS, BlockRow, DELTAS, FLOORS, FloorRow, MEMBER_SLOTS, MEMBERSHIPS, MemberSlotRow,
    MembershipRow, PENDING, member_key, region_key,
};

impl Changes<'_> {
    /// Applies a row about the membership of a region.
    pub(super) fn apply_membership(&mut self, region: RegionIndex, row: &Row) -> Result<()> {
        let key = region_key(region).finish();
        if matches!(row, Row::Dropped { .. }) {
            self.pending.remove(&region);
            for space in [MEMBER_SLOTS, MEMBERSHIPS, BLOCKS, PENDING, DELTAS, FLOORS] {
                self.remove_all(space, region)?;
            }
            return Ok(());
        }
        let own = RegionId { tome: self.tome, index: region };
        let slot = self.get::<MemberSlotRow>(MEMBER_SLOTS, &key)?;
        let standing = self.get::<MembershipRow>(MEMBERSHIPS, &key)?;
        let membership = slot.and_then(|MemberSlotRow(group)| match standing {
            Some(standing) => Some(standing.membership(group)),
            None => Membership::new(group, own),
        });
        let none = || damaged(self.tome, format!("region {region} is in no group"));
        let mut membership = membership.ok_or_else(none)?;
        if matches!(row, Row::Cleared { .. }) {
            // Versions are never reused, not even those of discarded blocks.
            membership.latest = membership.latest.max(self.last_version(region)?);
            self.remove_all(BLOCKS, region)?;
        }
        if let (Row::SlotBuilt { .. }, MembershipState::Building(building)) =
            (row, &membership.state)
            && !membership.is_data()
        {
            for (member, floor) in building.floors().enumerate() {
                let key = member_key(region, Member::at(member)).finish();
                self.put(FLOORS, key, &FloorRow(floor))?;
            }
        }
        membership.apply(own, row);
        self.put(MEMBER_SLOTS, key.clone(), &MemberSlotRow(membership.group.clone()))?;
        self.put(MEMBERSHIPS, key, &MembershipRow::new(&membership))
    }

    /// Returns the keys of a region's rows in a space, stored and staged.
    fn keys(&self, space: Space, region: RegionIndex) -> Result<Vec<Vec<u8>>> {
        let range = KeyRange::prefix(&region_key(region).finish());
        let stored = self.store.range(space, &range, Direction::Ascending, usize::MAX)?;
        let staged = self
            .rows
            .keys()
            .filter(|(staged_space, key)| *staged_space == space && range.contains(key));
        let staged: Vec<Vec<u8>> = staged.map(|(_, key)| key.clone()).collect();
        Ok(stored.into_iter().map(|(key, _)| key).chain(staged).collect())
    }

    fn remove_all(&mut self, space: Space, region: RegionIndex) -> Result<()> {
        for key in self.keys(space, region)? {
            self.rows.insert((space, key), None);
        }
        Ok(())
    }

    fn last_version(&self, region: RegionIndex) -> Result<Version> {
        let mut last = Version::NONE;
        for key in self.keys(BLOCKS, region)? {
            let row = self.get::<BlockRow>(BLOCKS, &key)?;
            last = last.max(row.map_or(Version::NONE, |row| row.version));
        }
        Ok(last)
    }
}
