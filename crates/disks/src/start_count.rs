//! The count of starts, as it is written.

use serde::{Deserialize, Serialize};

/// How often something has started. It is written twice, `[12,12]`, so that a damaged digit is not
/// taken for another count: by counts an older copy is known, and a wrong one would be reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "[u64; 2]", into = "[u64; 2]")]
pub struct StartCount(u64);

impl StartCount {
    /// From its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<StartCount> for [u64; 2] {
    fn from(count: StartCount) -> Self {
        [count.0; 2]
    }
}

impl TryFrom<[u64; 2]> for StartCount {
    type Error = String;

    fn try_from([one, other]: [u64; 2]) -> Result<Self, String> {
        if one == other {
            return Ok(Self(one));
        }
        Err(format!("a count of starts is {one} and {other}"))
    }
}
