//! Checks placements against the rule of Silica section 6, independently of the code that computes
//! them.
//!
//! Nothing here uses the planner, the search or its masks: two cells share a blast zone when one
//! shape of the model, at any position, covers both, and that is looked up in the shapes
//! themselves.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{
    BlastModel, Cell, FleetSlot, LibraryIndex, LibraryState, RackCount, Refutation, SetShape,
};

/// Strength of the proof of a rack count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assurance {
    /// The placement is valid, and one rack less is impossible.
    Proved,
    /// The placement is valid; one rack less is below the smallest library.
    Floor,
    /// The placement is valid; that one rack less is impossible is known from the search alone.
    SearchOnly,
}

/// A fault of a rack count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RackFault {
    /// The number of cells is not that of the platters.
    #[error("{cells} cells are given for {platters} platters")]
    Count {
        /// Cells of the placement.
        cells: usize,
        /// Platters of the set.
        platters: usize,
    },
    /// A cell is not in the library.
    #[error("{0:?} is outside the library")]
    Outside(Cell),
    /// Two platters are in one blast zone.
    #[error("{0:?} and {1:?} share a blast zone")]
    Shared(Cell, Cell),
    /// Two cells of a part can hold a platter each.
    #[error("{0:?} and {1:?} are in one part and share no blast zone")]
    Part(Cell, Cell),
    /// A cell is in no part.
    #[error("{0:?} is in no part")]
    NotCovered(Cell),
    /// There are at least as many parts as platters.
    #[error("{parts} parts do not exclude {platters} platters")]
    Parts {
        /// Number of parts.
        parts: usize,
        /// Platters of the set.
        platters: usize,
    },
    /// The number of racks is above the minimum of the model, so the minimum is no reason.
    #[error("{racks} racks are not the minimum of {floor}")]
    Floor {
        /// Number of racks.
        racks: u16,
        /// Minimum number of racks.
        floor: u16,
    },
}

/// A fault of a placement in several libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The library, or the zone in it, does not exist.
    NoSuchZone(FleetSlot),
    /// The slot is not the next free one of its zone.
    NotFree(FleetSlot),
    /// Two platters of the set, or one and an earlier one, are in one blast zone.
    Shared(LibraryIndex, Cell, Cell),
    /// A platter of `from` could move to `to`, which would still hold fewer of the set.
    Unbalanced {
        /// Library with too many platters of the set.
        from: LibraryIndex,
        /// Library that could take one more.
        to: LibraryIndex,
    },
}

/// Whether one blast zone of the model can cover both cells.
#[must_use]
pub fn share_zone(model: &BlastModel, a: Cell, b: Cell) -> bool {
    let rack = i32::from(b.rack) - i32::from(a.rack);
    let shelf = i32::from(b.shelf) - i32::from(a.shelf);
    let moved = |from: u16, offset: i32| u16::try_from(i32::from(from) + offset).ok();
    a.panel == b.panel
        && model.shapes.iter().any(|shape| {
            shape.cells().iter().any(|&(r, s)| {
                let other = moved(r, rack).zip(moved(s, shelf));
                other.is_some_and(|other| shape.cells().contains(&other))
            })
        })
}

/// Checks both certificates of a rack count.
///
/// # Errors
/// The first fault found.
pub fn verify_rack_count(
    set: SetShape,
    model: &BlastModel,
    count: &RackCount,
) -> Result<Assurance, RackFault> {
    let platters = usize::from(set.platters());
    let (cells, racks) = (count.placement.len(), count.racks);
    if cells != platters {
        return Err(RackFault::Count { cells, platters });
    }
    let grid = model.grid(racks);
    if let Some(cell) = count.placement.iter().find(|cell| grid.zone(**cell).is_none()) {
        return Err(RackFault::Outside(*cell));
    }
    if let Some((a, b)) = pairs(&count.placement).find(|&(a, b)| a == b || share_zone(model, a, b))
    {
        return Err(RackFault::Shared(a, b));
    }
    match &count.refutation {
        Refutation::Floor if racks <= model.storage_racks_min.max(1) => Ok(Assurance::Floor),
        Refutation::Floor => Err(RackFault::Floor { racks, floor: model.storage_racks_min }),
        Refutation::Parts(parts) => verify_parts(platters, model, racks - 1, parts),
        Refutation::Exhausted { .. } => Ok(Assurance::SearchOnly),
    }
}

fn verify_parts(
    platters: usize,
    model: &BlastModel,
    racks: u16,
    parts: &[Vec<Cell>],
) -> Result<Assurance, RackFault> {
    if parts.len() >= platters {
        return Err(RackFault::Parts { parts: parts.len(), platters });
    }
    let all = parts.iter().flat_map(|part| pairs(part));
    for (a, b) in all {
        if !share_zone(model, a, b) {
            return Err(RackFault::Part(a, b));
        }
    }
    let covered: BTreeSet<Cell> = parts.iter().flatten().copied().collect();
    let grid = model.grid(racks);
    let missing = (0..grid.cell_count()).filter_map(|zone| grid.cell(zone));
    match missing.into_iter().find(|cell| !covered.contains(cell)) {
        Some(cell) => Err(RackFault::NotCovered(cell)),
        None => Ok(Assurance::Proved),
    }
}

/// Returns every fault of a set's placement: zones that do not exist or are not free, platters in
/// one blast zone, and a spread over the libraries that moving one platter would improve.
#[must_use]
pub fn audit_fleet(
    model: &BlastModel,
    libraries: &[LibraryState<'_>],
    slots: &[FleetSlot],
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut cells: BTreeMap<LibraryIndex, Vec<Cell>> = BTreeMap::new();
    for (n, library) in libraries.iter().enumerate() {
        let index = LibraryIndex::new(n);
        let grid = model.grid(library.racks);
        let earlier = library.zones.iter().filter(|zone| zone.holds_member);
        cells.insert(index, earlier.filter_map(|zone| grid.cell(zone.zone)).collect());
    }
    for slot in slots {
        let Some(library) = libraries.get(slot.library.get()) else {
            violations.push(Violation::NoSuchZone(*slot));
            continue;
        };
        let state = library.zones.iter().find(|zone| zone.zone == slot.zone);
        let cell = model.grid(library.racks).cell(slot.zone);
        let Some((state, cell)) = state.zip(cell) else {
            violations.push(Violation::NoSuchZone(*slot));
            continue;
        };
        if state.free == 0 || state.next != Some(slot.slot) {
            violations.push(Violation::NotFree(*slot));
        }
        cells.entry(slot.library).or_default().push(cell);
    }
    for (library, cells) in &cells {
        let shared = pairs(cells).filter(|&(a, b)| a == b || share_zone(model, a, b));
        violations.extend(shared.map(|(a, b)| Violation::Shared(*library, a, b)));
    }
    violations.extend(find_unbalanced(model, libraries, slots, &cells));
    violations
}

/// Finds a library that holds at least two more platters of the set than another one with a free
/// place.
fn find_unbalanced(
    model: &BlastModel,
    libraries: &[LibraryState<'_>],
    slots: &[FleetSlot],
    cells: &BTreeMap<LibraryIndex, Vec<Cell>>,
) -> Option<Violation> {
    let moved: BTreeSet<LibraryIndex> = slots.iter().map(|slot| slot.library).collect();
    let count = |library: &LibraryIndex| cells.get(library).map_or(0, Vec::len);
    let from = moved.into_iter().max_by_key(count)?;
    let to = cells.iter().find(|(index, cells)| {
        let Some(library) = libraries.get(index.get()) else { return false };
        cells.len() + 2 <= count(&from)
            && library.zones.iter().any(|zone| {
                let cell = model.grid(library.racks).cell(zone.zone);
                let is_isolated = |cell: Cell| {
                    cells.iter().all(|&other| other != cell && !share_zone(model, other, cell))
                };
                zone.free > 0
                    && zone.next.is_some()
                    && !zone.holds_member
                    && cell.is_some_and(is_isolated)
            })
    });
    to.map(|(&to, _)| Violation::Unbalanced { from, to })
}

/// Returns all pairs of the cells.
fn pairs(cells: &[Cell]) -> impl Iterator<Item = (Cell, Cell)> {
    let rest = |n: usize| cells[n + 1..].iter();
    cells.iter().enumerate().flat_map(move |(n, a)| rest(n).map(move |b| (*a, *b)))
}
