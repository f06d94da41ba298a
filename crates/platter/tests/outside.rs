//! Runs the checks of this crate's fuzz targets on randomly changed valid inputs.

#[path = "../../../fuzz/changes.rs"]
mod changes;
#[path = "../../../fuzz/glass_checks.rs"]
mod glass_checks;

use fulgurite_platter::{ListEntry, ListWriter, list_entry_bytes};
use fulgurite_units::{ObjectId, PlatterId};

#[test]
fn headers_of_platters() {
    let document = include_bytes!("golden/header-1.json");
    let platter = include_bytes!("golden/platter-1.glass");
    changes::each(&[document, platter], glass_checks::platter_header);
}

#[test]
fn golden_document_passes_the_fuzz_check() {
    // Otherwise the check would only ever see errors.
    let document = include_bytes!("golden/header-1.json");
    assert!(glass_checks::opens(document));
    assert!(!glass_checks::opens(b"{}"));
}

#[test]
fn file_lists() {
    let entries: Vec<ListEntry> = (1..6u8)
        .map(|number| ListEntry {
            object: ObjectId::from_bytes([number; 16]),
            offset: u64::from(number) * 1000,
            length: 500,
            body_offset: 0,
            body_bytes: 500 + u64::from(number % 2),
            sealed: vec![number; usize::from(number) * 9],
        })
        .collect();
    let bytes = entries
        .iter()
        .map(|entry| list_entry_bytes(u32::try_from(entry.sealed.len()).unwrap()))
        .sum();
    // The first byte selects the size of the pieces in which the list arrives.
    let mut list = vec![40];
    let platter = PlatterId::from_bytes(glass_checks::PLATTER);
    let mut writer = ListWriter::new(platter, 5, bytes, &mut list);
    entries.iter().for_each(|entry| writer.push(entry, &mut list));
    writer.finish(&mut list);
    changes::each(&[&list], glass_checks::file_list);
}
