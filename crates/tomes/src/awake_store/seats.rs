//! Rows about member slots that move: the membership of a region is one row, and rows of what it
//! discards are removed.
//!
//! Not here: what the rows mean ([`Stood`]).

use fulgurite_catalog::{Direction, KeyRange, ReadView as _, Space};
use fulgurite_tome::awake::Row;
use fulgurite_tome::standing::Standing;
use fulgurite_tome::stood::Stood;
use fulgurite_tome::{Member, RegionId, RegionIndex, Version};

use super::Changes;
use crate::Result;
use crate::load::damaged;
use crate::rows::{
    BLOCKS, BlockRow, DELTAS, FLOORS, FloorRow, PENDING, SEATS, STANDINGS, SeatRow, StandingRow,
    member_key, region_key,
};

impl Changes<'_> {
    /// Applies a row about the membership of a region.
    pub(super) fn stand(&mut self, region: RegionIndex, row: &Row) -> Result<()> {
        let key = region_key(region).finish();
        if matches!(row, Row::Dropped { .. }) {
            self.pending.remove(&region);
            for space in [SEATS, STANDINGS, BLOCKS, PENDING, DELTAS, FLOORS] {
                self.remove_all(space, region)?;
            }
            return Ok(());
        }
        let own = RegionId { tome: self.tome, index: region };
        let seat = self.get::<SeatRow>(SEATS, &key)?;
        let standing = self.get::<StandingRow>(STANDINGS, &key)?;
        let stood = seat.and_then(|SeatRow(group)| match standing {
            Some(standing) => Some(standing.stood(group)),
            None => Stood::new(group, own),
        });
        let none = || damaged(self.tome, format!("region {region} is in no group"));
        let mut stood = stood.ok_or_else(none)?;
        if matches!(row, Row::Cleared { .. }) {
            // Versions are never reused, not even those of discarded blocks.
            stood.latest = stood.latest.max(self.last_version(region)?);
            self.remove_all(BLOCKS, region)?;
        }
        if let (Row::Seated { .. }, Standing::Building(building)) = (row, &stood.standing)
            && !stood.is_data()
        {
            for (member, floor) in building.floors().enumerate() {
                let key = member_key(region, Member::at(member)).finish();
                self.put(FLOORS, key, &FloorRow(floor))?;
            }
        }
        stood.apply(own, row);
        self.put(SEATS, key.clone(), &SeatRow(stood.group.clone()))?;
        self.put(STANDINGS, key, &StandingRow::of(&stood))
    }

    /// Returns the keys of a region's rows in a space, stored and staged.
    fn keys(&self, space: Space, region: RegionIndex) -> Result<Vec<Vec<u8>>> {
        let range = KeyRange::prefix(&region_key(region).finish());
        let kept = self.store.range(space, &range, Direction::Ascending, usize::MAX)?;
        let staged = self.rows.keys().filter(|(of, key)| *of == space && range.contains(key));
        let staged: Vec<Vec<u8>> = staged.map(|(_, key)| key.clone()).collect();
        Ok(kept.into_iter().map(|(key, _)| key).chain(staged).collect())
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
