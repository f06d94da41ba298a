//! Totals of each group and space of its disks, for a status that spins up no disk.

use fulgurite_catalog::row::{self, rows_in};
use fulgurite_catalog::{KeyRange, Transaction};
use fulgurite_disks::{GroupId, PlaceId};

use super::rows::{ROOMS, RoomRow, TOTALS, TotalsRow};
use super::{Index, group_key, place_from_key, place_key};
use crate::Result;

impl Index {
    /// Returns the space of all disks that were ever queried.
    ///
    /// # Errors
    /// Those of the store.
    pub fn rooms(&self) -> Result<Vec<(PlaceId, RoomRow)>> {
        let rows = rows_in(&*self.store, ROOMS, &KeyRange::all(), usize::MAX)?;
        rows.into_iter().map(|(key, row)| Ok((place_from_key(&key)?, row))).collect()
    }

    /// Records the space of disks.
    ///
    /// # Errors
    /// Those of the store.
    pub fn set_rooms(&self, rooms: Vec<(PlaceId, RoomRow)>) -> Result<()> {
        self.committer.commit_blocking(move |tx| {
            for (place, room) in rooms {
                row::put(tx, ROOMS, place_key(place), &room)?;
            }
            Ok(())
        })
    }

    /// Returns the totals of a group.
    ///
    /// # Errors
    /// Those of the store.
    pub fn totals(&self, group: GroupId) -> Result<TotalsRow> {
        Ok(row::get(&*self.store, TOTALS, &group_key(group))?.unwrap_or_default())
    }
}

/// Changes the totals of a group when a blob is added or removed.
pub(super) fn change_totals(
    tx: &mut Transaction<'_>,
    group: GroupId,
    change: impl FnOnce(&mut TotalsRow),
) -> Result<()> {
    let mut totals = row::get(tx, TOTALS, &group_key(group))?.unwrap_or_default();
    change(&mut totals);
    Ok(row::put(tx, TOTALS, group_key(group), &totals)?)
}
