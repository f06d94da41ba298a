//! Events that a tome handles, and the commands that it issues.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::consistency::Finding;
use crate::group::{Group, Move};
use crate::message::{Held, Message};
use crate::metadata::{Object, Row};
use crate::object_assembler::{ExpectedObject, VerifiedObject};
use crate::token::{FromTokenManager, ToTokenManager, TokenId};
use crate::{
    Epoch, GroupId, Member, Offset, PhysicalBlock, RegionIndex, TomeError, TomeId, Version,
};

/// A client's request, numbered by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Make a region a member of a group.
    Join {
        /// The region.
        region: RegionIndex,
        /// The group.
        group: Group,
    },
    /// Rebuild: a region that is in no group takes over the member slot of a lost tome.
    Rebuild {
        /// The move: the region is its `to`, of this tome.
        planned: Move,
        /// The group before the move.
        group: Group,
    },
    /// Tomes that are lost according to the set: a rebuild waits for none of them.
    Absent {
        /// All lost tomes.
        tomes: BTreeSet<TomeId>,
    },
    /// A client puts an object.
    Put {
        /// Its request.
        request: RequestId,
        /// The object's name.
        name: String,
        /// Its bytes.
        bytes: Vec<u8>,
        /// Lost tomes: only a region whose group has none of them may take the object.
        avoided: BTreeSet<TomeId>,
    },
    /// A client reads an object.
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
    /// A client asks to check a group that the tome is in.
    Check {
        /// Its request.
        request: RequestId,
        /// The group.
        group: GroupId,
    },
    /// A client asks for what the tome knows of some offsets of a group, to recover a block of
    /// another member. Answered with `Held`.
    Hold {
        /// Its request.
        request: RequestId,
        /// The group.
        group: GroupId,
        /// The blocks.
        offsets: Vec<Offset>,
    },
    /// A client asks to have every written block read once, from the position of the full scrub and
    /// around to it. Answered with `Scrubbed` when done; a restart forgets it.
    Scrub {
        /// Its request.
        request: RequestId,
    },
    /// The objects of a rebuilt region, as the set knows them: afterwards its names are known and
    /// it may be written again. Answered with `Adopted`, also if that was done before.
    Adopt {
        /// The set's request.
        request: RequestId,
        /// The region.
        region: RegionIndex,
        /// All of its objects. One whose name or blocks are in use is skipped.
        objects: Vec<(String, Object)>,
    },
    /// A message from another tome.
    Received {
        /// The sender.
        from: TomeId,
        /// The message.
        message: Message,
    },
    /// A message from the token manager.
    TokenManager(FromTokenManager),
    /// The disk is spinning.
    SpunUp,
    /// The disk did not spin up.
    SpinUpFailed,
    /// The disk has spun down.
    SpunDown,
    /// The blocks read, in the order requested; `None` where one cannot be read.
    Read {
        /// The job that asked.
        job: u64,
        /// The blocks.
        blocks: Vec<Option<Vec<u8>>>,
    },
    /// The object read; `None` if it is incomplete or does not match its signatures.
    ObjectRead {
        /// The job that asked.
        job: u64,
        /// The object.
        whole: Option<VerifiedObject>,
    },
    /// Time passed.
    Timer,
}

/// Commands, executed in order: each is on stable storage before the next begins. A driver that
/// cannot write gives up on the tome, as the paper does when any part of one fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Persist these rows, all or none.
    Commit(Vec<Row>),
    /// Spin the disk up. Answered with `SpunUp` or `SpinUpFailed`.
    SpinUp {
        /// The token that permits it.
        token: TokenId,
        /// Its epoch, which the fence checks.
        epoch: Epoch,
    },
    /// Spin the disk down. Answered with `SpunDown`.
    SpinDown,
    /// Read physical blocks. Answered with `Read`.
    Read {
        /// The job that asks.
        job: u64,
        /// The physical blocks.
        physical_blocks: Vec<PhysicalBlock>,
    },
    /// Read physical blocks into one object and verify each. Answered with `ObjectRead`.
    ReadObject {
        /// The job that asks.
        job: u64,
        /// Physical blocks of the object, in order.
        physical_blocks: Vec<PhysicalBlock>,
        /// The expected object.
        wanted: ExpectedObject,
    },
    /// Write a block.
    Write {
        /// The physical block.
        physical_block: PhysicalBlock,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Send a message to another tome.
    Send {
        /// The receiver.
        to: TomeId,
        /// The message.
        message: Message,
    },
    /// Send a message to the token manager.
    TokenManager(ToTokenManager),
    /// Answer a client.
    Answer {
        /// Its request.
        request: RequestId,
        /// The answer.
        answer: Answer,
    },
    /// Raise an alarm.
    Alarm(Alarm),
}

/// The answer to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The object is on this disk, with the parity of its segments. It survives bad blocks but not
    /// the loss of the tome.
    Local,
    /// Every parity of its group has the object: it survives the loss of as many tomes as there are
    /// parities. Follows `Local` once that is so.
    Protected,
    /// The object.
    Bytes(Vec<u8>),
    /// The object is removed.
    Deleted,
    /// The objects of a rebuilt region are adopted.
    Adopted,
    /// What a member knows of the offsets asked for, in that order.
    Held {
        /// The member.
        member: Member,
        /// One entry for each offset.
        held: Vec<Held>,
    },
    /// Every written block was read, or tried.
    Scrubbed,
    /// A group was checked.
    Checked {
        /// What is wrong; empty if the group agrees.
        findings: Vec<Finding>,
        /// Signatures exchanged for it.
        exchanged: u64,
    },
    /// The request failed.
    Refused(TomeError),
}

/// Something that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alarm {
    /// Bad blocks were rebuilt: from their segments, or from the group where those were not enough.
    Healed {
        /// Their region.
        region: RegionIndex,
        /// Number of blocks.
        blocks: usize,
    },
    /// A segment has more bad blocks than its parity can rebuild. The group is asked; `Healed`
    /// follows once it is rebuilt.
    SegmentLost {
        /// Its region.
        region: RegionIndex,
        /// The segment.
        segment: u32,
    },
    /// A delta can no longer be computed: a block that it needs cannot be read, and the group does
    /// not have it either. The group is asked again from time to time.
    ChangeLost {
        /// Its region.
        region: RegionIndex,
        /// Its version.
        version: Version,
    },
    /// A region was rebuilt and has taken its member slot.
    Rebuilt {
        /// The region.
        region: RegionIndex,
        /// Its group.
        group: GroupId,
    },
    /// A rebuild was dropped: the tome that had the member slot is back.
    RebuildDropped {
        /// The region.
        region: RegionIndex,
        /// Its group.
        group: GroupId,
    },
    /// Another tome has taken over this one's member slot.
    SlotLost {
        /// The region that had it.
        region: RegionIndex,
        /// Its group.
        group: GroupId,
    },
    /// A tome sent a message that it may not send, or that is false.
    Foreign {
        /// The tome.
        from: TomeId,
        /// The group.
        group: GroupId,
    },
}
