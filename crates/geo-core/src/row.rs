//! A site's record of an object: one row, replaced as a whole by one conditional write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Ballot, Error, KnownVersions, Value, Version, limits};

/// First bytes of every row.
const MAGIC: [u8; 4] = *b"FGR\x01";

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Row {
    /// Versions that are known to be decided.
    pub known: KnownVersions,
    /// Undecided versions for which something was promised or accepted.
    pub open: BTreeMap<Version, Instance>,
    /// Whether the row does not vote: it was created after its site had lost its promises, and
    /// other sites have not restored it yet.
    pub silent: bool,
    /// Drawn for each write of the row. It makes every image unique, so that a write whose outcome
    /// is unknown can be recognized by it.
    pub nonce: u128,
}

/// A site's state of a version that is not decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Instance {
    /// The highest ballot it promised or accepted in.
    pub seen: Option<Ballot>,
    /// The value it accepted last.
    pub accepted: Option<Accepted>,
}

/// A value that a site accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Accepted {
    /// The ballot it was accepted in.
    pub ballot: Ballot,
    /// The value.
    pub value: Value,
}

impl Row {
    /// Returns what was accepted for a version, if anything was.
    #[must_use]
    pub fn accepted(&self, version: Version) -> Option<&Accepted> {
        self.open.get(&version)?.accepted.as_ref()
    }

    /// Returns the highest ballot seen for a version, if it is open.
    #[must_use]
    pub fn seen(&self, version: Version) -> Option<Ballot> {
        self.open.get(&version)?.seen
    }

    /// Merges decided versions. Returns whether that changed the row.
    pub fn learn(&mut self, known: &KnownVersions) -> bool {
        let news = self.known.merge(known);
        if news {
            let known = &self.known;
            self.open.retain(|version, _| !known.has(*version));
        }
        news
    }

    /// Encodes the row for storage (docs/formats/geo-row.md).
    ///
    /// # Errors
    /// [`Error::RowTooLarge`].
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = MAGIC.to_vec();
        bytes = postcard::to_extend(self, bytes).map_err(|_| Error::RowDamaged)?;
        bytes.extend_from_slice(&fulgurite_codes::crc32c(&bytes).to_le_bytes());
        if bytes.len() > limits::ROW_BYTES_MAX {
            return Err(Error::RowTooLarge { bytes: bytes.len() });
        }
        Ok(bytes)
    }

    /// Decodes a row.
    ///
    /// # Errors
    /// [`Error::RowForeign`] if the bytes are not a row, or one of a later format;
    /// [`Error::RowDamaged`] if they are a damaged one.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let Some(rest) = bytes.strip_prefix(&MAGIC) else {
            return Err(Error::RowForeign);
        };
        let (body, sum) = rest.split_last_chunk::<4>().ok_or(Error::RowDamaged)?;
        let whole = &bytes[..bytes.len() - sum.len()];
        if fulgurite_codes::crc32c(whole) != u32::from_le_bytes(*sum) {
            return Err(Error::RowDamaged);
        }
        let (row, rest) = postcard::take_from_bytes::<Self>(body).map_err(|_| Error::RowDamaged)?;
        if rest.is_empty() { Ok(row) } else { Err(Error::RowDamaged) }
    }
}
