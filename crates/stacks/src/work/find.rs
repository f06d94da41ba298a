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

use super::on_disk::{From, fault};
use super::{Group, STACKS, Shop, disk_name};
use crate::format::{Coding, Trailer};
use crate::index::{BlobRow, Object, Whole};
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
struct Heard {
    coding: Coding,
    trailer: Trailer,
    entry: Vec<u8>,
    places: BTreeMap<u8, PlaceId>,
    /// Duplicates of these stacks on other disks, for example on a disk that was given up after the
    /// index was copied.
    spare: Vec<(u8, PlaceId)>,
}

impl Heard {
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
pub fn find(shop: &Shop, group: &Group) -> Result<Found> {
    let mut found = Found::default();
    let mut heard: BTreeMap<BlobId, Heard> = BTreeMap::new();
    let is_older = shop.starts.is_index_older();
    // Read before the disks: a blob put meanwhile reaches the disks before the index.
    let known = if is_older { known(shop, group)? } else { BTreeMap::new() };
    let mut named = BTreeSet::new();
    for &place in &group.usable {
        for name in names(shop, place, &mut found.problems) {
            let Some((blob, index)) = parse_file_name(&name) else { continue };
            if is_older {
                named.insert(blob);
            }
            let opened = shop.open(place, &name, From::Memory).and_then(StackReader::open);
            if let Err(what) = hear(shop, &mut heard, (blob, index, place), opened) {
                found.problems.push(format!("{name} on {}: {what}", disk_name(place)));
            }
        }
    }
    if is_older {
        correct(shop, group, &known, &mut heard)?;
        // Only if every disk was searched, except those that were given up.
        let is_looked_at = found.problems.is_empty() && group.asleep.is_empty();
        if is_looked_at && shop.all_are_usable(group) {
            let gone = known.into_iter().filter(|(blob, _)| !named.contains(blob)).collect();
            found.gone = shop.index.forget_gone(group.id, gone)?;
        }
    }
    for (blob, heard) in heard {
        take_up(shop, group, blob, heard, &mut found)?;
    }
    Ok(found)
}

/// Returns the blobs of a group in the index.
fn known(shop: &Shop, group: &Group) -> Result<BTreeMap<BlobId, BlobRow>> {
    let mut known = BTreeMap::new();
    loop {
        let after = known.last_key_value().map(|(blob, _)| *blob);
        let page = shop.index.blobs(group.id, after)?;
        if page.is_empty() {
            return Ok(known);
        }
        known.extend(page);
    }
}

/// Corrects the rows of a group's blobs in an older copy of the index from what the disks say.
fn correct(
    shop: &Shop,
    group: &Group,
    known: &BTreeMap<BlobId, BlobRow>,
    heard: &mut BTreeMap<BlobId, Heard>,
) -> Result<()> {
    for (blob, row) in known {
        let Some(heard) = heard.get_mut(blob) else { continue };
        heard.prefer(row);
        // A stack on a disk that was not searched may still be where it was.
        let is_left = |at: &u32| !group.usable.contains(&PlaceId::new(*at));
        let places = (0..).zip(&row.places).map(|(index, at)| match heard.places.get(&index) {
            Some(place) => Some(place.get()),
            None => at.filter(is_left),
        });
        let corrected = BlobRow { places: places.collect(), ..row.clone() };
        if corrected.sequence == heard.trailer.sequence && corrected != *row {
            shop.index.correct((group.id, *blob), row.clone(), corrected)?;
        }
    }
    Ok(())
}

fn names(shop: &Shop, place: PlaceId, problems: &mut Vec<String>) -> Vec<String> {
    let listed = shop.guard.enter(place).and_then(|lease| lease.list(STACKS));
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

fn hear<R: crate::stack::ReadAt>(
    shop: &Shop,
    heard: &mut BTreeMap<BlobId, Heard>,
    (blob, index, place): (BlobId, u8, PlaceId),
    opened: Result<StackReader<R>, Fault>,
) -> Result<(), Fault> {
    let stranger = |what: String| Err(Fault::Stranger { what });
    let stack = opened?;
    let header = stack.header();
    if header.rack != shop.rack {
        return stranger(format!("a stack of rack {}", header.rack));
    }
    if (header.blob, header.index) != (blob, index) {
        return stranger(format!("stack {} of blob {}", header.index, header.blob));
    }
    let heard = heard.entry(blob).or_insert_with(|| Heard {
        coding: header.coding,
        trailer: *stack.trailer(),
        entry: header.entry.clone(),
        places: BTreeMap::new(),
        spare: Vec::new(),
    });
    let trailer = Trailer { index: heard.trailer.index, ..*stack.trailer() };
    if heard.trailer != trailer || heard.coding != header.coding || heard.entry != header.entry {
        return stranger("a stack that says other things than the first of its blob".to_owned());
    }
    if shop.starts.is_index_older() && heard.places.contains_key(&index) {
        heard.spare.push((index, place));
        return Ok(());
    }
    if let Some(other) = heard.places.insert(index, place) {
        return stranger(format!("a second stack {index} of its blob, as on {}", disk_name(other)));
    }
    Ok(())
}

fn take_up(
    shop: &Shop,
    group: &Group,
    blob: BlobId,
    heard: Heard,
    found: &mut Found,
) -> Result<()> {
    let Heard { coding, trailer, entry, places, spare } = heard;
    let (have, need) = (places.len(), usize::from(coding.information()));
    if have < need {
        let name = group.name();
        found.problems.push(format!("blob {blob} of {name} has {have} stacks of {need}"));
        return Ok(());
    }
    let object: Object = match serde_json::from_slice(&entry) {
        Ok(object) => object,
        Err(error) => {
            let what = error_chain(&error);
            found.problems.push(format!("blob {blob} of {}: its entry: {what}", group.name()));
            return Ok(());
        }
    };
    if shop.index.blob(group.id, blob)?.is_some() {
        found.known += 1;
        return shop.index.spare(group.id, blob, spare);
    }
    let at = |index: u8| places.get(&index).map(|place| place.get());
    let row = BlobRow {
        sequence: trailer.sequence,
        length: trailer.length,
        sum: trailer.sum,
        information: coding.information(),
        places: (0..coding.stacks()).map(at).collect(),
    };
    match shop.index.found(object, Whole { blob, group: group.id, row })? {
        true => {
            found.blobs += 1;
            shop.index.spare(group.id, blob, spare)?;
            shop.fail.pass("rack-found");
        }
        false => found.known += 1,
    }
    Ok(())
}
