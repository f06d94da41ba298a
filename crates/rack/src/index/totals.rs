//! Totals of each group and space of its disks, for a status that spins up no disk.

use fulgurite_catalog::row::{self, rows_in};
use fulgurite_catalog::{KeyRange, Transaction};
use fulgurite_disks::{GroupId, PlaceId};

use super::rows::{ROOMS, RoomRow, TOTALS, TotalsRow};
use super::{Index, group_key, place_from_key, place_key};
use crate::Result;
use crate::limits::INDEX_PAGE_MAX;

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

    /// Counts the totals of groups that have none, as in an index of an older version. Must not run
    /// concurrently with writes.
    ///
    /// # Errors
    /// Those of the store.
    pub fn count_totals(&self, groups: &[GroupId]) -> Result<()> {
        let mut counted = Vec::new();
        for &group in groups {
            if row::get::<TotalsRow>(&*self.store, TOTALS, &group_key(group))?.is_some() {
                continue;
            }
            let (mut totals, mut after) = (TotalsRow::default(), None);
            loop {
                let page = self.blobs(group, after)?;
                for (_, blob) in &page {
                    totals.add(blob.length);
                }
                after = page.last().map(|(blob, _)| *blob);
                if page.len() < INDEX_PAGE_MAX {
                    break;
                }
            }
            counted.push((group, totals));
        }
        self.committer.commit_blocking(move |tx| {
            for (group, totals) in counted {
                row::put(tx, TOTALS, group_key(group), &totals)?;
            }
            Ok(())
        })
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
