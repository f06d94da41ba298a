//! The protobuf wire format, as far as ONNX needs it: a message is a sequence of fields.
//!
//! ```text
//! field   | key: varint = number << 3 | kind | value |
//! kind    0 varint | 1 eight bytes | 2 varint n, then n bytes | 5 four bytes
//! varint  seven bits a byte, the lowest first; the highest bit means that more follow
//! ```
//!
//! Kinds 3 and 4, groups, are older than ONNX and are refused. Parsing terminates for any input,
//! with fields or an error: nothing is allocated here, each field consumes at least a byte, and all
//! messages of a file share one budget of fields. A nested message is parsed only by callers that
//! know its type, so depth is bounded by the types of `super`, not by the file.

use std::cell::Cell;

use crate::limits::ONNX_FIELDS_MAX;

/// Longest varint: ten times seven bits hold 64.
const VARINT_BYTES_MAX: usize = 10;

/// Largest field number.
const NUMBER_MAX: u64 = (1 << 29) - 1;

/// Remaining budget of fields of a file.
#[derive(Debug)]
pub(super) struct Budget(Cell<usize>);

impl Budget {
    pub(super) const fn for_file() -> Self {
        Self(Cell::new(ONNX_FIELDS_MAX))
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    /// Its field number, which determines its meaning.
    pub(super) number: u32,
    value: Value<'a>,
    /// Offset of its value in the file, after the length if it has one.
    offset: usize,
}

/// Iterates over the fields of a message. Ends after an error.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    /// Offset of the unread bytes in the file.
    offset: usize,
    budget: &'a Budget,
}

impl<'a> Fields<'a> {
    /// Returns the fields of a whole file.
    pub(super) const fn for_file(file: &'a [u8], budget: &'a Budget) -> Self {
        Self { rest: file, offset: 0, budget }
    }

    fn field(&mut self) -> Result<Field<'a>, String> {
        let offset = self.offset;
        let left = self.budget.0.get().checked_sub(1);
        let left = left.ok_or_else(|| format!("byte {offset}: over {ONNX_FIELDS_MAX} fields"))?;
        self.budget.0.set(left);
        let key = self.varint()?;
        let number = key >> 3;
        if !(1..=NUMBER_MAX).contains(&number) {
            return Err(format!("byte {offset}: a field of the number {number}"));
        }
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.array()?),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.bytes(length)?)
            }
            5 => Value::Fixed32(self.array()?),
            kind => return Err(format!("byte {offset}: a field of the kind {kind}")),
        };
        let length = match value {
            Value::Varint(_) => 0,
            Value::Fixed64(_) => 8,
            Value::Bytes(bytes) => bytes.len(),
            Value::Fixed32(_) => 4,
        };
        let number = u32::try_from(number).map_err(|error| error.to_string())?;
        Ok(Field { number, value, offset: self.offset - length })
    }

    fn varint(&mut self) -> Result<u64, String> {
        let offset = self.offset;
        let (value, length) =
            varint(self.rest).map_err(|reason| format!("byte {offset}: {reason}"))?;
        self.skip(length);
        Ok(value)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], String> {
        let found = self.rest.first_chunk().copied();
        let found = found.ok_or_else(|| self.ends_within(BYTES as u64))?;
        self.skip(BYTES);
        Ok(found)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], String> {
        let fits = usize::try_from(length).ok().and_then(|length| self.rest.get(..length));
        let found = fits.ok_or_else(|| self.ends_within(length))?;
        self.skip(found.len());
        Ok(found)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
        self.offset += bytes;
    }

    fn ends_within(&self, length: u64) -> String {
        format!("byte {}: it ends within {length} bytes", self.offset)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> Field<'a> {
    /// Returns the fields of a nested message.
    pub(super) fn message(&self, budget: &'a Budget) -> Result<Fields<'a>, String> {
        Ok(Fields { rest: self.bytes()?, offset: self.offset, budget })
    }

    pub(super) fn bytes(&self) -> Result<&'a [u8], String> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Varint(_) | Value::Fixed64(_) | Value::Fixed32(_) => {
                Err(self.type_error("bytes"))
            }
        }
    }

    pub(super) fn text(&self) -> Result<String, String> {
        let text = str::from_utf8(self.bytes()?).map_err(|_| self.type_error("text in UTF-8"))?;
        Ok(text.to_owned())
    }

    /// Returns a signed integer.
    pub(super) fn int64(&self) -> Result<i64, String> {
        match self.value {
            Value::Varint(value) => Ok(value.cast_signed()),
            Value::Bytes(_) | Value::Fixed64(_) | Value::Fixed32(_) => {
                Err(self.type_error("a number"))
            }
        }
    }

    pub(super) fn int32(&self) -> Result<i32, String> {
        i32::try_from(self.int64()?).map_err(|_| self.type_error("a number of 32 bits"))
    }

    /// Appends an element of a list, or many packed ones.
    pub(super) fn int64s(&self, list: &mut Vec<i64>) -> Result<(), String> {
        self.numbers(list, Ok)
    }

    /// Like `int64s`, for 32-bit integers.
    pub(super) fn int32s(&self, list: &mut Vec<i32>) -> Result<(), String> {
        self.numbers(list, |value| {
            i32::try_from(value).map_err(|_| self.type_error("numbers of 32 bits"))
        })
    }

    /// Like `int64s`, for floats.
    pub(super) fn floats(&self, list: &mut Vec<f32>) -> Result<(), String> {
        match self.value {
            Value::Fixed32(bytes) => list.push(f32::from_le_bytes(bytes)),
            Value::Bytes(bytes) => {
                let (whole, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(self.type_error("numbers of four bytes"));
                }
                list.extend(whole.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            }
            Value::Varint(_) | Value::Fixed64(_) => return Err(self.type_error("real numbers")),
        }
        Ok(())
    }

    fn numbers<T>(
        &self,
        list: &mut Vec<T>,
        make: impl Fn(i64) -> Result<T, String>,
    ) -> Result<(), String> {
        let Value::Bytes(mut packed) = self.value else {
            list.push(make(self.int64()?)?);
            return Ok(());
        };
        while !packed.is_empty() {
            let (value, length) =
                varint(packed).map_err(|reason| format!("byte {}: {reason}", self.offset))?;
            packed = &packed[length..];
            list.push(make(value.cast_signed())?);
        }
        Ok(())
    }

    /// Returns an error with the offset.
    fn type_error(&self, expected: &str) -> String {
        format!("byte {}: the field {} is not {expected}", self.offset, self.number)
    }
}

/// Decodes a varint at the start of `bytes`; returns it and its length.
fn varint(bytes: &[u8]) -> Result<(u64, usize), &'static str> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << (7 * index);
        if shifted >> (7 * index) != bits {
            return Err("a varint of over 64 bits");
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Ok((value, index + 1));
        }
    }
    Err(if bytes.len() < VARINT_BYTES_MAX {
        "it ends within a varint"
    } else {
        "a varint of over 10 bytes"
    })
}
