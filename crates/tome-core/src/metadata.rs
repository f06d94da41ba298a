//! The metadata store of a tome (NVRAM in the paper): all that it knows while its disk sleeps, and
//! has after a crash.
//!
//! ```text
//! region    tree of signatures, versions, physical blocks   24 bytes a block
//!   data    changes that parities lack             and the physical blocks to compute them from
//!   parity  applied changes, and stored deltas                 kept until every parity has them
//! objects   names to blocks, lengths and digests
//! ```
//!
//! It changes only by [`Row`]s, and those are what a tome has its driver commit: replaying the rows
//! of a driver in order gives the metadata store again. A parity keeps an applied delta until its
//! data member reports that every parity has it. If the data member is lost before, only some
//! parities have the change, and then no code recovers other members' blocks at that offset. So
//! the parities that have it can pass it on.
//!
//! Not here: bytes of blocks, and anything that may be forgotten.

mod row;

use std::collections::BTreeMap;
use std::ops::Bound;

use fulgurite_codes::Signature;

use crate::applied_changes::AppliedChanges;
use crate::consistency::{Change, Report, Side};
use crate::group::{Group, Move};
use crate::membership::Membership;
use crate::membership_state::{Building, MembershipState};
use crate::pending::PendingList;
use crate::tree::SignatureTree;
use crate::{
    Epoch, GroupId, Layout, Member, Offset, PhysicalBlock, RegionId, RegionIndex, Result,
    TomeError, TomeId, Version,
};

pub use row::{Object, Row, Scrubbed};

/// A delta that a parity received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The change.
    pub change: Change,
    /// Its bytes; empty if it is applied and they were lost when the metadata store was rebuilt.
    pub bytes: Vec<u8>,
    /// Whether it is applied.
    pub is_applied: bool,
}

/// Deltas by their data member and version.
pub type StoredDeltas = BTreeMap<(Member, Version), Stored>;

/// The role of a region in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Data, with the changes that not all parities have confirmed.
    Data(PendingList),
    /// Parity.
    Parity {
        /// Changes applied of each data member.
        applied: Vec<AppliedChanges>,
        /// Deltas received, until every parity has them.
        stored: StoredDeltas,
    },
}

/// A region that is a member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    membership: Membership,
    tree: SignatureTree,
    versions: Vec<Version>,
    /// The physical block of each block plus one; zero where it was never written.
    physical_blocks: Vec<u32>,
    epoch: Epoch,
    role: Role,
}

/// The metadata store of a tome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomeMetadata {
    id: TomeId,
    layout: Layout,
    regions: BTreeMap<RegionIndex, Region>,
    objects: BTreeMap<String, Object>,
    scrubbed: Scrubbed,
}

impl TomeMetadata {
    /// The store of a new tome.
    #[must_use]
    pub fn new(id: TomeId, layout: Layout) -> Self {
        let (regions, objects, scrubbed) = Default::default();
        Self { id, layout, regions, objects, scrubbed }
    }

    /// The tome that it belongs to.
    #[must_use]
    pub const fn id(&self) -> TomeId {
        self.id
    }

    /// How the disk is divided.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns an object by its name.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<&Object> {
        self.objects.get(name)
    }

    /// Returns the objects after this name, in order.
    pub fn objects_after(&self, after: Option<&str>) -> impl Iterator<Item = (&str, &Object)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.objects.range::<str, _>((from, Bound::Unbounded));
        range.map(|(name, object)| (name.as_str(), object))
    }

    /// Returns all objects by name.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &Object)> {
        self.objects.iter().map(|(name, object)| (name.as_str(), object))
    }

    /// Whether every parity has every block of an object.
    #[must_use]
    pub fn is_protected(&self, name: &str) -> bool {
        let waits = |(region, offset): &(RegionIndex, Offset)| {
            let pending = self.regions.get(region).and_then(Region::pending);
            pending.is_some_and(|list| list.iter().any(|(_, p)| p.offset == *offset))
        };
        self.objects.get(name).is_some_and(|object| !object.blocks.iter().any(waits))
    }

    /// Returns a region that is in a group.
    #[must_use]
    pub fn region(&self, index: RegionIndex) -> Option<&Region> {
        self.regions.get(&index)
    }

    /// Returns all regions that are in groups.
    pub fn regions(&self) -> impl Iterator<Item = (RegionIndex, &Region)> {
        self.regions.iter().map(|(index, region)| (*index, region))
    }

    /// Returns the region that is a member of a group.
    #[must_use]
    pub fn region_of(&self, group: GroupId) -> Option<(RegionIndex, &Region)> {
        self.regions().find(|(_, region)| region.membership.group.id() == group)
    }

    /// Progress of the full scrub.
    #[must_use]
    pub const fn scrubbed(&self) -> Scrubbed {
        self.scrubbed
    }

    /// Applies a row.
    ///
    /// # Errors
    /// When the row belongs to another tome or layout, or came out of order: a driver's rows are
    /// damaged.
    pub fn apply(&mut self, row: &Row) -> Result<()> {
        match row {
            Row::MemberSlot { region, group } => self.add_region(*region, group)?,
            Row::Block { region, offset, physical_block, version, change } => {
                let region = self.region_mut(*region)?;
                region.tree.update(*offset, *change)?;
                // The block was only rewritten elsewhere after repair: changes are computed from
                // there.
                let is_healed = region.versions[offset.as_usize()] == *version;
                if let (true, Some(before)) = (is_healed, region.physical_block(*offset))
                    && let Role::Data(pending) = &mut region.role
                {
                    pending.moved(before, *physical_block);
                }
                region.physical_blocks[offset.as_usize()] = physical_block.get() + 1;
                region.versions[offset.as_usize()] = *version;
                region.membership.latest = region.membership.latest.max(*version);
                region.epoch = region.epoch.next();
            }
            Row::Pending { region, version, pending } => {
                self.pending_mut(*region)?.push(*version, *pending)?;
            }
            Row::Sent { region, version } => self.pending_mut(*region)?.mark_sent(*version),
            Row::Confirmed { region, version, parity } => {
                self.pending_mut(*region)?.confirm(*version, *parity);
            }
            Row::Stored { region, member, change, bytes } => {
                let (_, stored) = self.parity_mut(*region)?;
                let delta = Stored { change: *change, bytes: bytes.clone(), is_applied: false };
                stored.insert((*member, change.version), delta);
            }
            Row::Folded { region, member, version } => {
                let (applied, stored) = self.parity_mut(*region)?;
                if let Some(delta) = stored.get_mut(&(*member, *version)) {
                    delta.is_applied = true;
                    applied[member.as_usize()].record(delta.change);
                }
            }
            Row::Floor { region, member, floor } => {
                let (applied, stored) = self.parity_mut(*region)?;
                applied[member.as_usize()].raise_floor(*floor);
                stored.retain(|(of, version), _| of != member || version >= floor);
            }
            Row::Frozen { .. }
            | Row::Building { .. }
            | Row::Cleared { .. }
            | Row::SlotBuilt { .. }
            | Row::Named { .. }
            | Row::Dropped { .. }
            | Row::Learned { .. }
            | Row::Regroup { .. } => self.apply_membership(row)?,
            Row::Object { name, object } => {
                self.objects.insert(name.clone(), object.clone());
            }
            Row::Removed { name } => {
                self.objects.remove(name);
            }
            Row::Scrubbed(scrubbed) => self.scrubbed = *scrubbed,
        }
        Ok(())
    }

    /// Restores a persisted region whose membership is not that of a new member.
    ///
    /// # Errors
    /// [`TomeError::ClaimedTwice`] when its membership is impossible, or the region is there
    /// already.
    pub fn restore(&mut self, index: RegionIndex, membership: Membership) -> Result<()> {
        let own = RegionId { tome: self.id, index };
        let fits = membership.fits(own, self.layout.parts().segments);
        if !fits || self.regions.contains_key(&index) {
            return Err(TomeError::ClaimedTwice { region: own });
        }
        let region = Region::zeros(membership, &self.layout)?;
        self.regions.insert(index, region);
        Ok(())
    }

    fn add_region(&mut self, index: RegionIndex, group: &Group) -> Result<()> {
        let own = RegionId { tome: self.id, index };
        let is_other =
            self.regions.get(&index).is_some_and(|region| region.membership.group != *group);
        let membership = Membership::new(group.clone(), own).filter(|_| !is_other);
        let membership = membership.ok_or(TomeError::ClaimedTwice { region: own })?;
        let region = Region::zeros(membership, &self.layout)?;
        self.regions.entry(index).or_insert(region);
        Ok(())
    }

    /// Applies rows about membership.
    fn apply_membership(&mut self, row: &Row) -> Result<()> {
        let (blocks, bytes) = (self.layout.region_blocks(), self.layout.block_bytes());
        let index = match row {
            Row::Dropped { region } => {
                self.regions.remove(region);
                return Ok(());
            }
            Row::Cleared { region } => {
                let region = self.region_mut(*region)?;
                region.tree = SignatureTree::zeros(blocks, bytes)?;
                region.physical_blocks = vec![0; blocks as usize];
                region.versions = vec![Version::NONE; blocks as usize];
                return Ok(());
            }
            Row::Frozen { region, .. }
            | Row::Building { region, .. }
            | Row::SlotBuilt { region }
            | Row::Named { region }
            | Row::Learned { region, .. }
            | Row::Regroup { region, .. }
            | Row::MemberSlot { region, .. }
            | Row::Block { region, .. }
            | Row::Pending { region, .. }
            | Row::Sent { region, .. }
            | Row::Confirmed { region, .. }
            | Row::Stored { region, .. }
            | Row::Folded { region, .. }
            | Row::Floor { region, .. } => *region,
            Row::Object { .. } | Row::Removed { .. } | Row::Scrubbed(_) => return Ok(()),
        };
        let own = RegionId { tome: self.id, index };
        let region = self.region_mut(index)?;
        if let (Row::SlotBuilt { .. }, Some(building)) = (row, region.building()) {
            let floors: Vec<AppliedChanges> =
                building.floors().map(AppliedChanges::with_floor).collect();
            if let Role::Parity { applied, .. } = &mut region.role {
                *applied = floors;
            }
        }
        region.membership.apply(own, row);
        Ok(())
    }

    fn region_mut(&mut self, index: RegionIndex) -> Result<&mut Region> {
        let id = RegionId { tome: self.id, index };
        self.regions.get_mut(&index).ok_or(TomeError::NoRegion { region: id })
    }

    fn pending_mut(&mut self, index: RegionIndex) -> Result<&mut PendingList> {
        let id = RegionId { tome: self.id, index };
        match &mut self.region_mut(index)?.role {
            Role::Data(pending) => Ok(pending),
            Role::Parity { .. } => Err(TomeError::WrongRole { region: id }),
        }
    }

    fn parity_mut(
        &mut self,
        index: RegionIndex,
    ) -> Result<(&mut Vec<AppliedChanges>, &mut StoredDeltas)> {
        let id = RegionId { tome: self.id, index };
        match &mut self.region_mut(index)?.role {
            Role::Parity { applied, stored } => Ok((applied, stored)),
            Role::Data(_) => Err(TomeError::WrongRole { region: id }),
        }
    }
}

impl Region {
    /// Returns a region in which nothing was written yet.
    fn zeros(membership: Membership, layout: &Layout) -> Result<Self> {
        let blocks = layout.region_blocks();
        let role = if membership.is_data() {
            Role::Data(PendingList::default())
        } else {
            let applied = vec![AppliedChanges::default(); membership.group.split().data() as usize];
            Role::Parity { applied, stored: BTreeMap::new() }
        };
        Ok(Self {
            membership,
            tree: SignatureTree::zeros(blocks, layout.block_bytes())?,
            versions: vec![Version::NONE; blocks as usize],
            physical_blocks: vec![0; blocks as usize],
            epoch: Epoch::default(),
            role,
        })
    }

    /// The group that it is in.
    #[must_use]
    pub const fn group(&self) -> &Group {
        &self.membership.group
    }

    /// Its member number in the group.
    #[must_use]
    pub const fn member(&self) -> Member {
        self.membership.member
    }

    /// The signatures of its blocks.
    #[must_use]
    pub const fn tree(&self) -> &SignatureTree {
        &self.tree
    }

    /// The last version written.
    #[must_use]
    pub const fn latest(&self) -> Version {
        self.membership.latest
    }

    /// How often it changed.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Its membership state.
    #[must_use]
    pub const fn membership_state(&self) -> &MembershipState {
        &self.membership.state
    }

    /// Whether it answers for its member slot, and may be written.
    #[must_use]
    pub const fn is_member(&self) -> bool {
        matches!(self.membership.state, MembershipState::Member)
    }

    /// Its membership, with all that changes when member slots move.
    #[must_use]
    pub const fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Whether its blocks were rebuilt, so that names of their objects may be unknown here.
    #[must_use]
    pub const fn is_rebuilt(&self) -> bool {
        self.membership.is_rebuilt
    }

    /// Its checkpoint, if it is being rebuilt.
    #[must_use]
    pub const fn building(&self) -> Option<&Building> {
        match &self.membership.state {
            MembershipState::Building(building) => Some(building),
            MembershipState::Member | MembershipState::Frozen(_) | MembershipState::Left => None,
        }
    }

    /// The move that it is frozen for.
    #[must_use]
    pub const fn frozen(&self) -> Option<&Move> {
        match &self.membership.state {
            MembershipState::Frozen(planned) => Some(planned),
            MembershipState::Member | MembershipState::Building(_) | MembershipState::Left => None,
        }
    }

    /// Tomes that have yet to learn that it took its member slot.
    pub fn unnotified(&self) -> impl Iterator<Item = TomeId> {
        self.membership.unnotified.iter().copied()
    }

    /// Returns blocks of a rebuilt region that are not zeros: they belong to objects whose names
    /// are unknown here.
    pub fn used_blocks(&self) -> impl Iterator<Item = Offset> {
        let all =
            (0..self.physical_blocks.len()).map(Offset::at).filter(|_| self.membership.is_rebuilt);
        all.filter(|offset| self.tree.block(*offset) != Signature::ZERO)
    }

    /// Its role in the group.
    #[must_use]
    pub const fn role(&self) -> &Role {
        &self.role
    }

    /// Changes that parities lack, if it has data.
    #[must_use]
    pub const fn pending(&self) -> Option<&PendingList> {
        match &self.role {
            Role::Data(pending) => Some(pending),
            Role::Parity { .. } => None,
        }
    }

    /// Which parity of its group it is, counted from zero.
    #[must_use]
    pub fn parity(&self) -> Option<u8> {
        let data = self.membership.group.split().data();
        u8::try_from(u32::from(self.membership.member.get()).checked_sub(data)?).ok()
    }

    /// Returns the deltas received, with the data member and version of each.
    pub fn stored(&self) -> impl Iterator<Item = (Member, Version, &Stored)> {
        let stored = match &self.role {
            Role::Data(_) => None,
            Role::Parity { stored, .. } => Some(stored),
        };
        let all = stored.into_iter().flatten();
        all.map(|((member, version), delta)| (*member, *version, delta))
    }

    /// Returns those whose bytes are known.
    pub fn known(&self) -> impl Iterator<Item = (Member, Version, &Stored)> {
        self.stored().filter(|(_, _, stored)| !stored.bytes.is_empty())
    }

    /// Returns the physical block of a block; `None` where it was never written and reads as zeros.
    #[must_use]
    pub fn physical_block(&self, offset: Offset) -> Option<PhysicalBlock> {
        self.physical_blocks.get(offset.as_usize())?.checked_sub(1).map(PhysicalBlock::new)
    }

    /// Returns the physical blocks of all blocks that were written.
    pub fn physical_blocks(&self) -> impl Iterator<Item = PhysicalBlock> {
        self.physical_blocks.iter().filter_map(|block| block.checked_sub(1)).map(PhysicalBlock::new)
    }

    /// Returns the version of a block's last write.
    #[must_use]
    pub fn version(&self, offset: Offset) -> Version {
        self.versions.get(offset.as_usize()).copied().unwrap_or(Version::NONE)
    }

    /// Returns its report for a check of its group.
    #[must_use]
    pub fn report(&self) -> Report {
        let side = match &self.role {
            Role::Data(pending) => {
                Side::Data { latest: self.membership.latest, unconfirmed: pending.unconfirmed() }
            }
            Role::Parity { applied, .. } => {
                Side::Parity(applied.iter().map(AppliedChanges::summary).collect())
            }
        };
        Report { epoch: self.epoch, root: self.tree.root(), side }
    }
}
