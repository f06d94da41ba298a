//! Probabilities and shares, always between 0 and 1.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number from 0 to 1: a probability, a rate per trial or a share of a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Ratio(f64);

/// The value was not between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioError(f64);

impl fmt::Display for RatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a ratio; write a number from 0 to 1", self.0)
    }
}

impl std::error::Error for RatioError {}

impl Ratio {
    /// Zero: never.
    pub const ZERO: Self = Self(0.0);

    /// Creates a checked ratio.
    ///
    /// # Errors
    /// When `value` is outside 0 to 1 or not a number.
    pub fn new(value: f64) -> Result<Self, RatioError> {
        if (0.0..=1.0).contains(&value) { Ok(Self(value)) } else { Err(RatioError(value)) }
    }

    /// Returns the value.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Ratio {
    type Error = RatioError;
    fn try_from(value: f64) -> Result<Self, Self::Error> {
        Self::new(value)
    }
}

impl From<Ratio> for f64 {
    fn from(ratio: Ratio) -> Self {
        ratio.0
    }
}
