//! The shape of a library, and the placement of the platters of a set in it.

use std::collections::BTreeMap;

use fulgurite_glass_core::control::LibraryShape;
use fulgurite_glass_core::plan::{
    BlastModel, Cell, SetShape, ZoneShape, ZoneState, choose_zones, minimum_storage_racks,
};
use fulgurite_units::SlotIndex;

use super::to_f64;

/// Returns 1 if a library accepts such a shape, else 0.
pub(super) fn shape_accepted(drives_per_read_rack: u16, shuttles_per_panel: u16) -> f64 {
    let shape = LibraryShape { drives_per_read_rack, shuttles_per_panel, ..LibraryShape::mdu() };
    if shape.validate().is_ok() { 1.0 } else { 0.0 }
}

/// Returns the least number of storage racks that hold a set with no two of its platters in one
/// blast zone.
pub(super) fn storage_racks(information: u16, redundancy: u16) -> Result<f64, String> {
    let set = SetShape::new(information, redundancy);
    let count = minimum_storage_racks(set, &BlastModel::silica());
    count.map(|count| f64::from(count.racks)).map_err(|error| error.to_string())
}

/// Returns the most platters of a set that one failure makes unavailable, in a library with as few
/// storage racks as the set needs: those in its blast zone, and those that the failed machine
/// holds.
pub(super) fn set_platters_lost(
    information: u16,
    redundancy: u16,
    in_failed_machine: u16,
) -> Result<f64, String> {
    let model = BlastModel::silica();
    let count = minimum_storage_racks(SetShape::new(information, redundancy), &model);
    let cells = count.map_err(|error| error.to_string())?.placement;
    let most = model.shapes.iter().map(|shape| platters_in(shape, &cells)).max().unwrap_or(0);
    Ok(f64::from(in_failed_machine) + to_f64(most))
}

/// Returns the most of these cells that a shape covers, at any position.
fn platters_in(shape: &ZoneShape, cells: &[Cell]) -> usize {
    let part = |rack: u16, shelf: u16| (i32::from(rack), i32::from(shelf));
    let corners = cells.iter().flat_map(|cell| {
        let at = part(cell.rack, cell.shelf);
        shape.cells().iter().map(move |&(rack, shelf)| {
            let of = part(rack, shelf);
            (cell.panel, at.0 - of.0, at.1 - of.1)
        })
    });
    let covered = |(panel, rack, shelf): (u16, i32, i32)| {
        let inside = cells.iter().filter(|cell| {
            let at = part(cell.rack, cell.shelf);
            let mut parts = shape.cells().iter().map(|&(r, s)| part(r, s));
            cell.panel == panel && parts.any(|of| (rack + of.0, shelf + of.1) == at)
        });
        inside.count()
    };
    corners.map(covered).max().unwrap_or(0)
}

/// Places sets one after the other. Returns the most platters of one set in one zone.
pub(super) fn set_platters_in_zone(platters: usize, sets: u16) -> Result<f64, String> {
    let shape = LibraryShape::mdu();
    let slots_per_zone = u32::from(shape.slots_per_shelf);
    let mut used = vec![0u32; usize::try_from(shape.zone_count()).unwrap_or(0)];
    let mut most = 0;
    for _ in 0..sets {
        let zones: Vec<ZoneState> = (0..)
            .zip(&used)
            .map(|(zone, &used)| ZoneState {
                zone,
                total: slots_per_zone,
                free: slots_per_zone - used,
                next: Some(SlotIndex::new(zone * slots_per_zone + used)),
                holds_member: false,
            })
            .collect();
        let slots = choose_zones(&zones, platters).map_err(|error| error.to_string())?;
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for slot in slots {
            let zone = shape.zone(slot).ok_or("a platter got a slot outside the library")?.get();
            used[usize::try_from(zone).unwrap_or(usize::MAX)] += 1;
            let count = counts.entry(zone).or_default();
            *count += 1;
            most = most.max(*count);
        }
    }
    Ok(f64::from(most))
}

#[cfg(test)]
mod tests {
    use fulgurite_glass_core::plan::{Cell, ZoneShape};

    use super::platters_in;

    #[test]
    fn shape_is_tried_at_every_position() {
        let cell = |panel, rack, shelf| Cell { panel, rack, shelf };
        let shape = ZoneShape::new([(0, 0), (1, 1)]).unwrap();
        // Two cells on the diagonal of the shape, one beside it, one on the other panel.
        let cells = [cell(0, 3, 4), cell(0, 4, 5), cell(0, 4, 4), cell(1, 2, 3)];
        assert_eq!(platters_in(&shape, &cells), 2);
        assert_eq!(platters_in(&shape, &cells[1..]), 1);
    }
}
