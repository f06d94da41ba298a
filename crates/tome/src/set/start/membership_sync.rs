//! Updates a tome that is opened about its groups: its own member slots that it does not know of,
//! those that others took over while it was away, and those of others that moved.
//!
//! Not here: member slots that moved to a lost tome (`super::finished_moves`).

use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::metadata::{Object, Row, TomeMetadata};
use fulgurite_tome_core::{RegionId, TomeError};

use crate::FailPoints;
use crate::Result;
use crate::metadata_store::MetadataStore;

/// Returns the tome's state after committing its member slots.
///
/// # Errors
/// When they cannot be committed, or two groups have the same region.
pub(in crate::set) fn sync_membership(
    groups: &[Group],
    store: &MetadataStore,
    mut metadata: TomeMetadata,
    fail: &FailPoints,
) -> Result<TomeMetadata> {
    for rows in [
        superseded(groups, &metadata),
        missed_moves(groups, &metadata),
        new_slots(groups, &metadata)?,
    ] {
        if !rows.is_empty() {
            store.commit(&rows, fail)?;
            rows.iter().try_for_each(|row| metadata.apply(row))?;
        }
    }
    Ok(metadata)
}

/// Returns rows that free regions whose member slots others took over while the tome was away,
/// along with the objects.
fn superseded(groups: &[Group], metadata: &TomeMetadata) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, region) in metadata.regions() {
        let own = RegionId { tome: metadata.id(), index };
        let known = groups.iter().find(|group| group.id() == region.group().id());
        let is_other =
            |group: &&Group| group.epoch() > region.group().epoch() && group.member(own).is_none();
        if known.filter(is_other).is_none() {
            continue;
        }
        let of_region = |object: &Object| object.blocks.iter().any(|(region, _)| *region == index);
        let objects = metadata.objects().filter(|(_, object)| of_region(object));
        rows.extend(objects.map(|(name, _)| Row::Removed { name: name.to_owned() }));
        rows.push(Row::Dropped { region: index });
    }
    rows
}

/// Returns rows for member slots that a tome does not know of yet.
fn new_slots(groups: &[Group], metadata: &TomeMetadata) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for group in groups {
        for slot in group.slots().iter().filter(|slot| slot.tome == metadata.id()) {
            match metadata.region(slot.index) {
                // Tomes notify each other of moved member slots.
                Some(region) if region.group().id() == group.id() => {}
                Some(_) => return Err(TomeError::ClaimedTwice { region: *slot }.into()),
                None => rows.push(Row::MemberSlot { region: slot.index, group: group.clone() }),
            }
        }
    }
    Ok(rows)
}

/// Returns rows for groups in which another member slot moved without the tome's knowledge: the
/// tome that was to send it may be lost.
fn missed_moves(groups: &[Group], metadata: &TomeMetadata) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, region) in metadata.regions() {
        let own = RegionId { tome: metadata.id(), index };
        let is_later = |group: &&Group| {
            group.id() == region.group().id()
                && group.epoch() > region.group().epoch()
                && group.member(own).is_some()
        };
        let holds_slot = region.is_member() || region.frozen().is_some();
        if let Some(group) = groups.iter().find(is_later).filter(|_| holds_slot) {
            rows.push(Row::Regroup { region: index, group: group.clone() });
        }
    }
    rows
}
