//! Composite keys whose byte order is the order of their fields.
//!
//! ```text
//!   integer   big-endian, fixed width           ascending; complemented for descending
//!   string    bytes, 00 -> 00 FF, then 00 00    "a" < "a\0" < "a\x01" < "b"
//!   fixed     bytes as they are                 identifiers of one length
//! ```
//!
//! A string that is a prefix of another ends in `00 00` where the other continues with `00 FF` or a
//! larger byte. So it sorts first, and no field can run into the next one. Keys carry no types: the
//! writer and the reader for each table are written side by side and must agree.

use crate::CatalogError;

const ESCAPE: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xff;
const TERMINATOR: u8 = 0x00;

/// Writes the fields of a key one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyWriter {
    bytes: Vec<u8>,
}

impl KeyWriter {
    /// Creates a key without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Appends a string field.
    #[must_use]
    pub fn string(self, text: &str) -> Self {
        self.string_bytes(text.as_bytes())
    }

    /// Appends a string field given as bytes of any kind.
    #[must_use]
    pub fn string_bytes(self, text: &[u8]) -> Self {
        let mut this = self.string_prefix(text);
        this.bytes.extend([ESCAPE, TERMINATOR]);
        this
    }

    /// Appends the beginning of a string field: the key is then a prefix of the keys of all strings
    /// that begin with `text`. Must be the last field.
    #[must_use]
    pub fn string_prefix(mut self, text: &[u8]) -> Self {
        self.bytes.reserve(text.len() + 2);
        for &byte in text {
            self.bytes.push(byte);
            if byte == ESCAPE {
                self.bytes.push(ESCAPED_ZERO);
            }
        }
        self
    }

    /// Appends bytes as they are; every key of the table must have the same number here.
    #[must_use]
    pub fn fixed(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends an integer.
    #[must_use]
    pub fn u8(self, value: u8) -> Self {
        self.integer(u128::from(value), 1)
    }

    /// Appends an integer.
    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        self.integer(u128::from(value), 2)
    }

    /// Appends an integer.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.integer(u128::from(value), 4)
    }

    /// Appends an integer.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.integer(u128::from(value), 8)
    }

    /// Appends an integer whose larger values sort first.
    #[must_use]
    pub fn u64_descending(self, value: u64) -> Self {
        self.u64(!value)
    }

    /// Appends an integer.
    #[must_use]
    pub fn u128(self, value: u128) -> Self {
        self.integer(value, 16)
    }

    /// Returns the key.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    #[expect(clippy::big_endian_bytes, reason = "bytewise order must be numeric order")]
    fn integer(mut self, value: u128, width: usize) -> Self {
        let bytes = value.to_be_bytes();
        assert!(width <= bytes.len(), "an integer of at most 16 bytes");
        self.bytes.extend_from_slice(&bytes[bytes.len() - width..]);
        self
    }
}

/// Reads the fields of a key in the order they were written.
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    key: &'a [u8],
    offset: usize,
}

impl<'a> KeyReader<'a> {
    /// Creates a reader at the first field of `key`.
    #[must_use]
    pub const fn new(key: &'a [u8]) -> Self {
        Self { key, offset: 0 }
    }

    /// Reads a string field.
    pub fn string(&mut self) -> Result<String, CatalogError> {
        let offset = self.offset;
        String::from_utf8(self.string_bytes()?)
            .map_err(|_| CatalogError::KeyEncoding { offset, reason: "string is not UTF-8" })
    }

    /// Reads a string field as bytes.
    pub fn string_bytes(&mut self) -> Result<Vec<u8>, CatalogError> {
        let mut text = Vec::with_capacity(self.rest().len());
        loop {
            match *self.rest() {
                [ESCAPE, TERMINATOR, ..] => {
                    self.offset += 2;
                    return Ok(text);
                }
                [ESCAPE, ESCAPED_ZERO, ..] => {
                    text.push(ESCAPE);
                    self.offset += 2;
                }
                [ESCAPE, ..] => return Err(self.error("zero byte is not escaped")),
                [byte, ..] => {
                    text.push(byte);
                    self.offset += 1;
                }
                [] => return Err(self.error("string has no end")),
            }
        }
    }

    /// Reads `N` bytes as they are.
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], CatalogError> {
        let bytes = *self.rest().first_chunk().ok_or_else(|| self.error("field is truncated"))?;
        self.offset += N;
        Ok(bytes)
    }

    /// Reads an integer.
    pub fn u8(&mut self) -> Result<u8, CatalogError> {
        Ok(self.fixed::<1>()?[0])
    }

    /// Reads an integer.
    pub fn u16(&mut self) -> Result<u16, CatalogError> {
        Ok(self.fixed::<2>()?.iter().fold(0, |value, &byte| value << 8 | u16::from(byte)))
    }

    /// Reads an integer.
    pub fn u32(&mut self) -> Result<u32, CatalogError> {
        Ok(self.fixed::<4>()?.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
    }

    /// Reads an integer.
    pub fn u64(&mut self) -> Result<u64, CatalogError> {
        Ok(self.fixed::<8>()?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Reads an integer whose larger values sort first.
    pub fn u64_descending(&mut self) -> Result<u64, CatalogError> {
        Ok(!self.u64()?)
    }

    /// Reads an integer.
    pub fn u128(&mut self) -> Result<u128, CatalogError> {
        Ok(self.fixed::<16>()?.iter().fold(0, |value, &byte| value << 8 | u128::from(byte)))
    }

    /// Succeeds if every field has been read.
    pub fn finish(self) -> Result<(), CatalogError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.error("bytes follow the last field")) }
    }

    fn rest(&self) -> &'a [u8] {
        &self.key[self.offset..]
    }

    fn error(&self, reason: &'static str) -> CatalogError {
        CatalogError::KeyEncoding { offset: self.offset, reason }
    }
}

/// Returns the smallest key greater than every key that begins with `prefix`; none if there is no
/// such key, as for a prefix of only `FF` bytes.
#[must_use]
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut successor = prefix[..=last].to_vec();
    successor[last] += 1;
    Some(successor)
}
