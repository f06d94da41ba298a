//! What a tome keeps awake: all that it knows when its disk sleeps, and has after a crash.
//!
//! ```text
//! region    tree of signatures, versions, spots       24 bytes a block
//!   data    changes that parities lack                 with the spots to compute them from
//!   parity  what was folded, and deltas that came      kept until every parity has them
//! objects   names to blocks, lengths and digests
//! ```
//!
//! It changes by [`Row`]s only, and those are what a tome has its driver commit: rows that a driver
//! kept, applied in their order, are the awake store again. A parity keeps a delta after it was
//! folded until its data member says that every parity has it. If the data member is lost before,
//! some parities have the change and some have not, and then no code brings back other members'
//! blocks at that offset; so those that have it can tell those that have not.
//!
//! Not here: bytes of blocks, and anything that may be forgotten.

use std::collections::BTreeMap;

use fulgurite_codes::{Checksum, Signature};
use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

use crate::applied::Applied;
use crate::consistency::{Change, Report, Side};
use crate::group::Group;
use crate::pending::{Pending, PendingList};
use crate::tree::SignatureTree;
use crate::{
    Epoch, GroupId, Layout, Member, Offset, RegionId, RegionIndex, Result, Spot, TomeError, TomeId,
    Version,
};

/// Something that changes in the awake store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Row {
    /// A region is a member of a group.
    Seat {
        /// Which region.
        region: RegionIndex,
        /// Of which group.
        group: Group,
    },
    /// A block lies in another spot, and has another signature if it changed.
    Block {
        /// Of which region.
        region: RegionIndex,
        /// Which.
        offset: Offset,
        /// Where it lies now.
        spot: Spot,
        /// The write that it is of.
        version: Version,
        /// The signature of the change.
        #[serde(with = "crate::wire::signature")]
        change: Signature,
    },
    /// A change of a data block waits for parities.
    Pending {
        /// Of which region.
        region: RegionIndex,
        /// Its version.
        version: Version,
        /// The change.
        pending: Pending,
    },
    /// A parity may have heard of a change.
    Sent {
        /// Of which region.
        region: RegionIndex,
        /// Its version.
        version: Version,
    },
    /// A parity has folded a change.
    Confirmed {
        /// Of which region.
        region: RegionIndex,
        /// Its version.
        version: Version,
        /// Which parity.
        parity: u8,
    },
    /// A delta came that is to be folded.
    Stored {
        /// Into which region.
        region: RegionIndex,
        /// Of which data member.
        member: Member,
        /// Which change.
        change: Change,
        /// The bytes of it, before any coefficient.
        bytes: Vec<u8>,
    },
    /// A delta that came is folded.
    Folded {
        /// Into which region.
        region: RegionIndex,
        /// Of which data member.
        member: Member,
        /// Which change.
        version: Version,
    },
    /// A data member says that every parity has all changes below a version.
    Floor {
        /// In which region it is noted.
        region: RegionIndex,
        /// Of which data member.
        member: Member,
        /// The version.
        floor: Version,
    },
    /// An object is there.
    Object {
        /// Its name.
        name: String,
        /// The object.
        object: Object,
    },
    /// An object is not there any more.
    Removed {
        /// Its name.
        name: String,
    },
    /// How far the disk was read to see whether it can be.
    Scrubbed(Scrubbed),
}

/// An object of a tome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its blocks, in order.
    pub blocks: Vec<(RegionIndex, Offset)>,
    /// Its bytes; the last block is filled up with zeros.
    pub bytes: u64,
    /// The BLAKE3 of them: signatures are no proof against who makes bytes for them.
    pub digest: Checksum,
}

/// How far a full scrub is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrubbed {
    /// Blocks of the disk before this one were read in this pass.
    pub next: u64,
    /// How long the pass has been going on.
    pub spent: Duration,
    /// Passes that reached the end.
    pub passes: u64,
}

/// A delta that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Which change.
    pub change: Change,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it is folded.
    pub is_folded: bool,
}

/// Deltas by the data member that they are of and their version.
pub type StoredDeltas = BTreeMap<(Member, Version), Stored>;

/// What a region does in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has data; changes of which parities have not all confirmed.
    Data(PendingList),
    /// It has parity.
    Parity {
        /// What is folded of each data member.
        applied: Vec<Applied>,
        /// Deltas that came, until every parity has them.
        stored: StoredDeltas,
    },
}

/// A region that is a member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    group: Group,
    member: Member,
    tree: SignatureTree,
    versions: Vec<Version>,
    /// Where each block lies, counted from one; zero where it was never written.
    spots: Vec<u32>,
    latest: Version,
    epoch: Epoch,
    role: Role,
}

/// All that a tome keeps awake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awake {
    id: TomeId,
    layout: Layout,
    regions: BTreeMap<RegionIndex, Region>,
    objects: BTreeMap<String, Object>,
    scrubbed: Scrubbed,
}

impl Awake {
    /// That of a new tome.
    #[must_use]
    pub fn new(id: TomeId, layout: Layout) -> Self {
        let (regions, objects, scrubbed) = Default::default();
        Self { id, layout, regions, objects, scrubbed }
    }

    /// Whose it is.
    #[must_use]
    pub const fn id(&self) -> TomeId {
        self.id
    }

    /// How the disk is divided.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// An object by its name.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<&Object> {
        self.objects.get(name)
    }

    /// All objects, by name.
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

    /// A region that is in a group.
    #[must_use]
    pub fn region(&self, index: RegionIndex) -> Option<&Region> {
        self.regions.get(&index)
    }

    /// All regions that are in groups.
    pub fn regions(&self) -> impl Iterator<Item = (RegionIndex, &Region)> {
        self.regions.iter().map(|(index, region)| (*index, region))
    }

    /// The region that is a member of a group.
    #[must_use]
    pub fn region_of(&self, group: GroupId) -> Option<(RegionIndex, &Region)> {
        self.regions().find(|(_, region)| region.group.id() == group)
    }

    /// How far the full scrub is.
    #[must_use]
    pub const fn scrubbed(&self) -> Scrubbed {
        self.scrubbed
    }

    /// Changes as a row says.
    ///
    /// # Errors
    /// When the row is of another tome or layout, or came out of order: a driver's rows are
    /// damaged.
    pub fn apply(&mut self, row: &Row) -> Result<()> {
        match row {
            Row::Seat { region, group } => self.seat(*region, group)?,
            Row::Block { region, offset, spot, version, change } => {
                let region = self.region_mut(*region)?;
                region.tree.update(*offset, *change)?;
                // A block that was only made anew elsewhere: changes are computed from there.
                let is_healed = region.versions[offset.as_usize()] == *version;
                if let (true, Some(before)) = (is_healed, region.spot(*offset))
                    && let Role::Data(pending) = &mut region.role
                {
                    pending.moved(before, *spot);
                }
                region.spots[offset.as_usize()] = spot.get() + 1;
                region.versions[offset.as_usize()] = *version;
                region.latest = region.latest.max(*version);
                region.epoch = region.epoch.next();
            }
            Row::Pending { region, version, pending } => {
                self.pending_mut(*region)?.push(*version, *pending)?;
            }
            Row::Sent { region, version } => self.pending_mut(*region)?.sent(*version),
            Row::Confirmed { region, version, parity } => {
                self.pending_mut(*region)?.confirm(*version, *parity);
            }
            Row::Stored { region, member, change, bytes } => {
                let (_, stored) = self.parity_mut(*region)?;
                let delta = Stored { change: *change, bytes: bytes.clone(), is_folded: false };
                stored.insert((*member, change.version), delta);
            }
            Row::Folded { region, member, version } => {
                let (applied, stored) = self.parity_mut(*region)?;
                if let Some(delta) = stored.get_mut(&(*member, *version)) {
                    delta.is_folded = true;
                    applied[member.as_usize()].note(delta.change);
                }
            }
            Row::Floor { region, member, floor } => {
                let (applied, stored) = self.parity_mut(*region)?;
                applied[member.as_usize()].raise(*floor);
                stored.retain(|(of, version), _| of != member || version >= floor);
            }
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

    fn seat(&mut self, index: RegionIndex, group: &Group) -> Result<()> {
        let own = RegionId { tome: self.id, index };
        let is_known = self.regions.get(&index).is_some_and(|region| region.group != *group);
        let member = group.member(own).filter(|_| !is_known);
        let member = member.ok_or(TomeError::ClaimedTwice { region: own })?;
        let blocks = self.layout.region_blocks();
        let role = if u32::from(member.get()) < group.split().data() {
            Role::Data(PendingList::default())
        } else {
            let applied = vec![Applied::default(); group.split().data() as usize];
            Role::Parity { applied, stored: BTreeMap::new() }
        };
        let region = Region {
            group: group.clone(),
            member,
            tree: SignatureTree::zeros(blocks, self.layout.block_bytes())?,
            versions: vec![Version::NONE; blocks as usize],
            spots: vec![0; blocks as usize],
            latest: Version::NONE,
            epoch: Epoch::default(),
            role,
        };
        self.regions.entry(index).or_insert(region);
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
            Role::Parity { .. } => Err(TomeError::OtherRole { region: id }),
        }
    }

    fn parity_mut(&mut self, index: RegionIndex) -> Result<(&mut Vec<Applied>, &mut StoredDeltas)> {
        let id = RegionId { tome: self.id, index };
        match &mut self.region_mut(index)?.role {
            Role::Parity { applied, stored } => Ok((applied, stored)),
            Role::Data(_) => Err(TomeError::OtherRole { region: id }),
        }
    }
}

impl Region {
    /// The group that it is in.
    #[must_use]
    pub const fn group(&self) -> &Group {
        &self.group
    }

    /// Which member of that it is.
    #[must_use]
    pub const fn member(&self) -> Member {
        self.member
    }

    /// The signatures of its blocks.
    #[must_use]
    pub const fn tree(&self) -> &SignatureTree {
        &self.tree
    }

    /// Its last version.
    #[must_use]
    pub const fn latest(&self) -> Version {
        self.latest
    }

    /// How often it changed.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What it does in its group.
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

    /// Which parity of its group it is, from zero.
    #[must_use]
    pub fn parity(&self) -> Option<u8> {
        let data = self.group.split().data();
        u8::try_from(u32::from(self.member.get()).checked_sub(data)?).ok()
    }

    /// Deltas that came, with the data member and the version of each.
    pub fn stored(&self) -> impl Iterator<Item = (Member, Version, &Stored)> {
        let stored = match &self.role {
            Role::Data(_) => None,
            Role::Parity { stored, .. } => Some(stored),
        };
        let all = stored.into_iter().flatten();
        all.map(|((member, version), delta)| (*member, *version, delta))
    }

    /// Where a block lies; nothing where it was never written, and is zeros.
    #[must_use]
    pub fn spot(&self, offset: Offset) -> Option<Spot> {
        self.spots.get(offset.as_usize())?.checked_sub(1).map(Spot::new)
    }

    /// Where all blocks lie that were written.
    pub fn spots(&self) -> impl Iterator<Item = Spot> {
        self.spots.iter().filter_map(|spot| spot.checked_sub(1)).map(Spot::new)
    }

    /// The last write of a block.
    #[must_use]
    pub fn version(&self, offset: Offset) -> Version {
        self.versions.get(offset.as_usize()).copied().unwrap_or(Version::NONE)
    }

    /// What it tells when its group is checked.
    #[must_use]
    pub fn report(&self) -> Report {
        let side = match &self.role {
            Role::Data(pending) => {
                Side::Data { latest: self.latest, unconfirmed: pending.unconfirmed() }
            }
            Role::Parity { applied, .. } => {
                Side::Parity(applied.iter().map(Applied::folded).collect())
            }
        };
        Report { epoch: self.epoch, root: self.tree.root(), side }
    }
}
