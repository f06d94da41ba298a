//! What the controller remembers: requests not finished, platters with something to do, shuttles
//! and drives. A platter at rest in its slot without requests is forgotten: the catalog knows it.
//!
//! Platters live in a slab and are named by their place in it, so that the work of one event does
//! not depend on how many there are.

use std::collections::VecDeque;

use fulgurite_units::{DriveIndex, Instant, PlatterId, ShuttleIndex, SlotIndex, TrackIndex};
use serde::{Deserialize, Serialize};

use crate::floor::Position;
use crate::traffic::Span;
use crate::{Action, CommandId, Destination, DriveSlot, PanelIndex, RequestId, Source, TrackSpan};

/// The order in which requests are served: by when they are due, then by arrival. With one
/// objective for all reads this is the order of arrival (Silica, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) due: Instant,
    pub(crate) sequence: u64,
}

/// A platter, by its place in the slab.
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
    /// Queued as long as its platter lists it; else a drive reads for it.
    Read,
    Verify,
    Store,
}

/// A read that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) age: Age,
    pub(crate) at: Instant,
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

/// A platter with something to do.
#[derive(Clone, Debug)]
pub(crate) struct Platter {
    pub(crate) id: PlatterId,
    pub(crate) stage: Stage,
    pub(crate) place: Place,
    /// The shuttle that is on its way to pick it.
    pub(crate) claim: Option<ShuttleIndex>,
    /// Reads that wait, most urgent first.
    pub(crate) reads: VecDeque<Waiting>,
    /// Tracks of them.
    pub(crate) tracks_wanted: u64,
    /// Reads begun since it left its slot.
    pub(crate) visit_reads: u32,
    /// The queue in which it waits for a fetch, if it does.
    pub(crate) queued: Option<(Queue, Age)>,
}

/// A queue of platters that wait for a shuttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Stored ones, of a partition.
    Group(u16),
    /// New ones, of a panel.
    New(PanelIndex),
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
    /// The slot it lives in, if it has one.
    pub(crate) const fn home(&self) -> Option<SlotIndex> {
        match self.stage {
            Stage::Stored { home } | Stage::Storing { home, .. } => Some(home),
            Stage::Unverified { .. } | Stage::Checked { .. } => None,
        }
    }
}

/// One shuttle.
#[derive(Clone, Debug)]
pub(crate) struct Shuttle {
    pub(crate) at: Position,
    pub(crate) cargo: Option<PlatterKey>,
    pub(crate) trip: Option<Trip>,
    pub(crate) broken: bool,
    /// How full its battery is in percent, if its driver says so.
    pub(crate) battery: Option<u8>,
    /// The battery was so low that it takes no errand until it is full enough.
    pub(crate) low: bool,
}

impl Shuttle {
    pub(crate) const fn is_idle(&self) -> bool {
        self.trip.is_none() && !self.broken
    }

    /// Whether it takes errands now. What it carries it delivers, however low its battery is.
    pub(crate) const fn is_ready(&self) -> bool {
        self.is_idle() && (!self.low || self.cargo.is_some())
    }

    /// The command it carries out, if it does.
    pub(crate) const fn current(&self) -> Option<(CommandId, Action)> {
        match &self.trip {
            Some(trip) => trip.current,
            None => None,
        }
    }
}

/// A trip that is due, not begun yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand {
    pub(crate) kind: TripKind,
    pub(crate) platter: PlatterKey,
    pub(crate) from: Source,
    pub(crate) to: Destination,
}

/// What a shuttle is under way for.
#[derive(Clone, Debug)]
pub(crate) struct Trip {
    /// What it carries from where to where; nothing, if it charges or only makes way.
    pub(crate) errand: Option<Errand>,
    /// It goes to a charging point.
    pub(crate) charges: bool,
    /// Where it goes now: to the source, then to the destination.
    pub(crate) goal: Position,
    /// Where it goes first to make way.
    pub(crate) detour: Option<Position>,
    /// What is being done.
    pub(crate) current: Option<(CommandId, Action)>,
    /// What it waits for, and since when.
    pub(crate) blocked: Option<(Span, Instant)>,
    /// Who goes first.
    pub(crate) rank: u64,
    pub(crate) travel: Travel,
}

impl Trip {
    /// Whether it goes somewhere for itself, and not only out of the way.
    pub(crate) const fn has_purpose(&self) -> bool {
        self.errand.is_some() || self.charges
    }
}

/// One way from a place to a goal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Travel {
    pub(crate) from: Position,
    pub(crate) started: Instant,
    /// Steps made, to tell a way without any from the others.
    pub(crate) steps: u32,
    /// Crabs away from the goal, to get around others.
    pub(crate) strayed: u32,
}

/// Why a shuttle travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TripKind {
    /// A stored platter to a drive.
    Fetch,
    /// A platter back to its slot, or to a spare one if that cannot be reached.
    Return,
    /// A new platter to a drive.
    Collect,
    /// A verified platter to its slot for the first time.
    Shelve,
}

/// One read drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drive {
    pub(crate) bays: [Bay; 2],
    /// The slot whose mounted platter the optics are at.
    pub(crate) facing: Option<DriveSlot>,
    /// The track of the faced platter that can be read without a seek.
    pub(crate) head: Option<TrackIndex>,
    pub(crate) work: Option<Work>,
    /// Its second slot is kept for a new platter.
    pub(crate) kept: bool,
    /// It verifies and does nothing else: its new platter would be late otherwise.
    pub(crate) insists: bool,
    pub(crate) broken: bool,
}

/// One slot of a drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bay {
    pub(crate) platter: Option<PlatterKey>,
    pub(crate) mounted: bool,
    /// The shuttle that brings a platter here.
    pub(crate) reserved: Option<ShuttleIndex>,
    /// The shuttle that brought what is in it, if known: it was not before a restart.
    pub(crate) brought_by: Option<ShuttleIndex>,
}

/// What a drive is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) command: CommandId,
    pub(crate) action: Action,
    pub(crate) began: Instant,
    /// It was asked to stop early.
    pub(crate) halting: bool,
}

impl Drive {
    pub(crate) const fn bay(&self, slot: DriveSlot) -> &Bay {
        &self.bays[slot.as_usize()]
    }

    pub(crate) const fn bay_mut(&mut self, slot: DriveSlot) -> &mut Bay {
        &mut self.bays[slot.as_usize()]
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
            | Action::Place { .. }
            | Action::Charge { .. } => false,
        });
        !at_work && !self.bay(slot).mounted
    }

    /// Whether a shuttle may start for this slot with a platter.
    pub(crate) fn admits(&self, slot: DriveSlot) -> bool {
        let bay = self.bay(slot);
        !self.broken && bay.platter.is_none() && bay.reserved.is_none()
    }
}
