//! What the controller remembers: requests not finished, platters with something to do, shuttles
//! and drives. A platter at rest in its slot without requests is forgotten: the catalog knows it.

use std::collections::{BTreeMap, VecDeque};

use fulgurite_units::{DriveIndex, Instant, PlatterId, ShuttleIndex, SlotIndex, TrackIndex};

use crate::floor::Position;
use crate::{Action, CommandId, Destination, DriveSlot, PanelIndex, RequestId, Source, TrackSpan};

/// When a request was accepted; the order in which requests are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) at: Instant,
    pub(crate) sequence: u64,
}

/// An accepted request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) platter: PlatterId,
    pub(crate) age: Age,
    pub(crate) job: Job,
}

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Queued as long as its platter lists it; else a drive reads for it.
    Read {
        tracks: TrackSpan,
    },
    Verify,
    Store,
}

/// Where a platter is: always exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// A platter with something to do.
#[derive(Clone, Debug)]
pub(crate) struct Platter {
    pub(crate) stage: Stage,
    pub(crate) place: Place,
    /// The shuttle that is on its way to pick it.
    pub(crate) claim: Option<ShuttleIndex>,
    /// Reads that wait, oldest first.
    pub(crate) reads: BTreeMap<Age, RequestId>,
    /// Reads begun since it left its slot.
    pub(crate) visit_reads: u32,
    /// The key under which it waits for a fetch, if it does.
    pub(crate) waits_since: Option<Age>,
}

/// How far a platter has come in its life.
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
    /// It has a slot and goes there.
    Storing { request: RequestId, age: Age, panel: PanelIndex, home: SlotIndex },
    /// It lives in its slot and comes back to it.
    Stored { home: SlotIndex },
}

impl Platter {
    pub(crate) const fn new(stage: Stage, place: Place) -> Self {
        Self {
            stage,
            place,
            claim: None,
            reads: BTreeMap::new(),
            visit_reads: 0,
            waits_since: None,
        }
    }

    /// The slot it lives in, if it has one.
    pub(crate) const fn home(&self) -> Option<SlotIndex> {
        match self.stage {
            Stage::Stored { home } | Stage::Storing { home, .. } => Some(home),
            Stage::Unverified { .. } | Stage::Checked { .. } => None,
        }
    }

    /// The oldest read that waits.
    pub(crate) fn oldest_read(&self) -> Option<(Age, RequestId)> {
        self.reads.first_key_value().map(|(age, request)| (*age, *request))
    }
}

/// One shuttle.
#[derive(Clone, Debug)]
pub(crate) struct Shuttle {
    pub(crate) at: Position,
    pub(crate) cargo: Option<PlatterId>,
    pub(crate) trip: Option<Trip>,
    pub(crate) broken: bool,
    /// Fetches made since it last moved a new platter.
    pub(crate) fetches_in_a_row: u32,
}

/// The plan of one transport, complete before it starts.
#[derive(Clone, Debug)]
pub(crate) struct Trip {
    pub(crate) kind: TripKind,
    pub(crate) platter: PlatterId,
    pub(crate) from: Source,
    pub(crate) to: Destination,
    /// What is being done.
    pub(crate) current: Option<(CommandId, Action)>,
    /// What is left to do.
    pub(crate) rest: VecDeque<Action>,
}

/// Why a shuttle travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TripKind {
    /// A stored platter to a drive. Stays in the shuttle's partition.
    Fetch,
    /// A platter back to its slot. Stays in the shuttle's partition, unless the slot is in that of
    /// a broken neighbor.
    Return,
    /// A new platter from the eject bay to a drive. May leave the partition.
    Collect,
    /// A verified platter to its slot for the first time. May leave the partition.
    Shelve,
}

/// One read drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drive {
    pub(crate) customer: Bay,
    pub(crate) verification: Bay,
    /// The slot whose mounted platter the optics are at.
    pub(crate) facing: Option<DriveSlot>,
    /// The track of the customer's platter that can be read without a seek.
    pub(crate) head: Option<TrackIndex>,
    pub(crate) work: Option<Work>,
    pub(crate) broken: bool,
}

/// One slot of a drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bay {
    pub(crate) platter: Option<PlatterId>,
    pub(crate) mounted: bool,
    /// The shuttle that brings a platter here.
    pub(crate) reserved: Option<ShuttleIndex>,
}

/// What a drive is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) command: CommandId,
    pub(crate) action: Action,
    /// It was asked to stop early.
    pub(crate) halting: bool,
}

impl Drive {
    pub(crate) const fn bay(&self, slot: DriveSlot) -> &Bay {
        match slot {
            DriveSlot::Customer => &self.customer,
            DriveSlot::Verification => &self.verification,
        }
    }

    pub(crate) const fn bay_mut(&mut self, slot: DriveSlot) -> &mut Bay {
        match slot {
            DriveSlot::Customer => &mut self.customer,
            DriveSlot::Verification => &mut self.verification,
        }
    }

    /// Whether a shuttle may take the platter of a slot: neither mounted nor about to be.
    pub(crate) fn releases(&self, slot: DriveSlot) -> bool {
        let at_work = self.work.is_some_and(|work| match work.action {
            Action::Mount { slot: busy, .. } | Action::Unmount { slot: busy, .. } => busy == slot,
            Action::Switch { .. }
            | Action::Seek { .. }
            | Action::Read { .. }
            | Action::VerifyPass { .. }
            | Action::Move { .. }
            | Action::Crab { .. }
            | Action::Pick { .. }
            | Action::Place { .. } => false,
        });
        !at_work && !self.bay(slot).mounted
    }

    /// Whether a shuttle may start for this slot with a platter.
    pub(crate) fn admits(&self, slot: DriveSlot) -> bool {
        let bay = self.bay(slot);
        !self.broken && bay.platter.is_none() && bay.reserved.is_none()
    }
}
