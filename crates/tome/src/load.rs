//! Loads a metadata store: its rows become the state from which the core makes the same
//! [`TomeMetadata`].
//!
//! Everything read from the store is checked against the layout before the core sees it, so that
//! damage is an error and does not end the process. Not here: what is written ([`crate::rows`]).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use fulgurite_catalog::keys::KeyReader;
use fulgurite_catalog::row::{self, rows_in};
use fulgurite_catalog::{Direction, KeyRange, ReadView, Space};
use fulgurite_codes::{Signature, signature};
use fulgurite_tome_core::consistency::Change;
use fulgurite_tome_core::limits::PENDING_MAX;
use fulgurite_tome_core::metadata::{Region, Role, Row, TomeMetadata};
use fulgurite_tome_core::pending::PendingList;
use fulgurite_tome_core::{Layout, Member, Offset, PhysicalBlock, RegionIndex, TomeId, Version};

use crate::metadata_store::Slot;
use crate::rows::{
    BLOCKS, BlockRow, DELTAS, DeltaRow, FLOORS, FloorRow, MEMBER_SLOTS, MEMBERSHIPS, MemberSlotRow,
    MembershipRow, OBJECTS, ObjectRow, PENDING, PendingRow, SCRUB, SCRUB_KEY, ScrubRow, region_key,
};
use crate::{Result, TomesError};

/// Reads the bytes of a delta.
pub(crate) type ReadSlot<'a> = dyn Fn(Slot) -> Result<Vec<u8>> + 'a;

/// Loads the state of a tome.
///
/// # Errors
/// [`TomesError::TomeMetadata`] when the rows do not fit the layout or each other.
pub(crate) fn metadata(
    view: &dyn ReadView,
    read: &ReadSlot<'_>,
    tome: TomeId,
    layout: Layout,
) -> Result<TomeMetadata> {
    let loaded = load(view, read, tome, layout);
    // The core rejects only rows that it did not write.
    if let Err(TomesError::Tome(error)) = loaded {
        return Err(damaged(tome, error.to_string()));
    }
    loaded
}

fn load(
    view: &dyn ReadView,
    read: &ReadSlot<'_>,
    tome: TomeId,
    layout: Layout,
) -> Result<TomeMetadata> {
    let mut metadata = TomeMetadata::new(tome, layout);
    each(view, MEMBER_SLOTS, |key, MemberSlotRow(group)| {
        let region = RegionIndex::new(key.u32()?);
        check_below(tome, "region", region.get(), layout.parts().regions)?;
        match row::get::<MembershipRow>(view, MEMBERSHIPS, &region_key(region).finish())? {
            Some(standing) => Ok(metadata.restore(region, standing.membership(group))?),
            None => Ok(metadata.apply(&Row::MemberSlot { region, group })?),
        }
    })?;
    each(view, BLOCKS, |key, BlockRow { physical_block, version, signature }| {
        let (region, offset) = (RegionIndex::new(key.u32()?), Offset::new(key.u32()?));
        check_below(tome, "offset", offset.get(), layout.region_blocks())?;
        check_physical_block(tome, physical_block, &layout)?;
        let change = Signature(signature);
        Ok(metadata.apply(&Row::Block { region, offset, physical_block, version, change })?)
    })?;
    each(view, FLOORS, |key, FloorRow(floor)| {
        let (region, member) = (RegionIndex::new(key.u32()?), Member::new(key.u8()?));
        check_data_member(&metadata, region, member)?;
        Ok(metadata.apply(&Row::Floor { region, member, floor })?)
    })?;
    each(view, DELTAS, |key, DeltaRow { change, is_folded, slot }| {
        let (region, member) = (RegionIndex::new(key.u32()?), Member::new(key.u8()?));
        let version = change.version;
        check_data_member(&metadata, region, member)?;
        check_below(tome, "offset", change.offset.get(), layout.region_blocks())?;
        let bytes = match slot {
            Some(slot) => delta(tome, read(slot)?, &change)?,
            None => Vec::new(),
        };
        // Bytes of an applied delta may be missing after a metadata store was rebuilt.
        let is_whole = bytes.len() as u64 == layout.block_bytes() || is_folded && bytes.is_empty();
        if !is_whole || key.u32()? != version.get() {
            return Err(damaged(
                tome,
                format!("a delta of region {region} has a wrong length or key"),
            ));
        }
        metadata.apply(&Row::Stored { region, member, change, bytes })?;
        if is_folded {
            metadata.apply(&Row::Folded { region, member, version })?;
        }
        Ok(())
    })?;
    each(view, PENDING, |key, PendingRow(pending)| {
        let (region, version) = (RegionIndex::new(key.u32()?), Version::new(key.u32()?));
        check_below(tome, "offset", pending.offset.get(), layout.region_blocks())?;
        for physical_block in pending.old.into_iter().chain([pending.new]) {
            check_physical_block(tome, physical_block, &layout)?;
        }
        Ok(metadata.apply(&Row::Pending { region, version, pending })?)
    })?;
    each(view, OBJECTS, |key, ObjectRow(object)| {
        let name = key.string()?;
        Ok(metadata.apply(&Row::Object { name, object })?)
    })?;
    if let Some(ScrubRow(scrubbed)) = row::get(view, SCRUB, SCRUB_KEY)? {
        metadata.apply(&Row::Scrubbed(scrubbed))?;
    }
    check_consistency(&metadata)?;
    Ok(metadata)
}

/// Loads the changes of one region that parities lack.
///
/// # Errors
/// When a row is invalid.
pub(crate) fn pending(view: &dyn ReadView, region: RegionIndex) -> Result<PendingList> {
    let range = KeyRange::prefix(&region_key(region).finish());
    let mut list = PendingList::default();
    for (key, PendingRow(pending)) in rows_in(view, PENDING, &range, PENDING_MAX)? {
        let mut key = KeyReader::new(&key);
        key.u32()?;
        list.push(Version::new(key.u32()?), pending)?;
    }
    Ok(list)
}

/// Returns the bytes of a change, if they match its signature.
fn delta(tome: TomeId, bytes: Vec<u8>, change: &Change) -> Result<Vec<u8>> {
    if signature(&bytes) == change.signature {
        return Ok(bytes);
    }
    Err(damaged(tome, format!("the bytes of change {} do not match its signature", change.version)))
}

/// Returns the slots that rows of deltas refer to, each once.
///
/// # Errors
/// When two refer to the same one, or a row is invalid.
pub(crate) fn slots(view: &dyn ReadView, tome: TomeId) -> Result<BTreeSet<Slot>> {
    let mut slots = BTreeSet::new();
    each(view, DELTAS, |key, row: DeltaRow| {
        key.u32()?;
        key.u8()?;
        key.u32()?;
        match row.slot {
            Some(slot) if !slots.insert(slot) => {
                Err(damaged(tome, format!("two deltas are in slot {slot}")))
            }
            Some(_) | None => Ok(()),
        }
    })?;
    Ok(slots)
}

/// Returns the error for a metadata store with inconsistent rows.
pub(crate) fn damaged(tome: TomeId, what: String) -> TomesError {
    TomesError::TomeMetadata { tome, what }
}

/// Calls back with every row of a space; the error names the one that failed.
fn each<T: row::Row>(
    view: &dyn ReadView,
    space: Space,
    mut visit: impl FnMut(&mut KeyReader<'_>, T) -> Result<()>,
) -> Result<()> {
    let mut result = Ok(());
    view.scan(space, &KeyRange::all(), Direction::Ascending, &mut |key, value| {
        let mut key = KeyReader::new(key);
        let row = row::decode(space, value).map_err(TomesError::from);
        result = row.and_then(|row| visit(&mut key, row)).and_then(|()| Ok(key.finish()?));
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result
}

fn check_below(tome: TomeId, what: &str, number: u32, count: u32) -> Result<()> {
    if number < count {
        return Ok(());
    }
    Err(damaged(tome, format!("{what} {number} is not below {count}")))
}

fn check_physical_block(
    tome: TomeId,
    physical_block: PhysicalBlock,
    layout: &Layout,
) -> Result<()> {
    if u64::from(physical_block.get()) < layout.physical_blocks() {
        return Ok(());
    }
    Err(damaged(
        tome,
        format!("physical block {physical_block} is not below {}", layout.physical_blocks()),
    ))
}

/// Checks that a region has parity, and that the member has data.
fn check_data_member(metadata: &TomeMetadata, index: RegionIndex, member: Member) -> Result<()> {
    let region = metadata.region(index);
    let fits = |region: &Region| match region.role() {
        Role::Parity { applied, .. } => member.as_usize() < applied.len(),
        Role::Data(_) => false,
    };
    if region.is_some_and(fits) {
        return Ok(());
    }
    let what = format!("region {index} cannot have deltas of member {member} of its group");
    Err(damaged(metadata.id(), what))
}

/// Checks the rows against each other: no two blocks share a physical block, and none belongs to
/// two objects.
fn check_consistency(metadata: &TomeMetadata) -> Result<()> {
    let layout = metadata.layout();
    let mut physical_blocks =
        vec![false; usize::try_from(layout.physical_blocks()).unwrap_or(usize::MAX)];
    for (index, region) in metadata.regions() {
        let pending = region.pending().into_iter().flat_map(PendingList::iter);
        let kept = pending.flat_map(|(_, pending)| pending.old.into_iter().chain([pending.new]));
        let own: BTreeSet<PhysicalBlock> = region.physical_blocks().chain(kept).collect();
        for physical_block in own {
            if std::mem::replace(&mut physical_blocks[physical_block.get() as usize], true) {
                let what = format!(
                    "physical block {physical_block} of region {index} belongs to another one too"
                );
                return Err(damaged(metadata.id(), what));
            }
        }
        check_distinct(metadata.id(), index, region)?;
    }
    let mut used = BTreeSet::new();
    for (name, object) in metadata.objects() {
        for at in &object.blocks {
            let is_there = at.1.get() < layout.region_blocks() && metadata.region(at.0).is_some();
            if !is_there || !used.insert(*at) {
                let what =
                    format!("block {} of region {} cannot belong to object {name:?}", at.1, at.0);
                return Err(damaged(metadata.id(), what));
            }
        }
    }
    Ok(())
}

fn check_distinct(tome: TomeId, index: RegionIndex, region: &Region) -> Result<()> {
    let own: BTreeSet<PhysicalBlock> = region.physical_blocks().collect();
    if own.len() == region.physical_blocks().count() {
        return Ok(());
    }
    Err(damaged(tome, format!("two blocks of region {index} share a physical block")))
}
