//! Blast zones: what one failure may take at once, and the cells they are made of.
//!
//! Silica section 6 gives a blast zone as an area "specified at the granularity of one shelf of one
//! rack". That is the size of its pieces, here called cells, not of the zone: were every zone one
//! cell, a single rack would hold 16+3 platters and Table 1 would not say seven.
//!
//! ```text
//!             rack 0   rack 1   rack 2
//!   shelf 2  |   .    |  #     |  #     |     a shape: cells relative to its corner;
//!   shelf 1  |   #    |  #     |  #     |     a zone: a shape somewhere on a panel, as far
//!   shelf 0  |   #    |  #     |   .    |     as it lies on storage racks
//! ```
//!
//! A failure stays on its panel: shuttles cannot change panels. Which shapes there are is not here
//! but in [`crate::FailureRules`].

use std::collections::BTreeSet;

use crate::limits::{SHELVES_MAX, ZONE_RACKS_MAX};
use crate::{FailureRules, LayoutError, ZoneShape};

/// Which blast zones a library can have, and what else its number of racks depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlastModel {
    /// Sides of the library.
    pub panels: u16,
    /// Shelves of a rack on one panel.
    pub shelves_per_panel: u16,
    /// Storage racks that every library has, however small its sets are.
    pub storage_racks_min: u16,
    /// The shapes of zones; what is part of another shape may be left out.
    pub shapes: BTreeSet<ZoneShape>,
}

/// The storage racks of one library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Sides of the library.
    pub panels: u16,
    /// Storage racks.
    pub racks: u16,
    /// Shelves of a rack on one panel.
    pub shelves: u16,
}

/// One shelf of one rack. [`Grid::zone`] is its number, the zone of [`crate::ZoneState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The side of the library.
    pub panel: u16,
    /// The storage rack.
    pub rack: u16,
    /// The shelf.
    pub shelf: u16,
}

impl BlastModel {
    /// Two panels of ten shelves, six racks at least, and the failures of
    /// [`FailureRules::silica`]. Ten and six are the paper's; the rest was fitted to Table 1.
    #[must_use]
    pub fn silica() -> Self {
        Self {
            panels: 2,
            shelves_per_panel: 10,
            storage_racks_min: 6,
            shapes: FailureRules::silica().shapes(),
        }
    }

    /// The same library with zones of one cell: the rule of [`crate::choose_zones`].
    #[must_use]
    pub fn one_cell() -> Self {
        Self::rectangles(1, 1)
    }

    /// The same library with zones of so many neighboring racks by so many neighboring shelves.
    #[must_use]
    pub fn rectangles(racks: u16, shelves: u16) -> Self {
        let cells = (0..racks).flat_map(|rack| (0..shelves).map(move |shelf| (rack, shelf)));
        Self { shapes: BTreeSet::from([ZoneShape::of(cells.collect())]), ..Self::silica() }
    }

    /// A library with so many storage racks.
    #[must_use]
    pub const fn grid(&self, racks: u16) -> Grid {
        Grid { panels: self.panels, racks, shelves: self.shelves_per_panel }
    }

    /// Checks that the search can take the model.
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
    /// Cells of all panels.
    #[must_use]
    pub const fn cell_count(&self) -> u32 {
        self.panels as u32 * self.racks as u32 * self.shelves as u32
    }

    /// The number of a cell: panel by panel, rack by rack, shelf by shelf.
    #[must_use]
    pub fn zone(&self, cell: Cell) -> Option<u32> {
        let inside =
            cell.panel < self.panels && cell.rack < self.racks && cell.shelf < self.shelves;
        let rack = u32::from(cell.panel) * u32::from(self.racks) + u32::from(cell.rack);
        inside.then(|| rack * u32::from(self.shelves) + u32::from(cell.shelf))
    }

    /// The cell with this number.
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
