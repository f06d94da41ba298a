//! When a group that nobody wants is put down: after a time, or never.

use std::fmt;
use std::str::FromStr;

use fulgurite_units::Duration;
use serde::{Deserialize, Serialize};

const NEVER: &str = "never";

/// When a group that nobody wants is put down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Idle {
    /// When nobody wanted it for so long.
    After(Duration),
    /// When another group of its class is wanted, as Pelican does.
    Never,
}

impl Idle {
    pub(super) const fn time(self) -> Option<Duration> {
        match self {
            Self::After(time) => Some(time),
            Self::Never => None,
        }
    }
}

impl Default for Idle {
    /// Ten minutes: a switch is worth some, and disks that sleep are what it is for.
    fn default() -> Self {
        Self::After(Duration::from_secs(600))
    }
}

impl FromStr for Idle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NEVER {
            return Ok(Self::Never);
        }
        text.parse().map(Self::After).map_err(|error| format!("{error}, or {NEVER}"))
    }
}

impl TryFrom<String> for Idle {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(time) => time.fmt(f),
            Self::Never => f.write_str(NEVER),
        }
    }
}

impl From<Idle> for String {
    fn from(idle: Idle) -> Self {
        idle.to_string()
    }
}
