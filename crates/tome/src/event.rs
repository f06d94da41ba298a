//! What a tome is told and what it decides.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::awake::{Object, Row};
use crate::consistency::Finding;
use crate::group::{Group, Move};
use crate::message::{Held, Message};
use crate::token::{FromKeeper, ToKeeper, TokenId};
use crate::whole::{Wanted, Whole};
use crate::{Epoch, GroupId, Member, Offset, RegionIndex, Spot, TomeError, TomeId, Version};

/// A request of a client, by a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A region is to be a member of a group.
    Join {
        /// Which region.
        region: RegionIndex,
        /// Of which group.
        group: Group,
    },
    /// A region that is in no group is to take a seat whose tome was lost, and is made anew for it.
    Rebuild {
        /// Which seat it takes: the region is `to`, of this tome.
        planned: Move,
        /// The group as it is.
        group: Group,
    },
    /// These are lost, as whoever has the set knows: a rebuild waits for none of them.
    Absent {
        /// All of them.
        tomes: BTreeSet<TomeId>,
    },
    /// A client brings an object.
    Put {
        /// Its request.
        request: RequestId,
        /// The object's name.
        name: String,
        /// Its bytes.
        bytes: Vec<u8>,
        /// Tomes that are lost: only a region whose group has none of them may take it.
        avoided: BTreeSet<TomeId>,
    },
    /// A client wants an object.
    Get {
        /// Its request.
        request: RequestId,
        /// The object's name.
        name: String,
    },
    /// A client removes an object.
    Delete {
        /// Its request.
        request: RequestId,
        /// The object's name.
        name: String,
    },
    /// Somebody wants a group checked that the tome is in.
    Check {
        /// Its request.
        request: RequestId,
        /// Which group.
        group: GroupId,
    },
    /// Somebody wants what the tome has of some offsets of a group, to bring back a block of
    /// another member. Answered with `Held`.
    Hold {
        /// Its request.
        request: RequestId,
        /// Which group.
        group: GroupId,
        /// Of which blocks.
        offsets: Vec<Offset>,
    },
    /// Somebody wants every block that was written read once, from where the full scrub is and
    /// round to there. Answered with `Scrubbed` when that is done; a start forgets it.
    Scrub {
        /// Its request.
        request: RequestId,
    },
    /// The objects that a region had before it was made anew, as its set knows them: with that its
    /// names are known, and it is written again. Answered with `Adopted`, also when it was done
    /// before.
    Adopt {
        /// The set's request.
        request: RequestId,
        /// Which region.
        region: RegionIndex,
        /// All of its objects. One whose name or blocks another one has is passed over.
        objects: Vec<(String, Object)>,
    },
    /// Another tome said something.
    Told {
        /// Who.
        from: TomeId,
        /// What.
        message: Message,
    },
    /// The keeper of tokens did.
    Keeper(FromKeeper),
    /// The disk turns.
    Up,
    /// It does not.
    UpFailed,
    /// It stands still.
    Down,
    /// What was to be read, in that order; nothing where it cannot be.
    Read {
        /// For what.
        job: u64,
        /// The blocks.
        blocks: Vec<Option<Vec<u8>>>,
    },
    /// What was to be gathered; nothing when it is not all there as it was noted.
    Gathered {
        /// For what.
        job: u64,
        /// The object.
        whole: Option<Whole>,
    },
    /// Time passed.
    Timer,
}

/// What shall be done, one after the other: each is on stable storage before the next begins. A
/// driver that cannot write gives the tome up, as the paper does when any part of one fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Keep these rows, all or none.
    Commit(Vec<Row>),
    /// Turn the disk. Answered with `Up` or `UpFailed`.
    SpinUp {
        /// The token that lets it.
        token: TokenId,
        /// Its epoch, which the fence asks for.
        epoch: Epoch,
    },
    /// Put it down. Answered with `Down`.
    SpinDown,
    /// Read these. Answered with `Read`.
    Read {
        /// For what.
        job: u64,
        /// Where.
        spots: Vec<Spot>,
    },
    /// Read these into one object, each compared as it comes. Answered with `Gathered`.
    Gather {
        /// For what.
        job: u64,
        /// Where its blocks lie, in their order.
        spots: Vec<Spot>,
        /// What they have to be.
        wanted: Wanted,
    },
    /// Write a block.
    Write {
        /// Where.
        spot: Spot,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Tell another tome.
    Tell {
        /// Whom.
        to: TomeId,
        /// What.
        message: Message,
    },
    /// Tell the keeper of tokens.
    Keeper(ToKeeper),
    /// Answer a client.
    Answer {
        /// Its request.
        request: RequestId,
        /// The answer.
        answer: Answer,
    },
    /// Somebody should know.
    Alarm(Alarm),
}

/// What a client is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object is on this disk, with the parity of its segments. It survives bad blocks, and not
    /// the loss of the tome.
    Local,
    /// It is in every parity of its group: it survives as many lost tomes as there are parities.
    /// Comes after `Local`, when that is so.
    Protected,
    /// The object.
    Bytes(Vec<u8>),
    /// It is removed.
    Deleted,
    /// The objects of a region that was made anew are here.
    Adopted,
    /// What a member of a group has of the offsets that were asked for, in that order.
    Held {
        /// Which member it is.
        member: Member,
        /// What it has.
        held: Vec<Held>,
    },
    /// Every block that was written was read, or could not be.
    Scrubbed,
    /// A group was checked.
    Checked {
        /// What is wrong; nothing if it agrees.
        findings: Vec<Finding>,
        /// Signatures that members told for it.
        exchanged: u64,
    },
    /// It cannot be done.
    Refused(TomeError),
}

/// What somebody should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alarm {
    /// So many blocks were bad and were made anew: out of their segments, or of the group where
    /// those were not enough.
    Healed {
        /// Of which region.
        region: RegionIndex,
        /// How many.
        blocks: usize,
    },
    /// More of a segment is bad than its parity brings back. The group is asked for it; `Healed`
    /// follows when it is whole again.
    SegmentLost {
        /// Of which region.
        region: RegionIndex,
        /// Which.
        segment: u32,
    },
    /// A change cannot be computed any more, since a block that it is of cannot be read, and the
    /// group does not have it either. It is asked again from time to time.
    ChangeLost {
        /// Of which region.
        region: RegionIndex,
        /// Which.
        version: Version,
    },
    /// A region was made anew and has its seat.
    Rebuilt {
        /// Which region.
        region: RegionIndex,
        /// Of which group.
        group: GroupId,
    },
    /// A region is not made anew any more: the tome that had its seat is back.
    RebuildDropped {
        /// Which region.
        region: RegionIndex,
        /// Of which group.
        group: GroupId,
    },
    /// Another tome has this one's seat in a group now.
    SeatLost {
        /// Which region had it.
        region: RegionIndex,
        /// Of which group.
        group: GroupId,
    },
    /// A tome said something that is not its to say, or not true.
    Foreign {
        /// Which tome.
        from: TomeId,
        /// Of which group.
        group: GroupId,
    },
}
