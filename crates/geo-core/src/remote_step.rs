//! Remote steps, executed on a node next to the row: the encoding of the query and of its answer
//! (docs/formats/geo-step.md).
//!
//! The query contains the current [`SiteState`], because only the sender has the site map. So the
//! remote step is the one that the sender would have executed itself. A query may arrive twice or
//! late: a step recognizes its own effect, so it is idempotent.

use serde::{Deserialize, Serialize};

use crate::{Error, Request, Row, SiteState, StepResult, Verdict, step};

/// Version of the encoding of queries and answers.
const VERSION: u8 = 1;

/// A query for a remote step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StepQuery {
    /// The request to the site.
    pub request: Request,
    /// State of the site, by the sender's site map.
    pub standing: SiteState,
    /// Whether there is probably no row yet, so that reading it first would be a wasted call.
    pub is_likely_new: bool,
}

/// Result of a step: the verdict and the new row, or the error of the row.
pub type Answer = Result<(Verdict, Row), Error>;

/// The row that a step produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The result of the step, with the nonce of the row to be written.
    pub stepped: StepResult,
    /// The bytes to write; none if the row is unchanged.
    pub bytes: Option<Vec<u8>>,
}

/// A row error, as encoded in an answer.
#[derive(Serialize, Deserialize)]
enum RowError {
    TooLarge(u64),
    Foreign,
    Damaged,
}

/// Applies a request to an encoded row, or to none; draws `nonce` only if the row is to be written.
///
/// # Errors
/// If the bytes are not a row, or the row has grown too large.
pub fn step_bytes(
    bytes: Option<&[u8]>,
    request: &Request,
    site_state: SiteState,
    nonce: impl FnOnce() -> u128,
) -> Result<Image, Error> {
    let row = bytes.map(Row::decode).transpose()?;
    let mut stepped = step(row.as_ref(), request, site_state);
    if !stepped.changed {
        return Ok(Image { stepped, bytes: None });
    }
    stepped.row.nonce = nonce();
    let bytes = stepped.row.encode()?;
    Ok(Image { stepped, bytes: Some(bytes) })
}

impl StepQuery {
    /// Encodes the query.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Decodes a query from all of these bytes.
    ///
    /// # Errors
    /// [`Error::StepVersion`] if they are of another version, else [`Error::StepDamaged`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        decode(bytes)
    }
}

/// Encodes an answer.
///
/// # Errors
/// [`Error::RowTooLarge`]: never for a row that was read or written.
pub fn encode_answer(answer: &Answer) -> Result<Vec<u8>, Error> {
    let encoded: Result<(Verdict, Vec<u8>), RowError> = match answer {
        Ok((verdict, row)) => Ok((*verdict, row.encode()?)),
        Err(Error::RowTooLarge { bytes }) => Err(RowError::TooLarge(*bytes as u64)),
        Err(Error::RowForeign) => Err(RowError::Foreign),
        Err(_) => Err(RowError::Damaged),
    };
    Ok(encode(&encoded))
}

/// Decodes an answer.
///
/// # Errors
/// As [`StepQuery::decode`]; the row's own error is inside the answer.
pub fn decode_answer(bytes: &[u8]) -> Result<Answer, Error> {
    match decode::<Result<(Verdict, Vec<u8>), RowError>>(bytes)? {
        Ok((verdict, row)) => Ok(Ok((verdict, Row::decode(&row).map_err(|_| Error::StepDamaged)?))),
        Err(RowError::TooLarge(bytes)) => {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            Ok(Err(Error::RowTooLarge { bytes }))
        }
        Err(RowError::Foreign) => Ok(Err(Error::RowForeign)),
        Err(RowError::Damaged) => Ok(Err(Error::RowDamaged)),
    }
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let bytes = postcard::to_extend(value, vec![VERSION]);
    bytes.unwrap_or_else(|_| unreachable!("encoding into memory cannot fail"))
}

fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let (&version, rest) = bytes.split_first().ok_or(Error::StepDamaged)?;
    if version != VERSION {
        return Err(Error::StepVersion { version, known: VERSION });
    }
    match postcard::take_from_bytes(rest) {
        Ok((value, [])) => Ok(value),
        Ok(_) | Err(_) => Err(Error::StepDamaged),
    }
}

#[cfg(test)]
mod tests;
