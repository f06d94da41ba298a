//! What the controller orders: one mechanical operation of one shuttle or drive at a time.
//!
//! Each operation of Silica section 7.1 is a command of its own, so a driver times each by itself
//! and a trace shows each: horizontal motion, crabbing, pick, place, mount, unmount, switch, seek.
//! Not here: how long an operation takes ([`crate::Mechanics`]) and who decides it.

use fulgurite_units::{DriveIndex, PlatterId, ShuttleIndex, SlotIndex, TrackIndex};
use serde::{Deserialize, Serialize};

use crate::{CommandId, Machine, PanelIndex, RailPosition, RequestId, ShelfIndex, TrackSpan};

/// An operation to carry out. The driver answers it with exactly one event that names `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The name to answer with.
    pub id: CommandId,
    /// The operation.
    pub action: Action,
}

/// A mechanical operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// The shuttle moves along its rails and aligns itself.
    Move {
        /// Who moves.
        shuttle: ShuttleIndex,
        /// Where it stands.
        from: RailPosition,
        /// Where it goes.
        to: RailPosition,
        /// Whether the driver says where it is on its way ([`crate::Event::Passed`]), each
        /// [`crate::limits::REPORT_UM`], if it knows.
        reports: bool,
    },
    /// The shuttle swings to the next pair of rails, one shelf up or down.
    Crab {
        /// Who moves.
        shuttle: ShuttleIndex,
        /// The shelf it leaves.
        from: ShelfIndex,
        /// The shelf it reaches, next to `from`.
        to: ShelfIndex,
    },
    /// The shuttle takes a platter into its picker.
    Pick {
        /// Who picks.
        shuttle: ShuttleIndex,
        /// What it picks.
        platter: PlatterId,
        /// Out of what.
        from: Source,
    },
    /// The shuttle hands over the platter in its picker.
    Place {
        /// Who places.
        shuttle: ShuttleIndex,
        /// What it places.
        platter: PlatterId,
        /// Into what.
        to: Destination,
    },
    /// The shuttle takes power for [`crate::limits::CHARGE_PIECE`] at the charging point where it
    /// stands: the dock of a read drive.
    Charge {
        /// Who charges.
        shuttle: ShuttleIndex,
    },
    /// The drive mounts the platter that lies in a slot of it.
    Mount {
        /// Which drive.
        drive: DriveIndex,
        /// Which of its slots.
        slot: DriveSlot,
        /// What it mounts.
        platter: PlatterId,
    },
    /// The drive releases a mounted platter, so that a shuttle can pick it.
    Unmount {
        /// Which drive.
        drive: DriveIndex,
        /// Which of its slots.
        slot: DriveSlot,
        /// What it releases.
        platter: PlatterId,
    },
    /// The drive turns its optics to the platter mounted in the other slot.
    Switch {
        /// Which drive.
        drive: DriveIndex,
        /// The slot it turns to.
        to: DriveSlot,
    },
    /// The drive moves to a track of the platter it faces.
    Seek {
        /// Which drive.
        drive: DriveIndex,
        /// In which platter.
        platter: PlatterId,
        /// To which track.
        track: TrackIndex,
    },
    /// The drive reads whole tracks for one request.
    Read {
        /// Which drive.
        drive: DriveIndex,
        /// From which platter.
        platter: PlatterId,
        /// For which request.
        request: RequestId,
        /// Which tracks.
        tracks: TrackSpan,
    },
    /// The drive reads the tracks of a new platter that are not verified yet. The driver may be
    /// asked to stop early ([`crate::Output::Halt`]); the rest then comes as another pass.
    VerifyPass {
        /// Which drive.
        drive: DriveIndex,
        /// Which platter.
        platter: PlatterId,
        /// For which request.
        request: RequestId,
        /// The tracks left to verify.
        tracks: TrackSpan,
    },
}

impl Action {
    /// Who carries it out.
    #[must_use]
    pub const fn machine(&self) -> Machine {
        match *self {
            Self::Move { shuttle, .. }
            | Self::Crab { shuttle, .. }
            | Self::Pick { shuttle, .. }
            | Self::Place { shuttle, .. }
            | Self::Charge { shuttle } => Machine::Shuttle(shuttle),
            Self::Mount { drive, .. }
            | Self::Unmount { drive, .. }
            | Self::Switch { drive, .. }
            | Self::Seek { drive, .. }
            | Self::Read { drive, .. }
            | Self::VerifyPass { drive, .. } => Machine::Drive(drive),
        }
    }
}

/// Where a shuttle can take a platter from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// The write drive's one-way exit on a panel.
    EjectBay(PanelIndex),
    /// A storage slot.
    Storage(SlotIndex),
    /// A slot of a read drive.
    Drive(DriveIndex, DriveSlot),
}

/// Where a shuttle can bring a platter to. There is no write drive and no eject bay here: that is
/// the air gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Destination {
    /// A storage slot.
    Storage(SlotIndex),
    /// A slot of a read drive.
    Drive(DriveIndex, DriveSlot),
}

/// One of the two slots of a read drive (Silica, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DriveSlot {
    /// For platters with reads of customers; always served first.
    First,
    /// For new platters, served while no customer needs the drive; and for customers as well where
    /// the policy gives them two slots.
    Second,
}

impl DriveSlot {
    pub(crate) const BOTH: [Self; 2] = [Self::First, Self::Second];

    pub(crate) const fn as_usize(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}
