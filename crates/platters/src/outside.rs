//! Parsers of outside bytes that nobody else can reach: messages of the decode queue. Each function
//! says what must hold of them whatever the bytes.
//!
//! Fuzz targets call these with what the fuzzer finds, and the tests here with seeded bytes. It is
//! no interface for anything else.

use serde::ser::SerializeTuple as _;
use serde::{Serialize, Serializer};

use crate::decode_service::check_message;

/// Bytes as they are, without the length that postcard writes before a vector.
pub(crate) struct Plain<'a>(pub(crate) &'a [u8]);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        self.0.iter().try_for_each(|byte| tuple.serialize_element(byte))?;
        tuple.end()
    }
}

/// Any bytes as a message of the decode queue, with and without its code.
///
/// # Panics
/// When something does not hold.
pub fn queue_message(input: &[u8]) {
    check_message(input);
}

#[cfg(test)]
mod tests;
