//! The shape of a library and where the platters of a set come to lie in it.

use std::collections::BTreeMap;

use fulgurite_layout::{BlastModel, SetShape, ZoneState, choose_zones, minimum_storage_racks};
use fulgurite_library::LibraryShape;
use fulgurite_units::SlotIndex;

/// 1 when the library takes such a shape.
pub(super) fn shape_accepted(drives_per_read_rack: u16, shuttles_per_panel: u16) -> f64 {
    let shape = LibraryShape { drives_per_read_rack, shuttles_per_panel, ..LibraryShape::mdu() };
    if shape.validate().is_ok() { 1.0 } else { 0.0 }
}

/// The smallest number of storage racks that hold a set, no two of its platters in one blast zone.
pub(super) fn storage_racks(information: u16, redundancy: u16) -> Result<f64, String> {
    let set = SetShape::new(information, redundancy);
    let count = minimum_storage_racks(set, &BlastModel::silica());
    count.map(|count| f64::from(count.racks)).map_err(|error| error.to_string())
}

/// Places sets one after the other and counts the platters of one set in one zone.
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
                taken: false,
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
