//! A start count, as it is stored.

use serde::{Deserialize, Serialize};

/// How often something has started. Stored twice, `[12,12]`, so that a damaged digit is not taken
/// for another count: counts are used to detect older copies, and a wrong one would cause a false
/// report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "[u64; 2]", into = "[u64; 2]")]
pub struct StartCount(u64);

impl StartCount {
    /// Creates a count.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
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
        Err(format!("the two numbers of a start count differ: {one} and {other}"))
    }
}
