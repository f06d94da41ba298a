//! The positions of slots, drives and eject bays, and the cells that partitions are made of.
//!
//! ```text
//!   one panel, seen from the front; a shuttle hangs between two rails, in front of one shelf
//!
//!   shelf 2 | bay |  read  | cells 0..3 | cells 4..7 | ...  | read |
//!   shelf 1 | eject| drives| of rack 0  | of rack 1  |      |drives|
//!   shelf 0 |      |       |            |            |      |      |
//! ```
//!
//! A cell is a quarter of a rack on one shelf. Not here: which group serves a cell (`partition.rs`)
//! and where shuttles stand (`traffic.rs`).

use std::ops::Range;

use fulgurite_units::{DriveIndex, ShuttleIndex, SlotIndex};

use crate::control::{Error, LibraryShape, PanelIndex, RailPosition, ShelfIndex};

/// Cells per shelf of one rack.
pub(crate) const CELLS_PER_RACK: u32 = 4;

/// The fixed geometry of one library.
#[derive(Clone, Debug)]
pub(crate) struct Floor {
    shape: LibraryShape,
    drives: Vec<DriveSite>,
    /// Position and cell of each slot: looked up with every fetch.
    slots: Vec<(Position, u32)>,
}

/// A position where a shuttle can stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) panel: PanelIndex,
    pub(crate) rail: RailPosition,
    pub(crate) shelf: ShelfIndex,
}

impl Position {
    /// Returns the cost of travel from here to `other` as a length: each shelf counts as
    /// [`CRAB_UM`].
    pub(crate) const fn cost_to(self, other: Self) -> u64 {
        let shelves = self.shelf.get().abs_diff(other.shelf.get()) as u64;
        self.rail.get().abs_diff(other.rail.get()) + CRAB_UM * shelves
    }
}

/// Cost of one shelf up or down, as a distance along the rails: 3 s at 0.17 m/s. Only used to
/// compare ways.
pub(crate) const CRAB_UM: u64 = 510_000;

/// The position of a drive.
#[derive(Clone, Debug)]
pub(crate) struct DriveSite {
    pub(crate) panel: PanelIndex,
    pub(crate) rail: RailPosition,
    /// The shelves it takes platters from.
    pub(crate) shelves: Range<u16>,
}

impl Floor {
    pub(crate) fn new(shape: &LibraryShape) -> Result<Self, Error> {
        shape.validate()?;
        let mut floor = Self { shape: shape.clone(), drives: Vec::new(), slots: Vec::new() };
        for panel in 0..shape.panels {
            floor.add_drives(PanelIndex::new(panel));
        }
        let slots = (0..shape.slot_count()).map(SlotIndex::new);
        floor.slots = slots.map(|slot| floor.locate(slot)).collect();
        Ok(floor)
    }

    pub(crate) const fn shape(&self) -> &LibraryShape {
        &self.shape
    }

    pub(crate) fn drives(&self) -> &[DriveSite] {
        &self.drives
    }

    pub(crate) fn drive(&self, drive: DriveIndex) -> &DriveSite {
        &self.drives[drive.as_usize()]
    }

    /// Returns the position of a slot.
    pub(crate) fn slot(&self, slot: SlotIndex) -> Position {
        self.slots[slot.as_usize()].0
    }

    /// Returns the cell of a slot, counted over all panels.
    pub(crate) fn cell(&self, slot: SlotIndex) -> usize {
        self.slots[slot.as_usize()].1 as usize
    }

    /// Cells along one shelf of a panel.
    pub(crate) fn columns(&self) -> u32 {
        u32::from(self.shape.storage_racks) * CELLS_PER_RACK
    }

    /// Cells of one panel, shelf by shelf.
    pub(crate) fn cells_per_panel(&self) -> usize {
        self.columns() as usize * usize::from(self.shape.shelves_per_panel)
    }

    /// Returns the panel a shuttle is bound to.
    pub(crate) const fn panel_of(&self, shuttle: ShuttleIndex) -> PanelIndex {
        PanelIndex::new(shuttle.get() / self.shape.shuttles_per_panel)
    }

    /// Returns where a shuttle stands to serve a drive, coming from shelf `near`.
    pub(crate) fn dock(&self, drive: DriveIndex, near: ShelfIndex) -> Position {
        let site = self.drive(drive);
        let shelf = near.get().clamp(site.shelves.start, site.shelves.end - 1);
        Position { panel: site.panel, rail: site.rail, shelf: ShelfIndex::new(shelf) }
    }

    pub(crate) const fn eject_bay(&self, panel: PanelIndex) -> Position {
        Position {
            panel,
            rail: RailPosition::new(self.rack_width() / 2),
            shelf: ShelfIndex::new(self.shape.shelves_per_panel / 2),
        }
    }

    /// Returns where a shuttle waits before its first trip: spread over the shelves and the racks.
    pub(crate) fn start(&self, shuttle: ShuttleIndex) -> Position {
        let in_panel = u64::from(shuttle.get() % self.shape.shuttles_per_panel);
        let shelves = u64::from(self.shape.shelves_per_panel);
        let on_shelf = u64::from(self.shape.shuttles_per_panel).div_ceil(shelves);
        let (shelf, place) = (in_panel % shelves, in_panel / shelves);
        let rail = (2 * place + 1) * self.shape.length_um() / (2 * on_shelf);
        let shelf = ShelfIndex::new(u16::try_from(shelf).unwrap_or(0));
        Position { panel: self.panel_of(shuttle), rail: RailPosition::new(rail), shelf }
    }

    const fn rack_width(&self) -> u64 {
        self.shape.rack_width_mm as u64 * 1000
    }

    fn locate(&self, slot: SlotIndex) -> (Position, u32) {
        let address = self.shape.address(slot).unwrap_or_else(|| unreachable!("{slot} is counted"));
        let [left, _] = self.shape.read_racks_at_ends();
        let width = self.rack_width();
        let rack = u64::from(1 + left + address.rack.get());
        let half_slots = 2 * u64::from(address.position) + 1;
        let rail = rack * width + half_slots * width / (2 * u64::from(self.shape.slots_per_shelf));
        let rail = RailPosition::new(rail);
        let shelf = u32::from(address.panel.get()) * u32::from(self.shape.shelves_per_panel)
            + u32::from(address.shelf.get());
        let column = u32::from(address.rack.get()) * CELLS_PER_RACK
            + u32::from(address.position) * CELLS_PER_RACK / u32::from(self.shape.slots_per_shelf);
        let position = Position { panel: address.panel, rail, shelf: address.shelf };
        (position, shelf * self.columns() + column)
    }

    fn add_drives(&mut self, panel: PanelIndex) {
        let [left, _] = self.shape.read_racks_at_ends();
        let per_rack = self.shape.drives_per_read_rack / self.shape.panels;
        for read_rack in 0..self.shape.read_racks {
            let before = if read_rack.is_multiple_of(2) {
                1 + read_rack / 2
            } else {
                1 + left + self.shape.storage_racks + read_rack / 2
            };
            let rail = u64::from(before) * self.rack_width() + self.rack_width() / 2;
            for drive in 0..per_rack {
                let share = share(self.shape.shelves_per_panel, per_rack, drive);
                let middle = share.start + (share.end - share.start) / 2;
                let shelves = middle.saturating_sub(1).max(share.start)..middle + 1;
                self.drives.push(DriveSite { panel, rail: RailPosition::new(rail), shelves });
            }
        }
    }
}

/// Returns the shelves of a rack beside which a drive stands.
const fn share(shelves: u16, drives: u16, drive: u16) -> Range<u16> {
    drive * shelves / drives..(drive + 1) * shelves / drives
}
