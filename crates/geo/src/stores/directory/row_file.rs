//! File format of a row, byte by byte (docs/formats/site-table.md).
//!
//! ```text
//! FULGSROW | version | bytes of tag, key and row | tag | key | row | sum
//! ```

use bytes::Bytes;

use crate::stores::checksum::{SUM_BYTES, sum};
use crate::stores::{Key, Row, Tag};

const MAGIC: [u8; 8] = *b"FULGSROW";
const VERSION: u8 = 1;
/// Magic, version, three lengths.
const FIXED: usize = 8 + 1 + 1 + 2 + 4;

/// Converts a length in memory to one on disk.
pub(super) fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Encodes a row.
pub(crate) fn encode(key: &Key, row: &Row) -> Vec<u8> {
    let (tag, key) = (row.tag.as_bytes(), key.as_str().as_bytes());
    let mut file = Vec::with_capacity(FIXED + tag.len() + key.len() + row.bytes.len() + SUM_BYTES);
    file.extend(MAGIC);
    file.push(VERSION);
    file.push(u8::try_from(tag.len()).expect("tags of a directory have 16 bytes"));
    file.extend(u16::try_from(key.len()).expect("a key is short").to_le_bytes());
    file.extend(u32::try_from(row.bytes.len()).expect("a row is short").to_le_bytes());
    file.extend(tag);
    file.extend(key);
    file.extend(&row.bytes);
    let sum = sum(&[&file]);
    file.extend(sum.to_le_bytes());
    file
}

/// Decodes a row, if these bytes are the row under `key`.
pub(crate) fn decode(key: &Key, file: &[u8]) -> Result<Row, String> {
    let truncated = || "it is truncated".to_owned();
    let (body, expected) = file.split_last_chunk::<SUM_BYTES>().ok_or_else(truncated)?;
    let (fixed, rest) = body.split_first_chunk::<FIXED>().ok_or_else(truncated)?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, version, tag, k0, k1, r0, r1, r2, r3] = *fixed;
    if [m0, m1, m2, m3, m4, m5, m6, m7] != MAGIC {
        return Err("it does not start like a row".to_owned());
    }
    if version != VERSION {
        return Err(format!(
            "it has format version {version}, which this program does not support"
        ));
    }
    if sum(&[body]) != u64::from_le_bytes(*expected) {
        return Err("its checksum does not match".to_owned());
    }
    let (tag, key_bytes) = (usize::from(tag), usize::from(u16::from_le_bytes([k0, k1])));
    let row = usize::try_from(u32::from_le_bytes([r0, r1, r2, r3])).unwrap_or(usize::MAX);
    if rest.len().checked_sub(tag + key_bytes) != Some(row) {
        return Err(truncated());
    }
    let (tag, rest) = rest.split_at(tag);
    let (found, row) = rest.split_at(key_bytes);
    if found != key.as_str().as_bytes() {
        return Err(format!("it is the row \"{}\"", found.escape_ascii()));
    }
    Ok(Row { bytes: Bytes::copy_from_slice(row), tag: Tag::new(tag.to_vec()) })
}
