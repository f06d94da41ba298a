//! Encodes rows: a version byte, then postcard.
//!
//! Each kind of row counts its own versions. A version newer than this program is refused by name,
//! because its content may mean anything.
//!
//! The catalog does not know which kinds there are, or under which keys. The owner of a kind of row
//! defines its version.

use fulgurite_units::PlatterId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{CatalogError, Direction, KeyRange, ReadView, Space, Transaction};

const ROW_BYTES_USUAL: usize = 192;

/// A row stored under a key.
pub trait Row: Serialize + DeserializeOwned {
    /// The version of the encoding.
    const VERSION: u8;
}

/// A row, or why the bytes do not decode.
pub type RowResult<T> = Result<T, String>;

impl Row for u32 {
    const VERSION: u8 = 1;
}

impl Row for u64 {
    const VERSION: u8 = 1;
}

impl Row for PlatterId {
    const VERSION: u8 = 1;
}

/// Decodes a value from all of these bytes.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> RowResult<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((row, [])) => Ok(row),
        Ok((_, rest)) => Err(format!("{} bytes follow it", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}

/// Encodes a row.
pub fn encode<T: Row>(row: &T) -> Result<Vec<u8>, CatalogError> {
    // Large enough for most rows, to avoid reallocations.
    let mut bytes = Vec::with_capacity(ROW_BYTES_USUAL);
    bytes.push(T::VERSION);
    postcard::to_extend(row, bytes)
        .map_err(|error| CatalogError::Unencoded { reason: error.to_string() })
}

/// Decodes a row.
pub fn decode<T: Row>(space: Space, bytes: &[u8]) -> Result<T, CatalogError> {
    let row = match bytes.split_first() {
        Some((&version, row)) if version == T::VERSION => read(row),
        Some((0, _)) => Err("it has version 0, which never existed".to_owned()),
        Some((&version, _)) => {
            return Err(CatalogError::Newer { space: space.name(), version, known: T::VERSION });
        }
        None => Err("it is empty".to_owned()),
    };
    row.map_err(|reason| CatalogError::Undecoded { space: space.name(), reason })
}

/// Returns the row under `key`.
pub fn get<T: Row>(
    view: &dyn ReadView,
    space: Space,
    key: &[u8],
) -> Result<Option<T>, CatalogError> {
    view.get(space, key)?.map(|bytes| decode_row(view, space, &bytes)).transpose()
}

/// Decodes a row of `view`, and reports damage to it if the bytes do not decode.
pub fn decode_row<T: Row>(
    view: &dyn ReadView,
    space: Space,
    bytes: &[u8],
) -> Result<T, CatalogError> {
    decode(space, bytes).inspect_err(|error| view.report_damage(error))
}

/// Writes `row` under `key`.
pub fn put<T: Row>(
    tx: &mut Transaction<'_>,
    space: Space,
    key: Vec<u8>,
    row: &T,
) -> Result<(), CatalogError> {
    tx.put(space, key, encode(row)?)
}

/// Returns the first `limit` rows of `range`, with their keys.
pub fn rows_in<T: Row>(
    view: &dyn ReadView,
    space: Space,
    range: &KeyRange,
    limit: usize,
) -> Result<Vec<(Vec<u8>, T)>, CatalogError> {
    view.range(space, range, Direction::Ascending, limit)?
        .into_iter()
        .map(|(key, value)| Ok((key, decode_row(view, space, &value)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: Space = Space::new("numbers");

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<u64, &str>) {
        let found = decode::<u64>(SPACE, bytes).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn row_is_version_and_value_without_trailing_bytes() {
        assert_eq!(encode(&300_u64).unwrap(), [1, 0xAC, 0x02]);
        check(&[1, 0xAC, 0x02], Ok(300));
        let message = |reason: &str| format!("a row of space \"numbers\" of the catalog{reason}");
        check(&[1, 7, 7], Err(&message(": 1 bytes follow it")));
        check(&[0, 7], Err(&message(": it has version 0, which never existed")));
        check(&[], Err(&message(": it is empty")));
        check(&[2, 7], Err(&message(" has version 2, and this program knows up to 1")));
    }
}
