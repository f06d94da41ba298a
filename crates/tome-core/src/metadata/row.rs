//! Rows: every change of the metadata store, and the form in which a driver keeps it.
//!
//! Not here: how they are applied ([`super::TomeMetadata::apply`]).

use fulgurite_codes::{Checksum, Signature};
use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

use crate::consistency::Change;
use crate::group::{Group, Move};
use crate::membership_state::Building;
use crate::pending::Pending;
use crate::{Member, Offset, PhysicalBlock, RegionIndex, TomeId, Version};

/// A change of the metadata store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Row {
    /// A region becomes a member of a group.
    MemberSlot {
        /// The region.
        region: RegionIndex,
        /// The group.
        group: Group,
    },
    /// A block moves to another physical block, with a new signature if its content changed.
    Block {
        /// Its region.
        region: RegionIndex,
        /// The block.
        offset: Offset,
        /// Its new physical block.
        physical_block: PhysicalBlock,
        /// The write that produced it.
        version: Version,
        /// The signature of the change.
        #[serde(with = "crate::wire::signature")]
        change: Signature,
    },
    /// A change of a data block waits for parities.
    Pending {
        /// Its region.
        region: RegionIndex,
        /// Its version.
        version: Version,
        /// The change.
        pending: Pending,
    },
    /// A delta may have reached a parity.
    Sent {
        /// Its region.
        region: RegionIndex,
        /// Its version.
        version: Version,
    },
    /// A parity has applied a change.
    Confirmed {
        /// Its region.
        region: RegionIndex,
        /// Its version.
        version: Version,
        /// The parity.
        parity: u8,
    },
    /// A delta arrived and is to be applied.
    Stored {
        /// The region to apply it to.
        region: RegionIndex,
        /// Its data member.
        member: Member,
        /// The change.
        change: Change,
        /// The bytes, before any coefficient.
        bytes: Vec<u8>,
    },
    /// A stored delta is applied.
    Folded {
        /// The region that it was applied to.
        region: RegionIndex,
        /// Its data member.
        member: Member,
        /// Its version.
        version: Version,
    },
    /// A data member reports that every parity has all changes below a version.
    Floor {
        /// The region that records it.
        region: RegionIndex,
        /// The data member.
        member: Member,
        /// The version.
        floor: Version,
    },
    /// A region is frozen while a member slot of its group moves, or thawed.
    Frozen {
        /// The region.
        region: RegionIndex,
        /// The move that it is frozen for; `None` thaws it.
        planned: Option<Move>,
    },
    /// A region is being rebuilt and has come this far.
    Building {
        /// The region.
        region: RegionIndex,
        /// The checkpoint.
        building: Building,
    },
    /// What was rebuilt of a region so far is discarded.
    Cleared {
        /// The region.
        region: RegionIndex,
    },
    /// A rebuilt region takes its member slot.
    SlotBuilt {
        /// The region.
        region: RegionIndex,
    },
    /// All object names of a rebuilt region are known.
    Named {
        /// The region.
        region: RegionIndex,
    },
    /// The rebuild of a region is dropped, and it leaves the group.
    Dropped {
        /// The region.
        region: RegionIndex,
    },
    /// A tome acknowledged that a region took its member slot.
    Learned {
        /// The region.
        region: RegionIndex,
        /// The tome.
        tome: TomeId,
    },
    /// A member slot of a region's group moved; perhaps its own.
    Regroup {
        /// The region.
        region: RegionIndex,
        /// The group after the move.
        group: Group,
    },
    /// An object was put.
    Object {
        /// Its name.
        name: String,
        /// The object.
        object: Object,
    },
    /// An object was removed.
    Removed {
        /// Its name.
        name: String,
    },
    /// Progress of the full scrub.
    Scrubbed(Scrubbed),
}

/// An object of a tome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its blocks in order.
    pub blocks: Vec<(RegionIndex, Offset)>,
    /// Its length; the last block is padded with zeros.
    pub bytes: u64,
    /// BLAKE3 of its bytes: signatures do not protect against forged bytes.
    pub digest: Checksum,
}

/// Progress of a full scrub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrubbed {
    /// All blocks of the disk before this one were read in this pass.
    pub next: u64,
    /// How long the pass has been going on.
    pub spent: Duration,
    /// Completed passes.
    pub passes: u64,
}
