//! Parsers of outside bytes that nobody else can reach: messages of the decode queue. Each function
//! says what must hold of them whatever the bytes.
//!
//! Fuzz targets call these with what the fuzzer finds, and the tests here with seeded bytes. It is
//! no interface for anything else.

use crate::decode_service::check_message;

/// Any bytes as a message of the decode queue, with and without its code.
///
/// # Panics
/// When something does not hold.
pub fn queue_message(input: &[u8]) {
    check_message(input);
}

#[cfg(test)]
mod tests;
