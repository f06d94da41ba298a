//! The recent load of each cell, in milliseconds of work, from which partition boundaries are
//! drawn.
//!
//! It is halved after each interval, so that old load counts for little. Not here: when boundaries
//! are moved, and to where (`balance.rs`, `partition.rs`).

use fulgurite_units::{Duration, Instant};

use crate::control::limits::LOAD_BASE_MS;

/// The load of each cell.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    cells: Vec<u64>,
    halved: Instant,
}

impl Load {
    pub(crate) fn new(cells: usize) -> Self {
        Self { cells: vec![0; cells], halved: Instant::ZERO }
    }

    pub(crate) fn add(&mut self, cell: usize, load_ms: u64) {
        self.cells[cell] = self.cells[cell].saturating_add(load_ms);
    }

    /// The load of each cell.
    pub(crate) fn cells(&self) -> &[u64] {
        &self.cells
    }

    /// Returns the weight of each cell when boundaries are drawn: a cell without reads counts too.
    pub(crate) fn weights(&self) -> Vec<u64> {
        self.cells.iter().map(|load| load + LOAD_BASE_MS).collect()
    }

    /// Whether an interval has passed since the load was halved.
    pub(crate) fn is_due(&self, now: Instant, interval: Duration) -> bool {
        now.since(self.halved) >= interval
    }

    /// Halves the load, so that older work counts for less.
    pub(crate) fn halve(&mut self, now: Instant) {
        self.cells.iter_mut().for_each(|load| *load /= 2);
        self.halved = now;
    }
}
