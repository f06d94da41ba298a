//! The library at one moment, for those who watch: where everything is and what it is doing.
//!
//! Not a state to go on from, and of no meaning for decisions.

use fulgurite_units::{DriveIndex, PlatterId, ShuttleIndex};
use serde::Serialize;

use crate::controller::Library;
use crate::drive::Bay;
use crate::shelf::Platter;
use crate::{Action, DriveSlot, PanelIndex, Place, RailPosition, ShelfIndex};

/// Where everything is and what it is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Requests accepted and not finished.
    pub requests: usize,
    /// All shuttles, by number.
    pub shuttles: Vec<ShuttleState>,
    /// All drives, by number.
    pub drives: Vec<DriveState>,
    /// The platters with something to do, by id; all others are in their slots.
    pub platters: Vec<PlatterState>,
}

/// One shuttle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShuttleState {
    /// Which.
    pub shuttle: ShuttleIndex,
    /// Its panel.
    pub panel: PanelIndex,
    /// The shelf it is at; on a crab, the one it left.
    pub shelf: ShelfIndex,
    /// Where it is along the rails; on a move, where it began.
    pub rail: RailPosition,
    /// What it carries.
    pub cargo: Option<PlatterId>,
    /// What it is doing now.
    pub doing: Option<Action>,
    /// Whether it is on a trip; one that does nothing then waits for its way.
    pub on_trip: bool,
    /// Whether it is broken.
    pub broken: bool,
    /// How full its battery is in percent, if its driver says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<u8>,
}

/// One drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriveState {
    /// Which.
    pub drive: DriveIndex,
    /// What lies in its two slots, the first one first.
    pub slots: [DriveSlotState; 2],
    /// What it is doing now.
    pub doing: Option<Action>,
    /// Whether it is broken.
    pub broken: bool,
}

/// One slot of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DriveSlotState {
    /// What lies in it.
    pub platter: Option<PlatterId>,
    /// Whether that is mounted.
    pub mounted: bool,
    /// The shuttle that brings something.
    pub expects: Option<ShuttleIndex>,
}

/// One platter with something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlatterState {
    /// Which.
    pub platter: PlatterId,
    /// Where it is.
    pub place: Place,
    /// Reads that wait for it.
    pub reads: usize,
    /// The shuttle that is on its way to pick it.
    pub claimed_by: Option<ShuttleIndex>,
}

impl Library {
    /// Where everything is and what it is doing.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            requests: self.request_count(),
            shuttles: self
                .fleet
                .indexed()
                .map(|(shuttle, state)| ShuttleState {
                    shuttle,
                    panel: state.at().panel,
                    shelf: state.at().shelf,
                    rail: state.at().rail,
                    cargo: state.cargo().map(|key| self.shelf.get(key).id()),
                    doing: state.current().map(|(_, action)| action),
                    on_trip: state.trip().is_some(),
                    broken: state.is_broken(),
                    battery: state.battery(),
                })
                .collect(),
            drives: self
                .drives
                .indexed()
                .map(|(drive, state)| {
                    let [first, second] = DriveSlot::BOTH.map(|slot| state.bay(slot));
                    DriveState {
                        drive,
                        slots: [self.bay_state(first), self.bay_state(second)],
                        doing: state.work().map(|work| work.action),
                        broken: state.is_broken(),
                    }
                })
                .collect(),
            platters: self.shelf.known().map(|(_, platter)| platter_state(platter)).collect(),
        }
    }

    fn bay_state(&self, bay: &Bay) -> DriveSlotState {
        let platter = bay.platter().map(|key| self.shelf.get(key).id());
        DriveSlotState { platter, mounted: bay.is_mounted(), expects: bay.reserved() }
    }
}

fn platter_state(platter: &Platter) -> PlatterState {
    PlatterState {
        platter: platter.id(),
        place: platter.place(),
        reads: platter.reads().len(),
        claimed_by: platter.claim(),
    }
}
