//! The number of an information track, not counting headers and redundancy.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An information track, numbered over the platter without headers and redundancy.
///
/// User byte `n` of a platter is in information track `n / track_user_bytes`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct InformationTrack(u32);

impl InformationTrack {
    /// Creates the information track at this position.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Position as a plain integer.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for InformationTrack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
