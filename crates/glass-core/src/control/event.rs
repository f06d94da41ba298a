//! The inputs and outputs of the controller.
//!
//! Guarantees: every request gets exactly one `Rejected` or, once accepted, exactly one `Finished`;
//! every `Do` expects exactly one of `Completed`, `Halted` or `Failed`. A request number may be
//! reused after its answer.

use std::fmt;

use fulgurite_units::{Duration, Instant, PlatterId, ShuttleIndex, SlotIndex};
use serde::{Deserialize, Serialize};

use crate::control::{
    Command, CommandId, Error, Machine, PanelIndex, RailPosition, RequestId, TrackSpan,
};

/// Something that happened, from the archive or from the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// A request to read tracks of a stored platter.
    Read {
        /// The request's number.
        request: RequestId,
        /// The platter.
        platter: PlatterId,
        /// The slot it lives in, as the catalog knows it.
        slot: SlotIndex,
        /// The tracks.
        tracks: TrackSpan,
        /// When its last byte is due. Reads are served in the order of their deadlines, then of
        /// their arrival.
        deadline: Instant,
    },
    /// A request to read a written platter completely: one that came out at an eject bay, or one
    /// that has waited in the library since a restart. Finishes with [`Outcome::Verified`]; the
    /// platter then stays in the drive until `Store` gives it a slot.
    Verify {
        /// The request's number.
        request: RequestId,
        /// The platter.
        platter: PlatterId,
        /// The panel whose eject bay holds it. Its slot must be on the same panel, because shuttles
        /// never change panels.
        panel: PanelIndex,
        /// The tracks of the platter.
        tracks: TrackSpan,
    },
    /// A request to bring a verified platter to its slot, whatever the result of the verification:
    /// a bad platter needs a place as well.
    Store {
        /// The request's number.
        request: RequestId,
        /// The platter.
        platter: PlatterId,
        /// Its slot from now on; no other platter may live there.
        slot: SlotIndex,
    },
    /// Cancels a read. It finishes as `Canceled`, unless a drive already works on it or it is
    /// finished: then this event changes nothing.
    Cancel {
        /// The read's number.
        request: RequestId,
    },
    /// A command was carried out.
    Completed {
        /// The command.
        command: CommandId,
    },
    /// A shuttle on a reporting move has reached a position; the lane behind it is free for others.
    /// This is not an answer, and is ignored after the command's answer.
    Passed {
        /// The move command.
        command: CommandId,
        /// The position of its middle, between the start and the end of the move.
        at: RailPosition,
    },
    /// A verification pass stopped early because [`Output::Halt`] asked for it.
    Halted {
        /// The command.
        command: CommandId,
        /// Whole tracks read, from the start of its span.
        tracks_done: u32,
    },
    /// A command could not be carried out.
    Failed {
        /// The command.
        command: CommandId,
        /// The cause.
        fault: Fault,
    },
    /// A machine broke. Its current command gets no answer.
    Broke {
        /// The machine.
        machine: Machine,
    },
    /// A machine works again: a shuttle where it broke, with its cargo; a drive with the platters
    /// inside, none of them mounted.
    Repaired {
        /// The machine.
        machine: Machine,
    },
    /// A shuttle's driver reports the battery level: whenever the percentage changes, and after a
    /// repair. This is not an answer. A library that never gets this event has no batteries to
    /// manage.
    Battery {
        /// The shuttle.
        shuttle: ShuttleIndex,
        /// Level in percent; above 100 means full.
        percent: u8,
    },
    /// The deadline of the controller passed.
    Timer,
}

/// What the controller orders or reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Output {
    /// Carry this out and answer it.
    Do(Command),
    /// Let this verification pass end at the next track. It then answers `Halted`, or `Completed`
    /// if it was done anyway. This output has no answer of its own. A driver that cannot stop a
    /// pass may ignore it: customers then wait for the pass.
    Halt {
        /// The pass.
        command: CommandId,
    },
    /// A request has ended.
    Finished {
        /// The request.
        request: RequestId,
        /// Its outcome.
        outcome: Outcome,
    },
    /// A shuttle arrived where it was sent. Has no answer; for monitoring.
    Traveled(Travel),
    /// A request was not accepted, and nothing about it is kept.
    Rejected {
        /// The request.
        request: RequestId,
        /// The reason.
        reason: Error,
    },
}

/// One leg of a shuttle's trip, from where it stood to where it picks or places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Travel {
    /// The shuttle.
    pub shuttle: ShuttleIndex,
    /// Whether it fetched or returned a platter for customers; otherwise it moved a new platter.
    pub for_customers: bool,
    /// Duration, including waits for other shuttles.
    pub took: Duration,
    /// Distance along the rails from start to goal, in micrometers, on the shortest way.
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
    /// It failed.
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
    /// Broken machines keep the platter out of reach.
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
