//! The dimensions of a library, and where each storage slot lies.
//!
//! ```text
//!   one panel:   | write | read | storage 0 | storage 1 | ... | read |     10 shelves high
//! ```
//!
//! Slots are numbered panel by panel, rack by rack, shelf by shelf, so that the slots of one blast
//! zone are neighbors. Not here: which partition a slot belongs to, and where the drives are.

use fulgurite_units::SlotIndex;
use serde::{Deserialize, Serialize};

use crate::control::limits::{
    DRIVES_PER_READ_RACK_MAX, PANELS_MAX, SHUTTLES_PER_DRIVE_MAX, SLOTS_MAX,
};
use crate::control::{Error, Machine, PanelIndex, RackIndex, ShelfIndex, ZoneIndex};

/// The dimensions of a library. Check them with [`LibraryShape::validate`] before use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LibraryShape {
    /// Sides of the library, 1 or 2.
    pub panels: u16,
    /// Write racks; always 1, with an eject bay on each panel.
    pub write_racks: u16,
    /// Read racks: the first next to the write rack, the next at the far end, and so on in turn.
    pub read_racks: u16,
    /// Read drives of one read rack, divided evenly among the panels.
    pub drives_per_read_rack: u16,
    /// Storage racks.
    pub storage_racks: u16,
    /// Shelves of a rack on one panel.
    pub shelves_per_panel: u16,
    /// Slots of one shelf of one rack.
    pub slots_per_shelf: u16,
    /// Shuttles of one panel, each with a partition of its own.
    pub shuttles_per_panel: u16,
    /// Width of every rack. 1,200 mm is assumed; only its ratio to the shuttle's speed counts.
    pub rack_width_mm: u32,
    /// Width of a shuttle: two of them on one shelf keep their middles at least this far apart.
    /// Assumed.
    pub shuttle_width_mm: u32,
    /// The last slots of every shelf of every rack, which are no platter's home: for platters whose
    /// home is out of reach, and for new ones that make way for customers.
    pub spare_slots_per_shelf: u16,
}

/// The coordinates of a storage slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotAddress {
    /// The side of the library.
    pub panel: PanelIndex,
    /// The storage rack.
    pub rack: RackIndex,
    /// The shelf.
    pub shelf: ShelfIndex,
    /// The position on the shelf of this rack, from the write drive's end.
    pub position: u16,
}

impl Default for LibraryShape {
    fn default() -> Self {
        Self::small()
    }
}

impl LibraryShape {
    /// Returns a desk-sized library: one panel, 70 blast zones (a set of 16+3 needs 19), homes for
    /// 6,930 platters and a spare slot in each zone.
    #[must_use]
    pub const fn small() -> Self {
        Self {
            panels: 1,
            write_racks: 1,
            read_racks: 2,
            drives_per_read_rack: 2,
            storage_racks: 7,
            shelves_per_panel: 10,
            slots_per_shelf: 100,
            shuttles_per_panel: 4,
            rack_width_mm: 1200,
            shuttle_width_mm: 400,
            spare_slots_per_shelf: 1,
        }
    }

    /// Returns the paper's minimum deployment: 7 storage racks (Table 1), 20 drives and 20 shuttles
    /// (section 7.3). Two panels and 90 slots per shelf, one of them spare, are assumed: homes for
    /// 12,460 platters.
    #[must_use]
    pub const fn mdu() -> Self {
        Self {
            panels: 2,
            write_racks: 1,
            read_racks: 2,
            drives_per_read_rack: 10,
            storage_racks: 7,
            shelves_per_panel: 10,
            slots_per_shelf: 90,
            shuttles_per_panel: 10,
            rack_width_mm: 1200,
            shuttle_width_mm: 400,
            spare_slots_per_shelf: 1,
        }
    }

    /// Checks every relation between the counts.
    ///
    /// # Errors
    /// Names the first relation that does not hold.
    pub fn validate(&self) -> Result<(), Error> {
        let ranges = [
            ("panels", u64::from(self.panels), 1, u64::from(PANELS_MAX)),
            ("write_racks", u64::from(self.write_racks), 1, 1),
            ("read_racks", u64::from(self.read_racks), 1, 64),
            (
                "drives_per_read_rack",
                u64::from(self.drives_per_read_rack),
                1,
                u64::from(DRIVES_PER_READ_RACK_MAX),
            ),
            ("storage_racks", u64::from(self.storage_racks), 1, 1024),
            ("shelves_per_panel", u64::from(self.shelves_per_panel), 1, 64),
            ("slots_per_shelf", u64::from(self.slots_per_shelf), 1, 4096),
            ("shuttles_per_panel", u64::from(self.shuttles_per_panel), 1, 256),
            ("rack_width_mm", u64::from(self.rack_width_mm), 100, 100_000),
            ("shuttle_width_mm", u64::from(self.shuttle_width_mm), 1, 10_000),
        ];
        for (field, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                return Err(Error::ShapeRange { field, value, min, max });
            }
        }
        let slots = u64::from(self.panels)
            * u64::from(self.storage_racks)
            * u64::from(self.shelves_per_panel)
            * u64::from(self.slots_per_shelf);
        if slots > u64::from(SLOTS_MAX) {
            let max = u64::from(SLOTS_MAX);
            return Err(Error::ShapeRange {
                field: "slots of all racks",
                value: slots,
                min: 1,
                max,
            });
        }
        let (drives, panels) = (self.drives_per_read_rack, self.panels);
        if !drives.is_multiple_of(panels) {
            return Err(Error::DrivesPerPanel { drives, panels });
        }
        let (shuttles, drives) = (self.shuttles_per_panel, self.drives_per_panel());
        if shuttles > SHUTTLES_PER_DRIVE_MAX * drives {
            return Err(Error::ShuttlesPerDrive { shuttles, drives });
        }
        self.validate_room()
    }

    /// Checks that each drive has a shelf, that some slots are homes, and that every shuttle has a
    /// place of its own with room left to make way.
    fn validate_room(&self) -> Result<(), Error> {
        let drives = self.drives_per_read_rack / self.panels;
        let shelves = self.shelves_per_panel;
        if drives > shelves {
            return Err(Error::DriveShelves { drives, shelves });
        }
        let spare = self.spare_slots_per_shelf;
        if spare >= self.slots_per_shelf {
            let max = u64::from(self.slots_per_shelf) - 1;
            let field = "spare_slots_per_shelf";
            return Err(Error::ShapeRange { field, value: u64::from(spare), min: 0, max });
        }
        let places = self.length_um() / (u64::from(self.shuttle_width_mm) * 1000);
        let places = places * u64::from(shelves);
        let shuttles = self.shuttles_per_panel;
        // Making way needs a free place. With half of the places taken a way can be too narrow,
        // because shuttles do not stand in rows; with a third none was in any of 8,000 random runs.
        if u64::from(shuttles) > 1 && (shelves < 2 || places < 3 * u64::from(shuttles) + 2) {
            return Err(Error::ShuttlesCrowded { shuttles, places });
        }
        Ok(())
    }

    /// Length of the rails.
    pub(crate) const fn length_um(&self) -> u64 {
        let racks = self.write_racks as u64 + self.read_racks as u64 + self.storage_racks as u64;
        racks * self.rack_width_mm as u64 * 1000
    }

    /// Whether a library of this shape has a machine, or a piece of rail.
    #[must_use]
    pub fn has(&self, machine: Machine) -> bool {
        match machine {
            Machine::Shuttle(index) => index.get() < self.panels * self.shuttles_per_panel,
            Machine::Drive(index) => index.get() < self.panels * self.drives_per_panel(),
            Machine::Rail { panel, shelf, from, to } => {
                panel.get() < self.panels && shelf.get() < self.shelves_per_panel && from <= to
            }
        }
    }

    /// Whether a slot is spare: no platter's home.
    #[must_use]
    pub fn is_spare(&self, slot: SlotIndex) -> bool {
        let position = slot.get() % u32::from(self.slots_per_shelf);
        position >= u32::from(self.slots_per_shelf - self.spare_slots_per_shelf)
    }

    /// Read racks at the write drive's end and at the far end.
    pub(crate) const fn read_racks_at_ends(&self) -> [u16; 2] {
        [self.read_racks.div_ceil(2), self.read_racks / 2]
    }

    /// Read drives of one panel.
    #[must_use]
    pub const fn drives_per_panel(&self) -> u16 {
        self.read_racks * (self.drives_per_read_rack / self.panels)
    }

    /// Storage slots of the whole library.
    #[must_use]
    pub const fn slot_count(&self) -> u32 {
        self.zone_count() * self.slots_per_shelf as u32
    }

    /// Blast zones of the whole library.
    #[must_use]
    pub const fn zone_count(&self) -> u32 {
        self.panels as u32 * self.storage_racks as u32 * self.shelves_per_panel as u32
    }

    /// Returns the blast zone of a slot, if there is such a slot.
    #[must_use]
    pub const fn zone(&self, slot: SlotIndex) -> Option<ZoneIndex> {
        if slot.get() >= self.slot_count() {
            return None;
        }
        Some(ZoneIndex::new(slot.get() / self.slots_per_shelf as u32))
    }

    /// Returns where a slot is, if there is such a slot.
    #[must_use]
    pub fn address(&self, slot: SlotIndex) -> Option<SlotAddress> {
        let zone = self.zone(slot)?.get();
        let shelves = u32::from(self.shelves_per_panel);
        let racks = u32::from(self.storage_racks);
        let small = |n: u32| u16::try_from(n).ok();
        Some(SlotAddress {
            panel: PanelIndex::new(small(zone / shelves / racks)?),
            rack: RackIndex::new(small(zone / shelves % racks)?),
            shelf: ShelfIndex::new(small(zone % shelves)?),
            position: small(slot.get() % u32::from(self.slots_per_shelf))?,
        })
    }

    /// Returns the slot at an address, if there is such a place.
    #[must_use]
    pub fn slot(&self, address: SlotAddress) -> Option<SlotIndex> {
        let inside = address.panel.get() < self.panels
            && address.rack.get() < self.storage_racks
            && address.shelf.get() < self.shelves_per_panel
            && address.position < self.slots_per_shelf;
        inside.then(|| {
            let rack = u32::from(address.panel.get()) * u32::from(self.storage_racks)
                + u32::from(address.rack.get());
            let zone = rack * u32::from(self.shelves_per_panel) + u32::from(address.shelf.get());
            SlotIndex::new(zone * u32::from(self.slots_per_shelf) + u32::from(address.position))
        })
    }
}
