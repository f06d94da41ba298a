//! Parsers of untrusted bytes: fragments, rows of a directory, addresses. Each function asserts
//! what must hold for any input.
//!
//! Fuzz targets call these with the fuzzer's inputs, and the tests here with seeded bytes. Not an
//! interface for anything else.

use crate::stores::fragment;
use crate::stores::{Address, Key, directory};

/// Parses any bytes as a fragment: an error, or it encodes to an equal fragment again.
///
/// # Panics
/// If that does not hold.
pub fn fragment(input: &[u8]) {
    let Ok((header, payload)) = fragment::decode(input) else { return };
    let again = fragment::encode(&header, &payload).expect("what was read can be written");
    // Padding and reserved bytes of a header are only checked by its checksum.
    assert_eq!(fragment::decode(&again).expect("and read again"), (header, payload));
}

/// Parses any bytes as the file of a row: an error, or it encodes to the same bytes again.
///
/// # Panics
/// If that does not hold.
pub fn row_file(input: &[u8]) {
    let key = Key::new("a/b").expect("it is a key");
    if let Ok(row) = directory::decode(&key, input) {
        assert_eq!(directory::encode(&key, &row), input);
    }
}

/// Parses any text as an address: an error that shows no possible secret, or an address whose text
/// parses to the same address again.
///
/// # Panics
/// If that does not hold.
pub fn address(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_string().parse::<Address>(), Ok(address));
    }
}

#[cfg(test)]
mod tests;
