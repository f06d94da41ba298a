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

use super::on_disk::Origin;
use super::{DiskContext, Group, disk_name};
use crate::Result;
use crate::format::Header;
use crate::index::{Object, Unwanted};
use crate::limits::{GC_ROWS_MAX, INDEX_PAGE_MAX};
use crate::stack::{StackReader, file_name, new_name};

/// Result of a garbage collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Stacks that were removed.
    pub stacks: u64,
    /// Blobs, or attempts to write one, without unwanted stacks left.
    pub blobs: u64,
    /// Blobs that are complete but were never acknowledged: they stay.
    pub complete: u64,
}

/// Garbage-collects a group. Stacks on disks that cannot be used are kept for later; those on disks
/// that were given up are forgotten.
///
/// # Errors
/// Those of the index.
pub fn gc(ctx: &DiskContext, group: &Group) -> Result<GcReport> {
    let mut collected = GcReport::default();
    if ctx.starts.is_index_older() {
        return Ok(collected);
    }
    let mut touched = BTreeSet::new();
    let mut done = Vec::new();
    let mut last: Option<Unwanted> = None;
    while done.len() < GC_ROWS_MAX {
        let page = ctx.index.unwanted(group.id, last.as_ref())?;
        last = page.last().cloned();
        let is_last = page.len() < INDEX_PAGE_MAX;
        for mut unwanted in page {
            let before = unwanted.stacks.len();
            gc_row(ctx, group, &mut unwanted, &mut collected, &mut touched)?;
            collected.blobs += u64::from(unwanted.stacks.is_empty());
            if unwanted.stacks.len() < before {
                done.push(unwanted);
            }
            ctx.fail.pass("rack-swept-half");
        }
        if is_last {
            break;
        }
    }
    // Syncs the removals first: a power cut could bring back a file that no row lists.
    let failed: BTreeSet<PlaceId> = touched
        .into_iter()
        .filter(|&place| {
            let synced = ctx.sync_names(place);
            if let Err(fault) = &synced {
                tracing::warn!(%place, "{}: garbage left over: {fault}", disk_name(place));
            }
            synced.is_err()
        })
        .collect();
    if failed.is_empty() && !done.is_empty() {
        ctx.index.collected(done)?;
    }
    ctx.fail.pass("rack-swept");
    Ok(collected)
}

/// Removes the stacks of one row where possible, and leaves the rest in it.
fn gc_row(
    ctx: &DiskContext,
    group: &Group,
    unwanted: &mut Unwanted,
    collected: &mut GcReport,
    touched: &mut BTreeSet<PlaceId>,
) -> Result<()> {
    if is_complete(ctx, group, unwanted)? {
        collected.complete += 1;
        return Ok(());
    }
    let row = ctx.index.blob(group.id, unwanted.blob)?;
    unwanted.stacks.retain(|&(index, place)| {
        if ctx.places.is_given_up(place) {
            return false;
        }
        if !group.usable.contains(&place) {
            return true;
        }
        touched.insert(place);
        let name = file_name(unwanted.blob, index);
        // A rebuilt stack that was never renamed over the old one.
        if ctx.remove(place, &new_name(&name)).is_err() {
            return true;
        }
        let at = row.as_ref().and_then(|row| row.places.get(usize::from(index)).copied().flatten());
        if at == Some(place.get()) {
            return false;
        }
        let is_gone = ctx.remove(place, &name).is_ok();
        collected.stacks += u64::from(is_gone);
        !is_gone
    });
    Ok(())
}

/// Whether the row belongs to a blob that was never acknowledged, according to the index, but is
/// complete and not overwritten since.
fn is_complete(ctx: &DiskContext, group: &Group, unwanted: &Unwanted) -> Result<bool> {
    let is_later = |key: &str| -> Result<bool> {
        let row = ctx.index.object(key)?;
        Ok(row.is_some_and(|row| row.sequence > unwanted.sequence))
    };
    if let Some(key) = ctx.complete.lock().get(&unwanted.blob) {
        return Ok(!is_later(key)?);
    }
    let mut have = BTreeSet::new();
    let mut entry = None;
    for &(index, place) in &unwanted.stacks {
        if !group.usable.contains(&place) {
            continue;
        }
        let name = file_name(unwanted.blob, index);
        let Ok(source) = ctx.open(place, &name, Origin::Memory) else { continue };
        let Ok(stack) = StackReader::open(source) else { continue };
        let Header { rack, blob, index: found, coding, .. } = *stack.header();
        // The sequences differ if the blob was deleted, overwritten or rebuilt, since that came
        // later.
        let is_it = (rack, blob, found) == (ctx.rack, unwanted.blob, index);
        if is_it && stack.trailer().sequence == unwanted.sequence {
            have.insert(index);
            entry = Some((coding, stack.header().entry.clone()));
        }
    }
    let Some((coding, entry)) = entry else { return Ok(false) };
    let object: Result<Object, _> = serde_json::from_slice(&entry);
    let is_enough = have.len() >= usize::from(coding.information());
    let Some(object) = object.ok().filter(|_| is_enough) else { return Ok(false) };
    if ctx.index.blob(group.id, unwanted.blob)?.is_some() || is_later(&object.key)? {
        return Ok(false);
    }
    tracing::warn!(
        blob = %unwanted.blob, group = %group.id, key = object.key,
        "a blob is complete but was never committed, so it stays. If the index is an older copy, \
         add the blob with `fulgurite tier recover NAME`"
    );
    ctx.complete.lock().insert(unwanted.blob, object.key);
    Ok(true)
}
