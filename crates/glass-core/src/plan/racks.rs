//! How many storage racks a library needs for its platter-sets, with a proof (Silica, Table 1).
//!
//! The paper omits its binary program. Ours has one variable for each cell, at most one platter in
//! each blast zone, and as many platters as possible. Its result comes with two certificates, which
//! [`crate::plan::verify_rack_count`] checks without the search:
//!
//! - a placement of the set in that many racks, and
//! - for one rack less, a partition of all cells into fewer parts than the set has platters, where
//!   every two cells of a part share a zone: no part can hold two platters. (The dual program, a
//!   clique cover.)

use fulgurite_units::Ratio;

use crate::plan::limits::RACKS_MAX;
use crate::plan::reach::Reach;
use crate::plan::search::GridSearch;
use crate::plan::{BlastModel, Cell, Grid, LayoutError};

/// Number of platters of a platter-set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetShape {
    /// Number of information platters.
    pub information: u16,
    /// Number of redundancy platters.
    pub redundancy: u16,
}

/// The smallest number of storage racks, with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RackCount {
    /// Number of storage racks.
    pub racks: u16,
    /// A cell for each platter of a set.
    pub placement: Vec<Cell>,
    /// Why one rack less is not enough.
    pub refutation: Refutation,
}

/// Proof that a library cannot have one rack less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// No library has fewer racks, whatever its sets ([`BlastModel::storage_racks_min`]).
    Floor,
    /// With one rack less, these parts cover all cells and are fewer than the platters; every two
    /// cells of a part share a blast zone.
    Parts(Vec<Vec<Cell>>),
    /// With one rack less, the search was exhaustive. This can only be checked by searching again.
    Exhausted {
        /// Maximum number of platters with one rack less.
        platters_max: usize,
        /// Number of table entries of the search.
        states: usize,
    },
}

impl SetShape {
    /// Creates a set of these numbers of information and redundancy platters.
    #[must_use]
    pub const fn new(information: u16, redundancy: u16) -> Self {
        Self { information, redundancy }
    }

    /// Returns the number of platters of the set.
    #[must_use]
    pub const fn platters(&self) -> u16 {
        self.information + self.redundancy
    }

    /// Returns the number of redundancy platters that the write drive writes per information
    /// platter: the overhead of Table 1, `R / I`.
    ///
    /// # Errors
    /// [`LayoutError::SetRange`] when there is more redundancy than information, or no information.
    pub fn write_overhead(&self) -> Result<Ratio, LayoutError> {
        let share = f64::from(self.redundancy) / f64::from(self.information);
        Ratio::new(share).map_err(|_| LayoutError::SetRange {
            information: self.information,
            redundancy: self.redundancy,
        })
    }
}

/// Returns the maximum number of platters of one set that a library with `racks` storage racks can
/// hold.
///
/// # Errors
/// When the model is out of range.
pub fn platters_max(racks: u16, model: &BlastModel) -> Result<usize, LayoutError> {
    model.validate()?;
    let grid = model.grid(racks);
    Ok(GridSearch::empty(&Reach::new(model), grid, grid.cell_count() as usize).largest())
}

/// Returns the smallest number of storage racks with which a library can hold a set, no two of its
/// platters in one blast zone.
///
/// # Errors
/// When the model is out of range, or 64 racks are not enough.
pub fn minimum_storage_racks(set: SetShape, model: &BlastModel) -> Result<RackCount, LayoutError> {
    model.validate()?;
    let (reach, platters) = (Reach::new(model), usize::from(set.platters()));
    let floor = model.storage_racks_min.max(1);
    let mut less: Option<GridSearch> = None;
    for racks in floor..=RACKS_MAX {
        let grid = model.grid(racks);
        let search = GridSearch::empty(&reach, grid, platters);
        if search.largest() < platters {
            less = Some(search);
            continue;
        }
        let refutation = less.as_ref().map_or(Refutation::Floor, |less| {
            refute(&reach, model.grid(racks - 1), platters, less)
        });
        return Ok(RackCount { racks, placement: search.cells(platters), refutation });
    }
    Err(LayoutError::NoRackCount { platters, racks: RACKS_MAX })
}

fn refute(reach: &Reach, grid: Grid, platters: usize, search: &GridSearch) -> Refutation {
    let tilings = reach.rectangles().into_iter().map(|(racks, shelves)| tile(grid, racks, shelves));
    let fewest = tilings.min_by_key(Vec::len).filter(|parts| parts.len() < platters);
    let exhausted =
        || Refutation::Exhausted { platters_max: search.largest(), states: search.state_count() };
    fewest.map_or_else(exhausted, Refutation::Parts)
}

/// Divides all cells into rectangles of `racks` by `shelves`, smaller at the edges.
fn tile(grid: Grid, racks: u16, shelves: u16) -> Vec<Vec<Cell>> {
    let across = grid.racks.div_ceil(racks);
    let up = grid.shelves.div_ceil(shelves);
    let mut parts = Vec::new();
    for panel in 0..grid.panels {
        for (column, row) in (0..across).flat_map(|c| (0..up).map(move |r| (c, r))) {
            let right = (column * racks + racks).min(grid.racks);
            let top = (row * shelves + shelves).min(grid.shelves);
            let part = (column * racks..right)
                .flat_map(|rack| (row * shelves..top).map(move |shelf| (rack, shelf)));
            parts.push(part.map(|(rack, shelf)| Cell { panel, rack, shelf }).collect());
        }
    }
    parts
}
