//! A snapshot of the library, for monitoring: where everything is and what it is doing.
//!
//! It is not a state to resume from, and decisions do not depend on it.

use fulgurite_units::{DriveIndex, PlatterId, ShuttleIndex};
use serde::Serialize;

use crate::control::controller::Library;
use crate::control::drive::Bay;
use crate::control::platter_table::Platter;
use crate::control::{Action, DriveSlot, PanelIndex, Place, RailPosition, ShelfIndex};

/// Where everything is and what it is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Number of requests accepted and not finished.
    pub requests: usize,
    /// All shuttles, by number.
    pub shuttles: Vec<ShuttleState>,
    /// All drives, by number.
    pub drives: Vec<DriveState>,
    /// The platters with work pending, by id; all others are in their slots.
    pub platters: Vec<PlatterState>,
}

/// One shuttle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShuttleState {
    /// The shuttle.
    pub shuttle: ShuttleIndex,
    /// Its panel.
    pub panel: PanelIndex,
    /// The shelf it is at; during a crab, the one it left.
    pub shelf: ShelfIndex,
    /// Its position along the rails; during a move, where it began or was last reported.
    pub rail: RailPosition,
    /// The platter it carries.
    pub cargo: Option<PlatterId>,
    /// Its current action.
    pub doing: Option<Action>,
    /// Whether it is on a trip; if it does nothing then, it is blocked.
    pub on_trip: bool,
    /// Whether it is broken.
    pub broken: bool,
    /// Battery level in percent, if its driver reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery: Option<u8>,
}

/// One drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriveState {
    /// The drive.
    pub drive: DriveIndex,
    /// Its two slots, the first one first.
    pub slots: [DriveSlotState; 2],
    /// Its current action.
    pub doing: Option<Action>,
    /// Whether it is broken.
    pub broken: bool,
}

/// One slot of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DriveSlotState {
    /// The platter inside.
    pub platter: Option<PlatterId>,
    /// Whether the platter is mounted.
    pub mounted: bool,
    /// The shuttle that is bringing a platter.
    pub expects: Option<ShuttleIndex>,
}

/// One platter with work pending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlatterState {
    /// The platter.
    pub platter: PlatterId,
    /// Where it is.
    pub place: Place,
    /// Number of reads that wait for it.
    pub reads: usize,
    /// The shuttle that is on its way to pick it.
    pub claimed_by: Option<ShuttleIndex>,
}

impl Library {
    /// Returns where everything is and what it is doing.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            requests: self.request_count(),
            shuttles: self
                .fleet
                .indexed()
                .map(|(shuttle, state)| ShuttleState {
                    shuttle,
                    panel: state.position().panel,
                    shelf: state.position().shelf,
                    rail: state.position().rail,
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
