//! Resumes after a restart from where the platters and shuttles are.
//!
//! Requests are not part of it: callers send them again. By itself the controller only brings home
//! what is not at home. A new platter waits where it is for its `Verify` or `Store`; one that is
//! still in an eject bay is not part of it either, because `Verify` makes it known. Nor are
//! batteries: their drivers report their levels again.
//!
//! ```text
//!   machines at rest --> Inventory --> Library::resume --> deadline() is now --> step(Timer) ...
//! ```

use std::collections::{BTreeMap, BTreeSet};

use fulgurite_units::{DriveIndex, PlatterId, ShuttleIndex, SlotIndex};
use serde::{Deserialize, Serialize};

use crate::control::controller::Library;
use crate::control::fleet::Shuttle;
use crate::control::floor::Position;
use crate::control::state::{Place, Stage};
use crate::control::{
    DriveSlot, Error, LibraryShape, PanelIndex, Policy, RailPosition, ShelfIndex,
};

/// The position of everything that is not in its slot. No machine may be working.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Every shuttle, in index order.
    pub shuttles: Vec<ParkedShuttle>,
    /// Platters out of their slots.
    pub platters: Vec<LoosePlatter>,
}

/// A shuttle at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedShuttle {
    /// Where it stands along the rails.
    pub rail: RailPosition,
    /// The shelf it is at.
    pub shelf: ShelfIndex,
}

/// A platter that is not in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoosePlatter {
    /// The id of the platter.
    pub platter: PlatterId,
    /// The slot it lives in; `None` if it is new.
    pub home: Option<SlotIndex>,
    /// Where it is: in a shuttle, in a drive, or in a spare slot.
    pub place: Place,
    /// Whether a drive has it mounted.
    pub mounted: bool,
}

impl Library {
    /// Creates a library that goes on with machines and platters as they are. Its first deadline is
    /// immediate.
    ///
    /// # Errors
    /// When the shape or the policy is invalid, or the inventory is impossible: a platter in two
    /// places, two in one, an unknown place, overlapping shuttles.
    pub fn resume(
        shape: &LibraryShape,
        policy: Policy,
        inventory: &Inventory,
    ) -> Result<Self, Error> {
        let mut library = Self::with_policy(shape, policy)?;
        library.park(&inventory.shuttles)?;
        let (mut names, mut places) = (BTreeSet::new(), BTreeMap::new());
        for loose in &inventory.platters {
            let platter = loose.platter;
            if !names.insert(platter) {
                return Err(Error::TwoPlaces { platter });
            }
            if let Some(other) = places.insert(loose.place, platter) {
                return Err(Error::PlaceTaken { platter, other });
            }
            library.check_loose(loose)?;
            library.put(loose);
        }
        library.dirty.mark_all_groups();
        library.mark_all_drives();
        Ok(library)
    }

    /// Returns the position of everything that is not in its slot. For a shuttle at work this is
    /// where it was before; to save state for a restart, ask the machines instead.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        let parked = |(_, shuttle): (ShuttleIndex, &Shuttle)| ParkedShuttle {
            rail: shuttle.position().rail,
            shelf: shuttle.position().shelf,
        };
        let away = self.shelf.known().filter(|(_, platter)| match platter.place() {
            Place::Shuttle(_) | Place::Drive(..) => true,
            Place::Storage(slot) => self.shape().is_spare(slot),
            Place::EjectBay(_) => false,
        });
        let platters = away.map(|(_, platter)| LoosePlatter {
            platter: platter.id(),
            home: match platter.stage() {
                // Its `Store` request is sent again.
                Stage::Unverified { .. } | Stage::Checked { .. } | Stage::Storing { .. } => None,
                Stage::Stored { home } => Some(home),
            },
            place: platter.place(),
            mounted: match platter.place() {
                Place::Drive(drive, slot) => self.drives.get(drive).bay(slot).is_mounted(),
                Place::EjectBay(_) | Place::Storage(_) | Place::Shuttle(_) => false,
            },
        });
        let shuttles = self.fleet.indexed().map(parked).collect();
        Inventory { shuttles, platters: platters.collect() }
    }

    /// Places the shuttles where they stand.
    fn park(&mut self, parked: &[ParkedShuttle]) -> Result<(), Error> {
        let (count, expected) = (parked.len(), self.fleet.len());
        if count != expected {
            return Err(Error::ShuttleCount { count, expected });
        }
        self.fleet.lift_all();
        for (index, parked) in (0..).map(ShuttleIndex::new).zip(parked) {
            let inside = parked.rail.get() <= self.shape().length_um()
                && parked.shelf.get() < self.shape().shelves_per_panel;
            if !inside {
                return Err(Error::ShuttleOutside { shuttle: index });
            }
            let panel = self.floor.panel_of(index);
            let at = Position { panel, rail: parked.rail, shelf: parked.shelf };
            if !self.fleet.place(index, at) {
                return Err(Error::ShuttlesMeet { shuttle: index });
            }
        }
        Ok(())
    }

    /// Checks that the place is one of this library's, and that the platter may be there.
    fn check_loose(&self, loose: &LoosePlatter) -> Result<(), Error> {
        let (platter, unknown) = (loose.platter, Error::NoSuchPlace { platter: loose.platter });
        let mounted = loose.mounted;
        let panel = match loose.place {
            Place::Shuttle(index) if index.as_usize() < self.fleet.len() && !mounted => {
                self.floor.panel_of(index)
            }
            Place::Drive(index, slot) if index.as_usize() < self.drives.len() => {
                if loose.home.is_none() && slot == DriveSlot::First {
                    return Err(unknown);
                }
                self.floor.drive(index).panel
            }
            Place::Storage(slot) if self.shape().is_spare(slot) && !mounted => {
                self.check_slot(slot)?;
                self.floor.slot(slot).panel
            }
            Place::Shuttle(_) | Place::Drive(..) | Place::Storage(_) | Place::EjectBay(_) => {
                return Err(unknown);
            }
        };
        let Some(home) = loose.home else { return Ok(()) };
        self.check_slot(home)?;
        if self.shape().is_spare(home) {
            return Err(Error::SpareSlot { slot: home });
        }
        let other = self.floor.slot(home).panel != panel;
        if other && self.policy.movement != crate::control::Movement::NoShuttles {
            return Err(Error::OtherPanel { platter, panel, slot: home });
        }
        self.check_free(home, platter)
    }

    fn put(&mut self, loose: &LoosePlatter) {
        let panel: PanelIndex = match loose.place {
            Place::Shuttle(index) => self.floor.panel_of(index),
            Place::Drive(index, _) => self.floor.drive(index).panel,
            Place::Storage(slot) => self.floor.slot(slot).panel,
            Place::EjectBay(panel) => panel,
        };
        let stage = loose.home.map_or(Stage::Checked { panel }, |home| Stage::Stored { home });
        let key = self.shelf.remember(loose.platter, stage, loose.place);
        match loose.place {
            Place::Shuttle(index) => self.fleet.load(index, key),
            Place::Drive(index, slot) => {
                self.drives.get_mut(index).hold(slot, key, loose.mounted);
            }
            Place::Storage(_) => {}
            Place::EjectBay(_) => unreachable!("platters in an eject bay are not in an inventory"),
        }
    }

    fn mark_all_drives(&mut self) {
        let count = u16::try_from(self.drives.len()).unwrap_or(u16::MAX);
        (0..count).map(DriveIndex::new).for_each(|index| self.dirty.drive(index));
    }
}
