//! The mechanical operations that the controller orders, one at a time per shuttle or drive.
//!
//! Each operation of Silica section 7.1 is a separate command, so that a driver times and a trace
//! shows each one: horizontal motion, crabbing, pick, place, mount, unmount, switch, seek. Not
//! here: how long an operation takes ([`crate::control::Mechanics`]) and what decides it.

use fulgurite_units::{DriveIndex, PlatterId, ShuttleIndex, SlotIndex, TrackIndex};
use serde::{Deserialize, Serialize};

use crate::control::{
    CommandId, Machine, PanelIndex, RailPosition, RequestId, ShelfIndex, TrackSpan,
};

/// An operation to carry out. The driver answers it with exactly one event that names `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Identifies the command in the answer.
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
        /// The shuttle that moves.
        shuttle: ShuttleIndex,
        /// Where it starts.
        from: RailPosition,
        /// Where it ends.
        to: RailPosition,
        /// Whether the driver reports the shuttle's position on the way
        /// ([`crate::control::Event::Passed`]), every [`crate::control::limits::REPORT_UM`], if it
        /// knows it.
        reports: bool,
    },
    /// The shuttle swings to the next pair of rails, one shelf up or down.
    Crab {
        /// The shuttle that moves.
        shuttle: ShuttleIndex,
        /// The shelf it leaves.
        from: ShelfIndex,
        /// The shelf it reaches, next to `from`.
        to: ShelfIndex,
    },
    /// The shuttle takes a platter into its picker.
    Pick {
        /// The shuttle that picks.
        shuttle: ShuttleIndex,
        /// The platter it picks.
        platter: PlatterId,
        /// Where it picks from.
        from: Source,
    },
    /// The shuttle hands over the platter in its picker.
    Place {
        /// The shuttle that places.
        shuttle: ShuttleIndex,
        /// The platter it places.
        platter: PlatterId,
        /// Where it places it.
        to: Destination,
    },
    /// The shuttle charges for [`crate::control::limits::CHARGE_INTERVAL`] at the charging point
    /// where it stands: the dock of a read drive.
    Charge {
        /// The shuttle that charges.
        shuttle: ShuttleIndex,
    },
    /// The drive mounts the platter that lies in one of its slots.
    Mount {
        /// The drive.
        drive: DriveIndex,
        /// The slot of the drive.
        slot: DriveSlot,
        /// The platter it mounts.
        platter: PlatterId,
    },
    /// The drive releases a mounted platter, so that a shuttle can pick it.
    Unmount {
        /// The drive.
        drive: DriveIndex,
        /// The slot of the drive.
        slot: DriveSlot,
        /// The platter it releases.
        platter: PlatterId,
    },
    /// The drive turns its optics to the platter mounted in the other slot.
    Switch {
        /// The drive.
        drive: DriveIndex,
        /// The slot it turns to.
        to: DriveSlot,
    },
    /// The drive moves to a track of the platter it faces.
    Seek {
        /// The drive.
        drive: DriveIndex,
        /// The platter it faces.
        platter: PlatterId,
        /// The track it moves to.
        track: TrackIndex,
    },
    /// The drive reads whole tracks for one request.
    Read {
        /// The drive.
        drive: DriveIndex,
        /// The platter it reads from.
        platter: PlatterId,
        /// The request it reads for.
        request: RequestId,
        /// The tracks it reads.
        tracks: TrackSpan,
    },
    /// The drive reads the tracks of a new platter that are not verified yet. The driver may be
    /// asked to stop early ([`crate::control::Output::Halt`]); the rest then comes as another pass.
    VerifyPass {
        /// The drive.
        drive: DriveIndex,
        /// The platter it reads.
        platter: PlatterId,
        /// The request it reads for.
        request: RequestId,
        /// The tracks left to verify.
        tracks: TrackSpan,
    },
}

impl Action {
    /// Returns the machine that carries it out.
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

/// Where a shuttle can bring a platter. No variant names a write drive or an eject bay: that is the
/// air gap.
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
    /// For platters with customer reads; always served first.
    First,
    /// For new platters, served while no customer needs the drive; and for customers as well if the
    /// policy gives them two slots.
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
