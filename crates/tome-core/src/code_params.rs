//! An erasure code (k + m): how many blocks of a segment, or regions of a group, are data and how
//! many parity.
//!
//! Both levels use the small code of `codes`, over bytes: its field is a subfield of that of the
//! signatures, so the signature of parity is the parity of signatures. Not here: bytes.

use std::fmt;
use std::str::FromStr;

use fulgurite_codes::small::points;
use serde::{Deserialize, Serialize};

use crate::limits::{GROUP_MEMBERS_MAX, PARITY_MAX, SEGMENT_BLOCKS_MAX};
use crate::{Result, TomeError};

/// A code `data + parity`, such as 62+2 blocks of a segment or 13+3 regions of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CodeParams {
    data: u8,
    parity: u8,
}

impl CodeParams {
    /// Returns a code with so much data and parity.
    ///
    /// # Errors
    /// [`TomeError::Range`] when there is no data, no parity, or more than codes have points for.
    pub fn new(data: u32, parity: u32) -> Result<Self> {
        let data_max = SEGMENT_BLOCKS_MAX - parity.clamp(1, PARITY_MAX);
        let parity = bounded("parity", parity, PARITY_MAX)?;
        Ok(Self { data: bounded("data", data, data_max)?, parity })
    }

    /// Number of data members.
    #[must_use]
    pub const fn data(self) -> u32 {
        self.data as u32
    }

    /// Number of parity members: how many of all may be lost.
    #[must_use]
    pub const fn parity(self) -> u32 {
        self.parity as u32
    }

    /// Number of all members.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.data() + self.parity()
    }

    /// Returns the same code if it has few enough members for a group.
    ///
    /// # Errors
    /// [`TomeError::Range`] when it has too many.
    pub fn for_group(self) -> Result<Self> {
        bounded("members of a group", self.total(), GROUP_MEMBERS_MAX).map(|_| self)
    }

    /// Returns the factor of data number `data` in parity number `parity`, both from zero.
    ///
    /// # Panics
    /// When there is no such data or parity.
    #[must_use]
    pub fn coefficient(self, parity: usize, data: usize) -> u8 {
        let index = |number: usize, count: u8| {
            let number = u8::try_from(number).expect("a number below a count of one byte");
            assert!(number < count, "{number} is not below {count}");
            number
        };
        points::coefficient(index(parity, self.parity), index(data, self.data))
    }
}

fn bounded(field: &'static str, value: u32, max: u32) -> Result<u8> {
    let fits = u8::try_from(value).ok().filter(|_| (1..=max).contains(&value));
    fits.ok_or_else(|| TomeError::Range { field, value: value.into(), min: 1, max: max.into() })
}

impl fmt::Display for CodeParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.data, self.parity)
    }
}

impl FromStr for CodeParams {
    type Err = TomeError;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('+');
        let read =
            parts.and_then(|(data, parity)| Some((data.parse().ok()?, parity.parse().ok()?)));
        let (data, parity) = read.ok_or_else(|| TomeError::CodeParams { text: text.to_owned() })?;
        Self::new(data, parity)
    }
}

impl TryFrom<String> for CodeParams {
    type Error = TomeError;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<CodeParams> for String {
    fn from(params: CodeParams) -> Self {
        params.to_string()
    }
}
