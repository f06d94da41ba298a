//! The header in an object's head, in front of its last bytes: enough to rebuild its index row.
//!
//! ```text
//! 0   "FGTOBJ1\n"      8   bytes that follow, u32, little endian      12   Header, in postcard
//! ```

use fulgurite_units::BlobId;
use serde::{Deserialize, Serialize};

use crate::objects::index::{Object, ObjectRow};
use crate::objects::limits::HEADER_BYTES_MAX;
use crate::objects::pieces::Pieces;
use crate::objects::{Result, StoreError};

const MAGIC: &[u8; 8] = b"FGTOBJ1\n";

/// Content of a head's header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    key: String,
    attributes: Vec<(String, String)>,
    sequence: u64,
    modified_ms: u64,
    piece_bytes: u64,
    parts: Vec<u64>,
    tail: u64,
}

impl Header {
    pub(crate) fn new(object: &Object, sequence: u64, pieces: &Pieces) -> Self {
        Self {
            key: object.key.clone(),
            attributes: object.attributes.clone(),
            sequence,
            modified_ms: object.modified_ms,
            piece_bytes: pieces.piece_bytes,
            parts: pieces.parts.clone(),
            tail: pieces.tail,
        }
    }

    /// Encodes the header as it is stored in front of the tail.
    ///
    /// # Errors
    /// When attributes are too large.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([0; 4]);
        let encoded = postcard::to_extend(self, bytes);
        let mut bytes = encoded.map_err(|error| StoreError::Invalid { what: error.to_string() })?;
        let length = bytes.len() - MAGIC.len() - 4;
        if length as u64 > HEADER_BYTES_MAX.get() {
            let what = format!(
                "{length} bytes of key, attributes and parts are more than {HEADER_BYTES_MAX}"
            );
            return Err(StoreError::Invalid { what });
        }
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        bytes[MAGIC.len()..][..4].copy_from_slice(&length.to_le_bytes());
        Ok(bytes)
    }

    /// Returns the key and row of the object with this head.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is invalid.
    pub(crate) fn read(id: BlobId, bytes: &[u8]) -> Result<(String, ObjectRow)> {
        let corrupt = |what: &str| StoreError::Corrupt { what: format!("the head of {id} {what}") };
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| corrupt("has a wrong magic number"))?;
        let (length, rest) = rest.split_first_chunk().ok_or_else(|| corrupt("is truncated"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (header, tail) =
            rest.split_at_checked(length).ok_or_else(|| corrupt("is truncated"))?;
        let header: Self =
            postcard::from_bytes(header).map_err(|error| corrupt(&error.to_string()))?;
        let Self { key, attributes, sequence, modified_ms, piece_bytes, parts, tail: tail_bytes } =
            header;
        if piece_bytes == 0 || tail.len() as u64 != tail_bytes {
            return Err(corrupt("states a wrong length"));
        }
        let head = u32::try_from(MAGIC.len() + 4 + length).unwrap_or(u32::MAX);
        let pieces = Pieces { id, piece_bytes, parts, tail: tail_bytes, head };
        Ok((key, ObjectRow { sequence, modified_ms, attributes, pieces }))
    }
}
