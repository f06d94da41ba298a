//! How often a rack was started: by that an older copy of its index, its ledger or a disk is known.
//!
//! ```text
//! the index     start = n                          ledger = n            disk 7 = n
//! the ledger                   start = n
//! disk 7                                                     start = n
//! ```
//!
//! In this order, each synced before the next. So the ledger and each disk say no less than the
//! index has of them and, before a start is counted in them, no more than the start before it. One
//! that says less is an older copy. One that says more has seen a start that the index has not:
//! then that is the copy. The end of a start is counted as well, of index and ledger. Not known so
//! is a copy that was made since the latest count.

use std::collections::BTreeMap;

use fulgurite_catalog::row::{self, rows_in};
use fulgurite_catalog::{KeyRange, Transaction};
use fulgurite_disks::{GroupId, PlaceId};
use fulgurite_units::BlobId;

use super::rows::{
    BLOBS, BlobRow, Content, OBJECTS, ObjectRow, RACK, STARTS, UNWANTED, UnwantedRow,
};
use super::{
    From, Index, blob_key, forget_blob_row, next_sequence, object_key, place_key, place_of,
    unwanted_key,
};
use crate::Result;

const START_KEY: &[u8] = b"start";
const LEDGER_KEY: &[u8] = b"ledger";
const OLDER_KEY: &[u8] = b"older";

impl Index {
    /// The latest start that it knows of, and the latest that the ledger has to know of.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn starts(&self) -> Result<(u64, u64)> {
        let read = |key: &[u8]| row::get::<u64>(&*self.store, RACK, key);
        Ok((read(START_KEY)?.unwrap_or(0), read(LEDGER_KEY)?.unwrap_or(0)))
    }

    /// The latest start that each disk has to know of.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn disk_starts(&self) -> Result<BTreeMap<PlaceId, u64>> {
        let rows = rows_in::<u64>(&*self.store, STARTS, &KeyRange::all(), usize::MAX)?;
        rows.into_iter().map(|(key, start)| Ok((place_of(&key)?, start))).collect()
    }

    /// Begins the next start, and says its number.
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

    /// The ledger knows of a start.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn note_ledger(&self, start: u64) -> Result<()> {
        self.committer
            .commit_blocking(move |tx| Ok(row::put(tx, RACK, LEDGER_KEY.to_vec(), &start)?))
    }

    /// A disk knows of a start.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn note_disk(&self, place: PlaceId, start: u64) -> Result<()> {
        let key = place_key(place);
        self.committer.commit_blocking(move |tx| Ok(row::put(tx, STARTS, key, &start)?))
    }

    /// Something knows of a later start: this is an older copy, until all disks were looked
    /// through. Starts go on from `known`.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn note_older(&self, known: u64) -> Result<()> {
        self.committer.commit_blocking(move |tx| {
            let start = row::get::<u64>(tx, RACK, START_KEY)?.unwrap_or(0);
            row::put(tx, RACK, START_KEY.to_vec(), &start.max(known))?;
            Ok(row::put(tx, RACK, OLDER_KEY.to_vec(), &known)?)
        })
    }

    /// Whether it is an older copy whose disks were not looked through since.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn is_older(&self) -> Result<bool> {
        Ok(row::get::<u64>(&*self.store, RACK, OLDER_KEY)?.is_some())
    }

    /// What the disks have is in it again.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn note_recovered(&self) -> Result<()> {
        self.committer.commit_blocking(|tx| Ok(tx.delete(RACK, OLDER_KEY.to_vec())?))
    }

    /// The stacks of a blob are in other places than an older copy says, unless somebody moved them
    /// meanwhile.
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

    /// Disks have more of a blob's stacks than one of each: those beside are unwanted.
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

    /// Forgets blobs of a group that an older copy names and no disk has, with the keys that name
    /// them; those that changed meanwhile stay. Says how many it forgot.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn forget_gone(
        &self,
        group: GroupId,
        mut gone: BTreeMap<BlobId, BlobRow>,
    ) -> Result<u64> {
        let mut after = From::Start;
        let mut forgotten = 0;
        while !gone.is_empty() {
            let page = self.objects("", &after)?;
            let Some((last, _)) = page.last() else { break };
            after = From::After(last.clone());
            let mut named = Vec::new();
            for (key, row) in page {
                if let Content::Blob { group: of, blob } = row.content
                    && of == group.get()
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
                        forget_if(tx, (group, blob), &was)?;
                    }
                }
                Ok(())
            })?;
        }
        // Those that no key names any more.
        forgotten += crate::format::bytes(gone.len());
        for (blob, was) in gone {
            self.committer.commit_blocking(move |tx| forget_if(tx, (group, blob), &was))?;
        }
        Ok(forgotten)
    }
}

/// Removes the row of a blob if it is still this one.
fn forget_if(
    tx: &mut Transaction<'_>,
    (group, blob): (GroupId, BlobId),
    was: &BlobRow,
) -> Result<()> {
    if row::get::<BlobRow>(tx, BLOBS, &blob_key(group, blob))?.as_ref() == Some(was) {
        forget_blob_row(tx, group, blob)?;
    }
    Ok(())
}
