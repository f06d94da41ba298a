//! The values that the parts of the controller share: requests, platters and trips.
//!
//! Values only. The state is in the parts: platters in `platter_table.rs`, shuttles in `fleet.rs`,
//! drives in `drive.rs`, requests in `requests.rs`.

use fulgurite_units::{DriveIndex, Instant, ShuttleIndex, SlotIndex};
use serde::{Deserialize, Serialize};

use crate::control::floor::Position;
use crate::control::{Destination, DriveSlot, PanelIndex, RequestId, Source, TrackSpan};

/// The order in which requests are served: by due time, then by arrival. With one objective for all
/// reads this is the order of arrival (Silica, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) due: Instant,
    pub(crate) sequence: u64,
}

/// A platter, by its index in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlatterKey(pub(crate) u32);

/// An accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) platter: PlatterKey,
    pub(crate) job: Job,
}

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Queued while its platter lists it; otherwise a drive is reading for it.
    Read,
    Verify,
    Store,
}

/// A waiting read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRead {
    pub(crate) age: Age,
    pub(crate) arrived: Instant,
    pub(crate) request: RequestId,
    pub(crate) tracks: TrackSpan,
}

/// Where a platter is: always exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In the write drive's one-way exit.
    EjectBay(PanelIndex),
    /// In a storage slot.
    Storage(SlotIndex),
    /// In a slot of a read drive, mounted or not.
    Drive(DriveIndex, DriveSlot),
    /// In the picker of a shuttle.
    Shuttle(ShuttleIndex),
}

/// A queue of platters that wait for a shuttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Stored platters of a partition.
    Group(u16),
    /// New platters of a panel.
    New(PanelIndex),
}

/// The life cycle of a platter.
///
/// ```text
///   Verify --> Unverified --(read whole)--> Checked --Store--> Storing --(placed)--> Stored
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// New; `tracks` are left to verify.
    Unverified { request: RequestId, age: Age, panel: PanelIndex, tracks: TrackSpan },
    /// Its verification ended; it has no slot yet.
    Checked { panel: PanelIndex },
    /// It has a slot and is on its way there.
    Storing { request: RequestId, age: Age, panel: PanelIndex, home: SlotIndex },
    /// It lives in its slot and comes back to it.
    Stored { home: SlotIndex },
}

/// A trip that is due but has not begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand {
    pub(crate) kind: TripKind,
    pub(crate) platter: PlatterKey,
    pub(crate) from: Source,
    pub(crate) to: Destination,
}

/// One leg of a trip, from a position to a goal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TripLeg {
    pub(crate) from: Position,
    pub(crate) started: Instant,
    /// Steps made, to distinguish a leg without any from the others.
    pub(crate) steps: u32,
    /// Crabs away from the goal, to get around others.
    pub(crate) strayed: u32,
}

/// Why a shuttle travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TripKind {
    /// To bring a stored platter to a drive.
    Fetch,
    /// To return a platter to its slot, or to a spare one if that cannot be reached.
    Return,
    /// To bring a new platter to a drive.
    Collect,
    /// To bring a verified platter to its slot for the first time.
    Shelve,
}
