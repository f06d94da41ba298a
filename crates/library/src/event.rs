//! What the controller is told and what it answers.
//!
//! Promises: every request is answered by exactly one `Rejected` or, once accepted, exactly one
//! `Finished`; every `Do` expects exactly one of `Completed`, `Halted` or `Failed`. A request's
//! number may be used again after its answer.

use std::fmt;

use fulgurite_units::{Duration, Instant, PlatterId, ShuttleIndex, SlotIndex};
use serde::{Deserialize, Serialize};

use crate::{Command, CommandId, Error, Machine, PanelIndex, RailPosition, RequestId, TrackSpan};

/// Something that happened, from the archive or from the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// Tracks of a stored platter are wanted.
    Read {
        /// The request's number.
        request: RequestId,
        /// The platter.
        platter: PlatterId,
        /// The slot it lives in, as the catalog knows it.
        slot: SlotIndex,
        /// The tracks.
        tracks: TrackSpan,
        /// When its last byte shall be there. Reads are served in the order of their deadlines,
        /// then of their arrival.
        deadline: Instant,
    },
    /// A written platter came out at an eject bay, or waits in the library since a restart, and
    /// shall be read whole. Finishes with
    /// [`Outcome::Verified`]; the platter then stays in the drive until `Store` gives it a slot.
    Verify {
        /// The request's number.
        request: RequestId,
        /// The platter.
        platter: PlatterId,
        /// The panel whose eject bay holds it; its slot must be on the same panel, for shuttles
        /// never change panels.
        panel: PanelIndex,
        /// The tracks it has.
        tracks: TrackSpan,
    },
    /// A platter that was verified shall go to its slot, whatever the verification said: a platter
    /// found bad needs a place as well.
    Store {
        /// The request's number.
        request: RequestId,
        /// The platter.
        platter: PlatterId,
        /// Its slot from now on; nothing else may live there.
        slot: SlotIndex,
    },
    /// A read is no longer wanted. It finishes as `Canceled`, unless a drive works on it already or
    /// it is finished: then this event changes nothing.
    Cancel {
        /// The read's number.
        request: RequestId,
    },
    /// A command was carried out.
    Completed {
        /// Which.
        command: CommandId,
    },
    /// A shuttle on a reporting move has come to a place; what lies behind it is free for others.
    /// Not an answer, and of no meaning after the command's answer.
    Passed {
        /// Which move.
        command: CommandId,
        /// Where its middle is, between the start and the end of the move.
        at: RailPosition,
    },
    /// A verification pass stopped early because [`Output::Halt`] asked for it.
    Halted {
        /// Which.
        command: CommandId,
        /// Whole tracks it read, from the start of its span.
        tracks_done: u32,
    },
    /// A command could not be carried out.
    Failed {
        /// Which.
        command: CommandId,
        /// Why.
        fault: Fault,
    },
    /// A machine broke. What it was doing is not answered any more.
    Broke {
        /// Which.
        machine: Machine,
    },
    /// A machine works again: a shuttle where it broke, with what it carried; a drive with the
    /// platters inside, none of them mounted.
    Repaired {
        /// Which.
        machine: Machine,
    },
    /// A shuttle's driver says how full the battery is: whenever the percentage changes, and after
    /// a repair. Not an answer. A library that is never told has no batteries to care for.
    Battery {
        /// Whose.
        shuttle: ShuttleIndex,
        /// How full; above 100 is full.
        percent: u8,
    },
    /// The deadline of the controller passed.
    Timer,
}

/// What the controller wants or has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Output {
    /// Carry this out and answer it.
    Do(Command),
    /// Let this verification pass end at the next track; it then answers `Halted`, or `Completed`
    /// if it was done anyway. Has no answer of its own. A driver that cannot stop a pass may ignore
    /// it: customers then wait for the pass.
    Halt {
        /// The pass.
        command: CommandId,
    },
    /// A request came to its end.
    Finished {
        /// Which.
        request: RequestId,
        /// How.
        outcome: Outcome,
    },
    /// A shuttle came to where it was sent. Has no answer; for those who watch.
    Traveled(Travel),
    /// A request was not accepted, and nothing about it is remembered.
    Rejected {
        /// Which.
        request: RequestId,
        /// Why.
        reason: Error,
    },
}

/// One way of a shuttle, from where it stood to where it picks or places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Travel {
    /// Who.
    pub shuttle: ShuttleIndex,
    /// Whether it fetched or returned a platter for customers; else it moved a new platter.
    pub for_customers: bool,
    /// How long it took, waiting for others included.
    pub took: Duration,
    /// Along the rails, from start to goal, in micrometers: what the shortest way needs.
    pub rail_um: u64,
    /// Shelves from start to goal.
    pub shelves: u16,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// The tracks were read.
    Read,
    /// The whole platter was read; it waits for `Store`.
    Verified,
    /// The platter lies in its slot.
    Stored,
    /// It was canceled before a drive worked on it.
    Canceled,
    /// It cannot be done.
    Failed(Fault),
}

/// Why a command, and with it a request, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// The platter is not where it should be.
    PlatterMissing,
    /// The platter is there, but the drive cannot read it (or this part of it).
    Unreadable,
    /// The drive does not work. It is not used any more.
    DriveBroken,
    /// The shuttle does not work. It is not used any more.
    ShuttleBroken,
    /// The shuttle's battery is flat. It is not used any more until it is repaired.
    BatteryFlat,
    /// Broken machines keep it out of reach.
    Unreachable,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PlatterMissing => "the platter is not where it should be",
            Self::Unreadable => "the drive cannot read the platter",
            Self::DriveBroken => "the drive is broken",
            Self::ShuttleBroken => "the shuttle is broken",
            Self::BatteryFlat => "the shuttle's battery is flat",
            Self::Unreachable => "broken machines keep the platter out of reach",
        })
    }
}
