//! Offline reads: what can be read without the set, from one tome alone or from the surviving
//! members of a group.
//!
//! ```text
//! block      one tome: as it was written, or rebuilt from its segment
//! object     a whole object in the same way; its digest is checked
//! holding    a member's block at an offset, and the deltas that it knows of
//! recover    a lost member's block, from the holdings of the survivors
//! ```
//!
//! An unplugged tome can be read by itself (Pergamum (FAST 2008), section 1), for its index and
//! signatures are its own. When members are lost, parities may differ in the changes that they have
//! applied. Each change that any survivor still knows is first applied where it is missing; then
//! all agree, and the code recovers the block. Not here: disks; the caller reads physical blocks.

use std::collections::BTreeMap;

use fulgurite_codes::small::SmallCode;
use fulgurite_codes::{sector_checksum, signature};

use crate::consistency::AppliedSummary;
use crate::metadata::{Region, Role, TomeMetadata};
use crate::segment::SegmentCode;
use crate::{
    CodeParams, GroupId, Layout, Member, Offset, PhysicalBlock, RegionId, Result, TomeError,
    Version,
};

/// Reads a physical block; `None` if it cannot be read.
pub type ReadPhysicalBlock<'a> = dyn FnMut(PhysicalBlock) -> Option<Vec<u8>> + 'a;

/// Reads a block of a region, rebuilt from its segment if it is bad.
///
/// # Errors
/// [`TomeError::SegmentLost`] when too much of the segment is bad.
pub fn block(
    layout: &Layout,
    region: &Region,
    offset: Offset,
    read: &mut ReadPhysicalBlock<'_>,
) -> Result<Vec<u8>> {
    let length = usize::try_from(layout.block_bytes()).unwrap_or(usize::MAX);
    let mut get = |offset| match region.physical_block(offset) {
        Some(physical_block) => read(physical_block).filter(|bytes| bytes.len() == length),
        None => Some(vec![0; length]),
    };
    let at = layout.in_segment(offset)?;
    let found = get(offset).filter(|bytes| signature(bytes) == region.tree().block(offset));
    if let Some(bytes) = found {
        return Ok(bytes);
    }
    let offsets: Vec<Offset> = layout.segment_offsets(at.segment).collect();
    let mut blocks: Vec<Option<Vec<u8>>> = offsets.iter().map(|offset| get(*offset)).collect();
    let signatures: Vec<_> = offsets.iter().map(|offset| region.tree().block(*offset)).collect();
    SegmentCode::new(layout.segment())?.rebuild(&mut blocks, &signatures)?;
    let bytes = blocks.swap_remove(at.position as usize);
    Ok(bytes.expect("a rebuilt segment has no missing block"))
}

/// Reads an object.
///
/// # Errors
/// [`TomeError::NoObject`]; as [`block`]; [`TomeError::DigestMismatch`] when the bytes do not
/// match.
pub fn object(
    metadata: &TomeMetadata,
    name: &str,
    read: &mut ReadPhysicalBlock<'_>,
) -> Result<Vec<u8>> {
    let no_object = || TomeError::NoObject { name: name.to_owned() };
    let object = metadata.object(name).ok_or_else(no_object)?;
    let mut bytes = Vec::new();
    for (index, offset) in &object.blocks {
        let id = RegionId { tome: metadata.id(), index: *index };
        let region = metadata.region(*index).ok_or(TomeError::NoRegion { region: id })?;
        bytes.extend(block(metadata.layout(), region, *offset, read)?);
    }
    bytes.truncate(usize::try_from(object.bytes).unwrap_or(usize::MAX));
    if sector_checksum(&bytes) == object.digest {
        return Ok(bytes);
    }
    Err(TomeError::DigestMismatch { name: name.to_owned() })
}

/// What one member knows of an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The member.
    pub member: Member,
    /// Its block.
    pub block: Vec<u8>,
    /// Changes at the offset whose bytes it knows, its own or those of data members.
    pub changes: BTreeMap<(Member, Version), Vec<u8>>,
    /// Changes that it has applied of each data member, if it holds parity.
    pub folded: Vec<AppliedSummary>,
}

/// Returns what a tome knows of an offset of a group.
///
/// # Errors
/// [`TomeError::NoGroup`] when it is not in the group; as [`block`].
pub fn holding(
    metadata: &TomeMetadata,
    group: GroupId,
    offset: Offset,
    read: &mut ReadPhysicalBlock<'_>,
) -> Result<Holding> {
    let (_, region) = metadata.region_of(group).ok_or(TomeError::NoGroup { group })?;
    let block = block(metadata.layout(), region, offset, read)?;
    let member = region.member();
    let mut changes = BTreeMap::new();
    let mut folded = Vec::new();
    match region.role() {
        Role::Data(pending) => {
            for (version, pending) in pending.iter().filter(|(_, p)| p.offset == offset) {
                let mut whole = |physical_block| {
                    read(physical_block).filter(|bytes| bytes.len() == block.len())
                };
                let old = pending.old.map_or_else(|| Some(vec![0; block.len()]), &mut whole);
                // The latest block was rebuilt from its segment if it was bad.
                let is_latest = region.physical_block(offset) == Some(pending.new);
                let new = if is_latest { Some(block.clone()) } else { whole(pending.new) };
                let bytes = new.zip(old).map(|(new, old)| xor(&new, &old));
                // A change that can no longer be computed is left out: parities may know it.
                if let Some(bytes) = bytes.filter(|bytes| signature(bytes) == pending.change) {
                    changes.insert((member, version), bytes);
                }
            }
        }
        Role::Parity { applied, .. } => {
            folded = applied.iter().map(crate::applied_changes::AppliedChanges::summary).collect();
            let here = region.known().filter(|(_, _, stored)| stored.change.offset == offset);
            changes.extend(here.map(|(of, version, stored)| ((of, version), stored.bytes.clone())));
        }
    }
    Ok(Holding { member, block, changes, folded })
}

/// Recovers the block of a lost member at the offset of these holdings.
///
/// # Errors
/// [`TomeError::GroupLost`] when too few are left.
pub fn recover(
    group: GroupId,
    split: CodeParams,
    target: Member,
    holdings: &[Holding],
) -> Result<Vec<u8>> {
    let (have, need) = (holdings.len(), split.data() as usize);
    if have < need {
        return Err(TomeError::GroupLost { group, have, need });
    }
    let code = SegmentCode::new(split)?;
    let known: BTreeMap<(Member, Version), &Vec<u8>> =
        holdings.iter().flat_map(|held| &held.changes).map(|(key, bytes)| (*key, bytes)).collect();
    let mut blocks = Vec::with_capacity(have);
    for held in holdings {
        blocks.push((held.member.as_usize(), complete(&code, held, &known)?));
    }
    let given: Vec<(usize, &[u8])> =
        blocks.iter().map(|(member, bytes)| (*member, bytes.as_slice())).collect();
    let mut made = vec![0; blocks.first().map_or(0, |(_, bytes)| bytes.len())];
    let small = SmallCode::new(need, split.parity() as usize)?;
    small.reconstruct(&given, &mut [(target.as_usize(), &mut made)])?;
    Ok(made)
}

/// Recovers the block of a member as of the changes that it has applied: a parity may lack changes
/// that others know, and its own signature does not include them.
///
/// # Errors
/// As [`recover`].
pub fn recover_as(
    group: GroupId,
    split: CodeParams,
    target: Member,
    folded: &[AppliedSummary],
    holdings: &[Holding],
) -> Result<Vec<u8>> {
    let mut made = recover(group, split, target, holdings)?;
    let data = split.data() as usize;
    let Some(parity) = target.as_usize().checked_sub(data) else { return Ok(made) };
    let code = SegmentCode::new(split)?;
    let known: BTreeMap<_, _> = holdings.iter().flat_map(|held| &held.changes).collect();
    for ((member, version), bytes) in known {
        if !folded.get(member.as_usize()).is_some_and(|folded| folded.has(*version)) {
            made = xor(&made, &code.scaled(parity, member.as_usize(), bytes)?);
        }
    }
    Ok(made)
}

/// Returns a member's block with every known change applied that it lacks.
fn complete(
    code: &SegmentCode,
    held: &Holding,
    known: &BTreeMap<(Member, Version), &Vec<u8>>,
) -> Result<Vec<u8>> {
    let mut block = held.block.clone();
    let data = code.split().data() as usize;
    let Some(parity) = held.member.as_usize().checked_sub(data) else { return Ok(block) };
    for ((member, version), bytes) in known {
        if !held.folded.get(member.as_usize()).is_some_and(|folded| folded.has(*version)) {
            block = xor(&block, &code.scaled(parity, member.as_usize(), bytes)?);
        }
    }
    Ok(block)
}

/// XORs two blocks of equal length.
pub(crate) fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    assert_eq!(a.len(), b.len(), "blocks of one layout");
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}
