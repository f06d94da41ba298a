//! Parsers of outside bytes: fragments, rows of a directory, addresses. Each function says what must
//! hold of them whatever the bytes.
//!
//! Fuzz targets call these with what the fuzzer finds, and the tests here with seeded bytes. It is
//! no interface for anything else.

use crate::fragment;
use crate::{Address, Key, directory};

/// Any bytes as a fragment: an error, or what is written as the same bytes again.
///
/// # Panics
/// When something does not hold.
pub fn fragment(input: &[u8]) {
    let Ok((header, payload)) = fragment::decode(input) else { return };
    let again = fragment::encode(&header, &payload).expect("what was read can be written");
    // Zeros that pad a header and reserved bytes are not looked at beyond its sum.
    assert_eq!(fragment::decode(&again).expect("and read again"), (header, payload));
}

/// Any bytes as the file of a row: an error, or what is written as the same bytes again.
///
/// # Panics
/// When something does not hold.
pub fn row_file(input: &[u8]) {
    let key = Key::new("a/b").expect("it is a key");
    if let Ok(row) = directory::decode(&key, input) {
        assert_eq!(directory::encode(&key, &row), input);
    }
}

/// Any text as an address: an error that does not show what may be a secret, or an address whose
/// text is read as the same again.
///
/// # Panics
/// When something does not hold.
pub fn address(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_string().parse::<Address>(), Ok(address));
    }
}

#[cfg(test)]
mod tests;
