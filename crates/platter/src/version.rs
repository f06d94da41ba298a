//! Versions of the platter format. A version is a number on the platter; in this program, it
//! determines which codes restore lost sectors.

use std::fmt;

/// A version of the platter format that this program can read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormatVersion {
    /// One wide code over GF(2^16) for all levels. Read, no longer written.
    One,
    /// Cauchy codes over GF(2^8) for tracks and sets, an additive-FFT code over the tower's
    /// GF(2^16) for large groups.
    #[default]
    Two,
}

impl FormatVersion {
    /// The version in which new platters are written.
    pub const CURRENT: Self = Self::Two;

    /// Number of the version on the platter.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// Returns the version with this number, if this program can read it.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            _ => None,
        }
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.number(), f)
    }
}
