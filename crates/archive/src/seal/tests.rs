//! Where new platters may go.

use super::*;

#[test]
fn nobody_is_given_a_spare_slot() {
    let shape = fulgurite_library::LibraryShape {
        slots_per_shelf: 3,
        spare_slots_per_shelf: 1,
        ..fulgurite_library::LibraryShape::small()
    };
    let first = SlotIndex::new(0);
    assert_eq!(shape.zone(first), shape.zone(SlotIndex::new(2)), "one shelf is one zone");
    let zones = zones(&shape, &BTreeSet::from([0]));
    assert_eq!(zones.len(), 70);
    assert_eq!((zones[0].total, zones[0].free, zones[0].next), (2, 1, Some(SlotIndex::new(1))));
    assert!(zones[1..].iter().all(|zone| (zone.total, zone.free) == (2, 2)));
    assert!(zones.iter().filter_map(|zone| zone.next).all(|slot| !shape.is_spare(slot)));
}
