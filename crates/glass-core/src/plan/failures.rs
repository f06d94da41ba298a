//! The blast zones of failures of shuttles and drives.
//!
//! Stated in the paper (sections 4 and 6): a shuttle is on one shelf, anywhere along it, or between
//! two shelves while it crabs; two shuttles may collide; failures affect whole cells. Not stated:
//! how wide a shuttle is, whether it extends beyond the edges of its shelf ("slightly taller than
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
//! A drive that fails, or a shuttle that fails in front of it, affects at most the cells of the
//! adjacent storage rack that a shuttle there touches, which is part of a shuttle's zone.

use std::collections::BTreeSet;

use crate::plan::ZoneShape;

/// Number of distinct positions along a rack; the unit of a shuttle's width.
const STEPS: i32 = 8;

/// Assumptions about failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureRules {
    /// Width of a shuttle in eighths of a rack, at most a rack.
    pub shuttle_eighths: u8,
    /// Number of shelves above and below its own that a shuttle also obscures.
    pub overhang_shelves: u8,
    /// Possible collisions of two shuttles.
    pub collision: Collision,
}

/// Possible collisions of two shuttles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collision {
    /// None.
    Never,
    /// Both are on their shelves.
    Riding,
    /// At most one of them crabs.
    OneCrabs,
    /// Both may crab.
    BothCrab,
}

/// A shuttle: its start along the racks, and the lowest and highest shelf that it occupies.
#[derive(Clone, Copy, Debug)]
struct Shuttle {
    x: i32,
    low: i32,
    high: i32,
}

impl FailureRules {
    /// Returns the rules that reproduce Table 1 with two panels. Every field was chosen for that:
    /// the paper states none of them.
    #[must_use]
    pub const fn silica() -> Self {
        Self { shuttle_eighths: 6, overhang_shelves: 0, collision: Collision::OneCrabs }
    }

    /// Returns the shapes of all resulting blast zones, without duplicates.
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

    /// Returns every second shuttle that touches the first along an edge.
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

    /// Returns the cells that a shuttle touches or obscures.
    fn cells(&self, shuttle: Shuttle) -> Vec<(i32, i32)> {
        let last = shuttle.x + i32::from(self.shuttle_eighths) - 1;
        let overhang = i32::from(self.overhang_shelves);
        let racks = shuttle.x.div_euclid(STEPS)..=last.div_euclid(STEPS);
        let shelves = shuttle.low - overhang..=shuttle.high + overhang;
        racks.flat_map(|rack| shelves.clone().map(move |shelf| (rack, shelf))).collect()
    }
}

/// Returns a shuttle on a shelf, and one between it and the next.
fn poses(x: i32, low: i32) -> [Shuttle; 2] {
    [Shuttle { x, low, high: low }, Shuttle { x, low, high: low + 1 }]
}
