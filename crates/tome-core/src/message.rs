//! Messages between tomes; any network can carry them.
//!
//! Whatever arrives may arrive twice, late or never, or from a tome that has no business here;
//! nothing is trusted before it is compared with the metadata store. The transport must
//! authenticate tomes. Not here: tokens ([`crate::token`]), and clients.

use serde::{Deserialize, Serialize};

use crate::consistency::{AppliedSummary, Change, Nodes, Report};
use crate::group::{Group, Move};
use crate::offline_read::Holding;
use crate::{Epoch, GroupId, Member, Offset, Version};

/// A message from one tome to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// From a data member to a parity: a block changed; apply the delta.
    Delta {
        /// The group.
        group: GroupId,
        /// The data member.
        member: Member,
        /// The change.
        change: Change,
        /// Every parity has all changes below this version.
        floor: Version,
        /// XOR of the block's old and new bytes.
        bytes: Vec<u8>,
    },
    /// From a data member to a parity: asks whether it has a change.
    Query {
        /// The group.
        group: GroupId,
        /// The data member.
        member: Member,
        /// Version of the change.
        version: Version,
        /// Every parity has all changes below this version.
        floor: Version,
    },
    /// From a parity to a data member: the status of a change.
    Status {
        /// The group.
        group: GroupId,
        /// The parity, from zero.
        parity: u8,
        /// Version of the change.
        version: Version,
        /// The status.
        status: Status,
    },
    /// Asks for the root of a region, and what went into it.
    ReportWanted {
        /// The group.
        group: GroupId,
        /// Request number, for the answer.
        round: u64,
    },
    /// Answer to `ReportWanted`.
    Report {
        /// The group.
        group: GroupId,
        /// Number of the request.
        round: u64,
        /// The member that answers.
        member: Member,
        /// The root.
        report: Report,
    },
    /// Asks for nodes of a region's tree.
    NodesWanted {
        /// The group.
        group: GroupId,
        /// Request number, for the answer.
        round: u64,
        /// The level; blocks are level 0.
        level: u32,
        /// Nodes of that level.
        indexes: Vec<u32>,
    },
    /// Answer to `NodesWanted`.
    Nodes {
        /// The group.
        group: GroupId,
        /// Number of the request.
        round: u64,
        /// The member that answers.
        member: Member,
        /// The nodes.
        nodes: Nodes,
    },
    /// The sender is to take over a member slot: do not write the region until then.
    Freeze(Move),
    /// Answer to `Freeze`, repeated from time to time while the region is frozen.
    Ready {
        /// The move.
        planned: Move,
        /// The member that answers.
        member: Member,
        /// Its report.
        report: Report,
        /// Whether it has no changes in flight.
        is_quiet: bool,
    },
    /// The move is dropped; sent by its target.
    Thaw(Move),
    /// A member slot has moved.
    Moved(Group),
    /// Acknowledges `Moved`.
    Learned {
        /// The group.
        group: GroupId,
        /// Epoch of the group.
        epoch: Epoch,
    },
    /// Asks what a member knows of some offsets of one segment, to recover a bad block.
    HoldingsWanted {
        /// The group.
        group: GroupId,
        /// Request number, for the answer.
        round: u64,
        /// The blocks.
        offsets: Vec<Offset>,
        /// Whether its disk is to spin; if not, it answers from its metadata store.
        is_whole: bool,
    },
    /// Answer to `HoldingsWanted`.
    Holdings {
        /// The group.
        group: GroupId,
        /// Number of the request.
        round: u64,
        /// What it knows of each; `None` when it cannot read them itself.
        held: Option<Vec<Held>>,
    },
    /// A data member was lost while only some parities had one of its changes: asks a parity that
    /// has it to send it to one that lacks it. Sent by the target of a move.
    Share {
        /// The move.
        planned: Move,
        /// The data member.
        member: Member,
        /// Version of the change.
        version: Version,
        /// The parity that lacks it, from zero.
        parity: u8,
    },
}

/// What a member knows of an offset: a [`Holding`] on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its block; empty when only the metadata store was asked.
    pub block: Vec<u8>,
    /// Changes at the offset whose bytes it knows.
    pub changes: Vec<KnownChange>,
    /// Changes that it has applied of each data member, if it holds parity.
    pub folded: Vec<AppliedSummary>,
}

/// A change whose bytes are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownChange {
    /// The data member.
    pub member: Member,
    /// Its version.
    pub version: Version,
    /// Its bytes, before any coefficient.
    pub bytes: Vec<u8>,
}

impl From<Holding> for Held {
    fn from(holding: Holding) -> Self {
        let known = |((member, version), bytes)| KnownChange { member, version, bytes };
        let changes = holding.changes.into_iter().map(known).collect();
        Self { block: holding.block, changes, folded: holding.folded }
    }
}

impl Held {
    /// Returns the same as a holding of the member that sent it.
    #[must_use]
    pub fn holding(self, member: Member) -> Holding {
        let known = |known: KnownChange| ((known.member, known.version), known.bytes);
        let changes = self.changes.into_iter().map(known).collect();
        Holding { member, block: self.block, changes, folded: self.folded }
    }
}

/// Status of a change at a parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It does not know the change.
    Unknown,
    /// It stores too many changes of this member already; retry later.
    Full,
    /// The change is in its metadata store, and is applied when the disk spins.
    Stored,
    /// The change is applied durably.
    Folded,
}

impl Message {
    /// The group that the message is about.
    #[must_use]
    pub const fn group(&self) -> GroupId {
        match self {
            Self::Delta { group, .. }
            | Self::Query { group, .. }
            | Self::Status { group, .. }
            | Self::ReportWanted { group, .. }
            | Self::Report { group, .. }
            | Self::NodesWanted { group, .. }
            | Self::Nodes { group, .. }
            | Self::HoldingsWanted { group, .. }
            | Self::Holdings { group, .. }
            | Self::Learned { group, .. } => *group,
            Self::Freeze(planned)
            | Self::Ready { planned, .. }
            | Self::Share { planned, .. }
            | Self::Thaw(planned) => planned.group,
            Self::Moved(group) => group.id(),
        }
    }
}
