//! A delay, or never.

use std::fmt;
use std::str::FromStr;

use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

const NEVER: &str = "never";

/// The delay of an automatic action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Delay {
    /// After this time.
    After(Duration),
    /// Not automatically.
    Never,
}

impl Delay {
    pub(super) const fn time(self) -> Option<Duration> {
        match self {
            Self::After(time) => Some(time),
            Self::Never => None,
        }
    }
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NEVER {
            return Ok(Self::Never);
        }
        text.parse().map(Self::After).map_err(|error| format!("{error}, or {NEVER}"))
    }
}

impl TryFrom<String> for Delay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(time) => time.fmt(f),
            Self::Never => f.write_str(NEVER),
        }
    }
}

impl From<Delay> for String {
    fn from(time: Delay) -> Self {
        time.to_string()
    }
}
