//! Blast zones: what one failure can affect at once, and the cells that they consist of.
//!
//! Silica section 6 defines a blast zone as an area "specified at the granularity of one shelf of
//! one rack". That is the size of its pieces, here called cells, not of the zone: if every zone
//! were one cell, a single rack would hold 16+3 platters and Table 1 would not say seven.
//!
//! ```text
//!             rack 0   rack 1   rack 2
//!   shelf 2  |   .    |  #     |  #     |     a shape: cells relative to its corner;
//!   shelf 1  |   #    |  #     |  #     |     a zone: a shape somewhere on a panel, as far
//!   shelf 0  |   #    |  #     |   .    |     as it lies on storage racks
//! ```
//!
//! A failure stays on its panel: shuttles cannot change panels. The possible shapes are computed in
//! [`crate::plan::FailureRules`].

use std::collections::BTreeSet;

use crate::plan::limits::{SHELVES_MAX, ZONE_RACKS_MAX};
use crate::plan::{FailureRules, LayoutError, ZoneShape};

/// The possible blast zones of a library, and what else determines its number of racks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlastModel {
    /// Number of panels (sides of the library).
    pub panels: u16,
    /// Number of shelves of a rack on one panel.
    pub shelves_per_panel: u16,
    /// Minimum number of storage racks of any library, however small its sets are.
    pub storage_racks_min: u16,
    /// Shapes of the zones; those contained in another shape may be omitted.
    pub shapes: BTreeSet<ZoneShape>,
}

/// The storage racks of one library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of panels (sides of the library).
    pub panels: u16,
    /// Number of storage racks.
    pub racks: u16,
    /// Number of shelves of a rack on one panel.
    pub shelves: u16,
}

/// One shelf of one rack. [`Grid::zone`] returns its number, the zone of
/// [`crate::plan::ZoneState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Panel (side of the library).
    pub panel: u16,
    /// Storage rack.
    pub rack: u16,
    /// Shelf.
    pub shelf: u16,
}

impl BlastModel {
    /// Returns a model of two panels of ten shelves, at least six racks, and the failures of
    /// [`FailureRules::silica`]. Ten and six are from the paper; the rest was fitted to Table 1.
    #[must_use]
    pub fn silica() -> Self {
        Self {
            panels: 2,
            shelves_per_panel: 10,
            storage_racks_min: 6,
            shapes: FailureRules::silica().shapes(),
        }
    }

    /// Returns the same library with zones of one cell: the rule of [`crate::plan::choose_zones`].
    #[must_use]
    pub fn one_cell() -> Self {
        Self::rectangles(1, 1)
    }

    /// Returns the same library with zones of `racks` adjacent racks by `shelves` adjacent shelves.
    #[must_use]
    pub fn rectangles(racks: u16, shelves: u16) -> Self {
        let cells = (0..racks).flat_map(|rack| (0..shelves).map(move |shelf| (rack, shelf)));
        Self { shapes: BTreeSet::from([ZoneShape::from_cells(cells.collect())]), ..Self::silica() }
    }

    /// Returns a library with `racks` storage racks.
    #[must_use]
    pub const fn grid(&self, racks: u16) -> Grid {
        Grid { panels: self.panels, racks, shelves: self.shelves_per_panel }
    }

    /// Checks that the model is within the limits of the search.
    ///
    /// # Errors
    /// [`LayoutError::ModelRange`] names what is out of range.
    pub fn validate(&self) -> Result<(), LayoutError> {
        let span = self.shapes.iter().map(|shape| shape.racks()).max().unwrap_or(0);
        let ranges = [
            ("panels", self.panels, 1, u16::MAX),
            ("shelves per panel", self.shelves_per_panel, 1, SHELVES_MAX),
            ("racks of a blast zone", span, 1, ZONE_RACKS_MAX),
        ];
        for (field, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                return Err(LayoutError::ModelRange { field, value, min, max });
            }
        }
        Ok(())
    }
}

impl Grid {
    /// Number of cells of all panels.
    #[must_use]
    pub const fn cell_count(&self) -> u32 {
        self.panels as u32 * self.racks as u32 * self.shelves as u32
    }

    /// Returns the number of a cell: panel by panel, rack by rack, shelf by shelf.
    #[must_use]
    pub fn zone(&self, cell: Cell) -> Option<u32> {
        let inside =
            cell.panel < self.panels && cell.rack < self.racks && cell.shelf < self.shelves;
        let rack = u32::from(cell.panel) * u32::from(self.racks) + u32::from(cell.rack);
        inside.then(|| rack * u32::from(self.shelves) + u32::from(cell.shelf))
    }

    /// Returns the cell with this number.
    #[must_use]
    pub fn cell(&self, zone: u32) -> Option<Cell> {
        if zone >= self.cell_count() {
            return None;
        }
        let (shelves, racks) = (u32::from(self.shelves), u32::from(self.racks));
        let small = |n: u32| u16::try_from(n).ok();
        Some(Cell {
            panel: small(zone / shelves / racks)?,
            rack: small(zone / shelves % racks)?,
            shelf: small(zone % shelves)?,
        })
    }
}
