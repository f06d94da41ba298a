//! Rebuilds a lost metadata store from the disk and from what others know.
//!
//! ```text
//! signature of each block   as parities know it, from the codeword of its
//!                           group, with each change that any of them knows;
//!                           or what an object was recorded with that no parity has yet
//! place of each block       where the disk has a block of that offset with that signature
//! pending changes           what a parity lacks of what others, or the disk, have
//! names                     objects recorded by the set, where all blocks match
//! ```
//!
//! So a label shows where a block may be, never what it must contain: one that is stale, swapped or
//! from an uncommitted write has another signature, and is not used. A block that the disk lacks is
//! assigned a physical block with other content; the tome finds it bad and rebuilds it from its
//! segment or its group. All of the group must be present and quiescent. Not here: where the result
//! is stored ([`crate::metadata_store`]), and the disk ([`crate::inventory`]).

mod blocks;
mod data;
mod parity;
mod physical_blocks;

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_codes::Signature;
use fulgurite_tome_core::consistency::{Change, Descent, Finding, Nodes};
use fulgurite_tome_core::group::{Group, Move};
use fulgurite_tome_core::membership::Membership;
use fulgurite_tome_core::membership_state::MembershipState;
use fulgurite_tome_core::metadata::{Object, Region, TomeMetadata};
use fulgurite_tome_core::pending::Pending;
use fulgurite_tome_core::{
    GroupId, Layout, Member, Offset, PhysicalBlock, RegionId, RegionIndex, TomeError, TomeId,
    Version,
};
use fulgurite_units::Instant;

use self::blocks::Blocks;
use self::physical_blocks::PhysicalBlocks;
use crate::inventory::Found;
use crate::piece_store::ObjectLocation;
use crate::rows::BlockRow;
use crate::{Result, TomesError};

/// What is known besides the disk.
pub(crate) struct GroupContext<'a> {
    /// All groups, in the latest version known to the set or its tomes.
    pub(crate) groups: &'a [Group],
    pub(crate) tomes: &'a BTreeMap<TomeId, &'a TomeMetadata>,
    /// Moves in progress.
    pub(crate) moves: &'a [Move],
    /// On the axis of the core.
    pub(crate) now: Instant,
}

/// The rebuilt state of a tome.
#[derive(Debug, Default)]
pub(crate) struct RebuiltMetadata {
    pub(crate) regions: Vec<RebuiltRegion>,
    pub(crate) objects: Vec<(String, Object)>,
    /// Names of objects that are no longer intact.
    pub(crate) lost: Vec<String>,
    /// Blocks that the disk lacks or has only in a wrong version.
    pub(crate) bad: u64,
}

/// A rebuilt region.
#[derive(Debug)]
pub(crate) struct RebuiltRegion {
    pub(crate) index: RegionIndex,
    pub(crate) membership: Membership,
    pub(crate) blocks: Vec<(Offset, BlockRow)>,
    pub(crate) pending: Vec<(Version, Pending)>,
    /// Changes of data members that it has applied and not all parities have.
    pub(crate) applied: Vec<(Member, Change)>,
    pub(crate) floors: Vec<(Member, Version)>,
}

/// A member slot of the tome, with the other members of its group.
struct MemberSlot<'a> {
    index: RegionIndex,
    group: &'a Group,
    member: Member,
    /// By member; `None` for its own.
    others: Vec<Option<&'a Region>>,
}

/// Rebuilds the state of a tome.
///
/// # Errors
/// [`TomesError::Away`] when a member of one of its groups is missing, or the disk has no physical
/// block left for what must be rebuilt.
pub(crate) fn rebuild_metadata(
    tome: TomeId,
    layout: &Layout,
    others: &GroupContext<'_>,
    found: Vec<Found>,
    pieces: &BTreeMap<String, ObjectLocation>,
) -> Result<RebuiltMetadata> {
    let slots = member_slots(tome, others)?;
    let mut blocks = Blocks::new(found, pieces);
    let mut physical_blocks = PhysicalBlocks::new(layout);
    let mut drafts = Vec::new();
    for slot in &slots {
        let membership = membership(tome, slot, others);
        let own = RegionId { tome, index: slot.index };
        let is_data = membership.is_data();
        let draft = if is_data {
            data::draft(layout, slot, membership, &mut blocks)?
        } else {
            parity::draft(layout, slot, membership, &blocks)?
        };
        tracing::debug!(region = %own, is_data, "the signatures of a region were recomputed");
        physical_blocks.take(&draft);
        drafts.push(draft);
    }
    let mut rebuilt = RebuiltMetadata::default();
    for draft in drafts {
        rebuilt.regions.push(physical_blocks.finish(draft, others.now)?);
    }
    rebuilt.bad = physical_blocks.bad();
    let is_own = |index: &RegionIndex| slots.iter().any(|slot| slot.index == *index);
    let mut used = BTreeSet::new();
    for (name, ObjectLocation { object, signatures }) in pieces {
        if !object.blocks.iter().all(|(index, _)| is_own(index)) {
            continue;
        }
        let mut all = object.blocks.iter().zip(signatures);
        let is_whole = all.all(|(at, signature)| blocks.is_chosen(*at, Signature(*signature)));
        let is_free = object.blocks.iter().all(|at| !used.contains(at));
        if is_whole && is_free {
            used.extend(object.blocks.iter().copied());
            rebuilt.objects.push((name.clone(), object.clone()));
        } else {
            rebuilt.lost.push(name.clone());
        }
    }
    Ok(rebuilt)
}

/// Returns the member slots of a tome, if all other members of its groups are present.
fn member_slots<'a>(tome: TomeId, others: &GroupContext<'a>) -> Result<Vec<MemberSlot<'a>>> {
    let mut slots = Vec::new();
    for group in others.groups {
        let own = group.slots().iter().position(|slot| slot.tome == tome);
        let Some(at) = own else { continue };
        let mut regions = Vec::new();
        for (position, slot) in group.slots().iter().enumerate() {
            let known =
                others.tomes.get(&slot.tome).and_then(|metadata| metadata.region(slot.index));
            let holds_slot = |region: &&Region| {
                let is_member = matches!(
                    region.membership_state(),
                    MembershipState::Member | MembershipState::Frozen(_)
                );
                is_member && region.group().id() == group.id()
            };
            match known.filter(holds_slot) {
                _ if position == at => regions.push(None),
                Some(region) => regions.push(Some(region)),
                None => return Err(missing_member(tome, group.id(), slot.tome)),
            }
        }
        let (index, member) = (group.slots()[at].index, Member::at(at));
        slots.push(MemberSlot { index, group, member, others: regions });
    }
    Ok(slots)
}

fn missing_member(tome: TomeId, group: GroupId, other: TomeId) -> TomesError {
    let why = format!(
        "its disk was read whole, but its metadata store cannot be rebuilt before tome {other}, \
         which is in group {group} too, is back"
    );
    TomesError::Away { tome, why }
}

/// Returns the membership of a region, as far as others know it.
fn membership(tome: TomeId, slot: &MemberSlot<'_>, others: &GroupContext<'_>) -> Membership {
    let own = RegionId { tome, index: slot.index };
    let frozen = slot.others.iter().flatten().find_map(|region| region.frozen().copied());
    let standing = match frozen.filter(|planned| planned.from != own) {
        Some(planned) => MembershipState::Frozen(planned),
        None => MembershipState::Member,
    };
    let is_behind = |region: &&Region| region.group().epoch() < slot.group.epoch();
    let behind = slot.group.slots().iter().zip(&slot.others);
    let behind = behind.filter(|(_, region)| region.as_ref().is_some_and(is_behind));
    let is_data = u32::from(slot.member.get()) < slot.group.split().data();
    Membership {
        group: slot.group.clone(),
        member: slot.member,
        state: standing,
        latest: Version::NONE,
        // It took the member slot, and its set has not given it its objects yet, or does so again.
        is_rebuilt: is_data && others.moves.iter().any(|planned| planned.to == own),
        unnotified: behind.map(|(slot, _)| slot.tome).collect(),
    }
}

/// Compares a group whose members are all present and quiescent.
///
/// # Errors
/// When members are missing, or have different layouts.
pub(crate) fn compare(
    group: &Group,
    layout: &Layout,
    tomes: &BTreeMap<TomeId, &TomeMetadata>,
) -> Result<Vec<Finding>> {
    let region = |slot: &RegionId| {
        let region = tomes.get(&slot.tome).and_then(|metadata| metadata.region(slot.index));
        region.ok_or(TomeError::NoRegion { region: *slot })
    };
    let regions = group.slots().iter().map(region).collect::<Result<Vec<&Region>, _>>()?;
    let reports: Vec<_> = regions.iter().map(|region| region.report()).collect();
    let mut descent = Descent::new(group.split(), *layout, &reports)?;
    while let Some((level, indexes)) = descent.wants() {
        let node = |region: &&Region, index: &u32| {
            region.tree().node(level as usize, *index as usize).unwrap_or_default()
        };
        let nodes = |region: &&Region| Nodes {
            epoch: region.epoch(),
            signatures: indexes.iter().map(|index| node(region, index)).collect(),
        };
        let answers: Vec<Nodes> = regions.iter().map(nodes).collect();
        descent.take(&answers)?;
    }
    Ok(descent.findings().to_vec())
}

/// A block as it must be: its signature, and where the disk has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ExpectedBlock {
    signature: Signature,
    place: Place,
}

/// Location of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// None: it was never written, and reads as zeros.
    Zeros,
    PhysicalBlock(PhysicalBlock),
    /// The disk lacks it.
    Missing,
}

/// A region whose missing blocks have no physical blocks yet.
struct Draft {
    index: RegionIndex,
    membership: Membership,
    blocks: BTreeMap<Offset, (Version, ExpectedBlock)>,
    changes: Vec<PendingChange>,
    applied: Vec<(Member, Change)>,
    floors: Vec<(Member, Version)>,
}

/// A change that parities lack.
struct PendingChange {
    version: Version,
    offset: Offset,
    old: ExpectedBlock,
    new: ExpectedBlock,
    missing: fulgurite_tome_core::pending::Parities,
    is_sent: bool,
}
