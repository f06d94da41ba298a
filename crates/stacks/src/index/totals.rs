//! What lies in each group, and the room of its disks: for a status that wakes nobody.

use fulgurite_catalog::row::{self, rows_in};
use fulgurite_catalog::{KeyRange, Transaction};
use fulgurite_disks::{GroupId, PlaceId};

use super::rows::{ROOMS, RoomRow, TOTALS, TotalsRow};
use super::{Index, group_key, place_key, place_of};
use crate::Result;
use crate::limits::INDEX_PAGE_MAX;

impl Index {
    /// The room of the disks that were ever looked at.
    ///
    /// # Errors
    /// Those of the store.
    pub fn rooms(&self) -> Result<Vec<(PlaceId, RoomRow)>> {
        let rows = rows_in(&*self.store, ROOMS, &KeyRange::all(), usize::MAX)?;
        rows.into_iter().map(|(key, row)| Ok((place_of(&key)?, row))).collect()
    }

    /// Remembers the room of disks.
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

    /// What lies in a group.
    ///
    /// # Errors
    /// Those of the store.
    pub fn totals(&self, group: GroupId) -> Result<TotalsRow> {
        Ok(row::get(&*self.store, TOTALS, &group_key(group))?.unwrap_or_default())
    }

    /// Counts what lies in groups of which that is not known: an index of before has no totals.
    /// Nobody may write meanwhile.
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

/// Counts a blob of a group, or does not any more.
pub(super) fn change_totals(
    tx: &mut Transaction<'_>,
    group: GroupId,
    change: impl FnOnce(&mut TotalsRow),
) -> Result<()> {
    let mut totals = row::get(tx, TOTALS, &group_key(group))?.unwrap_or_default();
    change(&mut totals);
    Ok(row::put(tx, TOTALS, group_key(group), &totals)?)
}
