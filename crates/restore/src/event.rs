//! What the controller is told and what it decides.

use std::fmt;

use fulgurite_units::{ByteCount, UnixTime};
use serde::{Deserialize, Serialize};

use crate::Retrieval;

/// One restore, numbered by its driver; never used twice.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RestoreId(u64);

impl RestoreId {
    /// The restore with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RestoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One piece of a restore, by its place among the pieces that were asked for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PieceId {
    /// Whose piece it is.
    pub restore: RestoreId,
    /// Which of its pieces, from zero.
    pub index: u32,
}

impl fmt::Display for PieceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.restore, self.index)
    }
}

/// What a tier brings to a drive as one: a platter, a group of disks. Pieces of one place are
/// fetched together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Place(u128);

impl Place {
    /// The place that its tier knows by this number.
    #[must_use]
    pub const fn new(number: u128) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }
}

/// Which of the tiers that the controller was made with, from zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct TierIndex(pub u32);

impl TierIndex {
    /// Whether it is the first.
    fn is_first(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) const fn get(self) -> usize {
        self.0 as usize
    }
}

/// What is to be fetched of one place for one restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Which tier it is in; what is at hand is the first one's.
    #[serde(default, skip_serializing_if = "TierIndex::is_first")]
    pub tier: TierIndex,
    /// Where it is; none when nothing is gained by fetching it together with others.
    pub place: Option<Place>,
    /// Which byte of its place it begins with. Nothing is decided by it: it is for who reads in a
    /// log what was asked of a place, and what of that lies side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<ByteCount>,
    /// How long it is; so much it takes of the room for copies.
    pub bytes: ByteCount,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// A restore is asked for, or asked for again: then it may become due sooner, and its pieces
    /// are those that were named before.
    Asked {
        /// Its number.
        restore: RestoreId,
        /// How fast.
        retrieval: Retrieval,
        /// When it was asked for.
        at: UnixTime,
        /// What is to be fetched: at least one piece, if only one at hand of no bytes.
        pieces: Vec<Piece>,
    },
    /// A piece that was to be fetched is there.
    Came {
        /// Which.
        piece: PieceId,
    },
    /// A piece could not be fetched.
    Failed {
        /// Which.
        piece: PieceId,
    },
    /// A copy is readable: its restore is done.
    Committed {
        /// Of which restore.
        restore: RestoreId,
    },
    /// What came of a restore is of no use, or could not be kept: all of it is to be fetched anew.
    /// Only of a restore that was to be committed.
    Lost {
        /// Of which restore.
        restore: RestoreId,
    },
    /// A restore is not wanted any more: its object is gone.
    Forgotten {
        /// Which.
        restore: RestoreId,
    },
    /// So many bytes of copies may be under way together: that is what there is room for.
    Room {
        /// How many.
        bytes: ByteCount,
    },
    /// Time passed.
    Timer,
}

/// What shall be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Fetch pieces in one visit; each is answered with `Came` or `Failed`, in any order.
    Fetch {
        /// Where they are; none for one that is at hand.
        place: Option<Place>,
        /// Which.
        pieces: Vec<PieceId>,
        /// When the first of them is due.
        due: UnixTime,
    },
    /// All pieces came: make the copy readable. Answered with `Committed`, `Lost` or `Forgotten`.
    Commit {
        /// Of which restore.
        restore: RestoreId,
    },
    /// Give back what a restore holds; it is begun anew later.
    Forget {
        /// Which.
        restore: RestoreId,
    },
}
