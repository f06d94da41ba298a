//! What a site keeps of an object: one row, changed as a whole by one conditional write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Ballot, Error, Known, Value, Version, limits};

/// First bytes of every row.
const MAGIC: [u8; 4] = *b"FGR\x01";

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Row {
    /// What is known to be decided.
    pub known: Known,
    /// Versions of which more is known than nothing, and not that they are decided.
    pub open: BTreeMap<Version, Instance>,
    /// Whether the row votes. One that was made while its site forgot what it had promised does
    /// not, until it was made whole by others.
    pub silent: bool,
    /// Drawn for each write of it: makes every image of a row another one, so that a write whose
    /// outcome is unknown is known again by it.
    pub nonce: u128,
}

/// What a site said of a version that is not decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Instance {
    /// The highest ballot it promised or accepted in.
    pub seen: Option<Ballot>,
    /// What it accepted last.
    pub accepted: Option<Accepted>,
}

/// A value that a site accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Accepted {
    /// In which ballot.
    pub ballot: Ballot,
    /// The value.
    pub value: Value,
}

impl Row {
    /// What was accepted for a version, if anything was.
    #[must_use]
    pub fn accepted(&self, version: Version) -> Option<&Accepted> {
        self.open.get(&version)?.accepted.as_ref()
    }

    /// The highest ballot seen for a version, if it is open.
    #[must_use]
    pub fn seen(&self, version: Version) -> Option<Ballot> {
        self.open.get(&version)?.seen
    }

    /// Takes in what is decided. Says whether that changed the row.
    pub fn learn(&mut self, known: &Known) -> bool {
        let news = self.known.merge(known);
        if news {
            let known = &self.known;
            self.open.retain(|version, _| !known.has(*version));
        }
        news
    }

    /// The row as it is kept (docs/formats/geo-row.md).
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

    /// A row out of its bytes.
    ///
    /// # Errors
    /// [`Error::RowForeign`] when they are no row, or one of a later format; [`Error::RowDamaged`]
    /// when they were one.
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
