//! Rows: all that changes in an awake store, and what a driver keeps of it.
//!
//! Not here: what they change ([`super::Awake::apply`]).

use fulgurite_codes::{Checksum, Signature};
use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

use crate::consistency::Change;
use crate::group::{Group, Move};
use crate::pending::Pending;
use crate::standing::Building;
use crate::{Member, Offset, RegionIndex, Spot, TomeId, Version};

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
    /// A region is not written while a seat of its group moves, or is again.
    Frozen {
        /// Which region.
        region: RegionIndex,
        /// For which move; for none any more.
        planned: Option<Move>,
    },
    /// A region is made anew, and is so far.
    Building {
        /// Which region.
        region: RegionIndex,
        /// How far.
        building: Building,
    },
    /// What was made of a region so far is thrown away.
    Cleared {
        /// Which region.
        region: RegionIndex,
    },
    /// A region that was made anew has its seat.
    Seated {
        /// Which region.
        region: RegionIndex,
    },
    /// The names of all objects of a region that was made anew are known.
    Named {
        /// Which region.
        region: RegionIndex,
    },
    /// A region is not made anew any more, and is in no group.
    Dropped {
        /// Which region.
        region: RegionIndex,
    },
    /// A tome knows that a region took a seat.
    Learned {
        /// Which region.
        region: RegionIndex,
        /// Which tome.
        tome: TomeId,
    },
    /// A seat of the group of a region moved; perhaps it was its own.
    Regroup {
        /// Which region.
        region: RegionIndex,
        /// The group since.
        group: Group,
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
