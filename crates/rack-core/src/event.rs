//! Events and commands of the controller.

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
    /// Unwanted stacks are removed.
    Delete,
    /// Initialization: the disks of a group are mounted and checked for the first time since a
    /// start, before anything else is done in the group (Pelican, section 3).
    Init,
    /// Lost stacks are rebuilt.
    Rebuild,
    /// Stacks are read to check that they still can be.
    Scrub,
    /// A blob is read back by its writer.
    Verify,
}

impl OpKind {
    /// Returns the queue that it waits in.
    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::Read | Self::Write | Self::Delete | Self::Init | Self::Verify => Side::Client,
            Self::Rebuild | Self::Scrub => Side::Background,
        }
    }
}

impl OpKind {
    /// Returns why disks spin up for an operation of this kind, for the ledger.
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
    /// A client waits.
    Client,
    /// No client waits: rebuilds and scrubs.
    Background,
}

/// An operation in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Op {
    /// Its id.
    pub id: OpId,
    /// The group.
    pub group: GroupId,
    /// The kind of operation.
    pub kind: OpKind,
    /// Bytes of blobs that it reads or writes, as its cost for the scheduler.
    pub bytes: ByteCount,
    /// Disks of the group that it can use: those with stacks of its blob, or all.
    pub members: Members,
    /// How many of them are enough: k for a read, zero for an operation that takes whatever disks
    /// there are.
    pub enough: u32,
    /// Its deadline, if a time was promised: for all of it, not for its first byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Instant>,
}

/// A part of the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// One disk.
    Place(PlaceId),
    /// A failure unit: its kind, by position in the shape, and its index.
    Unit {
        /// Position among [`crate::Shape::units`].
        kind: u32,
        /// Index of the unit.
        index: u32,
    },
    /// A domain: its kind, by position in the shape, and its index. For example a stopped fan or a
    /// blown fuse.
    Domain {
        /// Position among [`crate::Shape::domains`].
        kind: u32,
        /// Index of the domain.
        index: u32,
    },
}

/// How disks are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// They do not spin, or cannot be reached: dead, unplugged, without power, behind a failed
    /// server or tray.
    Gone,
    /// They must not spin any more and are to be spun down at once: a fan stopped, or the disk is
    /// not the one that was there.
    Barred,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// An operation is requested.
    Submit {
        /// The operation.
        op: Op,
    },
    /// A disk that was to be spun up spins, and is mounted.
    Up {
        /// The disk.
        place: PlaceId,
    },
    /// A disk that was to be spun up failed to, and does not spin.
    UpFailed {
        /// The disk.
        place: PlaceId,
    },
    /// A disk that was to be spun down has stopped, and is unmounted.
    Down {
        /// The disk.
        place: PlaceId,
    },
    /// A disk that was to be spun down still spins.
    DownFailed {
        /// The disk.
        place: PlaceId,
    },
    /// A disk spins that was not commanded to (external spin-up).
    ExternalSpinUp {
        /// The disk.
        place: PlaceId,
    },
    /// A running operation has ended. Whether it succeeded is the driver's concern.
    Done {
        /// The operation.
        op: OpId,
    },
    /// Disks are lost. Operations running on them still end with `Done`.
    Lost {
        /// The part.
        part: Part,
        /// How they are lost.
        loss: Loss,
    },
    /// Disks are back, or were replaced; they do not spin.
    Back {
        /// The part.
        part: Part,
    },
    /// Time passed.
    Timer,
}

/// Why an operation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Too much waits; try again later.
    Busy {
        /// Estimate of when there will be room.
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

/// A command. A later command to a disk replaces an earlier one, which is then not answered any
/// more. Neither is a command to a disk that was lost meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Spin a disk up and mount it. Answered with `Up` or `UpFailed`.
    SpinUp {
        /// The disk.
        place: PlaceId,
        /// The operation for which its group spins; with its kind it gives the cause
        /// ([`OpKind::cause`]).
        op: OpId,
        /// What that operation does.
        kind: OpKind,
    },
    /// Unmount a disk and spin it down. Answered with `Down` or `DownFailed`.
    SpinDown {
        /// The disk.
        place: PlaceId,
    },
    /// Run an operation now. Answered with `Done`.
    Run {
        /// The operation.
        op: OpId,
        /// Disks of its group that spin.
        up: Members,
    },
    /// Refuse an operation.
    Refuse {
        /// The operation.
        op: OpId,
        /// The reason.
        refusal: Refusal,
    },
    /// A group has fewer disks than before: its blobs have lost redundancy.
    Alarm {
        /// Which group.
        group: GroupId,
        /// How many of its disks are away.
        away: u32,
    },
    /// Disks of a group are spun up although their budget of spin-ups is used up, for an
    /// initialization or a rebuild of endangered data.
    Overdrawn {
        /// Which group.
        group: GroupId,
        /// The kind of operation.
        kind: OpKind,
    },
}
