//! A step that is done beside the row: what is asked of whoever stands there, and what is answered,
//! as bytes (docs/formats/geo-step.md).
//!
//! Who asks says what the site is at the moment ([`Standing`]), since it has the map and whoever
//! stands beside the row has none: so the step is the one that it would have done itself. A
//! question may be told twice, or come late: a step knows its own effect again.

use serde::{Deserialize, Serialize};

use crate::{Error, Request, Row, Standing, Stepped, Verdict, step};

/// The version that is written, of questions and of answers.
const VERSION: u8 = 1;

/// A step that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Question {
    /// What is asked of the site.
    pub request: Request,
    /// What the site is, by the map of who asks.
    pub standing: Standing,
    /// Whether there is likely no row yet, so that looking for it would be a call too many.
    pub is_likely_new: bool,
}

/// What came of a step: the verdict and the row as it is now, or what is wrong with the row.
pub type Answer = Result<(Verdict, Row), Error>;

/// A row that a step led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What the step led to, with the nonce of the row that is written.
    pub stepped: Stepped,
    /// The bytes to be written; none when the row stays as it is.
    pub bytes: Option<Vec<u8>>,
}

/// What is wrong with a row, as it travels.
#[derive(Serialize, Deserialize)]
enum Trouble {
    TooLarge(u64),
    Foreign,
    Damaged,
}

/// Applies a request to a row that is bytes, or to none; `nonce` is drawn if it is to be written.
///
/// # Errors
/// When the bytes are no row, or it has grown too large.
pub fn step_bytes(
    bytes: Option<&[u8]>,
    request: &Request,
    standing: Standing,
    nonce: impl FnOnce() -> u128,
) -> Result<Image, Error> {
    let row = bytes.map(Row::decode).transpose()?;
    let mut stepped = step(row.as_ref(), request, standing);
    if !stepped.changed {
        return Ok(Image { stepped, bytes: None });
    }
    stepped.row.nonce = nonce();
    let bytes = stepped.row.encode()?;
    Ok(Image { stepped, bytes: Some(bytes) })
}

impl Question {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// The question in these bytes, all of them.
    ///
    /// # Errors
    /// [`Error::StepVersion`] when they are of another version, [`Error::StepDamaged`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        decode(bytes)
    }
}

/// The bytes of an answer.
///
/// # Errors
/// [`Error::RowTooLarge`]: never of a row that was read or written.
pub fn encode_answer(answer: &Answer) -> Result<Vec<u8>, Error> {
    let told: Result<(Verdict, Vec<u8>), Trouble> = match answer {
        Ok((verdict, row)) => Ok((*verdict, row.encode()?)),
        Err(Error::RowTooLarge { bytes }) => Err(Trouble::TooLarge(*bytes as u64)),
        Err(Error::RowForeign) => Err(Trouble::Foreign),
        Err(_) => Err(Trouble::Damaged),
    };
    Ok(encode(&told))
}

/// The answer in these bytes.
///
/// # Errors
/// As [`Question::decode`]; what is wrong with the row is inside.
pub fn decode_answer(bytes: &[u8]) -> Result<Answer, Error> {
    match decode::<Result<(Verdict, Vec<u8>), Trouble>>(bytes)? {
        Ok((verdict, row)) => Ok(Ok((verdict, Row::decode(&row).map_err(|_| Error::StepDamaged)?))),
        Err(Trouble::TooLarge(bytes)) => {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            Ok(Err(Error::RowTooLarge { bytes }))
        }
        Err(Trouble::Foreign) => Ok(Err(Error::RowForeign)),
        Err(Trouble::Damaged) => Ok(Err(Error::RowDamaged)),
    }
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let bytes = postcard::to_extend(value, vec![VERSION]);
    bytes.unwrap_or_else(|_| unreachable!("memory takes all, and every length is known"))
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
