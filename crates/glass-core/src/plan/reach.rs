//! The conflict graph of a model, as bit masks of racks: which cells share a blast zone.

use std::collections::BTreeSet;

use crate::plan::{BlastModel, Cell};

/// For each distance in racks, the distances in shelves at which two cells share a zone.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    shelf_offsets: Vec<BTreeSet<i32>>,
    shelves: u16,
}

impl Reach {
    pub(crate) fn new(model: &BlastModel) -> Self {
        let span = model.shapes.iter().map(|shape| shape.racks()).max().unwrap_or(1).max(1);
        let mut shelf_offsets = vec![BTreeSet::new(); usize::from(span)];
        for shape in &model.shapes {
            for &(rack, shelf) in shape.cells() {
                for &(other, above) in shape.cells().range((rack, 0)..) {
                    let shelves = i32::from(above) - i32::from(shelf);
                    shelf_offsets[usize::from(other - rack)].insert(shelves);
                    if other == rack {
                        shelf_offsets[0].insert(-shelves);
                    }
                }
            }
        }
        shelf_offsets[0].remove(&0);
        while shelf_offsets.len() > 1 && shelf_offsets.last().is_some_and(BTreeSet::is_empty) {
            shelf_offsets.pop();
        }
        Self { shelf_offsets, shelves: model.shelves_per_panel }
    }

    /// Returns how many preceding racks have cells that can share a zone with the cells of a rack.
    pub(crate) fn preceding_racks(&self) -> usize {
        self.shelf_offsets.len() - 1
    }

    /// Whether no two cells share a zone.
    pub(crate) fn is_empty(&self) -> bool {
        self.shelf_offsets.iter().all(BTreeSet::is_empty)
    }

    /// Whether two cells share a zone.
    pub(crate) fn can_fail_together(&self, a: Cell, b: Cell) -> bool {
        let (low, high) = if a.rack <= b.rack { (a, b) } else { (b, a) };
        let shelves = i32::from(high.shelf) - i32::from(low.shelf);
        let racks = usize::from(high.rack - low.rack);
        a.panel == b.panel
            && self.shelf_offsets.get(racks).is_some_and(|set| set.contains(&shelves))
    }

    /// Returns the shelves of the rack `racks` further on that share a zone with a shelf of `mask`.
    pub(crate) fn shadow(&self, mask: u32, racks: usize) -> u32 {
        let moved = |&by: &i32| if by < 0 { mask >> -by } else { mask << by };
        let shadow = self.shelf_offsets[racks].iter().map(moved).fold(0, |all, one| all | one);
        shadow & ((1 << self.shelves) - 1)
    }

    /// Returns racks and shelves of the largest rectangles in which every two cells share a zone.
    pub(crate) fn rectangles(&self) -> Vec<(u16, u16)> {
        let mut found = Vec::new();
        for racks in 1..=self.shelf_offsets.len() {
            let is_full = |shelves: u16| {
                let far = i32::from(shelves) - 1;
                self.shelf_offsets[..racks].iter().enumerate().all(|(distance, set)| {
                    (-far..=far).all(|by| distance == 0 && by == 0 || set.contains(&by))
                })
            };
            let shelves = (1..=self.shelves).take_while(|&shelves| is_full(shelves)).last();
            found.extend(u16::try_from(racks).ok().zip(shelves));
        }
        found
    }
}
