//! Rows to bytes and back: a version byte, then postcard.
//!
//! Each kind of row counts its versions for itself. Up to 3 they were counted for all together, so
//! that many kinds have the same bytes in each of them. A version that is newer than this program
//! is refused by name, for what follows it may mean anything.

use fulgurite_catalog::Space;
use fulgurite_units::PlatterId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    BodyRow, BucketRow, CatalogAge, DoubtRow, ExpiryRow, ForgettingRow, ObjectRow, PartRow,
    PlanRow, PlatterRow, QueueRow, RestoreRow, SetRow, SettledRow, Totals, TrackRow, UploadRow,
    VerificationRow, version1, version2, version3,
};
use crate::{ArchiveError, Result};

const ROW_BYTES_USUAL: usize = 192;

/// What is stored under a key.
pub(crate) trait Row: Serialize + DeserializeOwned {
    /// The version that is written. Raised when the bytes change; older ones stay readable.
    const VERSION: u8;

    /// The row in bytes of an older version, 1 or more.
    fn older(_version: u8, bytes: &[u8]) -> Read<Self> {
        read(bytes)
    }
}

/// A row, or why the bytes are none.
pub(crate) type Read<T> = std::result::Result<T, String>;

/// The value of these bytes, all of them.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Read<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((row, [])) => Ok(row),
        Ok((_, rest)) => Err(format!("{} bytes follow it", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}

/// The value of these bytes, which are of a type of before.
fn as_of<Old: DeserializeOwned, T: From<Old>>(bytes: &[u8]) -> Read<T> {
    read::<Old>(bytes).map(T::from)
}

impl Row for ObjectRow {
    const VERSION: u8 = 4;

    fn older(_version: u8, bytes: &[u8]) -> Read<Self> {
        as_of::<version3::ObjectRow3, _>(bytes)
    }
}

impl Row for BodyRow {
    const VERSION: u8 = 3;

    fn older(version: u8, bytes: &[u8]) -> Read<Self> {
        match version {
            1 => as_of::<version1::BodyRow1, _>(bytes),
            _ => as_of::<version2::BodyRow2, _>(bytes),
        }
    }
}

impl Row for PartRow {
    const VERSION: u8 = 3;

    fn older(version: u8, bytes: &[u8]) -> Read<Self> {
        match version {
            1 => as_of::<version1::PartRow1, _>(bytes),
            _ => as_of::<version2::PartRow2, _>(bytes),
        }
    }
}

impl Row for PlanRow {
    const VERSION: u8 = 3;

    fn older(version: u8, bytes: &[u8]) -> Read<Self> {
        match version {
            1 => as_of::<version1::PlanRow1, _>(bytes),
            _ => read(bytes),
        }
    }
}

impl Row for QueueRow {
    const VERSION: u8 = 4;

    fn older(_version: u8, bytes: &[u8]) -> Read<Self> {
        as_of::<version3::QueueRow3, _>(bytes)
    }
}

impl Row for RestoreRow {
    const VERSION: u8 = 4;

    fn older(_version: u8, bytes: &[u8]) -> Read<Self> {
        as_of::<version3::RestoreRow3, _>(bytes)
    }
}

impl Row for ExpiryRow {
    const VERSION: u8 = 4;

    fn older(_version: u8, bytes: &[u8]) -> Read<Self> {
        as_of::<version3::ExpiryRow3, _>(bytes)
    }
}

impl Row for DoubtRow {
    const VERSION: u8 = 4;

    fn older(_version: u8, bytes: &[u8]) -> Read<Self> {
        as_of::<version3::DoubtRow3, _>(bytes)
    }
}

impl Row for BucketRow {
    const VERSION: u8 = 3;
}

impl Row for UploadRow {
    const VERSION: u8 = 3;
}

impl Row for SetRow {
    const VERSION: u8 = 3;
}

impl Row for PlatterRow {
    const VERSION: u8 = 3;
}

impl Row for VerificationRow {
    const VERSION: u8 = 3;
}

impl Row for TrackRow {
    const VERSION: u8 = 3;
}

impl Row for SettledRow {
    const VERSION: u8 = 3;
}

impl Row for Totals {
    const VERSION: u8 = 3;
}

impl Row for CatalogAge {
    const VERSION: u8 = 3;
}

impl Row for ForgettingRow {
    const VERSION: u8 = 3;
}

impl Row for PlatterId {
    const VERSION: u8 = 3;
}

impl Row for u32 {
    const VERSION: u8 = 3;
}

impl Row for u64 {
    const VERSION: u8 = 3;
}

/// The bytes of a row.
pub(crate) fn encode<T: Row>(row: &T) -> Result<Vec<u8>> {
    // Most rows fit: one allocation, and not one for every doubling.
    let mut bytes = Vec::with_capacity(ROW_BYTES_USUAL);
    bytes.push(T::VERSION);
    postcard::to_extend(row, bytes)
        .map_err(|error| ArchiveError::Internal { what: format!("a row does not encode: {error}") })
}

/// The row in these bytes.
pub(crate) fn decode<T: Row>(space: Space, bytes: &[u8]) -> Result<T> {
    let row = match bytes.split_first() {
        Some((&version, row)) if version == T::VERSION => read(row),
        Some((&version, row)) if (1..T::VERSION).contains(&version) => T::older(version, row),
        Some((0, _)) => Err("it has version 0, which there never was".to_owned()),
        Some((version, _)) => {
            let (space, known) = (space.name(), T::VERSION);
            return Err(ArchiveError::Newer {
                what: format!(
                    "a row of space \"{space}\" of the catalog has version {version}, and this \
                     program knows up to {known}"
                ),
            });
        }
        None => Err("it is empty".to_owned()),
    };
    row.map_err(|why| ArchiveError::Corrupt {
        what: format!("a row of space \"{}\" of the catalog: {why}", space.name()),
    })
}
