//! Rows of a metadata store: keys and encoding. docs/formats/tome.md has them.
//!
//! ```text
//! space     key                       row
//! tome      "tome"                    TomeRow: its owner
//! slots     region                    MemberSlotRow: the group that the region is in
//! standings region                    MembershipRow: its membership, unless that of a new member
//! blocks    region, offset            BlockRow: physical block, version and signature
//! pending   region, version           PendingRow: a change that parities lack
//! deltas    region, member, version   DeltaRow: a received change
//! floors    region, member            FloorRow: every parity has all changes below it
//! objects   name                      ObjectRow
//! scrub     "scrub"                   ScrubRow
//! ```
//!
//! Numbers in keys are big-endian, so that rows sort by them. Each kind has its own version.

use std::collections::BTreeSet;

use fulgurite_catalog::Space;
use fulgurite_catalog::keys::KeyWriter;
use fulgurite_catalog::row::Row;
use fulgurite_codes::SIGNATURE_BYTES;
use fulgurite_tome_core::consistency::Change;
use fulgurite_tome_core::group::Group;
use fulgurite_tome_core::membership::Membership;
use fulgurite_tome_core::membership_state::MembershipState;
use fulgurite_tome_core::metadata::{Object, Scrubbed};
use fulgurite_tome_core::pending::Pending;
use fulgurite_tome_core::{Layout, Member, Offset, PhysicalBlock, RegionIndex, TomeId, Version};
use fulgurite_units::TomeSetId;
use serde::{Deserialize, Serialize};

use crate::metadata_store::Slot;

pub(crate) const TOME: Space = Space::new("tome");
pub(crate) const MEMBER_SLOTS: Space = Space::new("slots");
pub(crate) const MEMBERSHIPS: Space = Space::new("standings");
pub(crate) const BLOCKS: Space = Space::new("blocks");
pub(crate) const PENDING: Space = Space::new("pending");
pub(crate) const DELTAS: Space = Space::new("deltas");
pub(crate) const FLOORS: Space = Space::new("floors");
pub(crate) const OBJECTS: Space = Space::new("objects");
pub(crate) const SCRUB: Space = Space::new("scrub");

/// Every space of a metadata store.
pub(crate) const SPACES: [Space; 9] =
    [TOME, MEMBER_SLOTS, MEMBERSHIPS, BLOCKS, PENDING, DELTAS, FLOORS, OBJECTS, SCRUB];

/// Key of the store's owner.
pub(crate) const TOME_KEY: &[u8] = b"tome";
/// Key of the number of its latest start, beside that.
pub(crate) const START_KEY: &[u8] = b"start";
/// Key of the only row of its space.
pub(crate) const SCRUB_KEY: &[u8] = b"scrub";

/// Owner of a metadata store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TomeRow {
    pub(crate) set: TomeSetId,
    pub(crate) tome: TomeId,
    pub(crate) layout: Layout,
}

/// The group of a region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberSlotRow(pub(crate) Group);

/// Membership of a region, except for the group itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MembershipRow {
    pub(crate) member: Member,
    pub(crate) standing: MembershipState,
    pub(crate) latest: Version,
    pub(crate) is_rebuilt: bool,
    pub(crate) untold: BTreeSet<TomeId>,
}

impl MembershipRow {
    pub(crate) fn new(membership: &Membership) -> Self {
        let Membership { member, state, latest, is_rebuilt, unnotified, .. } = membership.clone();
        Self { member, standing: state, latest, is_rebuilt, untold: unnotified }
    }

    pub(crate) fn membership(self, group: Group) -> Membership {
        let Self { member, standing, latest, is_rebuilt, untold } = self;
        Membership { group, member, state: standing, latest, is_rebuilt, unnotified: untold }
    }
}

/// A block that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockRow {
    pub(crate) physical_block: PhysicalBlock,
    pub(crate) version: Version,
    pub(crate) signature: [u8; SIGNATURE_BYTES],
}

/// A change that parities lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingRow(pub(crate) Pending);

/// A change received from a data member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeltaRow {
    pub(crate) change: Change,
    pub(crate) is_folded: bool,
    /// Location of its bytes in the file beside the store. `None` if it is applied and the store
    /// was rebuilt.
    pub(crate) slot: Option<Slot>,
}

/// Every parity has all changes of a data member below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FloorRow(pub(crate) Version);

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObjectRow(pub(crate) Object);

/// Progress of the full scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScrubRow(pub(crate) Scrubbed);

impl Row for TomeRow {
    const VERSION: u8 = 1;
}

impl Row for MemberSlotRow {
    const VERSION: u8 = 1;
}

impl Row for MembershipRow {
    const VERSION: u8 = 1;
}

impl Row for BlockRow {
    const VERSION: u8 = 1;
}

impl Row for PendingRow {
    const VERSION: u8 = 1;
}

impl Row for DeltaRow {
    const VERSION: u8 = 1;
}

impl Row for FloorRow {
    const VERSION: u8 = 1;
}

impl Row for ObjectRow {
    const VERSION: u8 = 1;
}

impl Row for ScrubRow {
    const VERSION: u8 = 1;
}

/// Returns the key of a region, which is the prefix of its rows' keys.
pub(crate) fn region_key(region: RegionIndex) -> KeyWriter {
    KeyWriter::new().u32(region.get())
}

pub(crate) fn block_key(region: RegionIndex, offset: Offset) -> Vec<u8> {
    region_key(region).u32(offset.get()).finish()
}

pub(crate) fn pending_key(region: RegionIndex, version: Version) -> Vec<u8> {
    region_key(region).u32(version.get()).finish()
}

/// Returns the key of a data member's floor, which is the prefix of its deltas' keys.
pub(crate) fn member_key(region: RegionIndex, member: Member) -> KeyWriter {
    region_key(region).u8(member.get())
}

pub(crate) fn delta_key(region: RegionIndex, member: Member, version: Version) -> Vec<u8> {
    member_key(region, member).u32(version.get()).finish()
}

pub(crate) fn object_key(name: &str) -> Vec<u8> {
    KeyWriter::new().string(name).finish()
}
