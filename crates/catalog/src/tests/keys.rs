//! Tests keys: order is preserved, fields round-trip, damaged keys are errors.

use proptest::prelude::*;

use crate::ErrorKind;
use crate::KeyRange;
use crate::keys::{KeyReader, KeyWriter, prefix_successor};

type Fields = (Vec<u8>, u64, String, u32, u64);

fn write(fields: &Fields) -> Vec<u8> {
    let (bytes, number, text, short, descending) = fields;
    KeyWriter::new()
        .string_bytes(bytes)
        .u64(*number)
        .string(text)
        .u32(*short)
        .u64_descending(*descending)
        .finish()
}

fn read(key: &[u8]) -> Result<Fields, crate::CatalogError> {
    let mut reader = KeyReader::new(key);
    let fields = (
        reader.string_bytes()?,
        reader.u64()?,
        reader.string()?,
        reader.u32()?,
        reader.u64_descending()?,
    );
    reader.finish()?;
    Ok(fields)
}

/// Returns all strings of up to `len_max` of the bytes that matter for escaping.
fn short_strings(len_max: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut longest = all.clone();
    for _ in 0..len_max {
        longest = longest
            .iter()
            .flat_map(|string| {
                [0x00, 0x01, 0x7f, 0xfe, 0xff].map(|byte| {
                    let mut string: Vec<u8> = string.clone();
                    string.push(byte);
                    string
                })
            })
            .collect();
        all.extend_from_slice(&longest);
    }
    all
}

#[test]
fn short_strings_keep_order_before_any_next_field() {
    let strings = short_strings(3);
    let low = |string: &[u8]| KeyWriter::new().string_bytes(string).u8(0).finish();
    let high = |string: &[u8]| KeyWriter::new().string_bytes(string).u8(u8::MAX).finish();
    for a in &strings {
        let key = high(a);
        let mut reader = KeyReader::new(&key);
        assert_eq!(&reader.string_bytes().unwrap(), a);
        assert_eq!(reader.u8().unwrap(), u8::MAX);
        for b in &strings {
            if a < b {
                assert!(high(a) < low(b), "{a:?} before {b:?}");
            }
        }
    }
}

#[test]
fn string_prefix_range_matches_exactly_its_strings() {
    let strings = short_strings(3);
    for prefix in &strings {
        let range = KeyRange::prefix(&KeyWriter::new().string_prefix(prefix).finish());
        for string in &strings {
            let key = KeyWriter::new().string_bytes(string).u8(9).finish();
            assert_eq!(range.contains(&key), string.starts_with(prefix), "{prefix:?} {string:?}");
        }
    }
}

#[test]
fn every_16_bit_integer_keeps_its_order() {
    let keys: Vec<_> = (0..=u16::MAX).map(|value| KeyWriter::new().u16(value).finish()).collect();
    assert!(keys.is_sorted_by(|a, b| a < b));
    for (value, key) in (0..=u16::MAX).zip(&keys) {
        assert_eq!(KeyReader::new(key).u16().unwrap(), value);
    }
}

#[test]
fn prefix_successor_follows_every_key_with_the_prefix() {
    assert_eq!(prefix_successor(b""), None);
    assert_eq!(prefix_successor(&[0xff, 0xff]), None);
    assert_eq!(prefix_successor(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(prefix_successor(&[b'a', 0xff]), Some(b"b".to_vec()));
    let strings = short_strings(3);
    for prefix in &strings {
        let Some(successor) = prefix_successor(prefix) else { continue };
        for string in &strings {
            let inside = string >= prefix && string < &successor;
            assert_eq!(inside, string.starts_with(prefix), "{prefix:?} {string:?}");
        }
    }
}

#[test]
fn damaged_key_error_has_the_offset() {
    let check = |key: &[u8]| {
        let error = read(key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        error.to_string()
    };
    let key = write(&(b"a\0b".to_vec(), 1, "text".to_owned(), 2, 3));
    assert_eq!(check(b""), "key does not decode at byte 0: string has no end");
    assert_eq!(check(&[b'a', 0, 7]), "key does not decode at byte 1: zero byte is not escaped");
    assert_eq!(check(&key[..9]), "key does not decode at byte 6: field is truncated");
    let mut longer = key.clone();
    longer.push(0);
    assert_eq!(check(&longer), "key does not decode at byte 32: bytes follow the last field");
    let mut text = key;
    text[14] = 0xff;
    assert_eq!(check(&text), "key does not decode at byte 14: string is not UTF-8");
}

#[test]
fn ranges_narrow_from_both_ends() {
    let range = KeyRange::prefix(b"b");
    assert!(range.contains(b"b") && range.contains(b"b\xff") && !range.contains(b"c"));
    let page = range.clone().after(b"b1");
    assert!(!page.contains(b"b1") && page.contains(b"b1\0") && page.contains(b"b2"));
    assert_eq!(range.clone().after(b"a"), range, "a key before the range does not widen it");
    assert_eq!(range.clone().before(b"z"), range, "a key after the range does not widen it");
    assert_eq!(range.clone().at_or_after(b"a"), range);
    let page = range.clone().before(b"b2");
    assert!(page.contains(b"b1") && !page.contains(b"b2"));
    assert!(range.clone().after(b"c").is_empty());
    assert!(range.before(b"b").is_empty());
    assert!(!KeyRange::all().is_empty() && KeyRange::between("a", "a").is_empty());
}

/// Bytes rich in those that are escaped.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0x00), Just(0xff), any::<u8>()], 0..12)
}

fn fields() -> impl Strategy<Value = Fields> {
    let text = proptest::collection::vec(prop_oneof![Just('\0'), any::<char>()], 0..6)
        .prop_map(|chars| chars.into_iter().collect());
    (bytes(), any::<u64>(), text, any::<u32>(), any::<u64>())
}

proptest! {
    #[test]
    fn composite_keys_sort_like_their_fields(a in fields(), b in fields()) {
        let order = |fields: &Fields| {
            let (bytes, number, text, short, descending) = fields.clone();
            (bytes, number, text.into_bytes(), short, std::cmp::Reverse(descending))
        };
        prop_assert_eq!(write(&a).cmp(&write(&b)), order(&a).cmp(&order(&b)));
    }

    #[test]
    fn composite_keys_round_trip(fields in fields()) {
        prop_assert_eq!(read(&write(&fields)).unwrap(), fields);
    }

    #[test]
    fn decoding_arbitrary_bytes_never_panics(key in bytes()) {
        if let Ok(fields) = read(&key) {
            prop_assert_eq!(write(&fields), key);
        }
    }
}
