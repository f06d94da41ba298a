//! Which blast zones failures of shuttles and drives have.
//!
//! Given by the paper (sections 4 and 6): a shuttle stands on one shelf, anywhere along it, or
//! between two shelves while it crabs; two shuttles may collide; failures take whole cells. Not
//! given: how wide a shuttle is, whether it reaches over its shelf's edges ("slightly taller than
//! the vertical spacing between two rails"), and whether both shuttles of a collision may crab.
//! Those are the fields of [`FailureRules`].
//!
//! ```text
//!   one shuttle      one that crabs      side by side         one crabs above the other
//!
//!                    |  [#|#]  |                              |     [#|##  |
//!   |  [##|#]  |     |  [#|#]  |        | [#|##][##|#] |      | [##|##]|#]  |
//! ```
//!
//! A drive that fails, or a shuttle that fails in front of it, takes at most the cells of the
//! storage rack next to it that a shuttle there touches, which is part of a shuttle's zone.

use std::collections::BTreeSet;

use crate::ZoneShape;

/// Positions along a rack that are told apart; a shuttle's width is counted in them.
const STEPS: i32 = 8;

/// What is assumed of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureRules {
    /// Width of a shuttle in eighths of a rack, at most a rack.
    pub shuttle_eighths: u8,
    /// Shelves above and below its own that a shuttle obscures too.
    pub overhang_shelves: u8,
    /// Collisions of two shuttles.
    pub collision: Collision,
}

/// Which collisions of two shuttles there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collision {
    /// None.
    Never,
    /// Both stand on their shelves.
    Riding,
    /// At most one of them crabs.
    OneCrabs,
    /// Both may crab.
    BothCrab,
}

/// A shuttle: where it begins along the racks, and the shelves between which it is.
#[derive(Clone, Copy, Debug)]
struct Shuttle {
    x: i32,
    low: i32,
    high: i32,
}

impl FailureRules {
    /// What reproduces Table 1 with two panels. Every field was chosen for that: the paper gives
    /// none of them.
    #[must_use]
    pub const fn silica() -> Self {
        Self { shuttle_eighths: 6, overhang_shelves: 0, collision: Collision::OneCrabs }
    }

    /// The shapes of all blast zones that follow, each once.
    #[must_use]
    pub fn shapes(&self) -> BTreeSet<ZoneShape> {
        let mut shapes = BTreeSet::new();
        for first in (0..STEPS).flat_map(|x| poses(x, 0)) {
            shapes.extend(ZoneShape::new(self.cells(first)));
            for second in self.neighbors(first) {
                let cells = self.cells(first).into_iter().chain(self.cells(second));
                shapes.extend(ZoneShape::new(cells));
            }
        }
        shapes
    }

    /// Every second shuttle that touches the first along an edge.
    fn neighbors(&self, first: Shuttle) -> Vec<Shuttle> {
        let width = i32::from(self.shuttle_eighths);
        let mut found = Vec::new();
        for x in first.x - width..=first.x + width {
            for second in (-2..=2).flat_map(|low| poses(x, low)) {
                let beside = (second.x - first.x).abs() == width;
                let apart = (second.low - first.high).max(first.low - second.high);
                let touching = if beside { apart <= 0 } else { apart == 1 };
                if touching && self.can_collide(first, second) {
                    found.push(second);
                }
            }
        }
        found
    }

    fn can_collide(&self, first: Shuttle, second: Shuttle) -> bool {
        let crabbing = [first, second].iter().filter(|shuttle| shuttle.high > shuttle.low).count();
        match self.collision {
            Collision::Never => false,
            Collision::Riding => crabbing == 0,
            Collision::OneCrabs => crabbing <= 1,
            Collision::BothCrab => true,
        }
    }

    /// The cells that a shuttle touches or obscures.
    fn cells(&self, shuttle: Shuttle) -> Vec<(i32, i32)> {
        let last = shuttle.x + i32::from(self.shuttle_eighths) - 1;
        let overhang = i32::from(self.overhang_shelves);
        let racks = shuttle.x.div_euclid(STEPS)..=last.div_euclid(STEPS);
        let shelves = shuttle.low - overhang..=shuttle.high + overhang;
        racks.flat_map(|rack| shelves.clone().map(move |shelf| (rack, shelf))).collect()
    }
}

/// A shuttle on a shelf, and one between it and the next.
fn poses(x: i32, low: i32) -> [Shuttle; 2] {
    [Shuttle { x, low, high: low }, Shuttle { x, low, high: low + 1 }]
}
