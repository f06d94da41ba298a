//! What each cell had to do lately, in milliseconds of work: by this the borders are drawn.
//!
//! It is halved after each interval, so that what came long ago counts for little. Not here: when
//! borders are moved, and to where (`balance.rs`, `partition.rs`).

use fulgurite_units::{Duration, Instant};

use crate::limits::LOAD_BASE_MS;

/// The work that came for each cell.
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

    /// Of each cell.
    pub(crate) fn cells(&self) -> &[u64] {
        &self.cells
    }

    /// What each cell counts for when borders are drawn: one without reads has its worth too.
    pub(crate) fn weights(&self) -> Vec<u64> {
        self.cells.iter().map(|load| load + LOAD_BASE_MS).collect()
    }

    /// Whether an interval has passed since it was halved.
    pub(crate) fn is_due(&self, now: Instant, interval: Duration) -> bool {
        now.since(self.halved) >= interval
    }

    /// What came lately counts for half from now on.
    pub(crate) fn halve(&mut self, now: Instant) {
        self.cells.iter_mut().for_each(|load| *load /= 2);
        self.halved = now;
    }
}
