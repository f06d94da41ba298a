//! Fuzzing entry points for parsers of outside bytes that no public API reaches: key slots, rows,
//! sealed entries. Each function asserts what must hold for any bytes.
//!
//! Fuzz targets call these with the fuzzer's input, and the tests here with seeded bytes. Not an
//! interface for anything else.

use fulgurite_glass::fuzz_api::glass_row;
use fulgurite_units::ObjectId;

use crate::bodies::cipher::{SecretKey, seal_entry};
use crate::bodies::entry::Entry;
use crate::bodies::key_table::slot::{Content, SLOT_BYTES, Slot, content, decode, repair};
use crate::rows::{
    self, BODIES, BUCKETS, BodyRow, BucketRow, EXPIRIES, ExpiryRow, META, OBJECTS, ObjectRow,
    PARTS, PartRow, QUEUE, QueueRow, RESTORES, RestoreRow, Row, SEGMENTS, Totals, UNCONFIRMED,
    UPLOADS, UnconfirmedRow, UploadRow,
};

/// The master key and data key of the samples.
const KEY: [u8; 32] = [7; 32];
/// The body of the samples.
const BODY: [u8; 16] = [5; 16];

/// Checks any slot of the key table: it yields a key only if the cipher authenticates it, repaired
/// or not.
///
/// # Panics
/// When a property does not hold.
pub fn key_slot(input: &[u8]) {
    let mut slot: Slot = [0; SLOT_BYTES];
    let bytes = input.len().min(SLOT_BYTES);
    slot[..bytes].copy_from_slice(&input[..bytes]);
    let master = SecretKey::from_bytes(KEY);
    match (content(&slot), decode(&master, &slot)) {
        (Content::Valid { body, .. }, Some((found, _))) => assert_eq!(body, found),
        (_, None) => {}
        (Content::Empty | Content::Damaged, Some(_)) => panic!("an invalid slot returned a key"),
    }
    if let Some(repaired) = repair(&master, &slot) {
        assert!(decode(&master, &repaired).is_some(), "a repaired slot opens");
    }
}

/// Checks any row of any space: it decodes to a row that survives a round trip, or is an error. The
/// first byte selects the space.
///
/// # Panics
/// When a property does not hold.
pub fn row(input: &[u8]) {
    let Some((selector, bytes)) = input.split_first() else { return };
    match selector % 19 {
        0 => round_trips::<Totals>(META, bytes),
        1 => round_trips::<BucketRow>(BUCKETS, bytes),
        2 => round_trips::<ObjectRow>(OBJECTS, bytes),
        3 => round_trips::<BodyRow>(BODIES, bytes),
        4 => round_trips::<QueueRow>(QUEUE, bytes),
        5 => round_trips::<UploadRow>(UPLOADS, bytes),
        6 => round_trips::<PartRow>(PARTS, bytes),
        7 => round_trips::<u64>(SEGMENTS, bytes),
        selector @ 8..=12 => glass_row(selector - 8, bytes),
        13 => round_trips::<RestoreRow>(RESTORES, bytes),
        14 => round_trips::<ExpiryRow>(EXPIRIES, bytes),
        15 => keys(bytes),
        selector @ 16..=17 => glass_row(selector - 11, bytes),
        _ => round_trips::<UnconfirmedRow>(UNCONFIRMED, bytes),
    }
}

/// Checks that a decoded row survives encoding and decoding.
fn round_trips<T: Row + PartialEq + std::fmt::Debug>(
    space: fulgurite_catalog::Space,
    bytes: &[u8],
) {
    if let Ok(row) = rows::decode::<T>(space, bytes) {
        let again = rows::encode(&row).expect("a decoded row encodes");
        assert_eq!(rows::decode::<T>(space, &again).expect("the row decodes again"), row);
    }
}

/// Checks that parsed keys encode again: object keys to the same length, expiry keys to the same
/// bytes.
fn keys(bytes: &[u8]) {
    if let Ok((bucket, key)) = rows::parse_object_key(bytes) {
        assert_eq!(rows::object_key(&bucket, &key).len(), bytes.len());
    }
    if let Ok((time, object)) = rows::parse_expiry_key(bytes) {
        assert_eq!(rows::expiry_key(time, object), bytes);
    }
    let _ = rows::parse_upload_key(bytes);
    let _ = rows::parse_segment_key(bytes);
}

/// Checks any bytes sealed as an entry: they decode to an entry that survives a round trip, or are
/// an error.
///
/// # Panics
/// When a property does not hold.
pub fn sealed_entry(input: &[u8]) {
    let (key, body) = (SecretKey::from_bytes(KEY), ObjectId::from_bytes(BODY));
    assert!(Entry::open(&key, body, input).is_err(), "unsealed bytes do not open");
    let sealed = seal_entry(&key, body, input).expect("the system gives random bytes");
    if let Ok(entry) = Entry::open(&key, body, &sealed) {
        let again = entry.seal(&key, body).expect("an opened entry seals");
        assert_eq!(Entry::open(&key, body, &again).expect("the entry opens again"), entry);
    }
}

#[cfg(test)]
mod tests;
