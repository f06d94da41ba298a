//! What tomes say to each other; any network can carry it.
//!
//! Whatever comes may come twice, late or never, and from a tome that has no business here; nothing
//! of it is believed before it is compared with the awake store. Tomes are to be authenticated by
//! who carries the messages. Not here: tokens ([`crate::token`]), and clients.

use serde::{Deserialize, Serialize};

use crate::alone::Holding;
use crate::consistency::{Change, Folded, Nodes, Report};
use crate::group::{Group, Move};
use crate::{Epoch, GroupId, Member, Offset, Version};

/// From one tome to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// A data member changed a block: to a parity, to be folded.
    Delta {
        /// Of which group.
        group: GroupId,
        /// Which data member.
        member: Member,
        /// Which change.
        change: Change,
        /// Below it every parity has everything.
        floor: Version,
        /// The sum of the block's old and new bytes.
        bytes: Vec<u8>,
    },
    /// Whether a parity has a change: from its data member.
    Query {
        /// Of which group.
        group: GroupId,
        /// Which data member.
        member: Member,
        /// Of which change.
        version: Version,
        /// Below it every parity has everything.
        floor: Version,
    },
    /// How far a parity is with a change: to its data member.
    Status {
        /// Of which group.
        group: GroupId,
        /// Which parity, from zero.
        parity: u8,
        /// Of which change.
        version: Version,
        /// How far.
        status: Status,
    },
    /// Asks for the root of a region, and what it was made from.
    ReportWanted {
        /// Of which group.
        group: GroupId,
        /// A number of who asks, for the answer.
        round: u64,
    },
    /// The answer.
    Report {
        /// Of which group.
        group: GroupId,
        /// To which question.
        round: u64,
        /// Whose.
        member: Member,
        /// The root.
        report: Report,
    },
    /// Asks for nodes of a region's tree.
    NodesWanted {
        /// Of which group.
        group: GroupId,
        /// A number of who asks, for the answer.
        round: u64,
        /// The level; blocks are level 0.
        level: u32,
        /// Which nodes of it.
        indexes: Vec<u32>,
    },
    /// The answer.
    Nodes {
        /// Of which group.
        group: GroupId,
        /// To which question.
        round: u64,
        /// Whose.
        member: Member,
        /// The nodes.
        nodes: Nodes,
    },
    /// A seat is to move to who says so: the region shall not be written until it has.
    Freeze(Move),
    /// The answer, and said again from time to time while the region is frozen.
    Ready {
        /// For which move.
        planned: Move,
        /// Whose.
        member: Member,
        /// What it has.
        report: Report,
        /// Whether nothing is under way any more.
        is_quiet: bool,
    },
    /// The seat does not move: from who was to have it.
    Thaw(Move),
    /// A seat has moved.
    Moved(Group),
    /// Who says so knows it.
    Learned {
        /// Of which group.
        group: GroupId,
        /// How often a seat of it has moved.
        epoch: Epoch,
    },
    /// Asks what a member has of some offsets of one segment, to get a bad block back.
    HoldingsWanted {
        /// Of which group.
        group: GroupId,
        /// A number of who asks, for the answer.
        round: u64,
        /// Of which blocks.
        offsets: Vec<Offset>,
        /// Whether its disk is to turn; if not, it tells what it keeps awake.
        is_whole: bool,
    },
    /// The answer.
    Holdings {
        /// Of which group.
        group: GroupId,
        /// To which question.
        round: u64,
        /// What it has of each; nothing when it cannot read them itself.
        held: Option<Vec<Held>>,
    },
    /// A data member was lost while a change of it was at some parities only: one that has it shall
    /// tell it to one that has not. From who is to have a seat.
    Share {
        /// For which move.
        planned: Move,
        /// Which data member.
        member: Member,
        /// Which change.
        version: Version,
        /// Which parity lacks it, from zero.
        parity: u8,
    },
}

/// What a member has of an offset: a [`Holding`] as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its block; empty when only what is kept awake was asked for.
    pub block: Vec<u8>,
    /// Changes at the offset that it knows the bytes of.
    pub changes: Vec<Known>,
    /// What it has folded of each data member, if it has parity.
    pub folded: Vec<Folded>,
}

/// A change whose bytes are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Of which data member.
    pub member: Member,
    /// Which.
    pub version: Version,
    /// Its bytes, before any coefficient.
    pub bytes: Vec<u8>,
}

impl From<Holding> for Held {
    fn from(holding: Holding) -> Self {
        let known = |((member, version), bytes)| Known { member, version, bytes };
        let changes = holding.changes.into_iter().map(known).collect();
        Self { block: holding.block, changes, folded: holding.folded }
    }
}

impl Held {
    /// The same, of the member that told it.
    #[must_use]
    pub fn holding(self, member: Member) -> Holding {
        let known = |known: Known| ((known.member, known.version), known.bytes);
        let changes = self.changes.into_iter().map(known).collect();
        Holding { member, block: self.block, changes, folded: self.folded }
    }
}

/// How far a parity is with a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It has never heard of it.
    Unknown,
    /// It has more of this member's changes than it keeps; later there will be room.
    Full,
    /// Its awake store has it; it will be folded when the disk turns.
    Stored,
    /// It is folded for good.
    Folded,
}

impl Message {
    /// The group that it is about.
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
