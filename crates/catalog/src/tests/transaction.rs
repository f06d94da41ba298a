//! Tests the overlay of a transaction against three stacked maps.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::{
    Batch, Direction, ErrorKind, KeyRange, KeyValue, MemoryStore, ReadView, Space, Transaction,
};

const ROWS: Space = Space::new("rows");
const OTHER: Space = Space::new("other");
const SPACES: [Space; 2] = [ROWS, OTHER];

type Layer = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(0_u8..3, 1..3)
}

fn layer() -> impl Strategy<Value = Layer> {
    btree_map(key(), proptest::option::of(vec(any::<u8>(), 0..2)), 0..10)
}

fn batch(layer: &Layer) -> Batch {
    let mut batch = Batch::new();
    for (key, value) in layer {
        match value {
            Some(value) => batch.put(ROWS, key.clone(), value.clone()).unwrap(),
            None => batch.delete(ROWS, key.clone()).unwrap(),
        }
    }
    batch
}

proptest! {
    #[test]
    fn reads_prefer_own_writes_then_group_then_store(
        base in layer(), group in layer(), own in layer(),
        start in key(), end in key(), limit in 0_usize..12,
    ) {
        let store = MemoryStore::new(&SPACES);
        store.apply(batch(&base)).unwrap();
        let group_batch = batch(&group);
        let mut transaction = Transaction::new(&store, &SPACES, &group_batch);
        for (key, value) in &own {
            match value {
                Some(value) => transaction.put(ROWS, key.clone(), value.clone()).unwrap(),
                None => transaction.delete(ROWS, key.clone()).unwrap(),
            }
        }
        let mut merged = base;
        merged.extend(group.clone());
        merged.extend(own.clone());
        for (key, value) in &merged {
            prop_assert_eq!(&transaction.get(ROWS, key).unwrap(), value);
        }
        let part = KeyRange::between(start.clone(), end);
        for range in [KeyRange::all(), part, KeyRange::prefix(&start)] {
            let mut expected: Vec<_> = merged
                .iter()
                .filter(|(key, _)| range.contains(key))
                .filter_map(|(key, value)| Some((key.clone(), value.clone()?)))
                .collect();
            for direction in [Direction::Ascending, Direction::Descending] {
                let page = transaction.range(ROWS, &range, direction, limit).unwrap();
                prop_assert_eq!(&page[..], &expected[..limit.min(expected.len())]);
                expected.reverse();
            }
        }
        let other = transaction.range(OTHER, &KeyRange::all(), Direction::Ascending, 1).unwrap();
        prop_assert_eq!(other, []);
        prop_assert_eq!(transaction.is_read_only(), own.is_empty());

        // The group then contains what the closure saw.
        let mut grown = group_batch.clone();
        grown.absorb(transaction.into_writes());
        let mut layers = group;
        layers.extend(own);
        prop_assert_eq!(grown.bytes(), batch(&layers).bytes());
        prop_assert_eq!(grown, batch(&layers));
    }
}

#[test]
fn invalid_writes_are_refused() {
    let store = MemoryStore::new(&SPACES);
    let group = Batch::new();
    let mut transaction = Transaction::new(&store, &SPACES, &group);
    let unknown = Space::new("unknown");
    assert_eq!(transaction.put(unknown, [1], [1]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(transaction.delete(unknown, [1]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(transaction.get(unknown, &[1]).unwrap_err().kind(), ErrorKind::Invalid);
    let value = vec![0; crate::limits::VALUE_BYTES_MAX];
    let fitting = crate::limits::TRANSACTION_BYTES_MAX / (value.len() + 100);
    for row in 0..fitting {
        transaction.put(ROWS, row.to_le_bytes(), value.clone()).unwrap();
    }
    // Replacing a row takes no more space than it frees, but the check does not rely on that.
    let error = transaction.put(ROWS, [9], value).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(transaction.get(ROWS, &[9]).unwrap().is_none());
}
