//! The exact search over all panels of a library: panels share no zone, so their least costs add
//! up.

use crate::plan::columns::{Column, PanelSearch};
use crate::plan::reach::Reach;
use crate::plan::{Cell, Grid};

/// The least costs of a library, for every number of platters.
#[derive(Clone, Debug)]
pub(crate) struct GridSearch {
    panels: Vec<PanelSearch>,
    /// After each panel and for each number of platters so far: the cost, and how many are on this
    /// panel.
    totals: Vec<Vec<(u64, usize)>>,
}

impl GridSearch {
    /// Searches a library whose cells are all free and have no cost.
    pub(crate) fn empty(reach: &Reach, grid: Grid, platters_max: usize) -> Self {
        let shelves = usize::from(grid.shelves);
        let column = Column { allowed: (1 << shelves) - 1, costs: vec![0; shelves] };
        let columns = vec![column; usize::from(grid.racks)];
        let panel = PanelSearch::new(reach, &columns, platters_max);
        Self::sum(vec![panel; usize::from(grid.panels)], platters_max)
    }

    /// Searches a library by the cost of each cell, in their order; `None` for cells that take no
    /// platter.
    pub(crate) fn new(
        reach: &Reach,
        grid: Grid,
        costs: &[Option<u64>],
        platters_max: usize,
    ) -> Self {
        let shelves = usize::from(grid.shelves);
        let columns: Vec<Column> = costs.chunks(shelves).map(column).collect();
        let panels = columns.chunks(usize::from(grid.racks).max(1));
        let panels = panels.map(|columns| PanelSearch::new(reach, columns, platters_max));
        Self::sum(panels.collect(), platters_max)
    }

    fn sum(panels: Vec<PanelSearch>, platters_max: usize) -> Self {
        let mut totals: Vec<Vec<(u64, usize)>> = Vec::new();
        for panel in &panels {
            let before = totals.last().map_or_else(|| vec![(0, 0)], Clone::clone);
            let here = panel.costs();
            let count_max = (before.len() + here.len() - 2).min(platters_max);
            let cheapest = |n: usize| {
                let split = |on: usize| Some((before.get(n - on)?.0 + here.get(on)?, on));
                (0..=n).filter_map(split).min().unwrap_or((u64::MAX, 0))
            };
            totals.push((0..=count_max).map(cheapest).collect());
        }
        Self { panels, totals }
    }

    /// Returns the maximum number of platters that can be placed, up to the number asked for.
    pub(crate) fn largest(&self) -> usize {
        self.totals.last().map_or(0, |totals| totals.len() - 1)
    }

    /// Returns the number of table entries that the search visited.
    pub(crate) fn state_count(&self) -> usize {
        self.panels.iter().map(PanelSearch::state_count).sum()
    }

    /// Returns the cells of `platters` platters at the least cost, at most [`Self::largest`].
    pub(crate) fn cells(&self, platters: usize) -> Vec<Cell> {
        assert!(platters <= self.largest(), "more platters than the search placed");
        let mut left = platters;
        let mut cells = Vec::new();
        for (panel, totals) in self.totals.iter().enumerate().rev() {
            let here = totals[left].1;
            let found = self.panels[panel].cells(here).into_iter();
            cells.extend(found.filter_map(|(rack, shelf)| {
                let (panel, rack) = (u16::try_from(panel).ok()?, u16::try_from(rack).ok()?);
                Some(Cell { panel, rack, shelf: u16::try_from(shelf).ok()? })
            }));
            left -= here;
        }
        cells.sort_unstable();
        assert_eq!(cells.len(), platters, "every platter has a cell");
        cells
    }
}

fn column(costs: &[Option<u64>]) -> Column {
    let free = costs.iter().enumerate().filter(|(_, cost)| cost.is_some());
    let allowed = free.fold(0, |mask, (shelf, _)| mask | 1 << shelf);
    Column { allowed, costs: costs.iter().map(|cost| cost.unwrap_or(0)).collect() }
}
