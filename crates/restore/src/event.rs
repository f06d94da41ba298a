//! The controller's events and commands.

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
    /// Creates the id of the restore with this number.
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

/// One piece of a restore, by its index in the request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PieceId {
    /// The restore that it belongs to.
    pub restore: RestoreId,
    /// Index among its pieces, from zero.
    pub index: u32,
}

impl fmt::Display for PieceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.restore, self.index)
    }
}

/// The unit that a tier brings to a drive: a platter, a group of disks. Pieces at one place are
/// fetched together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Place(u128);

impl Place {
    /// The place with this number in its tier.
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

/// Index of a tier of the controller, from zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct TierIndex(pub u32);

impl TierIndex {
    /// Whether it is the first tier.
    fn is_first(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) const fn get(self) -> usize {
        self.0 as usize
    }
}

/// What one restore fetches from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Its tier; pieces that are available at once count as the first tier's.
    #[serde(default, skip_serializing_if = "TierIndex::is_first")]
    pub tier: TierIndex,
    /// Its place; none when fetching it together with others saves nothing.
    pub place: Option<Place>,
    /// Byte offset at its place. No decision depends on it: it shows readers of a log which pieces
    /// lie next to each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<ByteCount>,
    /// Length, and the space that it takes in the copy.
    pub bytes: ByteCount,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// A restore is requested. If it is known, it may become due sooner, and it keeps its pieces.
    Asked {
        /// Restore id.
        restore: RestoreId,
        /// Retrieval class.
        retrieval: Retrieval,
        /// Time of the request.
        at: UnixTime,
        /// What to fetch: at least one piece, even if it is available at once and has no bytes.
        pieces: Vec<Piece>,
    },
    /// A piece was fetched.
    Came {
        /// The piece.
        piece: PieceId,
    },
    /// A piece could not be fetched.
    Failed {
        /// The piece.
        piece: PieceId,
    },
    /// The copy is readable, and its restore is finished.
    Committed {
        /// The restore.
        restore: RestoreId,
    },
    /// The fetched data is unusable or could not be stored: all of it has to be fetched again. Only
    /// for a restore that was to be committed.
    Lost {
        /// The restore.
        restore: RestoreId,
    },
    /// A restore is canceled: its object is gone.
    Forgotten {
        /// The restore.
        restore: RestoreId,
    },
    /// Sets the space for the copies of restores that have begun.
    Room {
        /// Bytes.
        bytes: ByteCount,
    },
    /// Time passed.
    Timer,
}

/// What the driver must do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Fetch these pieces together. Answer each with `Came` or `Failed`, in any order.
    Fetch {
        /// Their place; none for a piece that is available at once or fetched by itself.
        place: Option<Place>,
        /// The pieces.
        pieces: Vec<PieceId>,
        /// When the first of them is due.
        due: UnixTime,
    },
    /// All pieces have arrived: make the copy readable. Answer with `Committed`, `Lost` or
    /// `Forgotten`.
    Commit {
        /// The restore.
        restore: RestoreId,
    },
    /// Discard what a restore has fetched; it starts over later.
    Forget {
        /// The restore.
        restore: RestoreId,
    },
}
