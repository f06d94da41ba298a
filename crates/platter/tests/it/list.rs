//! File lists survive a round trip in pieces of any size, and damage is detected.

use fulgurite_platter::{
    ListEntry, ListReader, ListWriter, PlatterError, list_bytes, list_entry_bytes,
};
use fulgurite_units::ObjectId;
use proptest::prelude::*;

use crate::support::{platter_id, user_bytes};

fn entries(sizes: &[(u64, usize)]) -> Vec<ListEntry> {
    let mut offset = 0;
    sizes
        .iter()
        .enumerate()
        .map(|(n, &(length, sealed))| {
            let entry = ListEntry {
                object: ObjectId::from_bytes([u8::try_from(n).unwrap(); 16]),
                offset,
                length,
                body_offset: n as u64 * 7,
                body_bytes: n as u64 * 7 + length + n as u64 % 2,
                sealed: user_bytes(sealed, n as u64),
            };
            offset += length;
            entry
        })
        .collect()
}

fn build(entries: &[ListEntry]) -> Vec<u8> {
    let size = |e: &ListEntry| list_entry_bytes(u32::try_from(e.sealed.len()).unwrap());
    let entry_bytes = entries.iter().map(size).sum();
    let mut list = Vec::new();
    let count = u32::try_from(entries.len()).unwrap();
    let mut writer = ListWriter::new(platter_id(0), count, entry_bytes, &mut list);
    entries.iter().for_each(|entry| writer.push(entry, &mut list));
    writer.finish(&mut list);
    assert_eq!(list.len() as u64, list_bytes(entry_bytes));
    list
}

fn parse(list: &[u8], piece: usize) -> Result<Vec<ListEntry>, PlatterError> {
    let mut reader = ListReader::new(platter_id(0));
    let mut entries = Vec::new();
    for piece in list.chunks(piece) {
        reader.push(piece);
        while let Some(entry) = reader.next_entry()? {
            entries.push(entry);
        }
    }
    let count = reader.finish()?;
    assert_eq!(count as usize, entries.len());
    Ok(entries)
}

proptest! {
    #[test]
    fn lists_round_trip_in_any_pieces(
        sizes in prop::collection::vec((0u64..1 << 40, 0usize..300), 0..40), piece in 1usize..5000,
    ) {
        let entries = entries(&sizes);
        prop_assert_eq!(parse(&build(&entries), piece).unwrap(), entries);
    }

    #[test]
    fn damage_and_truncation_are_detected(
        sizes in prop::collection::vec((0u64..1000, 0usize..100), 1..8),
        at in any::<prop::sample::Index>(), bit in 0u8..8, piece in 1usize..500,
    ) {
        let list = build(&entries(&sizes));
        let at = at.index(list.len());
        let mut damaged = list.clone();
        damaged[at] ^= 1 << bit;
        let longer = [&list[..], &[0]].concat();
        for wrong in [&damaged[..], &list[..at], &longer[..]] {
            let is_named = matches!(parse(wrong, piece), Err(PlatterError::List { .. }));
            prop_assert!(is_named);
        }
    }

    #[test]
    fn random_bytes_are_not_a_list(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(parse(&bytes, 100).is_err());
    }
}

#[test]
fn the_longest_sealed_entry_fits() {
    let longest = entries(&[(1, 64 << 10)]);
    assert_eq!(parse(&build(&longest), 1000).unwrap(), longest);
    let other = build(&entries(&[(1, 1)]));
    let mut reader = ListReader::new(platter_id(1));
    reader.push(&other);
    let error = reader.next_entry().unwrap_err();
    assert!(error.to_string().contains("another platter"), "{error}");
}
