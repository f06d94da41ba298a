//! What the controller is told and what it decides.

use fulgurite_units::{ByteCount, Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::{Cause, GroupId, Members, OpId, PlaceId};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// A client reads a blob.
    Read,
    /// A blob is written.
    Write,
    /// What is not wanted any more is removed.
    Delete,
    /// The disks of a group are mounted and looked at for the first time since a start: before
    /// anything else is done in the group (Pelican, section 3).
    Init,
    /// Lost stacks are made anew.
    Rebuild,
    /// Stacks are read to see whether they still can be.
    Scrub,
    /// Whoever wrote a blob reads it back.
    Verify,
}

impl OpKind {
    /// Which of the two queues it waits in.
    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::Read | Self::Write | Self::Delete | Self::Init | Self::Verify => Side::Client,
            Self::Rebuild | Self::Scrub => Side::Background,
        }
    }
}

impl OpKind {
    /// Why disks spin up for an operation of this kind, for who keeps a ledger.
    #[must_use]
    pub const fn cause(self, op: OpId) -> Cause {
        match self {
            Self::Read => Cause::Request(op.get()),
            Self::Write => Cause::Write(op.get()),
            Self::Delete => Cause::Delete(op.get()),
            Self::Init => Cause::Init,
            Self::Rebuild => Cause::Rebuild,
            Self::Scrub => Cause::Scrub,
            Self::Verify => Cause::Verify(op.get()),
        }
    }
}

/// A queue of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Somebody waits.
    Client,
    /// Nobody does: rebuilds and scrubs.
    Background,
}

/// Something to be done in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Op {
    /// Its number.
    pub id: OpId,
    /// Where.
    pub group: GroupId,
    /// What.
    pub kind: OpKind,
    /// Bytes of blobs that it reads or writes: what it takes of a turn.
    pub bytes: ByteCount,
    /// Disks of the group that it can use: those with stacks of its blob, or all.
    pub members: Members,
    /// How many of them are enough (k for a read; none for one that takes what there is).
    pub enough: u32,
    /// When it is due, if somebody was promised a time: the whole of it, not its first byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Instant>,
}

/// Several disks at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// One disk.
    Place(PlaceId),
    /// A failure unit: which kind, in the order of the shape, and which of them.
    Unit {
        /// Position among [`crate::Shape::units`].
        kind: u32,
        /// Which one.
        index: u32,
    },
    /// A domain: which kind, in the order of the shape, and which of them. A fan that stopped, a
    /// fuse that tripped.
    Domain {
        /// Position among [`crate::Shape::domains`].
        kind: u32,
        /// Which one.
        index: u32,
    },
}

/// How disks are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// They stand still, or cannot be told: dead, pulled out, without power, behind a server or a
    /// tray that failed. Nothing of them spins.
    Gone,
    /// They must not spin any more, and have to be put down at once: a fan stopped, or the disk is
    /// another one than was there.
    Barred,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// Something is to be done.
    Submit {
        /// What.
        op: Op,
    },
    /// A disk that was to be spun up spins, and is mounted.
    Up {
        /// Which.
        place: PlaceId,
    },
    /// A disk that was to be spun up did not, and stands still.
    UpFailed {
        /// Which.
        place: PlaceId,
    },
    /// A disk that was to be put down stands still, unmounted.
    Down {
        /// Which.
        place: PlaceId,
    },
    /// A disk that was to be put down spins on.
    DownFailed {
        /// Which.
        place: PlaceId,
    },
    /// A disk spins that was not to: somebody woke it.
    Woken {
        /// Which.
        place: PlaceId,
    },
    /// What was to be run is done, with success or without: that is for its driver to know.
    Done {
        /// Which operation.
        op: OpId,
    },
    /// Disks are lost. Whatever ran on them is answered with `Done` all the same.
    Lost {
        /// Which.
        part: Part,
        /// How.
        loss: Loss,
    },
    /// Disks are back, or others are in their places; they stand still.
    Back {
        /// Which.
        part: Part,
    },
    /// Time passed.
    Timer,
}

/// Why an operation is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Too much waits; it may come again then.
    Busy {
        /// When there will be room, as far as can be told.
        retry_after: Duration,
    },
    /// Fewer of its disks can be used than are enough. [`crate::Rack::away`] names those that
    /// cannot.
    TooFew {
        /// How many of its disks can be used.
        usable: u32,
        /// When disks that did not spin up will be tried again; none if disks have to be replaced
        /// first.
        retry_after: Option<Duration>,
    },
}

/// What shall be done. A later order to a disk replaces an earlier one, of which no answer is to
/// come any more; nor does one of a disk that was lost meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Spin a disk up and mount it. Answered with `Up` or `UpFailed`.
    SpinUp {
        /// Which.
        place: PlaceId,
        /// The operation for which its group spins; with its kind the cause
        /// ([`OpKind::cause`]).
        op: OpId,
        /// What that operation does.
        kind: OpKind,
    },
    /// Unmount a disk and put it down. Answered with `Down` or `DownFailed`.
    SpinDown {
        /// Which.
        place: PlaceId,
    },
    /// Do an operation, now. Answered with `Done`.
    Run {
        /// Which.
        op: OpId,
        /// Disks of its group that spin.
        up: Members,
    },
    /// An operation is not done.
    Refuse {
        /// Which.
        op: OpId,
        /// Why.
        refusal: Refusal,
    },
    /// A group has fewer disks than before: what lies in it has lost redundancy.
    Alarm {
        /// Which group.
        group: GroupId,
        /// How many of its disks are away.
        away: u32,
    },
    /// Disks of a group are woken though their budget of spin-ups is used up: by a first look, or a
    /// rebuild of what is in danger.
    Overdrawn {
        /// Which group.
        group: GroupId,
        /// For what.
        kind: OpKind,
    },
}
