//! The exact search: finds cells of a panel that hold a given number of platters, no two in one
//! blast zone, at the least cost.
//!
//! This is the binary program `min sum c_i x_i, sum of x over each zone <= 1, sum x = n`, solved
//! without a solver by dynamic programming, rack by rack. A table maps the masks of the last racks
//! (the span of a zone, less one) to the least cost of each number of platters so far. Every mask
//! of allowed shelves in a rack is tried after every such window. Of two ways to the same window
//! with the same number only the cheaper one is kept, since both allow the same continuations. So
//! the result is optimal, and a number that is not in the table cannot be reached.

use std::collections::BTreeMap;

use crate::plan::limits::SHELVES_MAX;
use crate::plan::reach::Reach;

/// One rack of a panel.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Mask of the shelves that may take a platter.
    pub(crate) allowed: u32,
    /// Cost of a platter for each shelf.
    pub(crate) costs: Vec<u64>,
}

/// The least costs of one panel, with back pointers to the choices.
#[derive(Clone, Debug)]
pub(crate) struct PanelSearch {
    racks: Vec<Vec<State>>,
    best: Vec<Option<(u64, usize)>>,
}

/// Masks of the last racks, with the cheapest way to them for each number of platters.
#[derive(Clone, Debug)]
struct State {
    window: u64,
    ways: Vec<Option<Way>>,
}

#[derive(Clone, Copy, Debug)]
struct Way {
    cost: u64,
    mask: u32,
    /// State of the previous rack.
    from: usize,
}

impl PanelSearch {
    /// Searches for every number of platters up to `platters_max`.
    pub(crate) fn new(reach: &Reach, columns: &[Column], platters_max: usize) -> Self {
        let none = Way { cost: 0, mask: 0, from: 0 };
        let mut racks = vec![vec![State { window: 0, ways: vec![Some(none)] }]];
        for column in columns {
            let masks = masks(reach, column, platters_max);
            let next = step(reach, &racks[racks.len() - 1], &masks, platters_max);
            racks.push(next);
        }
        let mut best: Vec<Option<(u64, usize)>> = Vec::new();
        for (n, state) in racks[racks.len() - 1].iter().enumerate() {
            best.resize(best.len().max(state.ways.len()), None);
            for (slot, way) in best.iter_mut().zip(&state.ways) {
                let cheaper = |way: &&Way| slot.is_none_or(|(cost, _)| way.cost < cost);
                if let Some(way) = way.as_ref().filter(cheaper) {
                    *slot = Some((way.cost, n));
                }
            }
        }
        Self { racks, best }
    }

    /// Returns the least cost of each number of platters; larger numbers cannot be placed.
    pub(crate) fn costs(&self) -> Vec<u64> {
        // A placement of n platters contains one of fewer, so there is no gap.
        self.best.iter().map_while(|best| best.map(|(cost, _)| cost)).collect()
    }

    /// Returns the number of table entries that the search visited.
    pub(crate) fn state_count(&self) -> usize {
        self.racks.iter().map(Vec::len).sum()
    }

    /// Returns rack and shelf of each of `platters` platters at the least cost.
    pub(crate) fn cells(&self, platters: usize) -> Vec<(usize, u32)> {
        let mut cells = Vec::new();
        let Some(&Some((_, mut state))) = self.best.get(platters) else { return cells };
        let mut left = platters;
        for rack in (1..self.racks.len()).rev() {
            let Some(way) = self.racks[rack][state].ways[left] else { break };
            cells.extend(shelves(way.mask).map(|shelf| (rack - 1, shelf)));
            left -= way.mask.count_ones() as usize;
            state = way.from;
        }
        assert_eq!(cells.len(), platters, "the table leads back to its beginning");
        cells
    }
}

/// Returns the masks that a rack can hold, with their costs.
fn masks(reach: &Reach, column: &Column, platters_max: usize) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    let mut mask = column.allowed;
    // Iterates over all subsets of the allowed shelves, the empty one last.
    loop {
        if reach.shadow(mask, 0) & mask == 0 && mask.count_ones() as usize <= platters_max {
            found.push((mask, shelves(mask).map(|shelf| column.costs[shelf as usize]).sum()));
        }
        if mask == 0 {
            found.reverse();
            return found;
        }
        mask = (mask - 1) & column.allowed;
    }
}

fn step(reach: &Reach, before: &[State], masks: &[(u32, u64)], platters_max: usize) -> Vec<State> {
    let bits = u32::from(SHELVES_MAX);
    let kept_bits = u32::try_from(reach.preceding_racks()).unwrap_or(u32::MAX) * bits;
    let low = if kept_bits >= u64::BITS { u64::MAX } else { (1 << kept_bits) - 1 };
    let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
    let mut states: Vec<State> = Vec::new();
    for (from, state) in before.iter().enumerate() {
        let mask_of = |racks: usize| (state.window >> ((racks - 1) * bits as usize)) & 0xFFFF;
        let shadow = (1..=reach.preceding_racks())
            .map(|racks| reach.shadow(u32::try_from(mask_of(racks)).unwrap_or(0), racks))
            .fold(0, |all, one| all | one);
        for &(mask, cost) in masks.iter().filter(|(mask, _)| mask & shadow == 0) {
            let shifted = if kept_bits == 0 { 0 } else { state.window << bits };
            let window = (shifted | u64::from(mask)) & low;
            let number = *numbers.entry(window).or_insert_with(|| {
                states.push(State { window, ways: Vec::new() });
                states.len() - 1
            });
            merge(&mut states[number].ways, &state.ways, Way { cost, mask, from }, platters_max);
        }
    }
    states
}

/// Adds the ways that continue by `last` from a state with the ways `before`.
fn merge(ways: &mut Vec<Option<Way>>, before: &[Option<Way>], last: Way, platters_max: usize) {
    let added = last.mask.count_ones() as usize;
    let length = (before.len() + added).min(platters_max + 1);
    ways.resize(ways.len().max(length), None);
    for (slot, way) in ways.iter_mut().skip(added).zip(before) {
        let Some(way) = way else { continue };
        let cost = way.cost.saturating_add(last.cost);
        if slot.is_none_or(|known| cost < known.cost) {
            *slot = Some(Way { cost, ..last });
        }
    }
}

/// Returns the shelves of a mask, lowest first.
pub(crate) fn shelves(mask: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |shelf| mask >> shelf & 1 == 1)
}
