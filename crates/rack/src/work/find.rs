//! Searches the disks of a group for the content of a lost index.
//!
//! Each stack holds its blob id, index, key and sequence, so a blob with enough stacks can be
//! recovered. One with fewer is reported and left as it is. Deleted blobs that were not
//! garbage-collected yet come back, because only the index knew of the deletion. If the index is an
//! older copy, stacks are where the disks say, and a blob on no disk is gone: it was deleted, or
//! its key was overwritten.

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_disks::PlaceId;
use fulgurite_units::{BlobId, error_chain};

use super::on_disk::{Origin, fault};
use super::{DiskContext, Group, STACKS, disk_name};
use crate::format::{Coding, Trailer};
use crate::index::{BlobRow, Object, PendingBlob};
use crate::stack::{StackReader, parse_file_name};
use crate::{Fault, Result};

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Found {
    /// Blobs added to the index.
    pub blobs: u64,
    /// Blobs that the index had, or whose key names a newer one.
    pub known: u64,
    /// Blobs that an older copy of the index had but no disk has. They were deleted or overwritten
    /// since, and are removed from the index.
    #[serde(default)]
    pub gone: u64,
    /// Descriptions of what could not be used.
    pub problems: Vec<String>,
}

/// What the stacks of one blob say about it.
struct BlobClaims {
    coding: Coding,
    trailer: Trailer,
    entry: Vec<u8>,
    places: BTreeMap<u8, PlaceId>,
    /// Duplicates of these stacks on other disks, for example on a disk that was given up after the
    /// index was copied.
    spare: Vec<(u8, PlaceId)>,
}

impl BlobClaims {
    /// Prefers the stacks that a row names over their duplicates.
    fn prefer(&mut self, row: &BlobRow) {
        for (index, place) in &mut self.spare {
            let known = row.places.get(usize::from(*index)).copied().flatten();
            if known == Some(place.get())
                && let Some(found) = self.places.get_mut(index)
            {
                std::mem::swap(found, place);
            }
        }
    }
}

/// Searches the disks of a group, and adds to the index what is missing in it.
///
/// # Errors
/// Those of the index. Failures of disks and stacks are in `problems`.
pub fn find(ctx: &DiskContext, group: &Group) -> Result<Found> {
    let mut found = Found::default();
    let mut claims: BTreeMap<BlobId, BlobClaims> = BTreeMap::new();
    let is_older = ctx.starts.is_index_older();
    // Read before the disks: a blob put meanwhile reaches the disks before the index.
    let known = if is_older { known(ctx, group)? } else { BTreeMap::new() };
    let mut named = BTreeSet::new();
    for &place in &group.usable {
        for name in names(ctx, place, &mut found.problems) {
            let Some((blob, index)) = parse_file_name(&name) else { continue };
            if is_older {
                named.insert(blob);
            }
            let opened = ctx.open(place, &name, Origin::Memory).and_then(StackReader::open);
            if let Err(detail) = add_claim(ctx, &mut claims, (blob, index, place), opened) {
                found.problems.push(format!("{name} on {}: {detail}", disk_name(place)));
            }
        }
    }
    if is_older {
        correct(ctx, group, &known, &mut claims)?;
        // Only if every disk was searched, except those that were given up.
        let is_searched = found.problems.is_empty() && group.asleep.is_empty();
        if is_searched && ctx.all_are_usable(group) {
            let gone = known.into_iter().filter(|(blob, _)| !named.contains(blob)).collect();
            found.gone = ctx.index.forget_gone(group.id, gone)?;
        }
    }
    for (blob, claims) in claims {
        recover_blob(ctx, group, blob, claims, &mut found)?;
    }
    Ok(found)
}

/// Returns the blobs of a group in the index.
fn known(ctx: &DiskContext, group: &Group) -> Result<BTreeMap<BlobId, BlobRow>> {
    let mut known = BTreeMap::new();
    loop {
        let after = known.last_key_value().map(|(blob, _)| *blob);
        let page = ctx.index.blobs(group.id, after)?;
        if page.is_empty() {
            return Ok(known);
        }
        known.extend(page);
    }
}

/// Corrects the rows of a group's blobs in an older copy of the index from what the disks say.
fn correct(
    ctx: &DiskContext,
    group: &Group,
    known: &BTreeMap<BlobId, BlobRow>,
    claims: &mut BTreeMap<BlobId, BlobClaims>,
) -> Result<()> {
    for (blob, row) in known {
        let Some(claims) = claims.get_mut(blob) else { continue };
        claims.prefer(row);
        // A stack on a disk that was not searched may still be where it was.
        let is_left = |at: &u32| !group.usable.contains(&PlaceId::new(*at));
        let places = (0..).zip(&row.places).map(|(index, at)| match claims.places.get(&index) {
            Some(place) => Some(place.get()),
            None => at.filter(is_left),
        });
        let corrected = BlobRow { places: places.collect(), ..row.clone() };
        if corrected.sequence == claims.trailer.sequence && corrected != *row {
            ctx.index.correct((group.id, *blob), row.clone(), corrected)?;
        }
    }
    Ok(())
}

fn names(ctx: &DiskContext, place: PlaceId, problems: &mut Vec<String>) -> Vec<String> {
    let listed = ctx.guard.acquire(place).and_then(|lease| lease.list(STACKS));
    let entries = match listed {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(format!("{}: {}", disk_name(place), error_chain(&error)));
            return Vec::new();
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => names.extend(entry.name.into_string().ok()),
            Err(error) => problems.push(format!("{}: {}", disk_name(place), fault(&error))),
        }
    }
    names
}

fn add_claim<R: crate::stack::ReadAt>(
    ctx: &DiskContext,
    claims: &mut BTreeMap<BlobId, BlobClaims>,
    (blob, index, place): (BlobId, u8, PlaceId),
    opened: Result<StackReader<R>, Fault>,
) -> Result<(), Fault> {
    let mismatch = |detail: String| Err(Fault::Mismatch { detail });
    let stack = opened?;
    let header = stack.header();
    if header.rack != ctx.rack {
        return mismatch(format!("a stack of rack {}", header.rack));
    }
    if (header.blob, header.index) != (blob, index) {
        return mismatch(format!("stack {} of blob {}", header.index, header.blob));
    }
    let claims = claims.entry(blob).or_insert_with(|| BlobClaims {
        coding: header.coding,
        trailer: *stack.trailer(),
        entry: header.entry.clone(),
        places: BTreeMap::new(),
        spare: Vec::new(),
    });
    let trailer = Trailer { index: claims.trailer.index, ..*stack.trailer() };
    if claims.trailer != trailer || claims.coding != header.coding || claims.entry != header.entry {
        return mismatch("a stack that contradicts the first stack of its blob".to_owned());
    }
    if ctx.starts.is_index_older() && claims.places.contains_key(&index) {
        claims.spare.push((index, place));
        return Ok(());
    }
    if let Some(other) = claims.places.insert(index, place) {
        return mismatch(format!("a second stack {index} of its blob, as on {}", disk_name(other)));
    }
    Ok(())
}

fn recover_blob(
    ctx: &DiskContext,
    group: &Group,
    blob: BlobId,
    claims: BlobClaims,
    found: &mut Found,
) -> Result<()> {
    let BlobClaims { coding, trailer, entry, places, spare } = claims;
    let (have, need) = (places.len(), usize::from(coding.information()));
    if have < need {
        let name = group.name();
        found.problems.push(format!("blob {blob} of {name} has {have} stacks of {need}"));
        return Ok(());
    }
    let object: Object = match serde_json::from_slice(&entry) {
        Ok(object) => object,
        Err(error) => {
            let detail = error_chain(&error);
            found.problems.push(format!("blob {blob} of {}: its entry: {detail}", group.name()));
            return Ok(());
        }
    };
    if ctx.index.blob(group.id, blob)?.is_some() {
        found.known += 1;
        return ctx.index.spare(group.id, blob, spare);
    }
    let at = |index: u8| places.get(&index).map(|place| place.get());
    let row = BlobRow {
        sequence: trailer.sequence,
        length: trailer.length,
        sum: trailer.sum,
        information: coding.information(),
        places: (0..coding.stacks()).map(at).collect(),
    };
    match ctx.index.add_recovered(object, PendingBlob { blob, group: group.id, row })? {
        true => {
            found.blobs += 1;
            ctx.index.spare(group.id, blob, spare)?;
            ctx.fail.pass("rack-found");
        }
        false => found.known += 1,
    }
    Ok(())
}
