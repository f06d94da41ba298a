//! Shapes of blast zones: the cells that one failure can affect, independent of its position.

use std::collections::BTreeSet;

/// Cells of a blast zone, relative to its lowest rack and its lowest shelf.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZoneShape {
    /// Rack and shelf of each cell.
    cells: BTreeSet<(u16, u16)>,
}

impl ZoneShape {
    /// Creates the shape of these cells, at any position; `None` when there are none.
    pub fn new(cells: impl IntoIterator<Item = (i32, i32)>) -> Option<Self> {
        let cells: BTreeSet<(i32, i32)> = cells.into_iter().collect();
        let rack = cells.iter().map(|cell| cell.0).min()?;
        let shelf = cells.iter().map(|cell| cell.1).min()?;
        let offset = |n: i32, from: i32| u16::try_from(n.abs_diff(from)).ok();
        let cells = cells.iter().map(|cell| Some((offset(cell.0, rack)?, offset(cell.1, shelf)?)));
        Some(Self { cells: cells.collect::<Option<_>>()? })
    }

    /// Creates the shape of these cells, whose lowest rack and shelf are 0.
    pub(crate) const fn from_cells(cells: BTreeSet<(u16, u16)>) -> Self {
        Self { cells }
    }

    /// Rack and shelf of each cell, relative to the lowest ones.
    #[must_use]
    pub const fn cells(&self) -> &BTreeSet<(u16, u16)> {
        &self.cells
    }

    /// Returns the number of racks that the shape spans.
    #[must_use]
    pub fn racks(&self) -> u16 {
        self.cells.iter().map(|cell| cell.0 + 1).max().unwrap_or(0)
    }

    /// Returns the number of shelves that the shape spans.
    #[must_use]
    pub fn shelves(&self) -> u16 {
        self.cells.iter().map(|cell| cell.1 + 1).max().unwrap_or(0)
    }
}
