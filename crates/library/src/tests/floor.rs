//! Slots and partitions: every slot has one address, one place and one shuttle; every partition is
//! a rectangle with a drive.

use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;
use fulgurite_units::{ShuttleIndex, SlotIndex};
use proptest::prelude::*;

use crate::floor::Floor;
use crate::{LibraryShape, PanelIndex, ShelfIndex};

fn any_shape() -> impl Strategy<Value = LibraryShape> {
    (1..=2u16, 1..5u16, 1..=5u16, 1..5u16, 3..=12u16, 1..5u16, 1..14u16).prop_map(
        |(panels, read_racks, drives, storage_racks, shelves, slots, shuttles)| LibraryShape {
            panels,
            write_racks: 1,
            read_racks,
            drives_per_read_rack: drives * panels,
            storage_racks,
            shelves_per_panel: shelves,
            slots_per_shelf: slots,
            shuttles_per_panel: shuttles,
            rack_width_mm: 1200,
        },
    )
}

/// Shelves and columns (over all racks) of each partition, by asking for the owner of each slot.
fn cells(floor: &Floor) -> BTreeMap<ShuttleIndex, BTreeSet<(PanelIndex, ShelfIndex, u32)>> {
    let shape = floor.shape();
    let mut cells = BTreeMap::<_, BTreeSet<_>>::new();
    for slot in (0..shape.slot_count()).map(SlotIndex::new) {
        let address = shape.address(slot).unwrap();
        let column = u32::from(address.rack.get()) * u32::from(shape.slots_per_shelf)
            + u32::from(address.position);
        let owner = floor.owner(slot).unwrap();
        cells.entry(owner).or_default().insert((address.panel, address.shelf, column));
    }
    cells
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn partitions_are_rectangles_with_a_drive(shape in any_shape()) {
        let Ok(floor) = Floor::new(&shape) else {
            prop_assert!(shape.validate().is_err(), "validate() and the floor agree");
            return Ok(());
        };
        shape.validate().unwrap();
        let count = usize::from(shape.panels * shape.shuttles_per_panel);
        prop_assert_eq!(floor.partitions().len(), count);
        for (partition, cells) in cells(&floor) {
            let shelves: BTreeSet<_> = cells.iter().map(|(_, shelf, _)| shelf.get()).collect();
            let columns: BTreeSet<_> = cells.iter().map(|(_, _, column)| *column).collect();
            let panels: BTreeSet<_> = cells.iter().map(|(panel, ..)| *panel).collect();
            prop_assert_eq!(panels.len(), 1);
            prop_assert_eq!(cells.len(), shelves.len() * columns.len());
            let span: BTreeSet<_> =
                (*columns.first().unwrap()..=*columns.last().unwrap()).collect();
            prop_assert_eq!(columns, span);
            let range: BTreeSet<_> = floor.partition(partition).shelves.clone().collect();
            prop_assert_eq!(shelves, range);
        }
        for (index, partition) in floor.partitions().iter().enumerate() {
            let index = ShuttleIndex::new(u16::try_from(index).unwrap());
            prop_assert!(!partition.drives.is_empty());
            for drive in &partition.drives {
                let dock = floor.dock(*drive, index, ShelfIndex::new(0));
                prop_assert_eq!(dock.panel, partition.panel);
                prop_assert!(partition.shelves.contains(&dock.shelf.get()));
            }
        }
        let served: BTreeSet<_> = floor.partitions().iter().flat_map(|p| &p.drives).collect();
        prop_assert_eq!(served.len(), floor.drives().len(), "no drive stands idle for ever");
    }

    #[test]
    fn slots_have_one_address_each(shape in any_shape()) {
        let Ok(floor) = Floor::new(&shape) else { return Ok(()) };
        let mut places = BTreeSet::new();
        let mut zones = BTreeSet::new();
        for slot in (0..shape.slot_count()).map(SlotIndex::new) {
            let address = shape.address(slot).unwrap();
            prop_assert_eq!(shape.slot(address), Some(slot));
            let at = floor.slot(slot).unwrap();
            prop_assert!(places.insert((at.panel, at.shelf, at.rail)), "two slots in one place");
            let zone = shape.zone(slot).unwrap();
            zones.insert((zone, address.panel, address.rack, address.shelf));
        }
        prop_assert_eq!(zones.len(), usize::try_from(shape.zone_count()).unwrap());
        let end = SlotIndex::new(shape.slot_count());
        prop_assert_eq!(shape.address(end), None);
        prop_assert_eq!(shape.zone(end), None);
        prop_assert_eq!(floor.owner(end), None);
    }
}

#[test]
fn a_set_finds_its_blast_zones() {
    assert_eq!(LibraryShape::small().zone_count(), 70);
    assert_eq!(LibraryShape::small().slot_count(), 7_000);
    assert_eq!(LibraryShape::mdu().zone_count(), 140);
    assert_eq!(LibraryShape::mdu().slot_count(), 12_600);
    assert_eq!(2 * LibraryShape::mdu().drives_per_panel(), 20);
    LibraryShape::small().validate().unwrap();
    LibraryShape::mdu().validate().unwrap();
}

#[test]
fn forty_shuttles_share_twenty_drives() {
    let shape = LibraryShape { shuttles_per_panel: 20, ..LibraryShape::mdu() };
    let floor = Floor::new(&shape).unwrap();
    assert!(floor.partitions().iter().all(|p| p.shelves.len() == 1 && p.drives.len() == 1));
}

#[test]
fn impossible_shapes_are_refused_by_name() {
    let small = LibraryShape::small;
    let wrong = [
        LibraryShape { panels: 3, ..small() },
        LibraryShape { write_racks: 2, ..small() },
        LibraryShape { read_racks: 0, ..small() },
        LibraryShape { drives_per_read_rack: 11, ..small() },
        LibraryShape { slots_per_shelf: 0, ..small() },
        LibraryShape {
            storage_racks: 1024,
            shelves_per_panel: 64,
            slots_per_shelf: 4096,
            ..small()
        },
        LibraryShape { panels: 2, drives_per_read_rack: 3, ..small() },
        LibraryShape { shuttles_per_panel: 9, ..small() },
        LibraryShape { drives_per_read_rack: 10, shelves_per_panel: 9, ..small() },
        LibraryShape { drives_per_read_rack: 10, shuttles_per_panel: 24, ..small() },
        LibraryShape { read_racks: 3, shuttles_per_panel: 9, ..small() },
    ];
    let errors = wrong.map(|shape| format!("{}\n", shape.validate().unwrap_err()));
    expect![[r#"
        panels is 3, but must be from 1 to 2
        write_racks is 2, but must be from 1 to 1
        read_racks is 0, but must be from 1 to 64
        drives_per_read_rack is 11, but must be from 1 to 10
        slots_per_shelf is 0, but must be from 1 to 4096
        slots of all racks is 268435456, but must be from 1 to 16777216
        drives_per_read_rack is 3, but must be a multiple of the 2 panels
        shuttles_per_panel is 9, but a panel with 4 read drives takes at most twice as many
        a read rack has 10 drives on a panel, but only 9 shelves to put them at
        shuttles_per_panel is 24: 12 partitions on one side of a panel, but 10 fit beside its drives
        shuttles_per_panel is 9: 6 partitions on one side of a panel, but 4 fit beside its drives
    "#]]
    .assert_eq(&errors.concat());
}

#[test]
fn shapes_are_read_from_config() {
    let shape: LibraryShape = toml::from_str("storage_racks = 9").unwrap();
    assert_eq!(shape, LibraryShape { storage_racks: 9, ..LibraryShape::small() });
    let error = toml::from_str::<LibraryShape>("storage_rack = 9").unwrap_err().to_string();
    assert!(error.contains("unknown field `storage_rack`"), "{error}");
    let text = toml::to_string(&LibraryShape::mdu()).unwrap();
    assert_eq!(toml::from_str::<LibraryShape>(&text).unwrap(), LibraryShape::mdu());
}
