//! Counts the starts of a rack, to detect an older copy of its index, its ledger or a disk (a
//! rollback).
//!
//! ```text
//! the index     start = n                          ledger = n            disk 7 = n
//! the ledger                   start = n
//! disk 7                                                     start = n
//! ```
//!
//! The writes happen in this order, each synced before the next. So the ledger and each disk have
//! at least the number that the index has for them and, before a start is counted in them, at most
//! that of the start before it. A lower number means an older copy. A higher number means that this
//! start is missing in the index, so the index is the older copy. The end of a start is counted as
//! well, in index and ledger. A copy made since the latest count is not detected.

use std::collections::BTreeMap;

use fulgurite_catalog::row::{self, rows_in};
use fulgurite_catalog::{KeyRange, Transaction};
use fulgurite_disks::{GroupId, PlaceId};
use fulgurite_units::BlobId;

use super::rows::{
    BLOBS, BlobRow, Content, OBJECTS, ObjectRow, RACK, STARTS, UNWANTED, UnwantedRow,
};
use super::{
    Cursor, Index, blob_key, forget_blob_row, next_sequence, object_key, place_from_key, place_key,
    unwanted_key,
};
use crate::Result;

const START_KEY: &[u8] = b"start";
const LEDGER_KEY: &[u8] = b"ledger";
const OLDER_KEY: &[u8] = b"older";

impl Index {
    /// Returns the latest start, and the latest that the ledger must know of.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn starts(&self) -> Result<(u64, u64)> {
        let read = |key: &[u8]| row::get::<u64>(&*self.store, RACK, key);
        Ok((read(START_KEY)?.unwrap_or(0), read(LEDGER_KEY)?.unwrap_or(0)))
    }

    /// Returns the latest start that each disk must know of.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn disk_starts(&self) -> Result<BTreeMap<PlaceId, u64>> {
        let rows = rows_in::<u64>(&*self.store, STARTS, &KeyRange::all(), usize::MAX)?;
        rows.into_iter().map(|(key, start)| Ok((place_from_key(&key)?, start))).collect()
    }

    /// Begins the next start and returns its number.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn begin_start(&self) -> Result<u64> {
        self.committer.commit_blocking(|tx| {
            let start = row::get::<u64>(tx, RACK, START_KEY)?.unwrap_or(0) + 1;
            row::put(tx, RACK, START_KEY.to_vec(), &start)?;
            Ok(start)
        })
    }

    /// Records that the ledger knows of a start.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn record_ledger_start(&self, start: u64) -> Result<()> {
        self.committer
            .commit_blocking(move |tx| Ok(row::put(tx, RACK, LEDGER_KEY.to_vec(), &start)?))
    }

    /// Records that a disk knows of a start.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn record_disk_start(&self, place: PlaceId, start: u64) -> Result<()> {
        let key = place_key(place);
        self.committer.commit_blocking(move |tx| Ok(row::put(tx, STARTS, key, &start)?))
    }

    /// Records that the ledger or a disk knows of a later start: this index is an older copy until
    /// all disks have been searched. Starts continue from `known`.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn record_older(&self, known: u64) -> Result<()> {
        self.committer.commit_blocking(move |tx| {
            let start = row::get::<u64>(tx, RACK, START_KEY)?.unwrap_or(0);
            row::put(tx, RACK, START_KEY.to_vec(), &start.max(known))?;
            Ok(row::put(tx, RACK, OLDER_KEY.to_vec(), &known)?)
        })
    }

    /// Whether this is an older copy, and the disks have not been searched since.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn is_older(&self) -> Result<bool> {
        Ok(row::get::<u64>(&*self.store, RACK, OLDER_KEY)?.is_some())
    }

    /// Records that the disks have been searched and the index is complete again.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn record_recovered(&self) -> Result<()> {
        self.committer.commit_blocking(|tx| Ok(tx.delete(RACK, OLDER_KEY.to_vec())?))
    }

    /// Corrects the places of a blob's stacks in an older copy, unless its row changed meanwhile.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn correct(
        &self,
        (group, blob): (GroupId, BlobId),
        was: BlobRow,
        corrected: BlobRow,
    ) -> Result<()> {
        let key = blob_key(group, blob);
        self.committer.commit_blocking(move |tx| {
            if row::get::<BlobRow>(tx, BLOBS, &key)? != Some(was) {
                return Ok(());
            }
            Ok(row::put(tx, BLOBS, key, &corrected)?)
        })
    }

    /// Marks duplicate stacks of a blob on other disks as unwanted.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn spare(
        &self,
        group: GroupId,
        blob: BlobId,
        stacks: Vec<(u8, PlaceId)>,
    ) -> Result<()> {
        if stacks.is_empty() {
            return Ok(());
        }
        let row = UnwantedRow {
            stacks: stacks.into_iter().map(|(index, place)| (index, place.get())).collect(),
        };
        self.committer.commit_blocking(move |tx| {
            let sequence = next_sequence(tx, 0)?;
            Ok(row::put(tx, UNWANTED, unwanted_key(group, blob, sequence), &row)?)
        })
    }

    /// Forgets blobs of a group that are in an older copy but on no disk, with the keys that name
    /// them. Those that changed meanwhile stay. Returns how many it forgot.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn forget_gone(
        &self,
        group: GroupId,
        mut gone: BTreeMap<BlobId, BlobRow>,
    ) -> Result<u64> {
        let mut after = Cursor::Start;
        let mut forgotten = 0;
        while !gone.is_empty() {
            let page = self.objects("", &after)?;
            let Some((last, _)) = page.last() else { break };
            after = Cursor::After(last.clone());
            let mut named = Vec::new();
            for (key, row) in page {
                if let Content::Blob { group: object_group, blob } = row.content
                    && object_group == group.get()
                    && let Some(was) = gone.remove(&blob)
                {
                    named.push((object_key(&key), row.sequence, blob, was));
                }
            }
            forgotten += crate::format::bytes(named.len());
            self.committer.commit_blocking(move |tx| -> Result<()> {
                for (key, sequence, blob, was) in named {
                    let object = row::get::<ObjectRow>(tx, OBJECTS, &key)?;
                    if object.is_some_and(|object| object.sequence == sequence) {
                        tx.delete(OBJECTS, key)?;
                        forget_unchanged(tx, (group, blob), &was)?;
                    }
                }
                Ok(())
            })?;
        }
        // Blobs that no key names any more.
        forgotten += crate::format::bytes(gone.len());
        for (blob, was) in gone {
            self.committer.commit_blocking(move |tx| forget_unchanged(tx, (group, blob), &was))?;
        }
        Ok(forgotten)
    }
}

/// Removes the row of a blob if it is unchanged.
fn forget_unchanged(
    tx: &mut Transaction<'_>,
    (group, blob): (GroupId, BlobId),
    was: &BlobRow,
) -> Result<()> {
    if row::get::<BlobRow>(tx, BLOBS, &blob_key(group, blob))?.as_ref() == Some(was) {
        forget_blob_row(tx, group, blob)?;
    }
    Ok(())
}
