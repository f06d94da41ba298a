//! Garbage collection of a group that spins anyway: removes stacks of blobs that were deleted or
//! overwritten, and of interrupted writes. Suspended while the index is known to be an older copy,
//! because it may list stacks as unwanted that are needed since.
//!
//! Only stacks that the index lists as unwanted are removed. An unknown stack stays, as it may
//! belong to an index that was lost. A blob that was being written when the rack was opened also
//! stays if it is complete: if the index is an older copy, the blob was acknowledged later. It
//! stays until its key names a newer one, or [`find`](super::find()) adds it.

use std::collections::BTreeSet;

use fulgurite_disks::PlaceId;

use super::on_disk::From;
use super::{Group, Shop, disk_name};
use crate::Result;
use crate::format::Header;
use crate::index::{Object, Unwanted};
use crate::limits::{INDEX_PAGE_MAX, SWEEP_ROWS_MAX};
use crate::stack::{StackReader, file_name, new_name};

/// Result of a garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Stacks that were removed.
    pub stacks: u64,
    /// Blobs, or attempts to write one, without unwanted stacks left.
    pub blobs: u64,
    /// Blobs that are complete but were never acknowledged: they stay.
    pub whole: u64,
}

/// Garbage-collects a group. Stacks on disks that cannot be used are kept for later; those on disks
/// that were given up are forgotten.
///
/// # Errors
/// Those of the index.
pub fn sweep(shop: &Shop, group: &Group) -> Result<Swept> {
    let mut swept = Swept::default();
    if shop.starts.is_index_older() {
        return Ok(swept);
    }
    let mut touched = BTreeSet::new();
    let mut done = Vec::new();
    let mut last: Option<Unwanted> = None;
    while done.len() < SWEEP_ROWS_MAX {
        let page = shop.index.unwanted(group.id, last.as_ref())?;
        last = page.last().cloned();
        let is_last = page.len() < INDEX_PAGE_MAX;
        for mut unwanted in page {
            let before = unwanted.stacks.len();
            sweep_one(shop, group, &mut unwanted, &mut swept, &mut touched)?;
            swept.blobs += u64::from(unwanted.stacks.is_empty());
            if unwanted.stacks.len() < before {
                done.push(unwanted);
            }
            shop.fail.pass("rack-swept-half");
        }
        if is_last {
            break;
        }
    }
    // Syncs the removals first: a power cut could bring back a file that no row lists.
    let failed: BTreeSet<PlaceId> = touched
        .into_iter()
        .filter(|&place| {
            let synced = shop.sync_names(place);
            if let Err(fault) = &synced {
                tracing::warn!(%place, "{}: a sweep is not over: {fault}", disk_name(place));
            }
            synced.is_err()
        })
        .collect();
    if failed.is_empty() && !done.is_empty() {
        shop.index.swept(done)?;
    }
    shop.fail.pass("rack-swept");
    Ok(swept)
}

/// Removes the stacks of one row where possible, and leaves the rest in it.
fn sweep_one(
    shop: &Shop,
    group: &Group,
    unwanted: &mut Unwanted,
    swept: &mut Swept,
    touched: &mut BTreeSet<PlaceId>,
) -> Result<()> {
    if is_whole(shop, group, unwanted)? {
        swept.whole += 1;
        return Ok(());
    }
    let row = shop.index.blob(group.id, unwanted.blob)?;
    unwanted.stacks.retain(|&(index, place)| {
        if shop.places.is_given_up(place) {
            return false;
        }
        if !group.usable.contains(&place) {
            return true;
        }
        touched.insert(place);
        let name = file_name(unwanted.blob, index);
        // A rebuilt stack that was never renamed over the old one.
        if shop.remove(place, &new_name(&name)).is_err() {
            return true;
        }
        let at = row.as_ref().and_then(|row| row.places.get(usize::from(index)).copied().flatten());
        if at == Some(place.get()) {
            return false;
        }
        let is_gone = shop.remove(place, &name).is_ok();
        swept.stacks += u64::from(is_gone);
        !is_gone
    });
    Ok(())
}

/// Whether the row belongs to a blob that was never acknowledged, according to the index, but is
/// complete and not overwritten since.
fn is_whole(shop: &Shop, group: &Group, unwanted: &Unwanted) -> Result<bool> {
    let is_later = |key: &str| -> Result<bool> {
        let row = shop.index.object(key)?;
        Ok(row.is_some_and(|row| row.sequence > unwanted.sequence))
    };
    if let Some(key) = shop.whole.lock().get(&unwanted.blob) {
        return Ok(!is_later(key)?);
    }
    let mut have = BTreeSet::new();
    let mut entry = None;
    for &(index, place) in &unwanted.stacks {
        if !group.usable.contains(&place) {
            continue;
        }
        let name = file_name(unwanted.blob, index);
        let Ok(source) = shop.open(place, &name, From::Memory) else { continue };
        let Ok(stack) = StackReader::open(source) else { continue };
        let Header { rack, blob, index: found, coding, .. } = *stack.header();
        // The sequences differ if the blob was deleted, overwritten or rebuilt, since that came
        // later.
        let is_it = (rack, blob, found) == (shop.rack, unwanted.blob, index);
        if is_it && stack.trailer().sequence == unwanted.sequence {
            have.insert(index);
            entry = Some((coding, stack.header().entry.clone()));
        }
    }
    let Some((coding, entry)) = entry else { return Ok(false) };
    let object: Result<Object, _> = serde_json::from_slice(&entry);
    let is_enough = have.len() >= usize::from(coding.information());
    let Some(object) = object.ok().filter(|_| is_enough) else { return Ok(false) };
    if shop.index.blob(group.id, unwanted.blob)?.is_some() || is_later(&object.key)? {
        return Ok(false);
    }
    tracing::warn!(
        blob = %unwanted.blob, group = %group.id, key = object.key,
        "a blob is whole, and the index knows of no success: it stays. If the index is an older \
         copy, look through the disks for what it lacks (recover)"
    );
    shop.whole.lock().insert(unwanted.blob, object.key);
    Ok(true)
}
