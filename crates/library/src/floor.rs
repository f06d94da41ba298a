//! Where everything stands, and which part of a panel each shuttle has to itself.
//!
//! A panel is cut into as many rectangles as it has shuttles (Silica, section 4.1). The panel is
//! first cut across, so that each side has the read racks of one end; each side is then cut into
//! bands of shelves, along the drives, so that every band touches a drive:
//!
//! ```text
//!   shelf 9 | drive | partition 1          | partition 3          | drive |
//!         5 |-------|----------------------|----------------------|-------|   4 shuttles,
//!         4 | drive | partition 0          | partition 2          | drive |   2 drives a rack
//!         0 |       |                      |                      |       |
//! ```
//!
//! With more shuttles than drives two bands share a drive, each from its own shelf. Partitions are
//! one to one with shuttles and named by them. Borders do not follow the load yet.
//!
//! Assumed, as the paper gives no numbers: a drive takes platters from the two shelves in the
//! middle of its share of the rack, and the eject bay is on the shelf in the middle.

use std::ops::Range;

use fulgurite_units::{DriveIndex, ShuttleIndex, SlotIndex};

use crate::shape::Side;
use crate::{Error, LibraryShape, PanelIndex, RailPosition, ShelfIndex, ZoneIndex};

/// The fixed geometry of one library.
#[derive(Clone, Debug)]
pub(crate) struct Floor {
    shape: LibraryShape,
    drives: Vec<DriveSite>,
    partitions: Vec<Partition>,
    /// For each shelf of each panel, the partitions left and right of the cut.
    partition_of_shelf: Vec<[ShuttleIndex; 2]>,
    /// The first column right of the cut.
    cut: u32,
}

/// A place in front of which a shuttle can stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) panel: PanelIndex,
    pub(crate) rail: RailPosition,
    pub(crate) shelf: ShelfIndex,
}

/// Where a drive is.
#[derive(Clone, Debug)]
pub(crate) struct DriveSite {
    pub(crate) panel: PanelIndex,
    rail: RailPosition,
    /// The shelves it takes platters from.
    shelves: Range<u16>,
}

/// The rectangle of one shuttle.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) panel: PanelIndex,
    pub(crate) shelves: Range<u16>,
    pub(crate) drives: Vec<DriveIndex>,
}

impl Floor {
    pub(crate) fn new(shape: &LibraryShape) -> Result<Self, Error> {
        shape.validate()?;
        let [left, right] = shape.sides();
        let columns = u32::from(shape.storage_racks) * u32::from(shape.slots_per_shelf);
        let shuttles = u32::from(shape.shuttles_per_panel);
        let mut floor = Self {
            shape: shape.clone(),
            drives: Vec::new(),
            partitions: Vec::new(),
            partition_of_shelf: Vec::new(),
            cut: columns * u32::from(left.partitions) / shuttles,
        };
        for panel in 0..shape.panels {
            floor.add_drives(PanelIndex::new(panel));
        }
        for panel in (0..shape.panels).map(PanelIndex::new) {
            let left_band = floor.add_side(panel, &left);
            let right_band = floor.add_side(panel, &right);
            for (shelf, &left) in left_band.iter().enumerate() {
                // A side without partitions has no columns either.
                let right = right_band.get(shelf).copied().unwrap_or(left);
                floor.partition_of_shelf.push([left, right]);
            }
        }
        Ok(floor)
    }

    pub(crate) const fn shape(&self) -> &LibraryShape {
        &self.shape
    }

    pub(crate) fn drives(&self) -> &[DriveSite] {
        &self.drives
    }

    pub(crate) fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    pub(crate) fn partition(&self, shuttle: ShuttleIndex) -> &Partition {
        &self.partitions[shuttle.as_usize()]
    }

    /// The shuttle in whose partition a slot lies.
    pub(crate) fn owner(&self, slot: SlotIndex) -> Option<ShuttleIndex> {
        let address = self.shape.address(slot)?;
        let column = u32::from(address.rack.get()) * u32::from(self.shape.slots_per_shelf)
            + u32::from(address.position);
        let shelves = usize::from(self.shape.shelves_per_panel);
        let row = usize::from(address.panel.get()) * shelves + usize::from(address.shelf.get());
        Some(self.partition_of_shelf[row][usize::from(column >= self.cut)])
    }

    /// The panel and the place of a slot.
    pub(crate) fn slot(&self, slot: SlotIndex) -> Option<Position> {
        let address = self.shape.address(slot)?;
        let [left, _] = self.shape.sides();
        let width = self.rack_width();
        let rack = u64::from(1 + left.racks + address.rack.get());
        let half_slots = 2 * u64::from(address.position) + 1;
        let rail = rack * width + half_slots * width / (2 * u64::from(self.shape.slots_per_shelf));
        Some(Position { panel: address.panel, rail: RailPosition::new(rail), shelf: address.shelf })
    }

    pub(crate) fn zone(&self, slot: SlotIndex) -> Option<ZoneIndex> {
        self.shape.zone(slot)
    }

    /// Where a shuttle of `partition` stands to serve a drive of it, coming from shelf `near`.
    pub(crate) fn dock(
        &self,
        drive: DriveIndex,
        partition: ShuttleIndex,
        near: ShelfIndex,
    ) -> Position {
        let site = &self.drives[drive.as_usize()];
        let shelves = overlap(&site.shelves, &self.partition(partition).shelves);
        assert!(!shelves.is_empty(), "drive {drive} is outside of partition {partition}");
        let shelf = near.get().clamp(shelves.start, shelves.end - 1);
        Position { panel: site.panel, rail: site.rail, shelf: ShelfIndex::new(shelf) }
    }

    pub(crate) fn eject_bay(&self, panel: PanelIndex) -> Position {
        Position {
            panel,
            rail: RailPosition::new(self.rack_width() / 2),
            shelf: ShelfIndex::new(self.shape.shelves_per_panel / 2),
        }
    }

    /// Where a shuttle waits before its first trip.
    pub(crate) fn start(&self, shuttle: ShuttleIndex) -> Position {
        let drive = self.partition(shuttle).drives[0];
        self.dock(drive, shuttle, ShelfIndex::new(0))
    }

    fn rack_width(&self) -> u64 {
        u64::from(self.shape.rack_width_mm) * 1000
    }

    fn add_drives(&mut self, panel: PanelIndex) {
        let [left, _] = self.shape.sides();
        let per_rack = self.shape.drives_per_read_rack / self.shape.panels;
        for read_rack in 0..self.shape.read_racks {
            let before = if read_rack.is_multiple_of(2) {
                1 + read_rack / 2
            } else {
                1 + left.racks + self.shape.storage_racks + read_rack / 2
            };
            let rail = u64::from(before) * self.rack_width() + self.rack_width() / 2;
            for drive in 0..per_rack {
                let share = share(self.shape.shelves_per_panel, per_rack, drive);
                let middle = share.start + share.len_u16() / 2;
                let shelves = middle.saturating_sub(1).max(share.start)..middle + 1;
                self.drives.push(DriveSite { panel, rail: RailPosition::new(rail), shelves });
            }
        }
    }

    /// Cuts one side into bands; returns the partition of each shelf.
    fn add_side(&mut self, panel: PanelIndex, side: &Side) -> Vec<ShuttleIndex> {
        let mut partition_of_shelf = Vec::new();
        for band in 0..side.partitions {
            let shelves = self.band_start(side, band)..self.band_start(side, band + 1);
            let index = u16::try_from(self.partitions.len()).unwrap_or(u16::MAX);
            let drives = self.drives_beside(panel, side, &shelves);
            assert!(!drives.is_empty(), "validate() promises a drive for each partition");
            partition_of_shelf.extend(shelves.clone().map(|_| ShuttleIndex::new(index)));
            self.partitions.push(Partition { panel, shelves, drives });
        }
        partition_of_shelf
    }

    /// The lowest shelf of a band: bands end where the share of a drive ends or, when drives are
    /// shared, in the middle of it.
    fn band_start(&self, side: &Side, band: u16) -> u16 {
        let drives = self.shape.drives_per_read_rack / self.shape.panels;
        let shelves = self.shape.shelves_per_panel;
        if side.partitions <= drives {
            return drive_start(shelves, drives, band * drives / side.partitions);
        }
        let half_drive = band * 2 * drives / side.partitions;
        let drive = half_drive / 2;
        if half_drive.is_multiple_of(2) {
            return drive_start(shelves, drives, drive);
        }
        let share = share(shelves, drives, drive);
        share.start + share.len_u16() / 2
    }

    fn drives_beside(
        &self,
        panel: PanelIndex,
        side: &Side,
        shelves: &Range<u16>,
    ) -> Vec<DriveIndex> {
        let per_rack = self.shape.drives_per_read_rack / self.shape.panels;
        let racks = (0..self.shape.read_racks).filter(|rack| side.has_read_rack(*rack));
        let first = panel.get() * self.shape.drives_per_panel();
        racks
            .flat_map(|rack| (0..per_rack).map(move |drive| first + rack * per_rack + drive))
            .map(DriveIndex::new)
            .filter(|drive| !overlap(&self.drives[drive.as_usize()].shelves, shelves).is_empty())
            .collect()
    }
}

/// The lowest shelf of the share of a drive.
const fn drive_start(shelves: u16, drives: u16, drive: u16) -> u16 {
    drive * shelves / drives
}

/// The shelves of a rack beside which a drive stands.
const fn share(shelves: u16, drives: u16, drive: u16) -> Range<u16> {
    drive_start(shelves, drives, drive)..drive_start(shelves, drives, drive + 1)
}

fn overlap(a: &Range<u16>, b: &Range<u16>) -> Range<u16> {
    a.start.max(b.start)..a.end.min(b.end)
}

trait LenU16 {
    fn len_u16(&self) -> u16;
}

impl LenU16 for Range<u16> {
    fn len_u16(&self) -> u16 {
        self.end - self.start
    }
}
